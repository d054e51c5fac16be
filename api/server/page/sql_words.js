// Colours for SQL in the editor: comments, texts, numbers and keywords. It only looks; the server is the one who reads.

const KEYWORDS = new Set(
  `all and any as asc between by case cast count cross cube current date desc distinct else end except exists extract
  false filter first from full group grouping having ilike in inner intersect interval is join last left like limit
  median min max natural not null nulls offset on or order outer over partition qualify right rollup row rows select
  sets sum avg stddev variance then true union using values when where window with within`.split(/\s+/),
);
const FORM = /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)|"(?:[^"]|"")*(?:"|$)|\d+(?:\.\d+)?|[A-Za-z_]\w*/g;

export const LONGEST = 60_000;

/** Pieces of the text that have a colour: [start, end, class]. */
export function colours(text) {
  if (text.length > LONGEST) return [];
  const found = [];
  for (const match of text.matchAll(FORM)) {
    const word = match[0];
    const kind =
      word.startsWith("--") || word.startsWith("/*")
        ? "comment"
        : word.startsWith("'")
          ? "text"
          : /^\d/.test(word)
            ? "number"
            : KEYWORDS.has(word.toLowerCase())
              ? "keyword"
              : null;
    if (kind) found.push([match.index, match.index + word.length, `sql-${kind}`]);
  }
  return found;
}

/** A name as SQL writes it. */
export function quoted(name) {
  return /^[A-Za-z_]\w*$/.test(name) && !KEYWORDS.has(name.toLowerCase()) ? name : `"${name.replaceAll('"', '""')}"`;
}
