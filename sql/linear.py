"""Outputs that are linear in COUNT and SUM: they become rows of the workload matrix, one for each group."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from sqlglot import exp
from tacit.errors import LimitError, UnsupportedSqlError

from .aggregate import Form, keyed
from .constants import is_constant
from .dialect import to_double
from .distinct import average_of_distinct, is_distinct, read_distinct
from .grouping import Groups
from .selection import Selection, unaliased
from .statement import bare
from .workload import Linear

_LARGEST = 1e100
"""The square of a larger factor, and of one divided by it, would overflow when errors are computed."""


class LinearReader:
    """Reads expressions as linear forms over aggregates of one base, and asks the batch for their rows."""

    def __init__(self, selection: Selection, groups: Groups) -> None:
        self._selection = selection
        self._groups = groups
        self._forms: dict[int, tuple[exp.Expr, Form | None]] = {}
        """Each node's form, by the node's identity; the node is stored too, so that no other can take its place."""

    def form(self, node: exp.Expr) -> Form | None:
        """An expression that is linear in aggregates of one base; None for any other. Each node is read once."""
        node = bare(node)
        if id(node) not in self._forms:
            self._forms[id(node)] = node, self._read(node)
        return self._forms[id(node)][1]

    def _read(self, node: exp.Expr) -> Form | None:
        if isinstance(node, exp.Subquery):
            return self._subquery(node)
        if is_distinct(node) and average_of_distinct(node) is None:
            return read_distinct(self._selection, self._groups, node)
        if isinstance(node, exp.Filter | exp.Count | exp.CountIf | exp.Sum):
            return self._selection.aggregates(node).linear(node)
        if is_constant(node):
            value = self._selection.constant(node)
            number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
            return Form(offset=to_double(value)) if number else None
        if isinstance(node, exp.Cast) and node.is_type("double", "float"):
            return self.form(node.this)
        if isinstance(node, exp.Neg):
            inner = self.form(node.this)
            return inner.times(-1.0) if inner is not None else None
        if not isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
            return None
        left, right = self.form(node.this), self.form(node.expression)
        if left is None or right is None:
            return None
        if isinstance(node, exp.Add | exp.Sub):
            total = left + right.times(1.0 if isinstance(node, exp.Add) else -1.0)
            return total if len(total.bases) <= 1 else None
        if isinstance(node, exp.Mul):
            if not left.terms:
                return right.times(left.offset)
            return left.times(right.offset) if not right.terms else None
        return left.times(1.0 / right.offset) if not right.terms and right.offset else None

    def _subquery(self, node: exp.Subquery) -> Form:
        """A scalar subquery: its one COUNT or SUM, whatever the groups around it are."""
        select = node.this
        if not isinstance(select, exp.Select) or any(v for k, v in node.args.items() if k not in ("this", "alias")):
            raise self._not_scalar(node, "a scalar subquery is one aggregate")
        if any(select.args.get(clause) for clause in ("group", "having", "order", "limit", "offset", "distinct")):
            raise self._not_scalar(select, "a scalar subquery is one aggregate")
        if len(select.expressions) != 1:
            raise self._not_scalar(select, "a scalar subquery has one column")
        outer = self._selection
        inner = Selection(outer.batch, outer.statement, outer.relations, select)
        form = LinearReader(inner, Groups(inner, [], [()])).form(unaliased(inner.items[0]))
        if form is None:
            raise self._not_scalar(node, "a scalar subquery is one COUNT or SUM")
        return Form(tuple((weight, replace(atom, single=True)) for weight, atom in form.terms), form.offset)

    def _not_scalar(self, node: exp.Expr, message: str) -> Exception:
        return self._selection.error(UnsupportedSqlError, node, message, "write (SELECT count(*) FROM …)")

    def rows(self, form: Form) -> Linear:
        """Ask the batch for the form's rows: one for each group."""
        factors = (form.offset, *(weight for weight, _ in form.terms))
        if not all(factor == 0 or 1 / _LARGEST <= abs(factor) <= _LARGEST for factor in factors):
            raise self._selection.error(
                LimitError, None, "a number in this statement is too large or too small to compute with",
                "use other factors",
            )  # fmt: skip
        batch = self._selection.batch
        rows: list[int] = []
        for number, (predicates, size) in enumerate(zip(self._groups.predicates, self._groups.sizes, strict=True)):
            if not size:
                continue  # a key without values
            numbers = batch.rows(
                [(weight, batch.rows_of(atom.base, keyed(atom, number, predicates))) for weight, atom in form.terms]
            )
            rows += numbers if len(numbers) == size else list(numbers) * size
        return Linear(tuple(rows), form.offset)
