"""Aggregates of private rows that lie one below the other, from those of each part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from .from_clause import RelationReader
from .joins import Tables
from .name_reader import Kind, from_items, unwrapped
from .replaced import is_star, replaced, replaced_items
from .set_operations import as_select, in_two
from .statement import bare
from .unit_rows import aggregates_of, groupings

_PARTIAL = (exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max)
"""Aggregates of a UNION ALL that follow from those of its parts."""


def union_select(reader: RelationReader, select: exp.Select) -> exp.Select | None:
    """Aggregates of a UNION ALL of private rows, as aggregates of those of its parts; None for any other SELECT.

    Other tables may be joined to the rows: each part is joined to them.
    """
    branches = _stacked_in(reader, select)
    if branches is None:
        return None
    parts = [_over(select, reader, branch, branches[0]) for branch in branches]
    found = list(dict.fromkeys(aggregates_of(select)))
    partial = all(isinstance(_core(n), _PARTIAL) and not isinstance(_core(n).this, exp.Distinct) for n in found)
    if not partial or not found or any(part is None for part in parts):
        return None
    level = reader.level(parts[0], Tables())  # type: ignore[arg-type]
    nodes, group = groupings(select, level)
    columns: dict[exp.Expr, exp.Expr] = {}
    asked: list[exp.Expr] = []
    for node in nodes:
        if bare(node) not in columns:
            columns[bare(node)] = exp.column(f"c{len(asked)}", quoted=True)
            asked.append(node)
    keys = len(asked)
    for node in found:
        core = _core(node)
        steps: list[exp.Expr] = [core]
        if isinstance(core, exp.Avg):
            steps = [exp.Sum(this=core.this.copy()), exp.Count(this=core.this.copy())]
        sums = [exp.column(f"c{len(asked) + i}", quoted=True) for i in range(len(steps))]
        columns[node] = _combined(core, sums)
        asked += [_with_core(node, step) for step in steps]
    stacked: exp.Expr | None = None
    for part in parts:
        assert part is not None
        part.set("expressions", [exp.alias_(node.copy(), f"c{i}", quoted=True) for i, node in enumerate(asked)])
        part.set("group", exp.Group(expressions=[node.copy() for node in asked[:keys]]) if keys else None)
        stacked = part if stacked is None else exp.Union(this=stacked, expression=part, distinct=False)
    outer = exp.Select(
        from_=exp.From(this=exp.Subquery(this=stacked, alias=exp.TableAlias(this=exp.to_identifier("parts"))))
    )
    outer.set("expressions", replaced_items(reader, select, columns, level))
    outer.set("group", None if group is None else replaced(group, columns))
    for clause in ("having", "order", "limit", "offset", "distinct"):
        value = select.args.get(clause)
        outer.set(clause, replaced(value, columns) if isinstance(value, exp.Expr) else value)
    return outer


def _stacked_in(reader: RelationReader, select: exp.Select) -> list[exp.Expr] | None:
    """The SELECTs whose private rows lie one below the other in the one item of FROM that is such a UNION ALL."""
    unions = [b[1] for node in from_items(select) if (b := reader.behind(node)) is not None and _is_union(b)]
    return _branches(unions[0]) if len(unions) == 1 else None


def _is_union(behind: tuple[RelationReader, exp.Expr]) -> bool:
    return isinstance(behind[1], exp.Union) and behind[0].kind(behind[1]) is Kind.ROWS


def _over(select: exp.Select, reader: RelationReader, branch: exp.Expr, first: exp.Expr) -> exp.Select | None:
    """A SELECT's FROM and WHERE with one of the stacked SELECTs in place of them all, under the first one's names."""
    names = [item.alias_or_name for item in first.expressions]
    if "" in names or any(map(is_star, first.expressions)) or len(branch.expressions) != len(names):
        return None
    part = exp.Select(**{name: _copied(select.args.get(name)) for name in ("from_", "joins", "where", "with_")})
    for node in from_items(part):
        behind = reader.behind(node)
        if behind is None or not _is_union(behind):
            continue
        alias = node.args.get("alias")
        renamed = [] if alias is None else [column.name for column in alias.args.get("columns") or ()]
        heads = [exp.to_identifier(name, quoted=True) for name in [*renamed, *names[len(renamed) :]]]
        called = exp.to_identifier(node.alias_or_name or "subquery", quoted=True)
        node.replace(exp.Subquery(this=branch.copy(), alias=exp.TableAlias(this=called, columns=heads)))
        return part
    return None


def _copied(value: Any) -> Any:
    return [part.copy() for part in value] if isinstance(value, list) else value and value.copy()


def _combined(core: exp.Expr, columns: Sequence[exp.Expr]) -> exp.Expr:
    """An aggregate of everything, from those of the parts."""
    if isinstance(core, exp.Min | exp.Max):
        return type(core)(this=columns[0])
    total = exp.Sum(this=columns[0])
    if isinstance(core, exp.Count | exp.CountIf):  # of no part at all, which a total over no groups is
        return exp.Coalesce(this=total, expressions=[exp.Literal.number(0)])
    if isinstance(core, exp.Avg):
        count = exp.Nullif(this=exp.Sum(this=columns[1]), expression=exp.Literal.number(0))
        return exp.Paren(this=exp.Div(this=total, expression=count))
    return total


def _core(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Filter) else node


def _with_core(node: exp.Expr, core: exp.Expr) -> exp.Expr:
    return exp.Filter(this=core, expression=node.expression.copy()) if isinstance(node, exp.Filter) else core


def _branches(union: exp.Expr) -> list[exp.Expr]:
    union = unwrapped(union)
    if isinstance(union, exp.Union):
        both = in_two(union) if union.args.get("distinct") else (union.this, union.expression)
        return [branch for part in both for branch in _branches(part)]
    return [as_select(union)]
