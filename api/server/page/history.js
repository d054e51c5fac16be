// The analyst's own history: what was charged, and every request, to be opened again for free.

import { gauge, steps } from "./budget.js";
import { $, el, put } from "./dom.js";
import { amount, isZero, moment, plural } from "./numbers.js";
import { term } from "./terms.js";

export const KINDS = {
  charge: "charge",
  read: "read of what others paid for",
  cap: "cap set",
  policy: "policy set",
  version: "table changed",
  discovery: "discovery",
  release: "release",
};
const STATES = {
  done: "answered",
  failed: "refused",
  cancelled: "cancelled",
  queued: "waiting",
  running: "running",
  paying: "being answered",
};

export function account(title, one) {
  return el(
    "div",
    { class: "account" },
    el("p", { class: "account-name" }, title),
    gauge(one, { label: `${title}: budget spent`, big: true }),
    el(
      "p",
      { class: "account-figures" },
      el("strong", {}, `ε ${amount(one.left.epsilon)}`),
      ` left of ${amount(one.cap.epsilon)}; ${amount(one.spent.epsilon)} spent`,
      !isZero(one.cap.delta) && `; δ ${amount(one.left.delta)} left of ${amount(one.cap.delta)}`,
    ),
  );
}

export function showHistory(purse, history, onOpen) {
  const { whole, own, me } = purse;
  const mine = whole.analysts[me.analyst];
  const chart = steps(history.entries, own ? own.cap.epsilon : whole.cap.epsilon);
  put(
    $("history"),
    el(
      "div",
      { class: "accounts" },
      account("Everybody together", whole),
      mine && account(`You (${me.analyst})`, mine),
    ),
    whole.rule === "zcdp" &&
      el("p", { class: "footnote" }, "Charges add up by the zCDP rule here: many small ones cost less than their sum."),
    el("h2", {}, "Your spending"),
    chart
      ? el("div", { class: "card" }, chart)
      : el("p", { class: "empty" }, "You have spent nothing yet. Answers that others paid for may cost you nothing."),
    el("h2", {}, "Your requests"),
    history.requests.length
      ? el(
          "ul",
          { class: "requests" },
          history.requests.map((one) => request(one, onOpen)),
        )
      : el("p", { class: "empty" }, "No request yet. Write a batch under Ask; looking at its plan is free."),
  );
}

function request(one, onOpen) {
  const sql = [one.sql].flat().join(";\n").trim();
  const open = one.state === "done" && one.kind === "answer";
  return el(
    "li",
    { class: "request" },
    el(
      "pre",
      { class: "request-sql" },
      sql
        .split("\n")
        .filter((line) => !line.trim().startsWith("--"))
        .slice(0, 2)
        .join("\n") || sql,
    ),
    el(
      "p",
      { class: "request-facts" },
      el("span", { class: `tag tag-${one.state}` }, STATES[one.state] ?? one.state),
      el("span", {}, moment(one.created)),
      one.cost && el("span", {}, isZero(one.cost.epsilon) ? "free" : `ε ${amount(one.cost.epsilon)}`),
      open &&
        el("button", { type: "button", class: "quiet", on: { click: () => onOpen(one.id, sql) } }, "Open again, free"),
    ),
  );
}

/** Entries of a ledger as a table, the newest first. */
export function entryTable(entries, caption) {
  return el(
    "div",
    { class: "scroll tall", tabindex: "0", role: "region", "aria-label": caption },
    el(
      "table",
      { class: "entries" },
      el("caption", { class: "unseen" }, caption),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ["No.", "When", "What", "Who", "ε", "δ"].map((name, i) =>
            el("th", { scope: "col", class: i > 3 || i === 0 ? "numeric" : null }, name),
          ),
        ),
      ),
      el(
        "tbody",
        {},
        [...entries]
          .sort((a, b) => b.id - a.id)
          .map((one) =>
            el(
              "tr",
              {},
              el("td", { class: "numeric muted" }, one.id),
              el("td", {}, moment(one.at)),
              el(
                "td",
                {},
                KINDS[one.kind] ?? one.kind,
                one.refers !== null && el("span", { class: "muted" }, ` of ${one.refers}`),
              ),
              el("td", {}, one.analyst ?? "–"),
              el("td", { class: "numeric" }, isZero(one.epsilon) ? "–" : amount(one.epsilon)),
              el("td", { class: "numeric" }, isZero(one.delta) ? "–" : amount(one.delta)),
            ),
          ),
      ),
    ),
  );
}

export const ledgerWords = () => [
  "The ",
  term("ledger"),
  " says what was charged, to whom and when; it holds no data.",
];
export const entryCount = (entries, limit) =>
  entries.length >= limit
    ? `The newest ${plural(entries.length, "entry", "entries")}.`
    : plural(entries.length, "entry", "entries");
