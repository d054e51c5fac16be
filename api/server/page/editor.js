// The editor: a text area over a mirror of its text. The mirror has the line numbers, the colours and the underlines;
// the text area stays an ordinary one, for every keyboard and screen reader.

import { $, el, put, show } from "./dom.js";
import { plural, unitOffsets } from "./numbers.js";
import { colours } from "./sql_words.js";

export class Editor {
  #area = $("sql");
  #mirror = $("mirror");
  #marks = [];

  constructor({ onChange, onSubmit }) {
    this.#area.addEventListener("input", () => {
      this.#marks = [];
      this.#draw();
      onChange(this.text);
    });
    this.#area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        onSubmit();
      }
    });
    this.#draw();
  }

  get text() {
    return this.#area.value;
  }

  set text(value) {
    this.#area.value = value;
    this.showProblems([]);
  }

  focus() {
    this.#area.focus();
  }

  /** Put a text where the caret is, as if it had been typed: undo takes it back. */
  insert(text) {
    const area = this.#area;
    area.focus();
    const before = area.value.slice(0, area.selectionStart);
    const piece = before && !/[\s(,.]$/.test(before) ? ` ${text}` : text;
    if (!document.execCommand("insertText", false, piece)) {
      area.setRangeText(piece, area.selectionStart, area.selectionEnd, "end");
      area.dispatchEvent(new Event("input"));
    }
  }

  /** Underline what is wrong, and say under the editor what to write instead. */
  showProblems(problems) {
    const text = this.text;
    const ends = unitOffsets(
      text,
      problems.flatMap((one) => [one.start, one.end]),
    );
    this.#marks = problems
      .map((one, i) => ({ ...one, from: ends[2 * i], to: Math.max(ends[2 * i + 1], ends[2 * i] + 1) }))
      .filter((one) => one.sql === text);
    this.#draw();
    this.#area.setAttribute("aria-invalid", String(problems.length > 0));
    const place = $("problems");
    show(place, problems.length > 0);
    put(
      place,
      problems.length > 1 &&
        el("p", { class: "problems-count" }, `${plural(problems.length, "query", "queries")} cannot be answered yet.`),
      problems.map((one, i) => this.#problem(one, ends[2 * i], ends[2 * i + 1])),
    );
  }

  #problem(problem, from, to) {
    const own = problem.sql === this.text;
    const text = own ? this.text : problem.sql;
    if (!own) [from, to] = unitOffsets(text, [problem.start, problem.end]);
    const first = text.lastIndexOf("\n", from - 1) + 1;
    const last = text.indexOf("\n", from) < 0 ? text.length : text.indexOf("\n", from);
    const number = text.slice(0, from).split("\n").length;
    const line = text.slice(first, last).replaceAll("\t", " ");
    const room = Math.max(24, Math.min(84, Math.floor(this.#area.clientWidth / 8.6)));
    const shift = to - first > room ? Math.max(0, from - first - Math.floor(room / 2)) : 0;
    const carets = Math.max(1, Math.min(to, last) - from);
    const lead = shift ? "…" : "";
    return el(
      "div",
      { class: "problem" },
      el(
        "p",
        { class: "problem-what" },
        el("button", { type: "button", class: "link", on: { click: () => this.#select(from, to) } }, `Line ${number}`),
        el("span", {}, problem.message),
      ),
      to > from &&
        el(
          "pre",
          { class: "problem-where", "aria-hidden": "true" },
          `${lead}${line.slice(shift, shift + Math.max(room, 90))}\n${" ".repeat(from - first - shift + lead.length)}`,
          el("span", { class: "carets" }, "^".repeat(Math.min(carets, 60))),
        ),
      problem.hint && el("p", { class: "problem-hint" }, el("strong", {}, "Hint: "), problem.hint),
    );
  }

  #select(from, to) {
    this.#area.focus();
    this.#area.setSelectionRange(from, to);
  }

  #draw() {
    const text = this.#area.value;
    const pieces = colours(text);
    const cuts = new Set([0, text.length]);
    for (const [from, to] of pieces) cuts.add(from).add(to);
    for (const { from, to } of this.#marks) cuts.add(from).add(Math.min(to, text.length));
    const places = [...cuts].sort((a, b) => a - b);
    const lines = [el("div", { class: "line" })];
    let piece = 0;
    for (let i = 0; i + 1 < places.length; i += 1) {
      const [from, to] = [places[i], places[i + 1]];
      while (piece < pieces.length && pieces[piece][1] <= from) piece += 1;
      const colour = piece < pieces.length && pieces[piece][0] <= from ? pieces[piece][2] : "";
      const wrong = this.#marks.some((mark) => mark.from <= from && to <= mark.to);
      text
        .slice(from, to)
        .split("\n")
        .forEach((part, j) => {
          if (j) lines.push(el("div", { class: "line" }));
          if (!part) return;
          const names = [colour, wrong && "wrong"].filter(Boolean).join(" ");
          lines.at(-1).append(names ? el("span", { class: names }, part) : part);
        });
    }
    for (const { from, to } of this.#marks) {
      const number = text.slice(0, from).split("\n").length;
      lines[number - 1]?.classList.add("line-wrong");
      if (from >= text.length || to > text.length) lines[number - 1]?.classList.add("line-open");
    }
    put(this.#mirror, lines);
  }
}
