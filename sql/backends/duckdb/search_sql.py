"""The region of a value on a line with thousands of cuts: computed from the value, or by halving the line.

A tree of comparisons as one CASE is as long as its cuts, and DuckDB plans and evaluates every branch of it: 20,000 cuts
take five seconds. Here each level of the tree is one list, and one comparison with an entry of it says in which half a
value lies; 40,000 texts take a second. Every part of it is total: comparisons, lists read at places that they have, and
differences of values that were clamped first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from ...ordering import Cut, Ordering

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "DATE")
"""Types whose values have differences that fit BIGINT, one from each to the next."""


def step_sql(column: str, type_: str, order: Ordering, cuts: Sequence[Cut], region: Sequence[int]) -> str | None:
    """The region where every value between the first cut and the last is one, numbered in order; None elsewhere."""
    first, last = cuts[0], cuts[-1]
    inner = region[1:-1]
    if type_ not in _WHOLE or last - first != len(inner) or list(inner) != [*range(inner[0], inner[0] + len(inner))]:
        return None
    low, high = order.literal(first), order.literal(last)
    inside = f"greatest({low}, least({column}, {high}))"
    distance = f"({inside} - {low})" if type_ == "DATE" else f"(CAST({inside} AS BIGINT) - CAST({low} AS BIGINT))"
    return (
        f"CASE WHEN {column} < {low} THEN {region[0]} WHEN {column} >= {high} THEN {region[-1]} "
        f"ELSE CAST({distance} + {inner[0]} AS INTEGER) END"
    )


def search_sql(column: str, type_: str, order: Ordering, cuts: Sequence[Cut], region: Sequence[int]) -> str:
    """The region by halving. A text has two cuts, at it and right after it, and is looked for once."""
    if order.kind == "text":
        texts = sorted({text for text, _ in cuts})
        at = [region[bisect_right(cuts, (text, 0))] for text in texts]
        after = [region[0], *(region[bisect_right(cuts, (text, 1))] for text in texts)]
        literals = [order.literal((text, 0)) for text in texts]
        found = (
            f"CASE WHEN p > 0 AND {column} = list_extract({_list(literals)}, p) THEN list_extract({_numbers(at)}, p) "
            f"ELSE list_extract({_numbers(after)}, p + 1) END"
        )
        return _with(_halved(column, literals), found)
    literals = [order.literal(cut) for cut in cuts]
    if type_ in _WHOLE and type_ != "DATE":  # one constant for all of them is read much faster
        return _with(_halved(column, list(map(str, cuts)), type_), f"list_extract({_numbers(region)}, p + 1)")
    return _with(_halved(column, literals), f"list_extract({_numbers(region)}, p + 1)")


def _halved(column: str, literals: Sequence[str], type_: str | None = None) -> str:
    """How many of the ascending constants a value has reached.

    The constants are padded with the last one to a full tree of comparisons; a value that reaches it reaches the rest.
    """
    levels = len(literals).bit_length()
    padded = [*literals, *[literals[-1]] * ((1 << levels) - 1 - len(literals))]
    place = "0"
    for level in range(levels):
        half = 1 << (levels - 1 - level)
        listed = _list(padded[half - 1 :: 2 * half], type_)
        place = _with(place, f"2 * p + CAST({column} >= list_extract({listed}, p + 1) AS INTEGER)")
    return f"least({place}, {len(literals)})"


def _with(value: str, expression: str) -> str:
    """An expression over p, where p is a value that is written once."""
    return f"list_extract(list_transform([{value}], lambda p: {expression}), 1)"


def _list(items: Sequence[str], type_: str | None = None) -> str:
    text = "[" + ", ".join(items) + "]"
    return text if type_ is None else f"CAST('{text}' AS {type_}[])"


def _numbers(items: Sequence[int]) -> str:
    return _list(list(map(str, items)), "INTEGER")
