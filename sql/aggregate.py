"""Aggregates: COUNT, SUM and what is linear in them become rows of the workload.

A linear form is a weighted sum of atoms. An atom is one count or one clamped sum under one condition, and becomes rows
of the workload, one for each group. ``SUM(CASE …)`` is taken apart into one atom per branch, and ``SUM(2 * a + 1)``
into ``2 · SUM(a) + COUNT(a)``, so that equal questions are asked once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp
from tacit.errors import TypeMismatchError, UnsupportedSqlError

from .batch import BatchReader, TableBatch
from .catalog import Column
from .cells import GroupedAggregate
from .clamped import clamped, is_arithmetic, summands
from .constants import is_constant
from .declared import bounds, column_bounds, constant_moment
from .dialect import is_numeric, to_double
from .domains import clamp
from .from_clause import RelationReader
from .kept_rows import leaves_out
from .predicate import ALWAYS, And, ColumnQuestion, FixedTruth, IsTruth, Not, Predicate
from .public_columns import with_public_range
from .regions import IS_NULL, NOT_NULL
from .relation import Relation
from .scalar import Scope, case_branches, scalar
from .statement import bare
from .truths import FALSE, TRUE

VARIANCES: dict[type[exp.Expr], tuple[str, str]] = {  # (denominator, what is done with the variance)
    exp.Variance: ("n - 1", "{}"),
    exp.VariancePop: ("n", "{}"),
    exp.Stddev: ("n - 1", "sqrt({})"),
    exp.StddevSamp: ("n - 1", "sqrt({})"),
    exp.StddevPop: ("n", "sqrt({})"),
}
LINEAR = (exp.Count, exp.CountIf, exp.Sum)
QUANTILES: tuple[type[exp.Expr], ...] = (
    *(exp.Min, exp.Max, exp.Median, exp.Mode),
    *(exp.Quantile, exp.ApproxQuantile, exp.PercentileCont, exp.PercentileDisc, exp.WithinGroup),
)
AGGREGATES: tuple[type[exp.Expr], ...] = (*LINEAR, exp.ApproxDistinct, exp.Avg, *VARIANCES, *QUANTILES)


@dataclass(frozen=True)
class Atom:
    """A count, or a clamped sum, of the rows that satisfy a condition."""

    base: TableBatch
    aggregate: GroupedAggregate
    single: bool = False
    """From a scalar subquery: one number, whatever the groups are."""
    keys: tuple[tuple[tuple[Predicate, ...], ...], ...] | None = None
    """For each grouping set the predicates of its groups, where the base is not the one that the groups speak of."""


@dataclass(frozen=True)
class Form:
    """A weighted sum of atoms, plus a constant."""

    terms: tuple[tuple[float, Atom], ...] = ()
    offset: float = 0.0

    def __add__(self, other: Form) -> Form:
        return Form(self.terms + other.terms, self.offset + other.offset)

    def times(self, factor: float) -> Form:
        """The form scaled."""
        return Form(tuple((factor * weight, atom) for weight, atom in self.terms), factor * self.offset)

    @property
    def bases(self) -> set[int]:
        """Which bases it counts in."""
        return {id(atom.base) for _, atom in self.terms}


class AggregateReader:
    """Reads aggregates over one relation."""

    def __init__(self, batch: BatchReader, relations: RelationReader, relation: Relation) -> None:
        self._batch = batch
        self._relations = relations
        self._relation = relation
        scope = relations.scope(relation)
        read = batch.catalog.read_public
        self._scope: Scope = replace(scope, resolve=lambda node: with_public_range(relation, scope.resolve(node), read))
        """What names mean; columns of public tables have the ranges of their values."""

    @property
    def scope(self) -> Scope:
        """What names mean inside an aggregate."""
        return self._scope

    def linear(self, node: exp.Expr) -> Form | None:
        """COUNT or SUM, with or without FILTER, as a form; None for anything else."""
        where, node = self.filtered(node)
        if not isinstance(node, LINEAR):
            return None
        argument = self.argument(node)
        if isinstance(node, exp.CountIf):
            assert argument is not None
            return self._count(both(where, self._relations.predicate(self._relation, argument)))
        if argument is None:
            return self._count(where)
        if isinstance(node, exp.Sum):
            return self._sum(argument, where)
        return self._present(argument, where)

    def ratio(self, node: exp.Expr) -> tuple[Form, Form, float, float]:
        """AVG as (sum, count, low, high)."""
        where, node = self.filtered(node)
        argument = self.argument(node)
        assert argument is not None
        ends = bounds(argument, self._scope)
        total, count = self._sum(argument, where), self._summed(argument, where)
        if ends is None:  # the sum has refused what has no range; what is left is NULL
            assert not total.terms, "an average needs the range that its sum has"
            ends = (0, 0)
        return total, count, float(ends[0]), float(ends[1])

    def variance(self, node: exp.Expr) -> tuple[Form, Form, Form, str]:
        """VARIANCE, STDDEV and their forms as (sum of squares, sum, count, SQL over s2, s1 and n)."""
        where, node = self.filtered(node)
        argument = self.argument(node)
        assert argument is not None
        below, finish = VARIANCES[type(node)]
        spread = f"CASE WHEN {below} > 0 THEN greatest(0, (s2 - s1 * s1 / nullif(n, 0)) / ({below})) END"
        return (
            self._squares(argument, where),
            self._sum(argument, where),
            self._summed(argument, where),
            finish.format(spread),
        )

    def check_kept(self, node: exp.Expr) -> None:
        """Refuse what would count the rows of a public table that match no private row."""
        relation = self._relation
        if relation.kept and not leaves_out(node, relation.level, relation.kept):
            raise self._scope.error(
                UnsupportedSqlError, node, "rows of a public table without a match would be counted here, and they are "
                "not among the rows of people", "write COUNT(private column), or JOIN in place of the outer join",
            )  # fmt: skip

    def filtered(self, node: exp.Expr) -> tuple[Predicate, exp.Expr]:
        """The condition of the rows that an aggregate is over, and the aggregate without its FILTER."""
        self.check_kept(node)
        if isinstance(node, exp.Filter):
            condition = self._relations.predicate(self._relation, node.expression.this)
            return both(self._relation.where, condition), node.this
        return self._relation.where, node

    def argument(self, node: exp.Expr) -> exp.Expr | None:
        """The aggregate's argument; None for COUNT(*)."""
        if node.args.get("expressions"):
            raise self._scope.error(UnsupportedSqlError, node, "an aggregate takes one argument", "write COUNT(column)")
        argument = node.this
        if isinstance(node, exp.Count) and (argument is None or isinstance(argument, exp.Star)):
            return None
        if isinstance(argument, exp.Distinct):
            name = type(node).__name__.upper()
            raise self._scope.error(
                UnsupportedSqlError, node, f"{name}(DISTINCT …) is not supported", "leave DISTINCT out"
            )
        if not isinstance(argument, exp.Expr) or isinstance(argument, exp.Star | exp.Order | exp.Limit):
            raise self._scope.error(UnsupportedSqlError, node, "an aggregate takes one argument", "write SUM(column)")
        return bare(argument)

    # linear forms

    def atom(self, where: Predicate, present: tuple[Column, ...] = (), summed: str | None = None) -> Form:
        """How many rows satisfy a condition and have some columns, or the clamped sum of one."""
        asks: list[Predicate] = []
        for column in present:
            attribute = self._relation.base.attribute(column)
            attribute.ask(IS_NULL)
            asks.append(ColumnQuestion(attribute.column.name, attribute.ask(NOT_NULL)))
        return Form(
            ((1.0, Atom(self._relation.base, GroupedAggregate(where, (), both(*asks) if asks else None, summed))),)
        )

    def _count(self, where: Predicate) -> Form:
        return self.atom(where)

    def _present(self, node: exp.Expr, where: Predicate) -> Form:
        """COUNT(expression): the rows for which it is not NULL."""
        if is_constant(node):
            return self._count(FixedTruth(FALSE)) if self._scope.constant(node) is None else self._count(where)
        branches = self._branches(node, where)
        if branches is not None:
            return _total(self._present(result, condition) for condition, result in branches)
        return self.atom(where, (scalar(node, self._scope),))

    def _sum(self, node: exp.Expr, where: Predicate) -> Form:
        """SUM(expression), taken apart as far as it is a choice, a multiple or a shift of something simpler."""
        node = bare(node)
        if is_constant(node):
            return self._count(where).times(self._number(node))
        branches = self._branches(node, where)
        if branches is not None:
            return _total(self._sum(result, condition) for condition, result in branches)
        if isinstance(node, exp.Neg):
            return self._sum(node.this, where).times(-1.0)
        if isinstance(node, exp.Mul | exp.Div | exp.Add | exp.Sub):
            simpler = self._affine(node, where)
            if simpler is not None:
                return simpler
        column = clamped(node, self._scope)
        present = summands(node, self._scope) or (column,)
        ends = column_bounds(column) if is_numeric(column.type) else None
        if ends is not None and ends[0] == ends[1] and math.isfinite(ends[0]):
            return self.atom(where, present).times(ends[0])
        summed = clamp(self._relation.base.holder, column, self._scope.statement.span(node))
        return self.atom(where, present, self._relation.base.sum_column(summed))

    def _squares(self, node: exp.Expr, where: Predicate) -> Form:
        """The sum of an expression's squares."""
        node = bare(node)
        if is_constant(node):
            number = self._number(node)
            return self._count(where).times(number * number)
        branches = self._branches(node, where)
        if branches is not None:
            return _total(self._squares(result, condition) for condition, result in branches)
        inner: exp.Expr = exp.Paren(this=node.copy())
        if not is_arithmetic(node):  # which is computed with DOUBLEs anyway: a square must not overflow its type
            inner = exp.Cast(this=node.copy(), to=exp.DataType(this=exp.DataType.Type.DOUBLE))
        return self._sum(exp.Mul(this=inner, expression=inner.copy()), where)

    def _affine(self, node: exp.Expr, where: Predicate) -> Form | None:
        left, right = bare(node.this), bare(node.expression)
        if self._has_date(node):
            return None
        if is_constant(right) and not is_constant(left):
            factor = self._number(right)
            if isinstance(node, exp.Mul):
                return self._sum(left, where).times(factor)
            if isinstance(node, exp.Div):
                return self._sum(left, where).times(1.0 / factor) if factor else None
            shift = factor if isinstance(node, exp.Add) else -factor
            return self._shifted(left, where, shift)
        if is_constant(left) and not is_constant(right):
            factor = self._number(left)
            if isinstance(node, exp.Mul):
                return self._sum(right, where).times(factor)
            if isinstance(node, exp.Add | exp.Sub):
                sign = 1.0 if isinstance(node, exp.Add) else -1.0
                return self._shifted(right, where, factor, sign)
        return None

    def _shifted(self, node: exp.Expr, where: Predicate, shift: float, sign: float = 1.0) -> Form:
        """SUM(sign · expression + shift). A chain of shifts is one shift: each level would count the rows again."""
        node = bare(node)
        while isinstance(node, exp.Add | exp.Sub) and is_constant(node.expression) and not is_constant(node.this):
            number = self._number(node.expression)
            shift += sign * (number if isinstance(node, exp.Add) else -number)
            node = bare(node.this)
        return self._sum(node, where).times(sign) + self._summed(node, where).times(shift)

    def _summed(self, node: exp.Expr, where: Predicate) -> Form:
        """How many rows SUM(expression) adds up: those for which the *clamped* expression is not NULL.

        Without its clamp an expression can overflow, which makes it NULL, where the sum has a value for the row.
        """
        node = bare(node)
        if is_constant(node):
            return self._present(node, where)
        branches = self._branches(node, where)
        if branches is not None:
            return _total(self._summed(result, condition) for condition, result in branches)
        if isinstance(node, exp.Neg):
            return self._summed(node.this, where)
        if isinstance(node, exp.Mul | exp.Div | exp.Add | exp.Sub) and not self._has_date(node):
            left, right = bare(node.this), bare(node.expression)
            if is_constant(right) and not is_constant(left) and (self._number(right) or not isinstance(node, exp.Div)):
                return self._summed(left, where)
            if is_constant(left) and not is_constant(right) and not isinstance(node, exp.Div):
                return self._summed(right, where)
        return self.atom(where, summands(node, self._scope) or (clamped(node, self._scope),))

    def _branches(self, node: exp.Expr, where: Predicate) -> list[tuple[Predicate, exp.Expr]] | None:
        """CASE as (condition, result) pairs that exclude each other; branches that give NULL are left out."""
        if not isinstance(node, exp.Case | exp.If):
            return None
        branches: list[tuple[Predicate, exp.Expr]] = []
        earlier: tuple[Predicate, ...] = ()
        for condition, result in case_branches(node):
            parts = earlier
            if condition is not None:
                held = IsTruth(self._relations.predicate(self._relation, condition), TRUE)
                parts, earlier = (*earlier, held), (*earlier, Not(held))
            if result is not None and not isinstance(bare(result), exp.Null):
                branches.append((both(where, *parts), result))
        return branches

    def _has_date(self, node: exp.Expr) -> bool:
        """Whether a constant side is a date: then this is the days between two dates."""
        sides = (bare(node.this), bare(node.expression))
        return any(constant_moment(side, self._scope) is not None for side in sides)

    def _number(self, node: exp.Expr) -> float:
        value: Any = self._scope.constant(node)
        try:
            if value is None or isinstance(value, str):
                raise TypeError
            return to_double(value)
        except TypeError:
            raise self._scope.error(
                TypeMismatchError, node, "only numbers can be summed", "write a number here"
            ) from None


def _total(forms: Iterator[Form]) -> Form:
    total = Form()
    for form in forms:
        total += form
    return total


def both(*parts: Predicate) -> Predicate:
    """AND, without what always holds."""
    conditions = tuple(part for part in parts if part != ALWAYS)
    return And(conditions) if len(conditions) > 1 else (conditions[0] if conditions else ALWAYS)


def keyed(atom: Atom, number: int, keys: tuple[tuple[Predicate, ...], ...]) -> GroupedAggregate:
    """The atom's aggregate for one set of GROUP BY keys, and the set's number."""
    if atom.keys is not None:
        keys = atom.keys[number]
    return atom.aggregate if atom.single else replace(atom.aggregate, keys=keys)
