// Answers: single figures together, grouped ones with a picture and a table each.

import { bars, heat, isWeak, line } from "./charts.js";
import { el, responsive } from "./dom.js";
import { amount, figure, isZero, odds, plural, width } from "./numbers.js";
import { OTHER_THAN_COUNTS } from "./plan.js";

const ORDERED = /^(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT|U\w*INT|FLOAT|DOUBLE|DECIMAL|DATE|TIMESTAMP)/;
const MOST_BARS = 40;
const SLICE = 200;
const FILES = [
  ["csv", "CSV", "text/csv"],
  ["parquet", "Parquet", "application/vnd.apache.parquet"],
  ["json", "JSON", "application/json"],
];

const keyText = (value) => (value === null ? "NULL" : String(value));
const isFigure = (column) => "stderr" in column;
const size = (answer) => answer.columns[0]?.values.length ?? 0;
const point = (column, i, label) => ({ label, value: column.values[i], low: column.low[i], high: column.high[i] });
const half = (column, i) => (column.high[i] - column.low[i]) / 2;
const atOf = (type, value) => (/^(DATE|TIMESTAMP)/.test(type) ? Date.parse(value) : Number(value));

/** Everything about one release. `onFile(kind, accept)` downloads it. */
export function view(result, { onFile }) {
  const alone = (answer) => size(answer) === 1 && answer.columns.every(isFigure);
  const singles = result.answers.flatMap((answer, i) =>
    alone(answer) ? answer.columns.map((column) => ({ column, number: i + 1, sql: answer.sql })) : [],
  );
  const cards = result.answers.map((answer, i) => !alone(answer) && grouped(answer, i + 1));
  if (singles.length) cards.unshift(singleFigures(singles));
  const weak = result.answers.some((a) =>
    a.columns.some((c) => isFigure(c) && c.values.some((_, i) => isWeak(point(c, i, "")))),
  );
  return [
    el(
      "div",
      { class: "answers-head" },
      el(
        "p",
        {},
        `${plural(result.answers.length, "query", "queries")} answered for `,
        el(
          "strong",
          {},
          isZero(result.cost.epsilon) ? "nothing: it was paid for before" : `ε ${amount(result.cost.epsilon)}`,
        ),
        !isZero(result.cost.delta) && ` and δ ${amount(result.cost.delta)}`,
        `. Error bars hold ${odds(result.confidence)}.`,
        weak && " Faint figures could be zero.",
      ),
      el(
        "div",
        { class: "buttons", role: "group", "aria-label": "Download" },
        FILES.map(([kind, word, accept]) =>
          el(
            "button",
            { type: "button", class: "quiet", "data-file": kind, on: { click: () => onFile(kind, accept) } },
            `↓ ${word}`,
          ),
        ),
      ),
    ),
    el("div", { class: "cards" }, cards),
  ];
}

function singleFigures(all) {
  if (all.length === 1) return card(all[0].column.name, all[0].number, bigFigure(all[0].column), null, all[0].sql);
  const counts = all.filter(({ sql }) => !OTHER_THAN_COUNTS.test(sql));
  const points = counts.map(({ column }) => point(column, 0, column.name));
  const notes = footnotes(all.some(({ column }) => column.note[0]));
  const rows = all.map(({ column, number, sql }) =>
    el(
      "tr",
      { class: isWeak(point(column, 0, "")) ? "weak" : null },
      el("th", { scope: "row", title: sql.trim() }, el("span", { class: "chip" }, number), column.name),
      ...numbersOf(column, 0),
      notes.cell([column.note[0]]),
    ),
  );
  const drawn = counts.length > 1 && counts.length <= 2 * MOST_BARS;
  return card(
    "Single figures",
    null,
    drawn && responsive((room) => bars(points, room, "Single figures")),
    el("div", {}, table(["Query"], [""], rows, notes, true), notes.list),
    null,
  );
}

function bigFigure(column) {
  return el(
    "p",
    { class: "big-figure" },
    el("strong", {}, figure(column.values[0])),
    el("span", {}, ` ±${width(half(column, 0))}`),
    el(
      "small",
      {},
      `between ${figure(column.low[0])} and ${figure(column.high[0])}${column.note[0] ? `; ${column.note[0]}` : ""}`,
    ),
  );
}

function numbersOf(column, i, interval = true) {
  const known = typeof column.low[i] === "number" && typeof column.high[i] === "number";
  return [
    el("td", { class: "numeric strong" }, figure(column.values[i])),
    el("td", { class: "numeric" }, known ? `±${width(half(column, i))}` : "–"),
    interval &&
      el(
        "td",
        { class: "numeric muted interval" },
        known ? `${figure(column.low[i])} to ${figure(column.high[i])}` : "–",
      ),
  ];
}

function grouped(answer, number) {
  const keys = answer.columns.filter((column) => !isFigure(column));
  const figures = answer.columns.filter(isFigure);
  const names = figures.map((column) => column.name).join(", ");
  const title = [names, keys.map((column) => column.name).join(figures.length ? " and " : ", ")]
    .filter(Boolean)
    .join(" by ");
  return card(
    title || `Query ${number}`,
    number,
    figures.map((column) => picture(column, keys, answer)),
    groupTable(answer, keys, figures),
    answer.sql,
  );
}

function picture(column, keys, answer) {
  const count = size(answer);
  const label = (i) => keys.map((key) => keyText(key.values[i])).join(", ") || answer.groups[i];
  const points = column.values.map((_, i) => point(column, i, label(i)));
  const name = keys.length ? `${column.name} by ${keys.map((key) => key.name).join(" and ")}` : column.name;
  const chart = chartOf(column, keys, points, count, name);
  if (!chart) return null;
  const widths = column.values.map((_, i) => half(column, i)).filter(Number.isFinite);
  const [least, most] = [Math.min(...widths), Math.max(...widths)];
  const bar = !widths.length
    ? ""
    : most > least * 1.05
      ? `within ±${width(least)} to ±${width(most)}`
      : `each within ±${width(most)}`;
  return el(
    "figure",
    { class: "chart" },
    el("figcaption", {}, el("strong", {}, column.name), bar && ` · ${bar}`),
    chart,
  );
}

function chartOf(column, keys, points, count, name) {
  if (keys.length === 2 && count > 3 && new Set(keys[1].values).size <= 24) {
    const placed = points.map((p, i) => ({
      ...p,
      row: keyText(keys[0].values[i]),
      column: keyText(keys[1].values[i]),
    }));
    if (new Set(placed.map((p) => `${p.row}\u0000${p.column}`)).size === count) {
      return el(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
        responsive((room) => heat(placed, room, name)),
      );
    }
  }
  if (keys.length === 1 && ORDERED.test(keys[0].type) && count > 4) {
    const type = keys[0].type;
    const placed = points
      .map((p, i) => ({ ...p, at: atOf(type, keys[0].values[i]) }))
      .filter((p, i) => keys[0].values[i] !== null && Number.isFinite(p.at));
    placed.sort((a, b) => a.at - b.at);
    const isTime = /^(DATE|TIMESTAMP)/.test(type);
    if (placed.length > 4) return responsive((room) => line(placed, room, name, isTime));
  }
  if (count >= 1 && count <= MOST_BARS) return responsive((room) => bars(points, room, name));
  return null;
}

function groupTable(answer, keys, figures) {
  const count = size(answer);
  const notes = footnotes(figures.some((column) => column.note.some(Boolean)));
  const row = (i) =>
    el(
      "tr",
      { class: figures.length && figures.every((column) => isWeak(point(column, i, ""))) ? "weak" : null },
      keys.map((key) =>
        el("th", { scope: "row", class: key.values[i] === null ? "null" : null }, keyText(key.values[i])),
      ),
      figures.map((column) => numbersOf(column, i, figures.length === 1)),
      notes.cell(figures.map((column) => column.note[i])),
    );
  const rows = Array.from({ length: Math.min(count, SLICE) }, (_, i) => row(i));
  const built = table(
    keys.map((key) => key.name),
    figures.map((column) => (figures.length > 1 ? column.name : "")),
    rows,
    notes,
    figures.length === 1,
  );
  if (count <= SLICE) return el("div", {}, built, notes.list);
  let shown = SLICE;
  const more = el("button", { type: "button", class: "quiet" }, `Show more of ${count.toLocaleString("en")} rows`);
  more.addEventListener("click", () => {
    const body = built.querySelector("tbody");
    for (const end = Math.min(count, shown + 1000); shown < end; shown += 1) body.append(row(shown));
    more.hidden = shown >= count;
  });
  return el("div", {}, built, more, notes.list);
}

/** What is to be said of rows, each text once below the table: a column of sentences would leave no room for figures. */
function footnotes(wanted) {
  const numbers = new Map();
  const list = wanted && el("ol", { class: "footnotes" });
  const numbered = (text) => {
    if (!numbers.has(text)) {
      numbers.set(text, numbers.size + 1);
      list.append(el("li", {}, text));
    }
    return numbers.get(text);
  };
  const cell = (texts) => {
    const found = [...new Set(texts.filter(Boolean))].map((text) => numbered(text));
    return wanted && el("td", { class: "note" }, found.length > 0 && el("span", { class: "unseen" }, "note "), found.join(", "));
  };
  return { wanted, list, cell };
}

function table(keys, figures, rows, notes, interval) {
  return el(
    "div",
    {
      class: "scroll tall",
      tabindex: "0",
      role: "region",
      "aria-label": `Table: ${[...keys, ...figures].filter(Boolean).join(", ")}`,
    },
    el(
      "table",
      { class: "released" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          keys.map((name) => el("th", { scope: "col" }, name)),
          figures.map((name) => [
            el("th", { scope: "col", class: "numeric" }, name || "Value"),
            el("th", { scope: "col", class: "numeric" }, "Within"),
            interval && el("th", { scope: "col", class: "numeric interval" }, "Interval"),
          ]),
          notes.wanted && el("th", { scope: "col" }, "Note"),
        ),
      ),
      el("tbody", {}, rows),
    ),
  );
}

function card(title, number, picture, body, sql) {
  const pictures = [picture].flat().filter(Boolean);
  return el(
    "article",
    { class: pictures.length ? "card answer" : "card answer plain" },
    el("h3", {}, number !== null && el("span", { class: "chip", "aria-label": `Query ${number}` }, number), title),
    pictures.length > 0 && el("div", { class: "pictures" }, pictures),
    body,
    sql && el("details", { class: "sql" }, el("summary", {}, "SQL"), el("pre", {}, sql.trim())),
  );
}
