// The catalog: what may be asked about, and what the data owner has declared of it.

import { $, add, el, put } from "./dom.js";
import { plural } from "./numbers.js";
import { quoted } from "./sql_words.js";
import { term } from "./terms.js";

const MOST_VALUES = 8;
const MANY_COLUMNS = 14;

/** A value of a domain, as one reads it. */
export function shown(value) {
  if (value === null) return "NULL";
  if (typeof value === "object") return String(Object.values(value)[0]);
  return typeof value === "number" ? value.toLocaleString("en") : String(value);
}

function domain(column, table) {
  const { domain: own } = column;
  if (!own) return table.public ? null : el("span", { class: "domain none" }, "count and filter only");
  if (!("values" in own)) return el("span", { class: "domain" }, `${shown(own.min)} to ${shown(own.max)}`);
  const values = own.values.slice(0, MOST_VALUES).map(shown).join(", ");
  const more = own.values.length - MOST_VALUES;
  return el(
    "span",
    { class: "domain" },
    values,
    more > 0 && ` and ${plural(more, "more", "more")}`,
    own.other !== null && own.other !== undefined && `, ${own.other}`,
  );
}

function unit(table, explained) {
  if (table.public) return "Public: exact answers, free.";
  const what = explained ? "Privacy unit" : term("unit", "Privacy unit");
  if (!table.privacy_unit) return [what, ": one row"];
  return [what, `: ${table.privacy_unit}, ${plural(table.max_rows_per_unit, "row")} at most`];
}

function card(table, onInsert, explained) {
  const insert = (name) => () => onInsert(quoted(name));
  return el(
    "details",
    { class: "table", open: true, "data-name": table.name },
    el(
      "summary",
      {},
      el("span", { class: "table-name" }, table.name),
      el("span", { class: table.public ? "tag tag-public" : "tag" }, table.public ? "public" : "private"),
    ),
    el(
      "p",
      { class: "table-unit" },
      unit(table, explained),
      " · ",
      el("button", { type: "button", class: "link", on: { click: insert(table.name) } }, `insert ${table.name}`),
    ),
    el(
      "ul",
      { class: "columns" },
      table.columns.map((column) =>
        el(
          "li",
          { "data-name": column.name },
          el(
            "button",
            { type: "button", class: "column", title: `Insert ${column.name}`, on: { click: insert(column.name) } },
            el("span", { class: "column-name" }, column.name),
            el("span", { class: "column-type" }, column.type.toLowerCase()),
          ),
          domain(column, table),
        ),
      ),
    ),
  );
}

export function showCatalog(tables, onInsert) {
  const place = $("catalog");
  if (!tables.length) {
    put(
      place,
      el("p", { class: "empty" }, "Your token may name no table. Ask the curator which tables it should have."),
    );
    return;
  }
  const columns = tables.reduce((sum, table) => sum + table.columns.length, 0);
  const first = tables.findIndex((table) => !table.public);
  const list = el(
    "div",
    { class: "tables" },
    tables.map((table, i) => card(table, onInsert, i !== first)),
  );
  put(place);
  if (columns > MANY_COLUMNS) {
    const find = (event) => filter(list, event.target.value.trim().toLowerCase());
    add(place, [
      el(
        "label",
        { class: "find" },
        el("span", { class: "unseen" }, "Find a table or column"),
        el("input", { type: "search", placeholder: "Find a column", spellcheck: "false", on: { input: find } }),
      ),
    ]);
  }
  add(place, [
    list,
    el(
      "p",
      { class: "footnote" },
      "Values and ranges are what was ",
      term("domain", "declared"),
      ". Click a name to insert it.",
    ),
  ]);
}

function filter(list, text) {
  for (const table of list.children) {
    const own = table.dataset.name.toLowerCase().includes(text);
    let visible = 0;
    for (const column of table.querySelectorAll("li")) {
      column.hidden = !(own || column.dataset.name.toLowerCase().includes(text));
      visible += column.hidden ? 0 : 1;
    }
    table.hidden = !visible;
  }
}

/** A batch to begin with, made of what the catalog declares. */
export function example(tables) {
  const table = tables.find((one) => !one.public);
  if (!table) return tables.length ? `SELECT * FROM ${quoted(tables[0].name)}` : "";
  const from = `FROM ${quoted(table.name)}`;
  const grouped = table.columns.filter((column) => column.domain?.values && column.domain.values.length > 1);
  const number = table.columns.find((column) => typeof column.domain?.min === "number");
  const lines = [
    `-- All queries of a batch are planned together and share one cost.`,
    `SELECT count(*) AS total ${from};`,
  ];
  if (grouped[0])
    lines.push(`SELECT ${quoted(grouped[0].name)}, count(*) AS n ${from} GROUP BY ${quoted(grouped[0].name)};`);
  if (grouped[1]) {
    const keys = grouped
      .slice(0, 2)
      .map((column) => quoted(column.name))
      .join(", ");
    lines.push(`SELECT ${keys}, count(*) AS n ${from} GROUP BY ${keys};`);
  }
  if (number) {
    const half = Math.round((number.domain.min + number.domain.max) / 4);
    lines.push(`SELECT count(*) AS below_${half} ${from} WHERE ${quoted(number.name)} < ${half};`);
  }
  return `${lines.join("\n")}\n`;
}
