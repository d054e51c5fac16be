"""Columns of public tables that are joined to private rows: what the public rows tell of them is free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from . import dialect
from .catalog import Column, Range
from .derived import PublicQuery
from .relation import Relation
from .scan import Join

Read = Callable[[PublicQuery], list[tuple[Any, ...]]]


def public_owner(relation: Relation, column: Column) -> str | None:
    """The label of the public table that a column comes from; None for any other column."""
    labels = {stored.label for stored in column.stored}
    label = labels.pop() if len(labels) == 1 else ""
    join = joined_as(relation, label)
    return label if join is not None and join.table.public else None


def joined_as(relation: Relation, label: str) -> Join | None:
    """The join under a label."""
    return next((join for join, own in relation.base.joins.items() if own == label), None)


def rows_of(join: Join) -> PublicQuery:
    """The rows of a joined public table."""
    rows = join.table.rows
    if isinstance(rows, PublicQuery):
        return rows
    return PublicQuery("SELECT * FROM tacit_t0", (), (("tacit_t0", join.table),))


def with_public_range(relation: Relation, column: Column, read: Read | None) -> Column:
    """A column of a public table without a declared domain, with the range of its values there."""
    kind = dialect.kind_of(column.type)
    if column.domain is not None or column.expression or read is None or kind not in ("number", "day", "moment"):
        return column
    label = public_owner(relation, column)
    join = joined_as(relation, label) if label is not None else None
    if join is None:
        return column
    own, rows = dialect.quote(column.own_name), rows_of(join)
    finite = f" WHERE isfinite({own})" if kind != "number" or column.type in ("FLOAT", "DOUBLE") else ""
    [(low, high)] = read(replace(rows, text=f"SELECT min({own}), max({own}) FROM ({rows.text}){finite}"))  # noqa: S608
    return column if low is None or isinstance(low, str) else replace(column, domain=Range(low, high))
