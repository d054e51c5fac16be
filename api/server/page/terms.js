// Words of the field, each explained where it first stands on the page.

import { $, announce, el } from "./dom.js";

const WORDS = {
  epsilon: [
    "ε",
    "Epsilon, the privacy budget. It bounds how much everything released can tell about any one person: with a total of " +
      "ε, no answer becomes more than e^ε times as likely because somebody is in the data. What is spent never comes back.",
  ],
  delta: [
    "δ",
    "Delta: a tiny chance, such as one in a million, with which the bound of ε may fail. It allows Gaussian noise, which " +
      "is smaller when a batch has many queries.",
  ],
  strategy: [
    "strategy",
    "The set of questions that is really asked with noise. All answers of the batch are rebuilt from it, so they never " +
      "contradict each other.",
  ],
  unit: [
    "privacy unit",
    "Whose presence is hidden: one row, or all rows of one person. At most so many rows of a unit are counted.",
  ],
  interval: [
    "within ±",
    "The noise that protects people, as an error bar: the true figure lies inside it as often as is said here. Each " +
      "figure is meant by itself.",
  ],
  domain: [
    "declared",
    "What the data owner has made public about a column. Groups and ranges come from here, never from the data.",
  ],
  ledger: ["ledger", "The book of every charge ever made. An entry is written before a row is read, and stays."],
};

let owner = null;

/** The word as a button that explains itself, in the one note that all of them share. */
export function term(name, text) {
  const [word, meaning] = WORDS[name];
  const note = $("term-note");
  const button = el(
    "button",
    { type: "button", class: "term", popovertarget: "term-note", "aria-label": `${text ?? word} (what is this?)` },
    text ?? word,
  );
  button.addEventListener("click", (event) => {
    const open = note.matches(":popover-open");
    if (open && owner === button) return;
    if (open) event.preventDefault();
    owner = button;
    note.textContent = meaning;
    place(button, note);
    announce(meaning);
  });
  return button;
}

function place(button, note) {
  const box = button.getBoundingClientRect();
  const room = document.documentElement.clientWidth;
  const wide = Math.min(320, room - 32);
  note.style.width = `${wide}px`;
  note.style.left = `${Math.max(16, Math.min(box.left, room - wide - 16))}px`;
  const below = box.bottom + 8;
  const high = 190;
  note.style.top = `${below + high > innerHeight ? Math.max(8, box.top - high) : below}px`;
}
