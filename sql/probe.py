"""Statements that ask a table for its columns and for no row: ``SELECT * FROM visits WHERE 1 = 0``, or ``LIMIT 0``.

Tools send them to learn what a table has. Whatever its rows hold, the result has none, and its columns are those of the
catalog, which is public: so the statement is read as one that names no table, and is free.
"""

from __future__ import annotations

from sqlglot import exp

from . import dialect
from .catalog import Column, Table
from .name_reader import Kind, NameReader, unwrapped
from .names import folded
from .replaced import is_star

_CLAUSES = frozenset({"expressions", "from_", "where", "limit"})
"""What a probe may have; whatever else stands there makes it a statement like any other."""


def without_rows(reader: NameReader, select: exp.Select) -> exp.Select | None:
    """The same columns of no table, if the statement can return no row of a private one; else None."""
    if any(value for clause, value in select.args.items() if clause not in _CLAUSES) or not _is_empty(select):
        return None
    source = select.args.get("from_")
    node = None if source is None else source.this
    if not isinstance(node, exp.Table) or any(
        v for k, v in node.args.items() if k not in ("this", "db", "catalog", "alias")
    ):
        return None
    if reader.kind(select) is not Kind.ROWS:
        return None
    columns = _columns(reader.table(node), select, node.alias_or_name)
    if columns is None:
        return None
    items = [
        exp.alias_(exp.cast(exp.null(), column.type, dialect=dialect.DUCKDB), name, quoted=True)
        for name, column in columns
    ]
    return exp.select(*items).where(exp.false())


def _is_empty(select: exp.Select) -> bool:
    """Whether a constant says that there are no rows."""
    where, limit = select.args.get("where"), select.args.get("limit")
    if where is None:
        return limit is not None and isinstance(limit.expression, exp.Literal) and limit.expression.this == "0"
    condition = unwrapped(where.this)
    if isinstance(condition, exp.Boolean):
        return not condition.this
    if isinstance(condition, exp.EQ) and all(isinstance(side, exp.Literal) for side in condition.args.values()):
        left, right = condition.left, condition.right
        numbers = not left.is_string and not right.is_string
        return numbers and left.this.isdecimal() and right.this.isdecimal() and int(left.this) != int(right.this)
    return False


def _columns(table: Table, select: exp.Select, alias: str) -> list[tuple[str, Column]] | None:
    """Each column under the name that the result gives it; None where the list has anything but columns."""
    stored = {folded(column.name): column for column in table.columns}
    found: list[tuple[str, Column]] = []
    for item in select.expressions:
        if is_star(item):
            named = item.table if isinstance(item, exp.Column) else ""
            star = item.this if isinstance(item, exp.Column) else item
            if (named and folded(named) != folded(alias)) or any(star.args.values()):
                return None
            found += [(column.name, column) for column in table.columns]
            continue
        column = item.unalias()
        known = stored.get(folded(column.name)) if isinstance(column, exp.Column) else None
        if known is None or (column.table and folded(column.table) != folded(alias)):
            return None
        found.append((item.alias_or_name, known))
    return found or None
