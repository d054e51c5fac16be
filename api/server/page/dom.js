// Every element of the page is made here. Text goes in as text nodes and attributes by name, so nothing that a table, a
// column or a server says can become markup.

const SVG = "http://www.w3.org/2000/svg";
const REFUSED = /^(on|style$|srcdoc$|innerhtml$)/i;

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    } else if (REFUSED.test(name)) {
      throw new Error(`the attribute ${name} is never set`);
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  add(node, children);
  return node;
}

export function add(node, children) {
  for (const child of children.flat(3)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export const el = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const svg = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);
export const $ = (id) => document.getElementById(id);

export function put(node, ...children) {
  node.replaceChildren();
  add(node, children);
  return node;
}

export function show(node, visible) {
  node.hidden = !visible;
}

/** Draws again whenever the width of the place changes: text in a picture keeps its size on every screen. */
export function responsive(draw, properties = {}) {
  const place = el("div", { class: "figure", ...properties });
  let drawn = 0;
  const watch = new ResizeObserver(([entry]) => {
    const width = Math.floor(entry.contentRect.width);
    if (width > 0 && width !== drawn) {
      drawn = width;
      put(place, draw(width));
    }
  });
  watch.observe(place);
  return place;
}

/** Says something to those who do not see it. */
export function announce(text) {
  const place = $("announce");
  place.textContent = "";
  requestAnimationFrame(() => (place.textContent = text));
}
