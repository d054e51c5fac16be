"""Expressions over released values: SQL over the aggregates a0, a1, … and the group keys k0, k1, ….

They are computed after the release, when it is paid for. So each is proven beforehand to fail on no value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from tacit.errors import LimitError, TypeMismatchError, UnsupportedSqlError

from . import dialect
from .aggregate import VARIANCES
from .constants import is_constant
from .dialect import EXPRESSIONS, kind_of
from .distinct import average_of_distinct
from .grouping import Groups, key_type
from .linear import LinearReader
from .quantile import QuantileReader
from .selection import Aliases, Selection, unaliased
from .signature import Value
from .statement import bare, parts_of, rebuilt
from .total import Prover, refusal
from .workload import Leaf, Linear, Mode, PublicValues, Quantile

WHOLE_QUOTIENT = "released numbers are no whole numbers, so // would not divide them as it divides counts"
_RELEASED = re.compile(r"\ba\d+\b")
"""The name of a leaf."""
_LONGEST = 20_000
"""Characters of an expression with its aliases written out: each alias can be twice as long as the one before."""


@dataclass(frozen=True)
class Leaves:
    """What an expression is computed from: aggregates and GROUPING as a0, a1, …."""

    numbers: dict[Leaf, int] = field(default_factory=dict)
    items: dict[int, str] = field(default_factory=dict)
    """The SQL of the items of the SELECT list that aliases led to."""

    def leaf(self, output: Leaf) -> exp.Expr:
        """The name of a leaf; with its type where a frame may hold it as another."""
        name = f"a{self.numbers.setdefault(output, len(self.numbers))}"
        if isinstance(output, Quantile | Mode) and output.type != "DOUBLE":
            name = f"CAST({name} AS {output.type})"
        return exp.Var(this=name)


class ReleasedReader:
    """Reads expressions over the released values of one SELECT."""

    def __init__(self, selection: Selection, groups: Groups, linear: LinearReader) -> None:
        self._selection = selection
        self._groups = groups
        self._linear = linear
        self._quantiles = QuantileReader(selection, linear)

    def proven(self, node: exp.Expr, leaves: Leaves, aliases: Aliases) -> str:
        """The expression as SQL that ``TRY`` makes total: an answer must not fail after it was paid for."""
        tree = self._rewritten(node, leaves, aliases)
        Prover(
            leaf=lambda part: Value(kind_of(self.type(node, dialect.write(part), leaves)), 1, 0, False),
            write=dialect.write,
            bind=lambda part: dialect.type_of(dialect.write(part), self._types(leaves)),
            error=lambda kind, _, message, hint: self._selection.error(kind, node, message, hint),
        ).prove(tree)
        return dialect.write(tree)

    def total(self, node: exp.Expr, leaves: Leaves, aliases: Aliases) -> str:
        """The same with its ``TRY``; refused where it has no type."""
        sql = dialect.guarded(self.proven(node, leaves, aliases))
        self.type(node, sql, leaves)
        return sql

    def type(self, node: exp.Expr, sql: str, leaves: Leaves) -> str:
        """The type of SQL over the leaves and the keys; ``node`` is underlined where it has none."""
        type_ = dialect.type_of(sql, self._types(leaves))
        if type_ is None or not dialect.has_dtype(type_):
            raise self._selection.error(
                TypeMismatchError, node, "DuckDB cannot compute this", "check the types, or compute it in pandas"
            )
        return type_

    def _types(self, leaves: Leaves) -> tuple[tuple[str, str], ...]:
        types = [(f"a{i}", _type(leaf)) for leaf, i in leaves.numbers.items()]
        return (*types, *((f"k{i}", key_type(key.column)) for i, key in enumerate(self._groups.keys)))

    def _rewritten(self, node: exp.Expr, leaves: Leaves, aliases: Aliases) -> exp.Expr:
        """The expression with leaves in place of aggregates and k0, k1, … in place of group keys."""
        key = self._groups.key(bare(node))
        if key is not None:
            return exp.Var(this=f"k{key}")
        if isinstance(node, exp.Grouping):
            return leaves.leaf(self._groups.grouping(node))
        node = average_of_distinct(node) or node
        form = None if is_constant(node) else self._linear.form(node)
        if form is not None and form.terms:
            return leaves.leaf(self._linear.rows(form))
        core = node.this if isinstance(node, exp.Filter) else node
        if isinstance(core, exp.Avg):
            return self._average(node, leaves)
        if type(core) in VARIANCES:
            return self._variance(node, leaves)
        quantile = self._quantiles.read(node)
        if quantile is not None:
            return leaves.leaf(quantile)
        if isinstance(node, exp.Column):
            return self._named(node, leaves, aliases)
        if isinstance(node, exp.Placeholder):
            return self._selection.literal(node)
        if not isinstance(node, EXPRESSIONS) or isinstance(node, exp.AggFunc):
            raise self._selection.error(
                UnsupportedSqlError, node, _refusal(node), "write COUNT(*), COUNT(column), SUM(column) or AVG(column)"
            )
        again = rebuilt(node, [self._rewritten(part, leaves, aliases) for part in parts_of(node)])
        if isinstance(again, exp.IntDiv) and any(_RELEASED.search(dialect.write(part)) for part in again.args.values()):
            raise self._selection.error(UnsupportedSqlError, node, WHOLE_QUOTIENT, "write a / b, or floor(a / b)")
        return again

    def _average(self, node: exp.Expr, leaves: Leaves) -> exp.Expr:
        total, count, low, high = self._selection.aggregates(node).ratio(node)
        above, below = (leaves.leaf(self._linear.rows(form)).this for form in (total, count))
        return exp.Var(this=f"(CASE WHEN {below} > 0 THEN least({high!r}, greatest({low!r}, {above} / {below})) END)")

    def _variance(self, node: exp.Expr, leaves: Leaves) -> exp.Expr:
        squares, total, count, sql = self._selection.aggregates(node).variance(node)
        forms = (("s2", squares), ("s1", total), ("n", count))
        return exp.Var(
            this=_substituted(sql, {name: leaves.leaf(self._linear.rows(form)).this for name, form in forms})
        )

    def _named(self, node: exp.Column, leaves: Leaves, aliases: Aliases) -> exp.Expr:
        """A bare name: an item of the SELECT list, rewritten once however often it is named."""
        item = self._selection.alias(node, aliases)
        if item is None:
            self._selection.text(node)  # an unknown name is the better error
            raise self._selection.error(
                UnsupportedSqlError, node, f"{node.name} is neither grouped by nor aggregated",
                f"add GROUP BY {node.name}, or aggregate it, as in COUNT({node.name})",
            )  # fmt: skip
        if item not in leaves.items:
            tree = self._rewritten(unaliased(self._selection.items[item]), leaves, Aliases(item))
            text = dialect.write(tree)
            leaves.items[item] = text if isinstance(tree, exp.Var) else f"({text})"
        if len(leaves.items[item]) > _LONGEST:
            raise self._selection.error(
                LimitError, node, "this is too long with its aliases written out", "use each alias fewer times"
            )
        return exp.Var(this=leaves.items[item])


def _substituted(sql: str, names: Mapping[str, str]) -> str:
    return "(" + re.sub(r"\b(s2|s1|n)\b", lambda match: names[match[1]], sql) + ")"


def _type(leaf: Leaf) -> str:
    match leaf:
        case Linear():
            return "DOUBLE"
        case PublicValues():
            return "BIGINT"
    return leaf.type


def _refusal(node: exp.Expr) -> str:
    if isinstance(node, exp.Star):
        return "* stands for every column of a row, and rows are not released"
    if isinstance(node, exp.AggFunc):
        return "tacit releases COUNT, SUM, AVG and quantiles, and what can be computed from them, not this"
    return refusal(node)
