// The budget: what may be spent, what was, what this batch would take, and how it came to be so.

import { el, responsive, svg } from "./dom.js";
import { amount, compare, isZero, least, moment } from "./numbers.js";

/** What binds the holder of a token: the smaller of the whole budget, the analyst's part and the token's limit. */
export class Purse {
  constructor(budget, me) {
    this.whole = budget;
    this.me = me;
    const own = budget.analysts[me.analyst];
    this.own = own && compare(own.cap.epsilon, budget.cap.epsilon) < 0 ? own : null;
    const accounts = [budget, ...(own ? [own] : [])];
    this.left = {};
    for (const kind of ["epsilon", "delta"]) {
      this.left[kind] = accounts.map((one) => one.left[kind]).reduce(least);
    }
    this.tight = accounts.reduce((a, b) => (compare(b.left.epsilon, a.left.epsilon) < 0 ? b : a));
  }

  get cap() {
    return this.tight.cap.epsilon;
  }

  affords(cost) {
    return compare(cost.epsilon, this.left.epsilon) <= 0 && compare(cost.delta, this.left.delta) <= 0;
  }
}

/** A bar of what was spent, what this would take, and what is left. */
export function gauge(account, { cost = "0", label, big = false } = {}) {
  const cap = Number(account.cap.epsilon);
  const spent = Number(account.spent.epsilon);
  const asked = Number(cost);
  const too = compare(cost, account.left.epsilon) > 0;
  const share = (value) => (Number.isFinite(cap) && cap > 0 ? Math.min(1, value / cap) * 100 : 0);
  const from = share(spent);
  const text =
    `ε ${amount(account.left.epsilon)} left of ${amount(account.cap.epsilon)}, ${amount(account.spent.epsilon)} spent` +
    (asked ? `, this batch takes ${amount(cost)}` : "");
  const bar = svg(
    "svg",
    { class: "gauge-bar", width: "100%", height: big ? 18 : 12, "aria-hidden": "true" },
    svg("rect", { class: "gauge-track", width: "100%", height: "100%" }),
    svg("rect", { class: "gauge-spent", width: `${from}%`, height: "100%" }),
    asked > 0 &&
      svg("rect", {
        class: too ? "gauge-over" : "gauge-asked",
        x: `${from}%`,
        width: `${Math.min(share(asked), 100 - from)}%`,
        height: "100%",
      }),
  );
  return el(
    "div",
    { class: "gauge" },
    el(
      "div",
      {
        role: "meter",
        "aria-label": label ?? "Budget spent",
        "aria-valuemin": 0,
        "aria-valuemax": Number.isFinite(cap) ? cap : 1,
        "aria-valuenow": Math.min(spent, cap),
        "aria-valuetext": text,
      },
      bar,
    ),
  );
}

/** The sum of charges, step by step. */
export function steps(entries, cap) {
  const charges = entries
    .filter((one) => (one.kind === "charge" || one.kind === "read") && !isZero(one.epsilon))
    .sort((a, b) => a.id - b.id);
  if (!charges.length) return null;
  let sum = 0;
  const sums = charges.map((one) => (sum += Number(one.epsilon)));
  const limit = Number(cap);
  const top = Number.isFinite(limit) && limit < sum * 12 ? Math.max(limit, sum) : sum * 1.15;
  const label = `${charges.length} charges add up to ε ${amount(sum)}`;
  return responsive((width) => {
    const [left, right, high, foot] = [40, 12, 130, 24];
    const x = (i) => left + ((width - left - right) * i) / (charges.length + 1);
    const y = (value) => 10 + (high - 10) * (1 - value / top);
    let path = `M${x(0)},${y(0)}`;
    path += `H${x(1)}`;
    sums.forEach((value, i) => (path += `V${y(value)}H${x(i + 2)}`));
    const area = `${path}V${y(0)}H${x(0)}Z`;
    return svg(
      "svg",
      { width, height: high + foot, role: "img", "aria-label": label },
      svg("line", { class: "axis", x1: left, x2: width - right, y1: y(0), y2: y(0) }),
      top >= limit && svg("line", { class: "cap-line", x1: left, x2: width - right, y1: y(limit), y2: y(limit) }),
      svg("path", { class: "steps-area", d: area }),
      svg("path", { class: "steps-line", d: path }),
      svg("text", { class: "tick", x: left - 6, y: y(0) + 4, "text-anchor": "end" }, "0"),
      svg(
        "text",
        { class: "tick", x: left - 6, y: y(top >= limit ? limit : sum) + 4, "text-anchor": "end" },
        amount(top >= limit ? limit : Number(sum.toPrecision(3))),
      ),
      svg("text", { class: "tick", x: x(1), y: high + 18 }, moment(charges[0].at)),
      charges.length > 1 &&
        width > 420 &&
        svg("text", { class: "tick", x: width - right, y: high + 18, "text-anchor": "end" }, moment(charges.at(-1).at)),
    );
  });
}
