// The desk: a batch is written, explained while it is written, and answered when the analyst says so.

import { view } from "./answers.js";
import { gauge } from "./budget.js";
import { example } from "./catalog.js";
import { newId } from "./client.js";
import { Dial } from "./dial.js";
import { $, announce, el, put, show } from "./dom.js";
import { Editor } from "./editor.js";
import { forget, recall, remember } from "./memory.js";
import { amount, compare, isPositive, isZero } from "./numbers.js";
import { details, read, sentence } from "./plan.js";
import { term } from "./terms.js";

const TYPING = 400;
const TURNING = 180;
const ORDINALS = { 1: "st", 2: "nd", 3: "rd" };
const ordinal = (n) => `${n}${(n % 100 > 10 && n % 100 < 14 ? null : ORDINALS[n % 10]) ?? "th"}`;

export class Desk {
  #client;
  #purse;
  #tables;
  #onSpent;
  #timer = 0;
  #asking = null;
  #plan = null;
  #planned = "";
  #running = null;
  #wantsFocus = false;
  /** What went wrong with the last answer: [text, whether it is bad]. It stays until something new is asked. */
  #trouble = ["", false];

  constructor({ client, purse, tables, onSpent }) {
    this.#client = client;
    this.#purse = purse;
    this.#tables = tables;
    this.#onSpent = onSpent;
    this.editor = new Editor({ onChange: () => this.#typed(), onSubmit: () => this.#submit() });
    this.dial = new Dial((settled) => {
      remember("choice", this.dial.choice);
      if (this.#plan) this.#drawPlan();
      this.#changed(settled ? 0 : TURNING);
    });
    for (const id of ["delta", "confidence", "nonnegative", "integer"]) {
      $(id).addEventListener("change", () => this.#changed(0));
    }
    $("answer").addEventListener("click", () => this.#answer());
    $("answer").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.repeat) return;
      event.preventDefault();
      this.#answer();
    });
    $("cancel").addEventListener("click", () => this.#cancel());
    show($("delta-field"), !isZero(purse.whole.cap.delta));
    this.dial.setRange(purse.cap, recall("choice") ?? { epsilon: this.#start() });
    this.editor.text = recall("draft") ?? "";
    this.#drawBudget();
    this.#changed(0);
    this.#resume();
  }

  /** What the policy says a batch costs, or a tenth of the budget. */
  #start() {
    const { me, left, cap } = this.#purse;
    if (me.spend && compare(me.spend, left.epsilon) <= 0) return me.spend;
    const share = Number(isZero(left.epsilon) ? cap : left.epsilon) / 10;
    return Number.isFinite(share) && share > 0 ? String(Number(share.toPrecision(2))) : "0.1";
  }

  setPurse(purse) {
    this.#purse = purse;
    this.dial.setRange(purse.cap);
    this.#drawBudget();
    if (this.#plan) this.#drawPlan();
  }

  insert(name) {
    this.editor.insert(name);
  }

  open(id, sql) {
    this.editor.text = sql;
    this.#changed(0);
    this.#follow(id, null);
  }

  #body() {
    const body = { sql: this.editor.text, confidence: Number($("confidence").value) };
    const { epsilon, error } = this.dial.choice;
    if (error !== undefined) body.error = error;
    else body.epsilon = Number(epsilon);
    const delta = $("delta").value.trim();
    if (isPositive(delta)) body.delta = Number(delta);
    for (const name of ["nonnegative", "integer"]) if ($(name).checked) body[name] = true;
    return body;
  }

  #typed() {
    this.#trouble = ["", false];
    this.#changed(TYPING);
  }

  #changed(delay) {
    remember("draft", this.editor.text);
    clearTimeout(this.#timer);
    this.#asking?.abort();
    this.#asking = null;
    this.#wantsFocus = false;
    if (!this.editor.text.trim()) return this.#drawNothing();
    $("plan").classList.add("stale");
    $("plan").setAttribute("aria-busy", "true");
    put($("plan-state"), "Explaining…");
    this.#drawButton();
    this.#timer = setTimeout(() => this.#explain(), delay);
  }

  /** Ctrl+Enter: explain at once and go to the button that answers. Paying takes a second key, on that button. */
  #submit() {
    if (this.#isCurrent()) {
      $("answer").focus();
    } else if (this.editor.text.trim()) {
      clearTimeout(this.#timer);
      this.#explain();
      this.#wantsFocus = true;
    }
  }

  #isCurrent() {
    return this.#plan !== null && this.#asking === null && this.#planned === JSON.stringify(this.#body());
  }

  async #explain() {
    this.#asking?.abort();
    const own = (this.#asking = new AbortController());
    const body = this.#body();
    try {
      const plan = await this.#client.explain(body, own.signal);
      if (this.#asking !== own) return;
      this.#asking = null;
      this.#planned = JSON.stringify(body);
      this.#plan = read(plan, body.sql);
      this.editor.showProblems([]);
      this.dial.settle(this.#plan);
      this.#drawPlan();
      announce($("plan-sentence").textContent);
      if (this.#wantsFocus) $("answer").focus();
    } catch (error) {
      if (error.name === "AbortError" || this.#asking !== own) return;
      this.#asking = null;
      this.#drawError(error);
    }
    this.#wantsFocus = false;
  }

  #drawNothing() {
    this.#plan = null;
    this.editor.showProblems([]);
    this.#state("empty");
    const sql = example(this.#tables);
    put($("plan-state"));
    put($("plan-sentence"), "Write SQL and see here, before paying, how exact the answers would be. Looking is free.");
    put(
      $("plan-details"),
      sql &&
        el(
          "button",
          {
            type: "button",
            class: "quiet",
            id: "example",
            on: {
              click: () => {
                this.editor.focus();
                this.editor.insert(sql);
              },
            },
          },
          "Begin with an example",
        ),
    );
    this.#drawButton();
    this.#drawBudget();
  }

  #drawPlan() {
    const { scale } = this.dial;
    this.#state("plan");
    put($("plan-state"), this.#isCurrent() ? "" : "Explaining…");
    put($("plan-sentence"), sentence(this.#plan, this.#purse, scale));
    put($("plan-details"), details(this.#plan, scale));
    this.#drawButton();
    this.#drawBudget();
  }

  #drawError(error) {
    const { problems = [] } = error;
    this.#plan = null;
    this.#state("error");
    this.editor.showProblems(problems);
    put($("plan-state"));
    put(
      $("plan-sentence"),
      problems.length
        ? "This batch cannot be answered yet: see what is underlined. Nothing was charged."
        : error.message,
    );
    put(
      $("plan-details"),
      !problems.length && error.hint && el("p", {}, error.hint),
      !problems.length &&
        el("button", { type: "button", class: "quiet", on: { click: () => this.#changed(0) } }, "Try again"),
    );
    const first = problems[0];
    announce(first ? `${first.message}. ${first.hint}` : error.message);
    this.#drawButton();
    this.#drawBudget();
  }

  #state(name) {
    const place = $("plan");
    place.dataset.state = name;
    place.classList.toggle("stale", name === "plan" && !this.#isCurrent());
    place.setAttribute("aria-busy", String(name === "plan" && !this.#isCurrent()));
  }

  #drawButton() {
    const button = $("answer");
    const plan = this.#plan;
    const affordable = plan && (plan.isFree || this.#purse.affords(plan.cost));
    const ready = affordable && this.#isCurrent() && !this.#running;
    button.disabled = !plan || !affordable || this.#running !== null;
    button.setAttribute("aria-disabled", String(!ready));
    const words = plan?.isFree ? "Answer, free" : plan ? `Answer for ε ${amount(plan.cost.epsilon)}` : "Answer";
    const delta = plan && !isZero(plan.cost.delta) ? ` and δ ${amount(plan.cost.delta)}` : "";
    put(button, this.#running ? "Answering…" : words + delta);
    const { left } = this.#purse;
    const short = plan && !affordable;
    put(
      $("answer-note"),
      short &&
        (compare(plan.cost.epsilon, left.epsilon) > 0
          ? `This costs ε ${amount(plan.cost.epsilon)}, and you have ${amount(left.epsilon)} left. Move the slider, or ask the curator.`
          : `This costs δ ${amount(plan.cost.delta)}, and you have ${amount(left.delta)} left. Set δ to 0.`),
      !short && this.#trouble[0],
    );
    $("answer-note").classList.toggle("bad", Boolean(short) || this.#trouble[1]);
  }

  #drawBudget() {
    const { tight, me } = this.#purse;
    const cost = this.#plan && !this.#plan.isFree ? this.#plan.cost.epsilon : "0";
    const whose = tight === this.#purse.whole ? "Budget" : `Budget of ${me.analyst}`;
    put(
      $("budget"),
      el(
        "p",
        { class: "budget-line" },
        el("strong", { class: "budget-left", id: "budget-left" }, amount(tight.left.epsilon)),
        el("span", {}, " ", term("epsilon"), ` left of ${amount(tight.cap.epsilon)}`),
      ),
      gauge(tight, { cost, label: whose }),
      el(
        "p",
        { class: "legend" },
        el("span", { class: "key-spent" }, `spent ${amount(tight.spent.epsilon)}`),
        Number(cost) > 0 &&
          el(
            "span",
            { class: compare(cost, tight.left.epsilon) > 0 ? "key-over" : "key-asked" },
            `this batch ${amount(cost)}`,
          ),
        !isZero(tight.cap.delta) && el("span", {}, term("delta"), ` ${amount(tight.left.delta)} left`),
      ),
    );
  }

  #answer() {
    if ($("answer").getAttribute("aria-disabled") === "true") return;
    const id = newId();
    const body = this.#body();
    this.#trouble = ["", false];
    remember("pending", { id });
    this.#follow(id, body);
  }

  #resume() {
    const pending = recall("pending");
    const shown = recall("shown");
    if (pending) this.#follow(pending.id, null);
    else if (shown) this.#follow(shown, null);
  }

  /** Wait for a request; `body` is null where the server has it already. */
  async #follow(id, body) {
    this.#running?.control.abort();
    const own = (this.#running = { id, control: new AbortController() });
    this.#progress({ state: "sent" });
    this.#drawButton();
    try {
      const result = await this.#client.follow(
        id,
        body,
        (state) => this.#running === own && this.#progress(state),
        own.control.signal,
      );
      if (this.#running !== own) return;
      remember("shown", id);
      this.#finish();
      this.#showAnswers(id, result, body !== null);
      if (body !== null || recall("pending")) this.#spent();
      forget("pending");
    } catch (error) {
      if (error.name === "AbortError" || this.#running !== own) return;
      this.#finish();
      if (recall("pending")?.id === id) this.#spent();
      forget("pending", ...(error.status === 404 ? ["shown"] : []));
      this.#failed(error, body === null);
    }
  }

  #spent() {
    this.#onSpent();
    this.#changed(0);
  }

  #finish() {
    this.#running = null;
    show($("progress"), false);
    this.#drawButton();
  }

  #failed(error, resumed) {
    const lost = error.status === 404 && resumed;
    const text = lost
      ? "The request had not reached the server, so nothing was charged. Press Answer again."
      : error.message;
    this.#complain(lost ? { message: text } : error, !/cancelled/.test(text) && !lost);
    if (error.problems?.length) this.editor.showProblems(error.problems);
  }

  #complain({ message, hint }, bad = true) {
    this.#trouble = [hint ? `${message}. ${hint}` : message, bad];
    this.#drawButton();
    announce(this.#trouble[0]);
  }

  #progress(state) {
    const words = {
      sent: "Sent to the server.",
      queued:
        state.position > 1
          ? `${ordinal(state.position)} in the queue; ${state.running} running now.`
          : "Next in the queue.",
      running: "Planning. Nothing is charged yet.",
      paying: "Charged; reading the tables and adding noise.",
      offline: "The connection is lost. Trying again; nothing is paid twice.",
    };
    show($("progress"), true);
    const text = words[state.state] ?? "Working.";
    if ($("progress-text").textContent !== text) put($("progress-text"), text);
    show($("cancel"), ["sent", "queued", "running"].includes(state.state));
  }

  async #cancel() {
    const running = this.#running;
    if (!running) return;
    try {
      await this.#client.cancel(running.id);
    } catch (error) {
      if (this.#running === running && error.status !== 404) put($("progress-text"), error.message);
    }
  }

  #showAnswers(id, result, isNew) {
    const place = $("answers");
    const onFile = (kind, accept) => this.#download(id, kind, accept);
    put(place, view(result, { onFile }));
    show($("answers-section"), true);
    announce(`${result.answers.length} queries answered.`);
    if (isNew) {
      $("answers-title").focus({ preventScroll: true });
      const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
      $("answers-section").scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "start" });
    }
  }

  async #download(id, kind, accept) {
    try {
      const address = URL.createObjectURL(await this.#client.file(`/api/requests/${id}?wait=30`, accept));
      const link = el("a", { href: address, download: `answers-${id.slice(0, 8)}.${kind}` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 10_000);
    } catch (error) {
      this.#complain(error);
    }
  }
}
