"""Reading one SELECT: its table, its groups, its aggregates. Everything not understood is refused by name."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import Any

from sqlglot import exp
from tacit.errors import LimitError, SqlError, UnknownNameError, UnsupportedSqlError

from . import scratch
from .catalog import Catalog, Column, Table
from .cells import Block
from .constants import Parameters, constant, is_constant
from .domains import clamp, groups
from .names import nearest
from .parse import Limits, Statement
from .predicate import ALWAYS, Asks, Fixed, Predicate, PredicateReader
from .regions import FALSE, IS_NULL, NOT_NULL, Attribute
from .scan import Measure
from .workload import Key, KeyColumn, Linear, Output, OutputColumn, Query, Ratio

_CLAUSES = {
    "with_": "WITH",
    "joins": "JOIN",
    "having": "HAVING",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "distinct": "DISTINCT",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "sample": "TABLESAMPLE",
    "laterals": "LATERAL",
    "into": "INTO",
}
_READ = {"expressions", "from_", "where", "group"}
_AGGREGATES: dict[type[exp.Expr], str] = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg"}


class TableBatch:
    """What the batch asks of one table: questions per column, summed columns, and rows of the workload."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._attributes: dict[str, Attribute] = {}
        self._measures: dict[str, Measure] = {}
        self.blocks: dict[Block, tuple[int, ...]] = {}
        """Each distinct block and the numbers of its rows in the whole batch."""

    @property
    def attributes(self) -> list[Attribute]:
        """The columns asked about, by name, so that the order of the queries does not matter."""
        return [self._attributes[name] for name in sorted(self._attributes)]

    @property
    def measures(self) -> list[Measure]:
        """The summed columns, by name."""
        return [self._measures[name] for name in sorted(self._measures)]

    def attribute(self, column: Column) -> Attribute:
        """The questions put to a column so far."""
        return self._attributes.setdefault(column.name, Attribute(column))

    def measure(self, measure: Measure) -> str:
        """Remember a summed column."""
        self._measures[measure.column.name] = measure
        return measure.column.name


class BatchReader:
    """Reads the statements of a batch one after the other and collects what they ask."""

    def __init__(self, catalog: Catalog, params: Parameters, limits: Limits) -> None:
        self.catalog = catalog
        self.params = params
        self.limits = limits
        self.row_count = 0
        self._tables: dict[str, TableBatch] = {}

    @property
    def tables(self) -> list[TableBatch]:
        """The tables that the batch reads, in the order it first names them."""
        return list(self._tables.values())

    def read(self, statement: Statement) -> Query:
        """The query that a statement stands for."""
        return _SelectReader(self, statement).read()

    def table(self, table: Table) -> TableBatch:
        """What is asked of a table so far."""
        return self._tables.setdefault(table.name, TableBatch(table))

    def rows(self, table: TableBatch, block: Block) -> tuple[int, ...]:
        """The numbers of a block's rows of the workload; equal blocks are one."""
        if block not in table.blocks:
            numbers = range(self.row_count, self.row_count + block.size)
            if numbers.stop > self.limits.rows:
                raise LimitError(
                    f"the batch asks for more than {self.limits.rows:,} numbers",
                    hint="split it into several batches, or group by fewer values",
                )
            table.blocks[block] = tuple(numbers)
            self.row_count = numbers.stop
        return table.blocks[block]


class _SelectReader:
    def __init__(self, batch: BatchReader, statement: Statement) -> None:
        self._batch = batch
        self._statement = statement

    def read(self) -> Query:
        select = self._select()
        self._alias, table = self._from(select)
        self._table = self._batch.table(table)
        where = self._where(select)
        keys = self._group_by(select)
        listed = [self._groups(node, column) for node, column in keys]
        block = Block(where, tuple(tuple(predicate for _, predicate in groups) for groups in listed))
        if block.size > self._batch.limits.rows:
            raise self._error(
                LimitError, select.args["group"], f"GROUP BY makes {block.size:,} groups, too many for one batch",
                "group by fewer columns",
            )  # fmt: skip
        columns = tuple(self._column(item, block, [column for _, column in keys]) for item in select.expressions)
        if all(isinstance(column.output, Key) for column in columns):
            raise self._error(
                UnsupportedSqlError, select, "this query aggregates nothing", "add COUNT(*), SUM(…) or AVG(…)"
            )
        return Query(
            self._statement.sql,
            table.name,
            tuple(KeyColumn(column.name, self._key_type(column)) for _, column in keys),
            tuple(itertools.product(*([value for value, _ in groups] for groups in listed))),
            columns,
        )

    # the clauses

    def _select(self) -> exp.Select:
        tree = self._statement.tree
        if not isinstance(tree, exp.Select):
            what = "a statement of this kind" if isinstance(tree, exp.Command) else type(tree).__name__.upper()
            raise self._error(
                UnsupportedSqlError,
                tree,
                f"tacit answers SELECT and nothing else, not {what}",
                "write a SELECT",
            )
        for name, value in tree.args.items():
            if name not in _READ and value:
                clause = _CLAUSES.get(name, name.strip("_").upper().replace("_", " "))
                node = value[0] if isinstance(value, list) else value
                raise self._error(
                    UnsupportedSqlError,
                    node if isinstance(node, exp.Expr) else None,
                    f"{clause} is not supported",
                    f"leave {clause} out; the answer is a pandas frame and can be worked on there",
                )
        return tree

    def _from(self, select: exp.Select) -> tuple[str, Table]:
        clause = select.args.get("from_")
        node = clause.this if clause is not None else None
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise self._error(
                UnsupportedSqlError, node or select, "a query reads one table by name", "write FROM table"
            )
        extra = [name for name, value in node.args.items() if value and name not in ("this", "db", "catalog", "alias")]
        alias = node.args.get("alias")
        if extra or (alias is not None and alias.args.get("columns")):
            what = extra[0].upper().replace("_", " ") if extra else "renaming columns in FROM"
            raise self._error(UnsupportedSqlError, node, f"{what} is not supported", "write FROM table alias")
        name = node.name if node.db.lower() in ("", "main") else f"{node.db}.{node.name}"
        table = self._batch.catalog.table(name)
        if table is None or node.catalog:
            known = [t.name for t in self._batch.catalog.tables]
            raise self._error(UnknownNameError, node, f"no such table: {name}", nearest(name, known))
        return node.alias or node.name, table

    def _where(self, select: exp.Select) -> Predicate:
        where = select.args.get("where")
        if where is None:
            return ALWAYS
        reader = PredicateReader(
            self._statement, self._batch.params, lambda node: self._table.attribute(self._resolve(node))
        )
        return reader.read(where.this)

    def _group_by(self, select: exp.Select) -> list[tuple[exp.Expr, Column]]:
        group = select.args.get("group")
        if group is None:
            return []
        if group.args.get("all"):
            items = [e for e in select.expressions if not e.find(*_AGGREGATES)]
        else:
            items = [self._group_item(node, select) for node in group.expressions]
        extra = [name for name, value in group.args.items() if value and name not in ("expressions", "all")]
        if extra:
            raise self._error(
                UnsupportedSqlError,
                group,
                f"{extra[0].upper()} is not supported",
                "write GROUP BY column, column",
            )
        keys: list[tuple[exp.Expr, Column]] = []
        for item in items:
            node = item.this if isinstance(item, exp.Alias) else item
            if not isinstance(node, exp.Column):
                raise self._error(
                    UnsupportedSqlError,
                    node,
                    "GROUP BY takes columns of the table",
                    "write GROUP BY column, column",
                )
            column = self._resolve(node)
            if all(column is not known for _, known in keys):
                keys.append((node, column))
        return keys

    def _group_item(self, node: exp.Expr, select: exp.Select) -> exp.Expr:
        """GROUP BY 1 and GROUP BY alias name an item of the SELECT list."""
        items = select.expressions
        if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
            place = int(str(node.this))
            if not 1 <= place <= len(items):
                raise self._error(
                    UnknownNameError, node, f"there is no column {place} in the SELECT list",
                    f"write a number from 1 to {len(items)}",
                )  # fmt: skip
            chosen: exp.Expr = items[place - 1]
            return chosen
        if isinstance(node, exp.Column) and not node.table and self._table.table.column(node.name) is None:
            for item in items:
                if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower():
                    return item
        return node

    def _groups(self, node: exp.Expr, column: Column) -> list[tuple[Any, Predicate]]:
        start, end = self._statement.span(node)
        source = self._statement.source
        return groups(self._table.table, self._table.attribute(column), source, start, end, self._batch.limits)

    def _key_type(self, column: Column) -> str:
        """An ``other`` label is not a value of the ENUM, so such a key column comes back as text."""
        other = getattr(column.domain, "other", None)
        return "VARCHAR" if other is not None else column.type

    # the SELECT list

    def _column(self, item: exp.Expr, block: Block, keys: list[Column]) -> OutputColumn:
        node = item.this if isinstance(item, exp.Alias) else item
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            column = self._resolve(node)
            if column not in keys:
                raise self._error(
                    UnsupportedSqlError, node, f"{column.name} is neither grouped by nor aggregated",
                    f"add GROUP BY {column.name}, or write SUM({column.name})",
                )  # fmt: skip
            return OutputColumn(self._name(item, column), Key(keys.index(column)))
        if type(node) not in _AGGREGATES:
            raise self._error(
                UnsupportedSqlError, node, "tacit releases COUNT, SUM and AVG, not this",
                "write COUNT(*), COUNT(column), SUM(column) or AVG(column)",
            )  # fmt: skip
        argument = self._argument(node)
        output = self._aggregate(node, argument, block)
        return OutputColumn(self._name(item, argument), output)

    def _argument(self, node: exp.Expr) -> Column | None:
        """The aggregate's column; None for COUNT(*) and for COUNT of a constant."""
        if node.args.get("expressions"):
            raise self._error(UnsupportedSqlError, node, "an aggregate takes one column", "write COUNT(column)")
        argument = node.this
        if isinstance(node, exp.Count) and (argument is None or isinstance(argument, exp.Star)):
            return None
        if isinstance(argument, exp.Distinct):
            raise self._error(
                UnsupportedSqlError, node, "COUNT(DISTINCT …) has no bounded, unbiased private answer here",
                "write COUNT(column), or GROUP BY the column and count the groups",
            )  # fmt: skip
        if isinstance(argument, exp.Column) and isinstance(argument.this, exp.Identifier):
            return self._resolve(argument)
        if isinstance(node, exp.Count) and isinstance(argument, exp.Expr) and is_constant(argument):
            return None
        raise self._error(
            UnsupportedSqlError, argument if isinstance(argument, exp.Expr) else node,
            "an aggregate takes one column of the table", "write SUM(column)",
        )  # fmt: skip

    def _aggregate(self, node: exp.Expr, column: Column | None, block: Block) -> Output:
        rows = partial(self._batch.rows, self._table)
        if column is None:
            if isinstance(node.this, exp.Expr) and not isinstance(node.this, exp.Star):
                value = constant(node.this, self._statement, self._batch.params)
                block = replace(block, where=Fixed(FALSE)) if value.kind == "null" else block
            return Linear(rows(block))
        attribute = self._table.attribute(column)
        attribute.ask(IS_NULL)
        present = replace(block, present=Asks(column.name, attribute.ask(NOT_NULL)))
        if isinstance(node, exp.Count):
            return Linear(rows(present))
        start, end = self._statement.span(node)
        measure = clamp(self._table.table, column, self._statement.source, start, end)
        sums = rows(replace(present, measure=self._table.measure(measure)))
        if isinstance(node, exp.Sum):
            return Linear(sums)
        return Ratio(sums, rows(present), measure.low, measure.high)

    def _name(self, item: exp.Expr, column: Column | None) -> str:
        """The name DuckDB gives the output column."""
        if isinstance(item, exp.Alias):
            return item.alias
        if column is None and isinstance(item.this, exp.Star | None):
            return "count_star()"
        name, type_ = (column.name, column.type) if column is not None else ("_", "INTEGER")
        return scratch.display_name(item.sql("duckdb", normalize_functions=False), name, type_, self._alias)

    # names and errors

    def _resolve(self, node: exp.Column) -> Column:
        table = self._table.table
        if node.table and node.table.lower() not in (self._alias.lower(),):
            raise self._error(
                UnknownNameError,
                node,
                f"no such table in this query: {node.table}",
                f"write {self._alias}.{node.name}",
            )
        column = table.column(node.name)
        if column is None:
            known = [c.name for c in table.columns]
            raise self._error(
                UnknownNameError,
                node,
                f"no such column in {table.name}: {node.name}",
                nearest(node.name, known),
            )
        return column

    def _error(self, kind: type[SqlError], node: exp.Expr | None, message: str, hint: str) -> SqlError:
        start, end = self._statement.span(node)
        return kind(message, sql=self._statement.source, start=start, end=end, hint=hint)
