"""MEDIAN, QUANTILE, MIN, MAX and MODE: read off released counts, which are rows of the workload like any COUNT.

A quantile is asked for as the counts of rows at or below each value of a grid that the declared domain makes; all
quantiles of a column under one condition share them. MODE is asked for as the count of each declared value.

Guarantee. Each count is that of a condition on single rows, so it is planned, measured and charged as COUNT(*) WHERE
is: a row adds at most one to any of them, and the sensitivity of the batch is that of its matrix, these rows included.
The grid follows from the policy and the batch. What is read off (``ranks.py``) is post-processing of released numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp
from tacit.errors import UnsupportedSqlError

from .aggregate import QUANTILES, AggregateReader, both
from .catalog import Column
from .constants import is_constant
from .declared import with_domain
from .dialect import kind_of
from .domains import Grid, grid, groups
from .linear import LinearReader
from .predicate import ColumnQuestion, Predicate
from .relation import Relation
from .selection import Selection
from .statement import bare
from .truths import FALSE, UNKNOWN, Question
from .workload import Mode, Quantile

_EPOCH = datetime(1970, 1, 1)
_DAY = 86_400_000_000
_NAMES: dict[type[exp.Expr], str] = {exp.Min: "MIN", exp.Max: "MAX", exp.Median: "MEDIAN"}


@dataclass(frozen=True)
class _Call:
    """A call of one of the functions, in any of its spellings."""

    node: exp.Expr
    """The function without FILTER and WITHIN GROUP."""
    argument: exp.Expr
    share: exp.Expr | float
    descending: bool = False

    @property
    def name(self) -> str:
        return _NAMES.get(type(self.node), "QUANTILE")


class QuantileReader:
    """Reads quantiles over the rows of one SELECT."""

    def __init__(self, selection: Selection, linear: LinearReader) -> None:
        self._selection = selection
        self._linear = linear

    def read(self, node: exp.Expr) -> Quantile | Mode | None:
        """What a call releases; None for any other expression."""
        if not isinstance(node.this if isinstance(node, exp.Filter) else node, QUANTILES):
            return None
        aggregates = self._selection.aggregates(node)
        where, inner = aggregates.filtered(node)
        call = self._call(aggregates, inner)
        if is_constant(call.argument):
            raise self._error(call.argument, "this is the same for every row", "name a column")
        relation = self._selection.relation
        assert relation is not None
        column = with_domain(call.argument, aggregates.scope, self._selection.batch.limits.rows)
        if isinstance(call.node, exp.Mode):
            return self._mode(call, column, where, aggregates, relation)
        return self._quantile(call, column, where, aggregates, relation)

    def _quantile(
        self, call: _Call, column: Column, where: Predicate, aggregates: AggregateReader, relation: Relation
    ) -> Quantile:
        share, descending = self._share(call)
        attribute = relation.base.attribute(column)
        points = grid(relation.base.holder, attribute, column, self._selection.statement.span(call.node))
        below = [
            ColumnQuestion(attribute.column.name, attribute.ask(Question((("<=", place),), FALSE, UNKNOWN)))
            for place in points.places[:-1]
        ]
        forms = [aggregates.atom(both(where, condition)) for condition in below]
        forms.append(aggregates.atom(where, (column,)))
        type_, interpolated = _result(call, column, points)
        return Quantile(
            call.name,
            share,
            interpolated,
            descending,
            tuple(_coordinate(value, type_) for value in points.values),
            points.every,
            tuple(self._linear.rows(form).rows for form in forms),
            type_,
        )

    def _mode(
        self, call: _Call, column: Column, where: Predicate, aggregates: AggregateReader, relation: Relation
    ) -> Mode:
        span, limits = self._selection.statement.span(call.node), self._selection.batch.limits
        listed = groups(
            relation.base.holder, relation.base.attribute(column), column, span, limits, asked_by="the MODE of"
        )
        # The label of all other values is no value, though its rows may be the most.
        other = getattr(column.domain, "other", None)
        values = [(value, condition) for value, condition in listed if value is not None and value != other]
        kind = kind_of(column.type)
        type_ = "DOUBLE" if kind == "number" else "VARCHAR" if kind == "text" else column.type
        return Mode(
            tuple(float(value) if kind == "number" else value for value, _ in values),
            tuple(self._linear.rows(aggregates.atom(both(where, condition))).rows for _, condition in values),
            type_,
        )

    def _call(self, aggregates: AggregateReader, node: exp.Expr) -> _Call:
        if isinstance(node, exp.WithinGroup):
            return self._within_group(node)
        argument = aggregates.argument(node)
        if argument is None or any(node.args.get(extra) for extra in ("count", "accuracy", "weight")):
            raise self._error(node, "this takes a column and nothing else", "write MIN(column)")
        if isinstance(node, exp.PercentileCont | exp.PercentileDisc):
            share = node.args.get("expression")
        elif isinstance(node, exp.Quantile):  # and its subclass ApproxQuantile
            share = node.args.get("quantile")
        else:
            return _Call(
                node, argument, 0.0 if isinstance(node, exp.Min) else 1.0 if isinstance(node, exp.Max) else 0.5
            )
        if share is None:
            raise self._error(node, "this needs to know which quantile", "write QUANTILE_CONT(column, 0.5)")
        return _Call(node, argument, share)

    def _within_group(self, node: exp.WithinGroup) -> _Call:
        function, order = node.this, node.expression
        terms = order.expressions if isinstance(order, exp.Order) else []
        mode = isinstance(function, exp.Mode) and function.this is None
        percentile = isinstance(function, exp.PercentileCont | exp.PercentileDisc) and not function.args.get(
            "expression"
        )
        if len(terms) != 1 or not isinstance(terms[0], exp.Ordered) or not (mode or percentile):
            raise self._error(
                node, "WITHIN GROUP is for PERCENTILE_CONT, PERCENTILE_DISC and MODE, with one ORDER BY",
                "write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY column)",
            )  # fmt: skip
        share = 0.5 if mode else function.this
        return _Call(function, bare(terms[0].this), share, bool(terms[0].args.get("desc")))

    def _share(self, call: _Call) -> tuple[float, bool]:
        """The part of the rows below the quantile, and whether its rank is counted from the greatest value."""
        if isinstance(call.share, float):
            return call.share, False
        node = bare(call.share)
        if isinstance(node, exp.Array | exp.List | exp.Tuple):
            raise self._error(
                call.node, "a list of quantiles in one column is not supported",
                "write one column for each, as in quantile_cont(x, 0.25), quantile_cont(x, 0.75): they cost no more",
            )  # fmt: skip
        value: Any = self._selection.constant(node) if is_constant(node) else None
        number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        least = 0 if isinstance(call.node, exp.ApproxQuantile) or isinstance(call.argument.parent, exp.Ordered) else -1
        if not number or not least <= value <= 1:
            raise self._error(
                call.node, "which quantile must be a constant from 0 to 1", "write QUANTILE_CONT(column, 0.5)"
            )
        descending = call.descending != (value < 0)
        share = abs(float(value))
        return (1.0 - share if descending else share), descending

    def _error(self, node: exp.Expr, message: str, hint: str) -> Exception:
        return self._selection.error(UnsupportedSqlError, node, message, hint)


def _result(call: _Call, column: Column, points: Grid) -> tuple[str, bool]:
    """The type of a quantile, as DuckDB has it but that numbers are DOUBLE; and whether it is interpolated."""
    kind = kind_of(column.type)
    interpolated = isinstance(call.node, exp.Median | exp.PercentileCont) and kind != "truth"
    if isinstance(call.node, exp.ApproxQuantile):  # between the values that a grid leaves out, as a digest would
        interpolated = not points.every and column.type != "DATE"
    if kind == "number":
        return "DOUBLE", interpolated
    return "TIMESTAMP" if interpolated else column.type, interpolated


def _coordinate(value: Any, type_: str) -> float:
    """A value of the grid as a number (see ``Quantile.grid``)."""
    if not isinstance(value, date):
        return float(value)
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    elapsed = moment - _EPOCH
    if type_ == "DATE":
        return float(elapsed.days)
    return float(elapsed.days * _DAY + elapsed.seconds * 1_000_000 + elapsed.microseconds)
