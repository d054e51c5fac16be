"""COUNT(DISTINCT x), SUM(DISTINCT x): the rows of a table of distinct values, one for each group and value.

A unit adds at most as many distinct values as it has rows, and one where the values are the units themselves: such a
table is a base like any other (``unit_rows.py``), so its counts are planned and paid for with the rest of the batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp
from tacit.errors import UnsupportedSqlError

from .aggregate import AggregateReader, Atom, Form
from .catalog import Column, Values
from .grouping import Groups
from .literals import Constant
from .predicate import And, ColumnQuestion, Not, Predicate
from .regions import IS_NULL, NOT_NULL, Attribute
from .relation import Relation
from .selection import Selection
from .truths import FALSE, UNKNOWN, Question
from .unit_rows import ONLY_PRESENT

_VALUE = "v"


def is_distinct(node: exp.Expr) -> bool:
    """Whether an aggregate is over distinct values."""
    core = node.this if isinstance(node, exp.Filter) else node
    if isinstance(core, exp.ApproxDistinct):
        return True
    return isinstance(core, exp.Count | exp.Sum | exp.Avg) and isinstance(core.this, exp.Distinct)


def average_of_distinct(node: exp.Expr) -> exp.Expr | None:
    """AVG(DISTINCT x) as SUM(DISTINCT x) / COUNT(DISTINCT x); None for anything else."""
    core = node.this if isinstance(node, exp.Filter) else node
    if not isinstance(core, exp.Avg) or not isinstance(core.this, exp.Distinct):
        return None
    total, count = (_filtered(node, kind(this=core.this.copy())) for kind in (exp.Sum, exp.Count))
    return exp.Div(this=total, expression=exp.Nullif(this=count, expression=exp.Literal.number(0)))


def _filtered(node: exp.Expr, core: exp.Expr) -> exp.Expr:
    return exp.Filter(this=core, expression=node.expression.copy()) if isinstance(node, exp.Filter) else core


def read_distinct(selection: Selection, groups: Groups, node: exp.Expr) -> Form:
    """COUNT or SUM over distinct values as a linear form, a row for each group."""
    core = node.this if isinstance(node, exp.Filter) else node
    value = core.this
    if isinstance(value, exp.Distinct):
        if len(value.expressions) != 1:
            raise selection.error(
                UnsupportedSqlError, node, "DISTINCT takes one expression here", "count one column at a time"
            )
        value = value.expressions[0]
    if len(groups.sets) > 1:
        raise selection.error(
            UnsupportedSqlError, node, "distinct values do not add up over ROLLUP, CUBE and GROUPING SETS",
            "write one SELECT with GROUP BY for each set of keys, joined by UNION ALL",
        )  # fmt: skip
    selection.aggregates(node).check_kept(node)
    relation = selection.relations.read(_rows(selection, groups, node, value))
    reader = AggregateReader(selection.batch, selection.relations, relation)
    asked = exp.Sum(this=exp.column(_VALUE)) if isinstance(core, exp.Sum) else exp.Count(this=exp.Star())
    form = reader.linear(asked)
    assert form is not None
    keys = _keys(relation, groups)
    return Form(tuple((weight, _with_keys(atom, keys)) for weight, atom in form.terms), form.offset)


def _with_keys(atom: Atom, keys: tuple[tuple[tuple[Predicate, ...], ...], ...]) -> Atom:
    return replace(atom, keys=keys)


def _rows(selection: Selection, groups: Groups, node: exp.Expr, value: exp.Expr) -> exp.Select:
    """SELECT * FROM (SELECT DISTINCT keys, x FROM … WHERE …) WHERE x IS NOT NULL."""
    select = selection.select
    inner = exp.Select(distinct=exp.Distinct())
    inner.meta[ONLY_PRESENT] = True
    items: list[exp.Expr] = [exp.alias_(key.node.copy(), f"k{i}") for i, key in enumerate(groups.keys)]
    inner.set("expressions", [*items, exp.alias_(value.copy(), _VALUE)])
    for clause in ("from_", "joins"):
        args: Any = select.args.get(clause)
        inner.set(clause, [part.copy() for part in args] if isinstance(args, list) else args and args.copy())
    conditions = [select.args["where"].this.copy()] if select.args.get("where") is not None else []
    if isinstance(node, exp.Filter):
        conditions.append(node.expression.this.copy())
    if conditions:
        inner.set("where", exp.Where(this=exp.and_(*(exp.Paren(this=c) for c in conditions))))
    present = exp.Not(this=exp.Is(this=exp.column(_VALUE), expression=exp.Null()))
    derived = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("d")))
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=derived), where=exp.Where(this=present))


def _keys(relation: Relation, groups: Groups) -> tuple[tuple[tuple[Predicate, ...], ...], ...]:
    """The predicates of the same groups over the table of distinct values, for each grouping set."""
    number, of_bundle = 0, []
    for bundle in groups.bundles:
        columns = [relation.column(relation.named(exp.column(f"k{number + i}"))) for i in range(len(bundle.keys))]
        asked = [
            (key.column, relation.base.attribute(column)) for key, column in zip(bundle.keys, columns, strict=True)
        ]
        number += len(bundle.keys)
        of_bundle.append(
            tuple(
                _all([_equal(*one, value) for one, value in zip(asked, values, strict=True)])
                for values, _ in bundle.groups
            )
        )
    return tuple(tuple(of_bundle[i] for i in chosen) for chosen in groups.sets)


def _all(parts: list[Predicate]) -> Predicate:
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _equal(column: Column, attribute: Attribute, value: Any) -> Predicate:
    """Whether a column has the value of a group."""
    name = attribute.column.name
    if value is None:
        attribute.ask(NOT_NULL)
        return ColumnQuestion(name, attribute.ask(IS_NULL))
    domain = column.domain
    if isinstance(domain, Values) and domain.other is not None and value == domain.other:
        listed = [attribute.places([Constant.of(other)])[0] for other in domain.values]
        declared = attribute.ask(Question(tuple(("=", place) for place in listed), FALSE, UNKNOWN))
        return Not(ColumnQuestion(name, declared))
    (place,) = attribute.places([Constant.of(value)])
    return ColumnQuestion(name, attribute.ask(Question((("=", place),), FALSE, UNKNOWN)))
