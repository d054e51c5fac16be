"""Groups that a public table lists: its values are public, so no one has to declare them.

Several columns of one public table come in the combinations that it holds, and not in all that could be: each of its
rows gets the number of its combination, and that number is the key. Conditions on the table alone leave fewer of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tacit.errors import LimitError

from . import dialect
from .catalog import Column, Range, Table, Values
from .derived import PublicQuery
from .public_columns import joined_as, public_owner, rows_of
from .relation import Relation
from .selection import Selection
from .statement import Span

_NUMBER = "combination"
_MISSING = "tacit_missing"


def is_listed(column: Column) -> bool:
    """Whether the groups of a column are declared."""
    if isinstance(column.domain, Values) or dialect.kind_of(column.type) == "truth":
        return True
    order = dialect.ordering(column.type)
    return isinstance(column.domain, Range) and order is not None and order.discrete


def public_key(relation: Relation, column: Column) -> Column:
    """In place of a private column that must equal the key of a public table: that key."""
    equal = relation.equal.get(column.reference)
    return (
        column
        if equal is None or is_listed(column)
        else replace(equal, type=column.type if not equal.type else equal.type)
    )


def listed_public(selection: Selection, column: Column, span: Span) -> Column:
    """A column of a public table with the values that it has there; as it is, where it comes from no public table."""
    relation, read = selection.relation, selection.batch.catalog.read_public
    label = public_owner(relation, column) if relation is not None else None
    if relation is None or label is None or read is None:
        return column
    values = [value for (value,) in read(_query(relation, label, f"SELECT DISTINCT {column.reference}", "ORDER BY 1"))]
    _check(len(values), selection, span)
    kept = dialect.distinct(values)
    return replace(column, domain=Values(kept), nullable=len(kept) < len(values) or column.nullable)


def numbered_combinations(
    selection: Selection, columns: Sequence[Column], span: Span
) -> tuple[Column, list[tuple[Any, ...]], int | None]:
    """(the number of a row's combination of columns of one public table, the combinations in that order, the one of
    rows without a match, whose number is NULL)."""
    relation, read = selection.relation, selection.batch.catalog.read_public
    assert relation is not None
    label = public_owner(relation, columns[0])
    join = joined_as(relation, label or "")
    assert label is not None and join is not None
    keys = [f"c{i}" for i in range(len(columns))]
    shown = ", ".join(f"{c.reference} AS {key}" for c, key in zip(columns, keys, strict=True))
    number = f"dense_rank() OVER (ORDER BY {', '.join(keys)}) - 1 AS {dialect.quote(_NUMBER)}"
    joined = [dialect.quote(f"{label}.{key}") for _, key in join.on]
    inner = _query(relation, label, f"SELECT {', '.join([*joined, shown, _MISSING])}", "")
    every = replace(inner, text=f"SELECT *, {number} FROM ({inner.text})")  # noqa: S608
    heads = ", ".join([_NUMBER, *keys])
    listed = replace(
        every,
        text=f"SELECT {heads}, bool_or({_MISSING}) FROM ({every.text}) GROUP BY {heads} ORDER BY {_NUMBER}",  # noqa: S608
    )
    rows = [] if read is None else read(listed)
    combinations = [tuple(row[1:-1]) for row in rows]
    missing = next((place for place, row in enumerate(rows) if row[-1]), None)
    _check(len(combinations), selection, span)
    named = [f"{own} AS {dialect.quote(key)}" for own, (_, key) in zip(joined, join.on, strict=True)]
    lookup = replace(
        every,
        text=f"SELECT DISTINCT {', '.join([*named, _NUMBER])} FROM ({every.text}) WHERE NOT {_MISSING}",  # noqa: S608
    )
    types = {column.name: column for column in join.table.columns}
    numbered = Column(
        _NUMBER, "BIGINT", missing is not None, Range(0, len(combinations) - 1) if combinations else Values(())
    )
    table = Table(
        f"{join.table.name} in groups", (*(types[key] for _, key in join.on), numbered), public=True, rows=lookup
    )
    return numbered.of(relation.base.join(replace(join, table=table))), combinations, missing


def _query(relation: Relation, label: str, head: str, tail: str) -> PublicQuery:
    """A query over the rows of a joined public table that satisfy the conditions on it alone.

    Where rows may have no match, all columns are NULL in one more row.
    """
    join = joined_as(relation, label)
    assert join is not None
    inner = rows_of(join)
    names = ", ".join(
        f"{dialect.quote(c.name)} AS {dialect.quote(c.of(label).name)}"
        for c in join.table.columns
        if dialect.is_key(c.type)
    )
    nulls = ", ".join("NULL" for c in join.table.columns if dialect.is_key(c.type))
    made = f"SELECT {names}, FALSE AS {_MISSING} FROM ({inner.text})"  # noqa: S608
    if label in relation.optional:
        made += f" UNION ALL SELECT {nulls}, TRUE"
    conditions = " AND ".join(f"({condition.reference})" for condition in relation.conditions_on(label)) or "TRUE"
    text = f"{head} FROM ({made}) WHERE {conditions} {tail}"
    return replace(inner, text=text)


def _check(count: int, selection: Selection, span: Span) -> None:
    if count > selection.batch.limits.rows:
        raise span.error(
            LimitError, f"GROUP BY makes {count:,} groups, too many for one batch", "group by fewer columns"
        )
