// The page: who is there, and which view is open.

import { Desk } from "./asking.js";
import { Purse } from "./budget.js";
import { showCatalog } from "./catalog.js";
import { Client } from "./client.js";
import { showAnalysts, showLedger } from "./curator.js";
import { $, el, put, show } from "./dom.js";
import { showHistory } from "./history.js";
import { forgetAll, recall, remember } from "./memory.js";
import { amount } from "./numbers.js";

const THEMES = ["auto", "light", "dark"];
const FORM = /^tacit_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/;
let session = null;

function theme(name) {
  document.documentElement.dataset.theme = name;
  for (const button of document.querySelectorAll(".theme")) put(button, `Theme: ${name}`);
  try {
    localStorage.setItem("tacit.theme", name);
  } catch {
    // The choice lasts as long as the page.
  }
}

function savedTheme() {
  try {
    const name = localStorage.getItem("tacit.theme");
    return THEMES.includes(name) ? name : "auto";
  } catch {
    return "auto";
  }
}

function nextTheme() {
  theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);
}

/** A reload leaves nothing of the session in the page. */
function signOut() {
  forgetAll();
  location.replace("/");
}

function showSignIn(message = "") {
  show($("loading"), false);
  show($("app"), false);
  show($("sign-in"), true);
  put($("sign-in-error"), message);
  show($("sign-in-error"), message !== "");
  $("token").setAttribute("aria-invalid", String(message !== ""));
  document.title = "Sign in · tacit";
  $("token").focus();
}

async function signIn(token, resumed) {
  show($("sign-in"), false);
  show($("loading"), true);
  put($("loading-text"), "Opening the catalog…");
  const onRefused = (error) => {
    if (!session) return;
    session = null;
    forgetAll();
    showSignIn(`You were signed out: ${error.message}.`);
  };
  const client = new Client(token, onRefused);
  try {
    const me = await client.get("/api/me");
    const [catalog, budget] = await Promise.all([client.get("/api/catalog"), client.get("/api/budget")]);
    remember("token", token);
    session = { client, me, tables: catalog.tables, purse: new Purse(budget, me) };
    open();
  } catch (error) {
    if (resumed && error.status !== 401) return showRetry(error, token);
    forgetAll();
    showSignIn(`${error.message}${/[.!]$/.test(error.message) ? "" : "."} ${error.hint ?? ""}`);
  }
}

function showRetry(error, token) {
  put(
    $("loading-text"),
    `${error.message} ${error.hint ?? ""} `,
    el("button", { type: "button", on: { click: () => signIn(token, true) } }, "Try again"),
  );
}

function open() {
  const { me, tables, purse, client } = session;
  show($("loading"), false);
  show($("app"), true);
  put($("who"), me.analyst, el("span", { class: "tag" }, me.role));
  put($("version"), me.version);
  for (const node of document.querySelectorAll(".curator-only")) show(node, me.role === "curator");
  session.desk = new Desk({ client, purse, tables, onSpent: refresh });
  showCatalog(tables, (name) => session.desk.insert(name));
  $("catalog-place").open = matchMedia("(min-width: 76rem)").matches;
  route();
}

async function refresh() {
  const { client, me, desk } = session;
  try {
    session.purse = new Purse(await client.get("/api/budget"), me);
    desk.setPurse(session.purse);
  } catch {
    // The next answer brings it; a refused token has been dealt with.
  }
}

const VIEWS = {
  ask: () => {},
  history: async () => {
    const { client, me } = session;
    const [budget, history] = await Promise.all([client.get("/api/budget"), client.get("/api/history?limit=200")]);
    session.purse = new Purse(budget, me);
    showHistory(session.purse, history, (id, sql) => {
      location.hash = "ask";
      session.desk.open(id, sql);
    });
  },
  ledger: async () => {
    const { client } = session;
    const [budget, ledger] = await Promise.all([client.get("/api/budget"), client.get("/api/ledger?limit=1000")]);
    showLedger(ledger.entries, budget, async () => (await client.post("/api/verify", {})).entries);
  },
  analysts: async () => showAnalysts(await session.client.get("/api/analysts")),
};

async function route() {
  if (!session) return;
  const wanted = location.hash.slice(1);
  const open = (wanted === "ledger" || wanted === "analysts") && session.me.role !== "curator" ? "ask" : wanted;
  const name = Object.hasOwn(VIEWS, open) ? open : "ask";
  for (const view of document.querySelectorAll(".view")) show(view, view.id === `view-${name}`);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${$(`view-${name}`).dataset.title} · tacit`;
  if (name === "ask") return;
  const place = $(name);
  put(place, el("p", { class: "empty", role: "status" }, "Loading…"));
  try {
    await VIEWS[name]();
  } catch (error) {
    put(
      place,
      el(
        "div",
        { class: "empty", role: "alert" },
        el("p", {}, `${error.message} ${error.hint ?? ""}`),
        el("button", { type: "button", class: "quiet", on: { click: route } }, "Try again"),
      ),
    );
  }
}

theme(savedTheme());
for (const button of document.querySelectorAll(".theme")) button.addEventListener("click", nextTheme);
$("sign-out").addEventListener("click", signOut);
$("show-token").addEventListener("click", () => {
  const hidden = $("token").type === "password";
  $("token").type = hidden ? "text" : "password";
  put($("show-token"), hidden ? "Hide" : "Show");
});
$("sign-in-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = $("token").value.trim();
  if (!FORM.test(token)) {
    return showSignIn(
      token
        ? "That is not a whole token: it begins with tacit_ and is 70 characters long. Copy all of it."
        : "Paste the token that the curator gave you.",
    );
  }
  $("token").value = "";
  signIn(token, false);
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  $("main").focus();
});
addEventListener("hashchange", route);
const token = recall("token");
if (token) signIn(token, true);
else showSignIn();
