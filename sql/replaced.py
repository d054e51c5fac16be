"""Putting columns of a released frame in the place of what they hold, in the rest of a statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from .from_clause import RelationReader
from .level import Level
from .statement import bare, parts_of, rebuilt


def replaced_all(value: Any, columns: Mapping[exp.Expr, exp.Expr]) -> Any:
    """What an argument of a node holds, with columns in place of what is listed."""
    if isinstance(value, list):
        return [replaced_all(part, columns) for part in value]
    return replaced(value, columns) if isinstance(value, exp.Expr) else value


def replaced(node: exp.Expr, columns: Mapping[exp.Expr, exp.Expr]) -> exp.Expr:
    """An expression with columns in place of what is listed."""
    if bare(node) in columns:
        return columns[bare(node)].copy()
    if isinstance(node, exp.Query):
        return node.copy()
    if isinstance(node, exp.Window):  # its function is computed over groups: only what stands inside is of a group
        columns = {key: column for key, column in columns.items() if key not in _functions(node)}
    return rebuilt(node, [replaced(part, columns) for part in parts_of(node)])


def _functions(window: exp.Window) -> list[exp.Expr]:
    """The function of a window, without and with its FILTER and the like."""
    found = [window.this]
    while isinstance(found[-1], exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        found.append(found[-1].this)
    return found


def replaced_items(
    reader: RelationReader, select: exp.Select, columns: Mapping[exp.Expr, exp.Expr], level: Level
) -> list[exp.Expr]:
    """The items of a SELECT list with columns in place of what is listed, under the names that they had."""
    items = []
    for item in select.expressions:
        node = item.this if isinstance(item, exp.Alias) else item
        column = bare(node)
        name = item.alias or (column.name if isinstance(column, exp.Column) else reader.output_name(item, level))
        items.append(exp.alias_(replaced(node, columns), name, quoted=True))
    return items


def is_star(node: exp.Expr) -> bool:
    """Whether an item of a SELECT list is * or table.*."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))
