// The server's API. The token travels in one header of requests to the page's own origin, and nowhere else.

export class ApiError extends Error {
  constructor(status, content) {
    super(content.message);
    this.status = status;
    this.kind = content.class;
    this.hint = content.hint ?? "";
    this.content = content;
  }

  /** Errors of single queries, each with the place in the text that it is about. */
  get problems() {
    const all = this.content.errors ?? [this.content];
    return all.filter((one) => one.sql && one.end >= one.start);
  }
}

/** The server did not answer at all. */
export class OfflineError extends Error {
  constructor() {
    super("The server cannot be reached.");
    this.hint = "Check the connection. Nothing is lost: what was paid for is kept, and can be fetched again for free.";
  }
}

const seconds = (count) => new Promise((resolve) => setTimeout(resolve, count * 1000));

export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Client {
  #token;

  constructor(token, onRefused) {
    this.#token = token;
    this.onRefused = onRefused;
  }

  async #send(method, path, { body, signal, accept = "application/json" } = {}) {
    const headers = { Authorization: `Bearer ${this.#token}`, Accept: accept };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let response;
    try {
      response = await fetch(path, {
        method,
        headers,
        signal,
        body: body === undefined ? undefined : JSON.stringify(body),
        credentials: "omit",
        redirect: "error",
        referrerPolicy: "no-referrer",
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new OfflineError();
    }
    if (response.ok) return response;
    let content;
    try {
      content = (await response.json()).error;
    } catch {
      content = null;
    }
    const error = new ApiError(response.status, content ?? { message: "The server sent a reply that cannot be read." });
    if (response.status === 401) this.onRefused?.(error);
    throw error;
  }

  async get(path, options) {
    return (await this.#send("GET", path, options)).json();
  }

  async post(path, body, options) {
    return (await this.#send("POST", path, { ...options, body })).json();
  }

  async file(path, accept) {
    return (await this.#send("GET", path, { accept })).blob();
  }

  /** A plan: free, and given up when the signal says so. */
  async explain(body, signal) {
    const id = newId();
    let response = await this.#send("POST", "/api/explain", { body: { ...body, id, wait: 20 }, signal });
    while (response.status === 202) {
      response = await this.#send("GET", `/api/requests/${id}?wait=20`, { signal });
    }
    return response.json();
  }

  /**
   * The result of a request that may cost something. The same id and body again are the same request, so it is safe to
   * send them until the server has them; after that only the result is asked for. `onState` hears where it stands.
   */
  async follow(id, body, onState, signal) {
    let sent = body === null;
    for (let failures = 0; ; ) {
      try {
        const response = sent
          ? await this.#send("GET", `/api/requests/${id}?wait=2`, { signal })
          : await this.#send("POST", "/api/answer", { body: { ...body, id, wait: 0.3 }, signal });
        sent = true;
        failures = 0;
        if (response.status !== 202) return await response.json();
        onState(await response.json());
      } catch (error) {
        const passing = error instanceof OfflineError || (error.status === 503 && sent && failures < 5);
        if (!passing) throw error;
        failures += 1;
        onState({ state: "offline" });
        await seconds(Math.min(8, 2 ** failures / 2));
        if (signal?.aborted) throw new DOMException("given up", "AbortError");
      }
    }
  }

  cancel(id) {
    return this.#send("DELETE", `/api/requests/${id}`);
  }
}
