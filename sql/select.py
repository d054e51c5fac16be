"""Reading one SELECT: its groups, its outputs and what becomes of the rows. What is not understood is refused."""

from __future__ import annotations

from sqlglot import exp
from tacit.errors import UnsupportedSqlError

from . import dialect
from .arrangement import read_arrangement
from .batch import BatchReader
from .distinct import average_of_distinct
from .from_clause import RelationReader
from .grouping import Groups, key_type, read_groups
from .linear import LinearReader
from .public_columns import public_owner
from .quantile import QuantileReader
from .released import Leaves, ReleasedReader
from .selection import Aliases, Selection, unaliased
from .statement import Statement, bare
from .workload import Computed, Key, KeyColumn, Linear, Output, OutputColumn, PublicValues, Query, Ratio


def read_select(batch: BatchReader, statement: Statement, relations: RelationReader, select: exp.Select) -> Query:
    """The query that a SELECT stands for."""
    return _SelectReader(batch, statement, relations, select).query()


def read_counted(
    batch: BatchReader, statement: Statement, relations: RelationReader, select: exp.Select
) -> tuple[Query, Linear | None]:
    """The same, and how many rows each of its groups has; None where there is no GROUP BY."""
    reader = _SelectReader(batch, statement, relations, select)
    return reader.query(), reader.present()


class _SelectReader:
    """Reads one SELECT."""

    def __init__(self, batch: BatchReader, statement: Statement, relations: RelationReader, select: exp.Select) -> None:
        self._statement = statement
        self._selection = Selection(batch, statement, relations, select)
        self._groups = read_groups(self._selection)
        self._outputs = _OutputReader(self._selection, self._groups)

    def query(self) -> Query:
        selection, groups, outputs = self._selection, self._groups, self._outputs
        columns = tuple(outputs.column(item, place) for place, item in enumerate(selection.items))
        arrangement = read_arrangement(selection, outputs.released)
        used = [column.output for column in columns] + list(arrangement.leaves if arrangement is not None else ())
        asks_nothing = all(isinstance(output, Key | PublicValues) for output in used)
        if selection.relation is not None and asks_nothing and not groups.keys:
            raise selection.error(
                UnsupportedSqlError, selection.select, "this query aggregates nothing", "add COUNT(*), SUM(…) or AVG(…)"
            )
        return Query(
            self._statement.sql,
            selection.relation.base.table.name if selection.relation is not None else "",
            tuple(KeyColumn(key.column.name, key_type(key.column)) for key in groups.keys),
            groups.values,
            groups.labels({c.output.index: c.name for c in columns if isinstance(c.output, Key)}),
            columns,
            arrangement,
        )

    def present(self) -> Linear | None:
        """How many rows each group has."""
        return self._outputs.counted() if self._groups.keys else None


class _OutputReader:
    """Reads the items of the SELECT list."""

    def __init__(self, selection: Selection, groups: Groups) -> None:
        self._selection = selection
        self._groups = groups
        self._linear = LinearReader(selection, groups)
        self.released = ReleasedReader(selection, groups, self._linear)

    def counted(self) -> Linear | None:
        """COUNT(*) of each group; None where every group is there, since a public table keeps its rows."""
        selection, relation = self._selection, self._selection.relation
        if relation is not None and relation.kept:
            public = all(public_owner(relation, key.column) is not None for key in self._groups.keys)
            if public and selection.select.args.get("where") is None:
                return None
            raise selection.error(
                UnsupportedSqlError, selection.select, "which groups are here depends on rows of a public table that "
                "match no private row", "write JOIN in place of the outer join",
            )  # fmt: skip
        form = self._linear.form(exp.Count(this=exp.Star()))
        return None if form is None else self._linear.rows(form)

    def column(self, item: exp.Expr, place: int) -> OutputColumn:
        """An item, and the name that DuckDB gives it."""
        output = self._output(bare(unaliased(item)), Aliases(place))
        return OutputColumn(self._selection.output_name(place), output)

    def _output(self, node: exp.Expr, aliases: Aliases) -> Output:
        key = self._groups.key(node)
        if key is not None:
            return Key(key)
        if isinstance(node, exp.Grouping):
            return self._groups.grouping(node)
        node = average_of_distinct(node) or node
        form = self._linear.form(node)
        if form is not None and form.terms:
            return self._linear.rows(form)
        core = node.this if isinstance(node, exp.Filter) else node
        if isinstance(core, exp.Avg):
            total, count, low, high = self._selection.aggregates(node).ratio(node)
            return Ratio(self._linear.rows(total).rows, self._linear.rows(count).rows, low, high)
        quantile = QuantileReader(self._selection, self._linear).read(node)
        if quantile is not None:
            return quantile
        leaves = Leaves()
        sql = self.released.proven(node, leaves, aliases)
        type_ = self.released.type(node, sql, leaves)
        if not leaves.numbers and not any(f"k{i}" in sql for i in range(len(self._groups.keys))):
            constant = dialect.fold(sql)
            if constant is not None:
                return PublicValues((constant[0],) * len(self._groups.values))
        return Computed(sql, tuple(leaves.numbers), type_)
