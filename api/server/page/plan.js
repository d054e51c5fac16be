// What answering would cost and how exact it would be, in the analyst's words.

import { el } from "./dom.js";
import { amount, isZero, odds, plural, width } from "./numbers.js";
import { term } from "./terms.js";

const ALTERNATIVES = {
  histogram: "noisy histogram",
  results: "noise on every result",
  split: "budget split per query",
};
export const OTHER_THAN_COUNTS = /\b(sum|avg|stddev\w*|var\w*|median|quantile\w*|percentile\w*|min|max|mode)\s*\(/i;
const MOST_QUERIES = 60;

/** A plan as the page uses it: figures by query and column, and the range of their widths. */
export function read(plan, sql) {
  const { query, group, column, half_width: half, note } = plan.figures;
  const queries = plan.queries.map((text) => ({ text, columns: new Map() }));
  const widths = [];
  query.forEach((index, i) => {
    const { columns } = queries[index];
    if (!columns.has(column[i])) columns.set(column[i], { groups: 0, widths: [], notes: new Set() });
    const own = columns.get(column[i]);
    own.groups += 1;
    if (group[i]) own.grouped = true;
    if (typeof half[i] === "number") {
      own.widths.push(half[i]);
      widths.push(half[i]);
    }
    if (note[i]) own.notes.add(note[i]);
  });
  return {
    ...plan,
    queries,
    widest: widths.length ? widths.reduce((a, b) => Math.max(a, b)) : 0,
    finest: widths.length ? widths.reduce((a, b) => Math.min(a, b)) : 0,
    noun: OTHER_THAN_COUNTS.test(sql) ? "figure" : "count",
    isPublic: plan.strategy === "",
    isFree: isZero(plan.cost.epsilon) && isZero(plan.cost.delta),
  };
}

const span = (least, most) => (most > least * 1.05 ? `±${width(least)} to ±${width(most)}` : `±${width(most)}`);

/** "Each count within ±6.2, 19 times out of 20, for ε = 0.5 of your 2.0" */
export function sentence(plan, purse, scale = 1) {
  if (plan.isPublic) return ["Exact and free: this batch reads public tables only."];
  const exact = plan.widest > 0;
  const about = Math.abs(scale - 1) > 1e-9 ? "about " : "";
  const what = exact
    ? [
        `${plan.widest > plan.finest * 1.05 ? `${plan.noun}s` : `Each ${plan.noun}`} `.replace(/^./, (c) =>
          c.toUpperCase(),
        ),
        term("interval", "within"),
        " ",
        el("strong", { class: "key" }, about + span(plan.finest * scale, plan.widest * scale)),
        `, ${odds(plan.confidence)}, `,
      ]
    : ["The error depends on what is released, "];
  if (plan.isFree) return [...what, el("strong", { class: "key" }, "at no cost"), "."];
  return [
    ...what,
    "for ",
    term("epsilon"),
    " = ",
    el("strong", { class: "key" }, amount(scale === 1 ? plan.cost.epsilon : Number(plan.epsilon) / scale)),
    ` of your ${amount(purse.left.epsilon)} left.`,
  ];
}

function line(query, index, scale) {
  const parts = [...query.columns];
  const rows = parts.length ? parts : [[null, null]];
  return rows.map(([name, own], i) =>
    el(
      "tr",
      {},
      i === 0 && el("th", { scope: "row", rowspan: rows.length, class: "number", title: query.text.trim() }, index + 1),
      el(
        "td",
        { class: "plan-name" },
        name ?? "public tables",
        own?.grouped && el("span", { class: "muted" }, ` · ${plural(own.groups, "group")}`),
      ),
      el(
        "td",
        { class: "numeric" },
        !own
          ? "exact, free"
          : own.widths.length
            ? span(Math.min(...own.widths) * scale, Math.max(...own.widths) * scale)
            : "after release",
      ),
    ),
  );
}

function notes(plan) {
  const all = new Set(plan.queries.flatMap((query) => [...query.columns.values()].flatMap((own) => [...own.notes])));
  return [...all].slice(0, 4).map((text) => el("p", { class: "footnote" }, text));
}

function alternatives(plan) {
  const entries = Object.entries(plan.alternatives).filter(([, error]) => typeof error === "number" && plan.error > 0);
  if (!entries.length || plan.isFree) return null;
  const ratio = (error) => (plan.objective === "absolute" ? error / plan.error : Math.sqrt(error / plan.error));
  const ratios = entries.map(([name, error]) => [ALTERNATIVES[name] ?? name, ratio(error)]).sort((a, b) => a[1] - b[1]);
  const most = Math.max(...ratios.map(([, value]) => value), 1);
  const row = ([name, value], own) =>
    el(
      "li",
      { class: own ? "own" : null },
      el("span", {}, name),
      el("progress", { max: most, value, "aria-hidden": "true" }),
      el("span", { class: "numeric" }, own ? "1×" : `${value.toLocaleString("en", { maximumSignificantDigits: 3 })}×`),
    );
  return el(
    "section",
    { class: "alternatives" },
    el("h3", {}, "The same ε, spent in other ways"),
    el("p", { class: "footnote" }, "Typical error, compared with this plan."),
    el(
      "ul",
      {},
      row(["this plan", 1], true),
      ratios.map((one) => row(one, false)),
    ),
  );
}

export function details(plan, scale = 1) {
  if (plan.isPublic) return [];
  const many = plan.queries.length > MOST_QUERIES;
  return [
    el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Error of each query" },
      el(
        "table",
        { class: "plan-table" },
        el("caption", { class: "unseen" }, `Error of each query, ${odds(plan.confidence)}`),
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", { scope: "col" }, "Query"),
            el("th", { scope: "col" }, "Figure"),
            el("th", { scope: "col", class: "numeric" }, "Within"),
          ),
        ),
        el(
          "tbody",
          {},
          plan.queries.slice(0, MOST_QUERIES).map((query, i) => line(query, i, scale)),
        ),
      ),
    ),
    many && el("p", { class: "footnote" }, `The first ${MOST_QUERIES} of ${plan.queries.length} queries.`),
    notes(plan),
    plan.discover.map((text) => el("p", { class: "footnote" }, text)),
    plan.isFree && el("p", { class: "why" }, `${plan.why.replace(/^./, (c) => c.toUpperCase())}.`),
    !plan.isFree &&
      !/^costs [^;:,]*(, δ=[^;:,]*)?$/.test(plan.why) &&
      el("p", { class: "why" }, `${plan.why.replace(/^./, (c) => c.toUpperCase())}.`),
    alternatives(plan),
    !plan.isFree &&
      el(
        "p",
        { class: "footnote" },
        "One ",
        term("strategy"),
        ` for all: ${plan.strategy}, ${plan.privacy === "pure" ? "Laplace" : "Gaussian"} noise, ${plural(plan.cells, "cell")}.`,
      ),
  ];
}
