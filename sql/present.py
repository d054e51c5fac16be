"""After the release: output columns from the values of the workload's rows, and the order they come in.

Everything here is post-processing of released (or, in tests, exact) numbers. What SQL computes, DuckDB computes, in a
database in memory that holds nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.errors import NotSupportedError

from .dialect import REFUSALS, evaluate, frame, is_numeric
from .group_list import GroupList
from .ranks import typed
from .workload import (
    Computed,
    Key,
    Leaf,
    Linear,
    Mode,
    OuterQuery,
    Output,
    PublicValues,
    Quantile,
    Query,
    Ratio,
    Stacked,
    released_parts,
)

Floats = NDArray[np.float64]


def is_number(output: Output) -> bool:
    """Whether an output is a released number, which has a standard error."""
    if isinstance(output, Stacked):
        return all(is_number(part) for _, part in output.parts)
    if isinstance(output, Computed | Quantile | Mode):
        return is_numeric(output.type)
    return isinstance(output, Linear | Ratio)


def column_type(query: Query, output: Output) -> str:
    """The DuckDB type of an output column; released numbers are DOUBLE."""
    match output:
        case Key(index):
            return query.keys[index].type
        case PublicValues(values):
            return "VARCHAR" if any(isinstance(value, str) for value in values) else "BIGINT"
        case Stacked(parts):
            return column_type(query, parts[0][1])
        case Computed(type=type_) | Quantile(type=type_) | Mode(type=type_) if not is_number(output):
            return type_
    return "DOUBLE"


def rows_behind(output: Output) -> list[int]:
    """Every row of the workload that an output uses."""
    match output:
        case Linear(rows):
            return list(rows)
        case Ratio(numerator, denominator):
            return [*numerator, *denominator]
        case Quantile(prefixes=counts) | Mode(counts=counts):
            return [row for rows in counts for row in rows]
        case Computed(leaves=leaves):
            return [row for leaf in leaves for row in rows_behind(leaf)]
        case Stacked(parts):
            return [row for _, part in parts for row in rows_behind(part)]
    return []


def rows_used(query: Query | OuterQuery) -> list[int]:
    """Every row of the workload that a query uses."""
    if isinstance(query, OuterQuery):
        counts = [part.present for part in query.parts if part.present is not None]
        return [
            *(row for part in query.parts for row in rows_used(part.query)),
            *(row for c in counts for row in c.rows),
        ]
    return [row for output in _outputs(query) for row in rows_behind(output)]


def _outputs(query: Query) -> list[Output]:
    """The outputs of a query, and what its clauses use."""
    return [*(column.output for column in query.columns), *(query.arrangement.leaves if query.arrangement else ())]


def figures_behind(query: Query | OuterQuery) -> list[tuple[list[int], int]]:
    """The rows of the workload that a query uses, and how many of them make one figure: many for a quantile."""
    figures: list[tuple[list[int], int]] = []
    left = [output for part in released_parts(query) for output in _outputs(part)]
    if isinstance(query, OuterQuery):
        left += [part.present for part in query.parts if part.present is not None]
    while left:
        match output := left.pop():
            case Stacked(parts):
                left += [part for _, part in parts]
            case Computed(leaves=leaves):
                left += leaves
            case Quantile(prefixes=counts) | Mode(counts=counts):
                figures.append((rows_behind(output), len(counts)))
            case _:
                figures.append((rows_behind(output), 1))
    return figures


def linear_values(output: Linear, rows: Floats) -> Floats:
    """The values of a linear output."""
    return np.asarray(rows[np.array(output.rows, dtype=np.int64)] + output.offset)


def key_frame(query: Query) -> pd.DataFrame:
    """The key columns of every group, with the dtypes that DuckDB's frame would have."""
    if not query.keys:
        return pd.DataFrame(index=pd.RangeIndex(len(query.groups)))
    names = [f"k{i}" for i in range(len(query.keys))]
    if not isinstance(query.groups, GroupList):
        return frame(tuple(names), tuple(k.type for k in query.keys), tuple(query.groups))
    columns = {}
    for i, (name, key) in enumerate(zip(names, query.keys, strict=True)):
        values, codes = query.groups.column(i)
        listed = frame((name,), (key.type,), tuple((value,) for value in values))[name]
        columns[name] = listed.take(codes).reset_index(drop=True)
    return pd.DataFrame(columns)


def compute(output: Computed, keys: pd.DataFrame, leaves: Sequence[NDArray[Any]]) -> pd.Series:
    """A computed output, from the values of its leaves: arrays as long as the keys, or a multiple of that."""
    length = max([len(keys), *(len(leaf) for leaf in leaves)])
    repeated = pd.concat([keys] * (length // max(len(keys), 1)), ignore_index=True) if length > len(keys) else keys
    table = repeated.assign(**{f"a{i}": leaf for i, leaf in enumerate(leaves)})
    return evaluate(output.sql, table)


def arranged(
    query: Query,
    keys: pd.DataFrame,
    columns: Sequence[Any],
    leaves: Sequence[NDArray[Any]],
    present: NDArray[np.bool_] | None = None,
) -> list[int]:
    """The rows that HAVING, DISTINCT and LIMIT keep, in the order of ORDER BY; of those that are present."""
    count = len(query.groups)
    if query.arrangement is None:
        return list(range(count)) if present is None else np.flatnonzero(present).tolist()
    table = keys.assign(
        **{f"a{i}": leaf for i, leaf in enumerate(leaves)},
        **{f"o{i}": column for i, column in enumerate(columns)},
        present=True if present is None else present,
    )
    a = query.arrangement
    source = "SELECT * FROM released"
    not_numbers = _not_numbers(query)
    if not_numbers:
        table = table.assign(**{f"{name}_nan": mask for name, mask in not_numbers.items()})
        written = ", ".join(
            f"CASE WHEN {name}_nan THEN 'nan'::DOUBLE ELSE {name} END AS {name}" for name in not_numbers
        )
        source = f"SELECT * FROM (SELECT * REPLACE ({written}) FROM released)"  # noqa: S608
    source += f" WHERE present{f' AND {a.having}' if a.having else ''}"
    if a.distinct:
        outputs = ", ".join(f"o{i}" for i in range(len(columns)))
        source += f" QUALIFY row_number() OVER (PARTITION BY {outputs} ORDER BY ordinal) = 1"
    order = f"{a.order}, ordinal" if a.order else "ordinal"
    limit = f" LIMIT {a.limit}" if a.limit is not None else ""
    sql = f"SELECT ordinal FROM ({source}) ORDER BY {order}{limit} OFFSET {a.offset}"  # noqa: S608
    return [int(i) for i in evaluate("", table, sql)]


def _not_numbers(query: Query) -> dict[str, NDArray[np.bool_]]:
    """Where a key is NaN, by the names of its columns: a frame holds NaN and NULL alike, and they sort apart."""
    found: dict[str, NDArray[np.bool_]] = {}
    for i, key in enumerate(query.keys):
        if key.type not in ("DOUBLE", "FLOAT"):
            continue
        mask = np.array([isinstance(group[i], float) and np.isnan(group[i]) for group in query.groups], dtype=np.bool_)
        if mask.any():
            outputs = [f"o{j}" for j, column in enumerate(query.columns) if column.output == Key(i)]
            found |= dict.fromkeys((f"k{i}", *outputs), mask)
    return found


_STAND_INS = (0.0, 1.0, -1.0, 0.5, 1e15, -1e300)
"""In place of released values: DuckDB computes with any of them as with the real ones."""


def rehearse(query: Query, keys: pd.DataFrame) -> None:
    """Compute and arrange a query's frame from stand-in values: what cannot be computed fails before the charge."""
    arrangement = query.arrangement
    if arrangement is None and not any(isinstance(column.output, Computed | Stacked) for column in query.columns):
        return
    used = rows_used(query)
    rows = np.resize(np.array(_STAND_INS), max(used, default=0) + 1)
    try:
        columns = [pd.Series(exact_values(query, column.output, keys, rows)) for column in query.columns]
        if arrangement is not None:
            arranged(query, keys, columns, leaf_values(arrangement.leaves, rows))
    except REFUSALS:
        raise NotSupportedError(
            "DuckDB cannot compute what this query asks of the released values; nothing was charged\n"
            "hint: leave HAVING, ORDER BY and computed columns out, and compute them in pandas"
        ) from None


def leaf_values(leaves: Sequence[Leaf], rows: Floats, half_width: Floats | None = None) -> list[NDArray[Any]]:
    """The values of leaves; ``half_width`` as in ``ranks.quantile_values``."""
    return [_leaf(leaf, rows, half_width) for leaf in leaves]


def _leaf(leaf: Leaf, rows: Floats, half_width: Floats | None) -> NDArray[Any]:
    match leaf:
        case PublicValues(values):
            return np.array(values)
        case Linear():
            return linear_values(leaf, rows)
    return typed(leaf, rows, half_width).to_numpy()


def exact_values(
    query: Query, output: Output, keys: pd.DataFrame, rows: Floats, half_width: Floats | None = None
) -> Any:
    """An output column from exact rows, or from noisy ones with their ``half_width``; the average of no rows is NaN."""
    match output:
        case Key(index):
            return keys.iloc[:, index]
        case PublicValues(values):
            return pd.Series(list(values))
        case Linear():
            return linear_values(output, rows)
        case Ratio(numerator, denominator, low, high):
            bottom = rows[list(denominator)]
            average = np.where(bottom > 0, rows[list(numerator)], np.nan) / np.where(bottom > 0, bottom, 1.0)
            return average if half_width is None else np.clip(average, low, high)
        case Computed(leaves=leaves):
            return compute(output, keys, leaf_values(leaves, rows, half_width))
        case Quantile() | Mode():
            return typed(output, rows, half_width)
        case Stacked(parts):
            return stacked(parts, lambda part, size: exact_values(query, part, keys.iloc[:size], rows, half_width))


def exact_columns(
    query: Query,
    keys: pd.DataFrame,
    rows: Floats,
    present: NDArray[np.bool_] | None = None,
    half_width: Floats | None = None,
) -> list[pd.Series]:
    """All columns of a query's frame from the values of the workload's rows, arranged."""
    columns = [pd.Series(exact_values(query, column.output, keys, rows, half_width)) for column in query.columns]
    if query.arrangement is None and present is None:
        return columns
    leaves = query.arrangement.leaves if query.arrangement is not None else ()
    order = arranged(query, keys, columns, leaf_values(leaves, rows, half_width), present)
    return [column.iloc[order].reset_index(drop=True) for column in columns]


def stacked(parts: Sequence[tuple[int, Output]], value: Any) -> pd.Series:
    """The rows of a UNION ALL, one part below the other."""
    return pd.concat([pd.Series(value(part, size)).reset_index(drop=True) for size, part in parts], ignore_index=True)
