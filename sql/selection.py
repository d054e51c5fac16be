"""What the clauses of one SELECT share: the rows it reads, its list of items, and what a bare name means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from tacit.errors import UnknownNameError, UnsupportedSqlError

from .aggregate import AggregateReader
from .batch import BatchReader
from .constants import bound_literal, constant
from .from_clause import RelationReader
from .names import folded
from .relation import Relation
from .scalar import rendered
from .statement import Statement, bare
from .subqueries import with_public_values

_READ = {"expressions", "from_", "where", "group", "with_", "joins", "having", "order", "limit", "offset", "distinct"}
_CLAUSES = {"sample": "TABLESAMPLE", "laterals": "LATERAL", "windows": "WINDOW", "operation_modifiers": "this modifier"}
_LONGEST_PLACE = 10
"""Digits; Python refuses to read thousands of them."""


@dataclass(frozen=True)
class Aliases:
    """Which items of the SELECT list a bare name can mean in a clause, as in DuckDB.

    An item of the list may name those before it, HAVING and ORDER BY all of them; of two items with one name the last
    counts. A column of the table comes before an alias, except in HAVING, where it must be a group key for that.
    """

    before: int
    """Only items before this one can be named."""
    columns_first: bool = True


class Selection:
    """One SELECT with its FROM and WHERE read. A clause that tacit does not know is refused here."""

    def __init__(self, batch: BatchReader, statement: Statement, outer: RelationReader, select: exp.Select) -> None:
        self.batch = batch
        self.statement = statement
        self.error = statement.error
        self.select = select
        self._refuse_other_clauses()
        self.relations = outer.with_ctes(select)
        self.items = [with_public_values(self.relations, item) for item in select.expressions]
        self.relation: Relation | None = None
        """None for a SELECT without FROM."""
        self._aggregates: AggregateReader | None = None
        if select.args.get("from_") is not None:
            self.relation = self.relations.read(select)
            self._aggregates = AggregateReader(batch, self.relations, self.relation)

    def _refuse_other_clauses(self) -> None:
        for name, value in self.select.args.items():
            if name not in _READ and value:
                clause = _CLAUSES.get(name, name.strip("_").upper().replace("_", " "))
                node = value[0] if isinstance(value, list) else value
                raise self.error(
                    UnsupportedSqlError, node if isinstance(node, exp.Expr) else None, f"{clause} is not supported",
                    f"leave {clause} out; the answer is a pandas frame and can be worked on there",
                )  # fmt: skip

    def aggregates(self, node: exp.Expr) -> AggregateReader:
        """The reader of aggregates over the table; ``node`` is the aggregate to underline when there is none."""
        if self._aggregates is None:
            raise self.error(UnsupportedSqlError, node, "there is no table to aggregate", "add FROM table")
        return self._aggregates

    def output_name(self, place: int) -> str:
        """The name that DuckDB gives to an item of the list."""
        item = self.select.expressions[place]
        if self.relation is None:
            return self.relations.output_name(item, None)
        return self.relations.output_name(item, self.relation.level, self.relation.column)

    def text(self, node: exp.Expr) -> str:
        """What identifies an expression over one row: its SQL over the columns of the scan."""
        if self.relation is None:
            raise self.error(UnknownNameError, node, "there is no table that has this column", "add FROM table")
        return rendered(bare(node), self.relations.scope(self.relation))

    def constant(self, node: exp.Expr) -> Any:
        """The Python value of an expression without columns."""
        return constant(node, self.statement, self.batch.params).value

    def literal(self, node: exp.Placeholder) -> exp.Expr:
        """A parameter's value as a literal."""
        return bound_literal(node, self.statement, self.batch.params)

    def numbered(self, node: exp.Literal) -> int:
        """The item that a number in GROUP BY or ORDER BY means."""
        text = str(node.this)
        place = int(text) if text.isdecimal() and len(text) < _LONGEST_PLACE else 0
        if not 1 <= place <= len(self.items):
            raise self.error(
                UnknownNameError, node, f"there is no column {text[:40]} in the SELECT list",
                f"write a number from 1 to {len(self.items)}",
            )  # fmt: skip
        return place - 1

    def alias(self, node: exp.Column, aliases: Aliases) -> int | None:
        """The item of the SELECT list that a name means; None where it is a column, or nothing."""
        if node.table:
            return None
        places = [i for i, item in enumerate(self.items) if _is_called(item, node.name)]
        if not places or (aliases.columns_first and self._is_column(node)):
            return None
        if places[-1] >= aliases.before:
            raise self.error(
                UnknownNameError, node, f"{node.name} is the name of a later column of the SELECT list",
                "name a column before it is used",
            )  # fmt: skip
        return places[-1]

    def _is_column(self, node: exp.Column) -> bool:
        try:
            self.text(node)
        except UnknownNameError:
            return False
        return True


def unaliased(item: exp.Expr) -> exp.Expr:
    """An item of the SELECT list without its alias."""
    node: exp.Expr = item.this if isinstance(item, exp.Alias) else item
    return node


def _is_called(item: exp.Expr, name: str) -> bool:
    return isinstance(item, exp.Alias) and folded(item.alias) == folded(name)
