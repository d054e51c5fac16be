// Amounts of budget are exact decimals and travel as texts; they are compared exactly, and rounded only to be read.

function parts(text) {
  const form = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(String(text).trim());
  if (!form || !(form[2] || form[3])) return null;
  const fraction = form[3] ?? "";
  const digits = BigInt((form[1] === "-" ? "-" : "") + ((form[2] ?? "") + fraction || "0"));
  return { digits, power: Number(form[4] ?? 0) - fraction.length };
}

/** Below 0 if a < b, above 0 if a > b, else 0. "Infinity" is larger than all. */
export function compare(a, b) {
  const [x, y] = [parts(a), parts(b)];
  if (!x || !y) return Math.sign(Number(a) - Number(b)) || 0;
  const power = Math.min(x.power, y.power);
  const scaled = ({ digits, power: own }) => digits * 10n ** BigInt(own - power);
  const difference = scaled(x) - scaled(y);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

export const isZero = (text) => compare(text, "0") === 0;
export const isPositive = (text) => parts(text) !== null && compare(text, "0") > 0;

/** The smaller of two decimals, as it was written. */
export const least = (a, b) => (compare(a, b) <= 0 ? a : b);

/** A decimal for reading: 0.5, 1,000, 1e-7. */
export function amount(text) {
  const value = Number(text);
  if (!Number.isFinite(value)) return "no limit";
  if (value !== 0 && Math.abs(value) < 1e-4) return value.toExponential().replace("e-", "e−");
  return value.toLocaleString("en", { maximumSignificantDigits: 6 });
}

/** A released figure for reading. */
export function figure(value) {
  if (value === null || value === undefined) return "not defined";
  if (typeof value === "string") return value === "Infinity" ? "∞" : value === "-Infinity" ? "−∞" : value;
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits }).replace("-", "−");
}

/** Half the width of an interval, to two digits. */
export function width(value) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "unknown";
  if (Math.abs(value) >= 100) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  return value.toLocaleString("en", { maximumSignificantDigits: 2 });
}

/** A number to so many digits, without a tail of zeros, as the server reads it. */
export function rounded(value, digits = 2) {
  const power = Math.max(0, digits - 1 - Math.floor(Math.log10(value)));
  return String(Number(value.toFixed(Math.min(power, 12))));
}

/** "19 times out of 20" */
export function odds(confidence) {
  for (const [of, most] of [
    [10, 0.9],
    [20, 0.95],
    [100, 0.99],
    [1000, 0.999],
  ]) {
    if (Math.abs(confidence - most) < 1e-9) return `${of - 1} times out of ${of}`;
  }
  return `${amount(confidence * 100)}% of the time`;
}

export function moment(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return String(text);
  return at.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** Offsets of the server count characters; those of a text area count UTF-16 units. */
export function unitOffsets(text, offsets) {
  const wanted = [...offsets];
  const found = wanted.map(() => text.length);
  let characters = 0;
  let units = 0;
  const pending = wanted.map((offset, i) => [offset, i]).sort((a, b) => a[0] - b[0]);
  for (const character of text) {
    while (pending.length && pending[0][0] <= characters) found[pending.shift()[1]] = units;
    characters += 1;
    units += character.length;
  }
  return found;
}
