// For the curator: the books, whether they are sound, who may ask and what they have used.

import { $, el, put } from "./dom.js";
import { account, entryCount, entryTable, ledgerWords } from "./history.js";
import { amount, moment } from "./numbers.js";
import { steps } from "./budget.js";

const MOST = 1000;

export function showLedger(entries, budget, onVerify) {
  const chart = steps(
    entries.filter((one) => one.kind === "charge"),
    budget.cap.epsilon,
  );
  const result = el("p", { class: "verified", role: "status" });
  const button = el("button", { type: "button", class: "quiet" }, "Verify the ledger");
  button.addEventListener("click", async () => {
    button.disabled = true;
    put(result, "Checking every entry…");
    result.className = "verified";
    try {
      const count = await onVerify();
      put(
        result,
        `✓ Sound: ${count.toLocaleString("en")} entries, each bound to the one before it. This shows accidents and clumsy edits; who can write the file could write a new chain.`,
      );
      result.classList.add("good");
    } catch (error) {
      put(result, `${error.message} ${error.hint ?? ""}`);
      result.classList.add("bad");
    } finally {
      button.disabled = false;
    }
  });
  put(
    $("ledger"),
    account("Everybody together", budget),
    chart && el("div", { class: "card" }, chart),
    el("div", { class: "bar" }, button, result),
    el("h2", {}, "Entries"),
    el("p", { class: "footnote" }, ledgerWords(), " ", entryCount(entries, MOST)),
    entries.length
      ? entryTable(entries, "Entries of the ledger")
      : el("p", { class: "empty" }, "Nothing was ever charged: the ledger begins with the first answer."),
  );
}

export function showAnalysts({ analysts, tokens }) {
  const names = Object.keys(analysts);
  put(
    $("analysts"),
    names.length
      ? el(
          "div",
          { class: "accounts" },
          names.map((name) => account(name, analysts[name])),
        )
      : el("p", { class: "empty" }, "Nobody has asked yet, and the policy names no analysts."),
    el("h2", {}, "Tokens"),
    el(
      "p",
      { class: "footnote" },
      "Made, limited and revoked on the server: tacit token create, limit, revoke. Only hashes are kept.",
    ),
    el(
      "div",
      { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Tokens" },
      el(
        "table",
        { class: "entries" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["Token", "For", "Role", "Limits", "Made", "State"].map((name) => el("th", { scope: "col" }, name)),
          ),
        ),
        el("tbody", {}, tokens.map(token)),
      ),
    ),
  );
}

function token(one) {
  const { epsilon, delta, tables, expires } = one.limits;
  const limits = [
    epsilon !== null && `ε ≤ ${amount(epsilon)}`,
    delta !== null && `δ ≤ ${amount(delta)}`,
    tables !== null && `only ${tables.join(", ") || "public tables"}`,
    expires !== null && `until ${moment(expires)}`,
  ].filter(Boolean);
  const state = one.revoked ? "revoked" : one.valid ? "valid" : "expired";
  return el(
    "tr",
    { class: one.valid ? null : "weak" },
    el("td", { class: "mono" }, one.token),
    el("td", {}, one.analyst),
    el("td", {}, one.role),
    el("td", {}, limits.join("; ") || "none"),
    el("td", {}, moment(one.created)),
    el("td", {}, el("span", { class: `tag tag-${state}` }, state)),
  );
}
