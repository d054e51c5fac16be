// The dial between cost and accuracy: a slider over ε on a log scale, and two fields that say the same in numbers.

import { $ } from "./dom.js";
import { amount, isPositive, odds, rounded, width } from "./numbers.js";

const STEPS = 300;
const DECADES = 3;

export class Dial {
  #slider = $("dial");
  #epsilon = $("epsilon");
  #error = $("error");
  #most = 1;
  #plan = null;
  /** What is asked for: {epsilon: "0.5"} or {error: 10}. */
  choice = { epsilon: "0.1" };

  constructor(onChange) {
    this.#slider.max = STEPS;
    this.#slider.addEventListener("input", () => {
      this.choice = { epsilon: this.#at(Number(this.#slider.value)) };
      this.#write();
      onChange(false);
    });
    this.#epsilon.addEventListener("change", () => {
      const text = this.#epsilon.value.trim().replace(",", ".");
      if (isPositive(text)) this.choice = { epsilon: text };
      this.#write();
      onChange(true);
    });
    this.#error.addEventListener("change", () => {
      const value = Number(this.#error.value.trim().replaceAll(",", "").replace("±", ""));
      if (value > 0 && Number.isFinite(value)) this.choice = { error: value };
      this.#write();
      onChange(true);
    });
  }

  /** The slider runs from a thousandth of the cap to the cap. */
  setRange(cap, choice) {
    this.#most = Number.isFinite(Number(cap)) && Number(cap) > 0 ? Number(cap) : 10;
    if (choice) this.choice = choice;
    this.#write();
  }

  /** A plan came: what one was asked for is known in both numbers. */
  settle(plan) {
    this.#plan = plan;
    this.#write();
  }

  get epsilon() {
    return this.choice.epsilon ?? this.#plan?.epsilon ?? null;
  }

  /** The widths of the plan at the ε of the slider: exact when the plan is this ε's, else scaled until it comes. */
  get scale() {
    if (!this.#plan || this.choice.error !== undefined || Number(this.#plan.epsilon) === 0) return 1;
    return Number(this.#plan.epsilon) / Number(this.choice.epsilon);
  }

  #at(step) {
    return rounded(this.#most * 10 ** (DECADES * (step / STEPS - 1)));
  }

  #write() {
    const epsilon = this.epsilon;
    if (epsilon !== null) {
      const step = Math.round(STEPS * (1 + Math.log10(Number(epsilon) / this.#most) / DECADES));
      if (document.activeElement !== this.#slider || this.choice.error !== undefined) {
        this.#slider.value = Math.max(0, Math.min(STEPS, step));
      }
      this.#epsilon.value = amount(epsilon).replaceAll(",", "");
    }
    const widest = this.#plan?.widest;
    const known = widest > 0;
    this.#error.value =
      this.choice.error !== undefined ? String(this.choice.error) : known ? width(widest * this.scale) : "";
    this.#error.placeholder = known ? "" : "–";
    const spoken = known ? `, within ±${width(widest * this.scale)}, ${odds(this.#plan.confidence)}` : "";
    this.#slider.setAttribute("aria-valuetext", `ε ${amount(epsilon ?? 0)}${spoken}`);
  }
}
