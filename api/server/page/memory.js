// What this tab remembers: the token, the draft and the request under way. All of it ends with the tab or with signing
// out; only the colour theme, which says nothing about anybody, outlives it.

const PREFIX = "tacit.";
const spare = new Map();

function storage() {
  try {
    return window.sessionStorage;
  } catch {
    return null;
  }
}

export function recall(name) {
  const kept = storage()?.getItem(PREFIX + name) ?? spare.get(name);
  return kept === undefined || kept === null ? null : JSON.parse(kept);
}

export function remember(name, value) {
  const text = JSON.stringify(value);
  spare.set(name, text);
  try {
    storage()?.setItem(PREFIX + name, text);
  } catch {
    // Storage is full or switched off: this tab still has it in memory.
  }
}

export function forget(...names) {
  for (const name of names) {
    spare.delete(name);
    storage()?.removeItem(PREFIX + name);
  }
}

export function forgetAll() {
  spare.clear();
  const place = storage();
  if (!place) return;
  for (const key of Object.keys(place)) if (key.startsWith(PREFIX)) place.removeItem(key);
}
