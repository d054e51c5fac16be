// Pictures of released figures. Every one has its error bars, because a figure without them would claim too much.

import { svg } from "./dom.js";
import { figure, width as half } from "./numbers.js";

const LETTER = 7.1;
const finite = (value) => typeof value === "number" && Number.isFinite(value);

/** Round steps for an axis. */
export function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step)
    found.push(Math.abs(at) < step / 1e6 ? 0 : at);
  return found;
}

export const short = (value) =>
  Math.abs(value) >= 10_000
    ? value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 })
    : value.toLocaleString("en", { maximumSignificantDigits: 4 });

const extent = (points) => {
  const all = points.flatMap((p) => [p.value, p.low, p.high]).filter(finite);
  return [Math.min(0, ...all), Math.max(0, ...all) || 1];
};

const said = (point) =>
  `${point.label}: ${figure(point.value)}, between ${figure(point.low)} and ${figure(point.high)}`;

/** Points are {label, value, low, high}: bars for keys without an order, one row each. */
export function bars(points, width, name) {
  const row = 28;
  const longest = Math.max(...points.map((p) => p.label.length)) * LETTER + 10;
  const left = Math.min(longest, width * 0.36);
  const roomy = width >= 420;
  const printed = points.map((p) => (roomy ? `${figure(p.value)} ±${half((p.high - p.low) / 2)}` : figure(p.value)));
  const right = Math.max(...printed.map((text) => text.length)) * LETTER + 12;
  const [low, high] = extent(points);
  const span = Math.max(40, width - left - right);
  const x = (value) => left + (span * (value - low)) / (high - low);
  const letters = Math.max(3, Math.floor((left - 10) / LETTER));
  return svg(
    "svg",
    {
      width,
      height: points.length * row + 6,
      role: "img",
      "aria-label": `${name}: ${points.length} bars with error bars; the table has every figure`,
    },
    svg("line", { class: "axis", x1: x(0), x2: x(0), y1: 0, y2: points.length * row + 4 }),
    points.map((point, i) => {
      const y = i * row + row / 2 + 2;
      const ends = [x(Math.min(0, point.value ?? 0)), x(Math.max(0, point.value ?? 0))];
      const label = point.label.length > letters ? `${point.label.slice(0, letters - 1)}…` : point.label;
      return svg(
        "g",
        { class: isWeak(point) ? "mark weak" : "mark" },
        svg("title", {}, said(point)),
        svg("rect", { class: "hit", x: 0, y: y - row / 2, width, height: row }),
        svg("text", { class: "label", x: left - 10, y: y + 4, "text-anchor": "end" }, label),
        finite(point.value) &&
          svg("rect", {
            class: "chart-bar",
            x: ends[0],
            y: y - 8,
            width: Math.max(1, ends[1] - ends[0]),
            height: 16,
            rx: 2,
          }),
        whisker(point, x, y),
        svg("text", { class: "value", x: width, y: y + 4, "text-anchor": "end" }, printed[i]),
      );
    }),
  );
}

/** Whether the noise could have made it: zero lies inside the interval. */
export const isWeak = (point) => finite(point.low) && finite(point.high) && point.low <= 0 && point.high >= 0;

function whisker(point, x, y) {
  if (!finite(point.low) || !finite(point.high)) return null;
  const [from, to] = [x(point.low), x(point.high)];
  return svg("path", { class: "whisker", d: `M${from},${y}H${to}M${from},${y - 4}v8M${to},${y - 4}v8` });
}

/** A line for keys that have an order. Points have a position `at` too: a number, or a time. */
export function line(points, width, name, isTime) {
  const label = isTime ? (at) => new Date(at).toISOString().slice(0, 10) : short;
  const [height, top, foot, right] = [240, 12, 28, 16];
  const [low, high] = extent(points);
  const marks = ticks(low, high, 4);
  const left = Math.max(...marks.map((at) => short(at).length)) * LETTER + 14;
  const at = points.map((p) => p.at);
  const [first, last] = [Math.min(...at), Math.max(...at)];
  const x = (value) => left + ((width - left - right) * (value - first)) / (last - first || 1);
  const y = (value) => top + (height - top - foot) * (1 - (value - low) / (high - low));
  const drawn = points.filter((p) => finite(p.value));
  const banded = drawn.filter((p) => finite(p.low) && finite(p.high));
  const path = (list, value) =>
    list.map((p, i) => `${i ? "L" : "M"}${x(p.at).toFixed(1)},${y(value(p)).toFixed(1)}`).join("");
  const band =
    banded.length > 1
      ? `${path(banded, (p) => p.high)}${path([...banded].reverse(), (p) => p.low).replace("M", "L")}Z`
      : "";
  const dots = drawn.length <= 60;
  const room = Math.max(2, Math.floor((width - left - right) / 90));
  const every = Math.max(1, Math.ceil(points.length / room));
  const places = isTime ? at.filter((_, i) => i % every === 0) : ticks(first, last, room);
  return svg(
    "svg",
    {
      width,
      height,
      role: "img",
      "aria-label": `${name}: a line over ${points.length} points with error bars; the table has every figure`,
    },
    marks.map((value) => [
      svg("line", { class: value === 0 ? "axis" : "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      svg("text", { class: "tick", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, short(value)),
    ]),
    places.map((at, i) =>
      svg(
        "text",
        {
          class: "tick",
          x: x(at),
          y: height - 8,
          "text-anchor": x(at) > width - right - 20 ? "end" : i === 0 && at === first ? "start" : "middle",
        },
        label(at),
      ),
    ),
    svg("path", { class: "band", d: band }),
    svg("path", { class: "curve", d: path(drawn, (p) => p.value) }),
    dots &&
      drawn.map((p) =>
        svg(
          "g",
          { class: isWeak(p) ? "mark weak" : "mark" },
          svg("title", {}, said(p)),
          finite(p.low) &&
            finite(p.high) &&
            svg("path", { class: "whisker", d: `M${x(p.at)},${y(p.low)}V${y(p.high)}` }),
          svg("circle", { class: "dot", cx: x(p.at), cy: y(p.value), r: 3 }),
        ),
      ),
  );
}

const SHADES = 7;

/** A map of two keys. Points have `row` and `column`. */
export function heat(points, width, name) {
  const rows = [...new Set(points.map((p) => p.row))];
  const columns = [...new Set(points.map((p) => p.column))];
  const left = Math.min(Math.max(...rows.map((text) => text.length)) * LETTER + 20, width * 0.34);
  const cell = Math.max(34, Math.min(120, (width - left) / columns.length));
  const [tall, top] = [34, 26];
  const most = Math.max(...points.map((p) => p.value).filter(finite), 0) || 1;
  const shade = (value) => Math.max(0, Math.min(SHADES - 1, Math.floor((value / most) * (SHADES - 0.001))));
  const cut = (text, room) => {
    const letters = Math.max(2, Math.floor(room / LETTER));
    return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
  };
  return svg(
    "svg",
    {
      width: left + cell * columns.length,
      height: top + tall * rows.length + 2,
      role: "img",
      "aria-label": `${name}: a map of ${rows.length} by ${columns.length} figures; the table has every figure with its error`,
    },
    columns.map((text, j) =>
      svg("text", { class: "tick", x: left + cell * (j + 0.5), y: 16, "text-anchor": "middle" }, cut(text, cell - 6)),
    ),
    rows.map((text, i) =>
      svg(
        "text",
        { class: "label", x: left - 10, y: top + tall * (i + 0.5) + 4, "text-anchor": "end" },
        cut(text, left - 12),
      ),
    ),
    points.map((p) => {
      const [x, y] = [left + cell * columns.indexOf(p.column), top + tall * rows.indexOf(p.row)];
      const printed = cell >= 58 || !finite(p.value) ? figure(p.value) : short(Number(p.value.toPrecision(2)));
      return svg(
        "g",
        { class: `heat heat-${finite(p.value) ? shade(p.value) : 0}${isWeak(p) ? " weak" : ""}` },
        svg("title", {}, said(p)),
        svg("rect", { x: x + 1, y: y + 1, width: cell - 2, height: tall - 2, rx: 3 }),
        printed.length * LETTER < cell - 4 &&
          svg("text", { x: x + cell / 2, y: y + tall / 2 + 4, "text-anchor": "middle" }, printed),
      );
    }),
  );
}
