"""What a batch asks, collected statement by statement: questions per column, summed columns, rows of the workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse
from tacit.errors import LimitError

from .catalog import Catalog, Column, Table
from .cells import GroupedAggregate
from .constants import Parameters
from .derived import identity
from .parse import Limits
from .regions import Attribute
from .scan import Join, SummedColumn

RowBlock = tuple[tuple[float, range], ...]
"""Rows of the workload as combinations of aggregates: (weight, numbers of the aggregate's rows), sorted.

An aggregate of one row is added to every row of the block; the others have as many rows as the block.
"""


class TableBatch:
    """What the batch asks of one base: a table, or private tables joined."""

    def __init__(self, table: Table, labels: tuple[str, str], private: tuple[tuple[str, Join], ...] = ()) -> None:
        self.table = table
        self._labels = labels
        self.private = private
        self.joins: dict[Join, str] = {}
        """Public tables joined to the base, each with its label."""
        self.aggregates: dict[GroupedAggregate, range] = {}
        """Each distinct aggregate and the numbers of its rows."""
        self._attributes: dict[str, Attribute] = {}
        self._summed: dict[str, SummedColumn] = {}

    @property
    def attributes(self) -> list[Attribute]:
        """The columns asked about, by name, so that the order of the queries does not matter."""
        return [self._attributes[name] for name in sorted(self._attributes)]

    @property
    def summed(self) -> list[SummedColumn]:
        """The summed columns, by name."""
        return [self._summed[name] for name in sorted(self._summed)]

    def attribute(self, column: Column) -> Attribute:
        """The questions put to a column so far. Its column's name is the one to ask under.

        A stored column can be named like the text of an expression; the two must not be mixed.
        """
        attribute = self._attributes.get(column.name)
        if attribute is None:
            attribute = self._attributes[column.name] = Attribute(self._as_stored(column))
        same = attribute.column.reference == column.reference
        return attribute if same else self.attribute(_renamed(column, "another"))

    def _as_stored(self, column: Column) -> Column:
        """A stored column with what is declared of it in its own table.

        What is declared of a view's column holds for the view's rows; the regions are for all rows of the table. And
        where a public table has no match, its columns are NULL whatever it declares.
        """
        stored = None if column.expression else self.holder(column).column(column.own_name)
        if stored is None:
            return column
        optional = {label for label, join in self.private if join.outer} | set(self.joins.values())
        return replace(column, nullable=stored.nullable or column.label in optional, domain=stored.domain)

    def holder(self, column: Column) -> Table:
        """The table that a stored column belongs to: the base, or what is joined to it."""
        tables = {label: join.table for join, label in self.joins.items()} | {
            label: join.table for label, join in self.private
        }
        return tables.get(column.label, self.table)

    def sum_column(self, summed: SummedColumn) -> str:
        """Remember a summed column, and the name it goes by; a view can declare another clamp for the same column."""
        if self._summed.setdefault(summed.name, summed) == summed:
            return summed.name
        within = f"within [{summed.low!r}, {summed.high!r}]"
        return self.sum_column(replace(summed, column=_renamed(summed.column, within)))

    def join(self, join: Join) -> str:
        """The label of a joined public table; the same join is made once for the whole batch."""
        return self.joins.setdefault(join, f"{self._labels[1]}{len(self.joins)}")

    def joined(self, join: Join) -> TableBatch:
        """What is asked when one more private table is joined to the base."""
        private = (*self.private, (f"{self._labels[0]}{len(self.private)}", join))
        return TableBatch(self.table, self._labels, private)


def _renamed(column: Column, how: str) -> Column:
    """The same column under a longer name."""
    return replace(column, name=f"{column.name} {how}", expression=column.reference, inputs=column.stored)


def _key(table: Table) -> object:
    """Equal for equal tables: a computed one has a name that says little."""
    return table.key if table.rows is None else ("computed", repr(identity(table)))


def _order(term: tuple[float, range]) -> tuple[float, int]:
    return term[0], term[1].start


class BatchReader:
    """The tables that a batch reads and the rows it asks for."""

    def __init__(self, catalog: Catalog, params: Parameters, limits: Limits) -> None:
        self.catalog = catalog
        self.params = params
        self.limits = limits
        self.blocks: dict[RowBlock, range] = {}
        """The rows of the workload, in order."""
        self.row_count = 0
        """How many rows the workload has."""
        self.aggregate_rows = 0
        """How many rows all aggregates have together."""
        self._tables: dict[object, TableBatch] = {}

    @property
    def tables(self) -> list[TableBatch]:
        """The bases that the batch counts something in, in the order it first names them."""
        return [table for table in self._tables.values() if table.aggregates]

    def table(self, table: Table) -> TableBatch:
        """What is asked of a table so far."""
        return self._tables.setdefault(_key(table), TableBatch(table, self.catalog.labels))

    def joined(self, left: TableBatch, join: Join) -> TableBatch:
        """What is asked of private tables joined."""
        base = left.joined(join)
        return self._tables.setdefault((_key(base.table), base.private), base)

    def rows_of(self, table: TableBatch, aggregate: GroupedAggregate) -> range:
        """The numbers of an aggregate's rows; equal aggregates are one."""
        numbers = table.aggregates.get(aggregate)
        if numbers is None:
            numbers = range(self.aggregate_rows, self.aggregate_rows + aggregate.size)
            self._check(numbers.stop)
            table.aggregates[aggregate] = numbers
            self.aggregate_rows = numbers.stop
        return numbers

    def rows(self, terms: Sequence[tuple[float, range]]) -> range:
        """The numbers of rows of the workload that combine aggregates; equal rows are one.

        Rows of different blocks differ: a row's aggregates are those of its block, and within a block each row has
        another row of the longest of them.
        """
        merged: dict[range, float] = {}
        for weight, numbers in terms:
            merged[numbers] = merged.get(numbers, 0.0) + weight
        block = tuple(sorted(((weight, numbers) for numbers, weight in merged.items()), key=_order))
        rows = self.blocks.get(block)
        if rows is None:
            rows = range(self.row_count, self.row_count + max(map(len, merged)))
            self._check(rows.stop)
            self.blocks[block] = rows
            self.row_count = rows.stop
        return rows

    def combinations(self) -> sparse.csr_array:
        """The rows of the workload over the rows of all aggregates."""
        weights, rows, numbers = [np.zeros(0)], [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for block, of_workload in self.blocks.items():
            for weight, of_aggregate in block:
                size = len(of_workload)
                weights.append(np.full(size, weight))
                rows.append(np.arange(of_workload.start, of_workload.stop))
                numbers.append(of_aggregate.start + np.arange(size) * (len(of_aggregate) > 1))
        entries = np.concatenate(weights), (np.concatenate(rows), np.concatenate(numbers))
        return sparse.csr_array(entries, shape=(self.row_count, self.aggregate_rows))

    def _check(self, rows: int) -> None:
        if rows > self.limits.rows:
            raise LimitError(
                f"the batch asks for more than {self.limits.rows:,} numbers",
                hint="split it into several batches, or group by fewer values",
            )
