"""Reading one SELECT: its groups, its outputs and what becomes of the rows. What is not understood is refused."""

from __future__ import annotations

from sqlglot import exp
from tacit.errors import UnsupportedSqlError

from . import dialect
from .arrangement import read_arrangement
from .batch import BatchReader
from .from_clause import RelationReader
from .grouping import Groups, key_type, read_groups
from .linear import LinearReader
from .quantile import QuantileReader
from .released import Leaves, ReleasedReader
from .selection import Aliases, Selection, unaliased
from .statement import Statement, bare
from .workload import Computed, Key, KeyColumn, Output, OutputColumn, PublicValues, Query, Ratio


def read_select(batch: BatchReader, statement: Statement, relations: RelationReader, select: exp.Select) -> Query:
    """The query that a SELECT stands for."""
    selection = Selection(batch, statement, relations, select)
    groups = read_groups(selection)
    outputs = _OutputReader(selection, groups)
    columns = tuple(outputs.column(item, place) for place, item in enumerate(selection.items))
    arrangement = read_arrangement(selection, outputs.released)
    used = [column.output for column in columns] + list(arrangement.leaves if arrangement is not None else ())
    if selection.relation is not None and all(isinstance(output, Key | PublicValues) for output in used):
        raise selection.error(
            UnsupportedSqlError, select, "this query aggregates nothing", "add COUNT(*), SUM(…) or AVG(…)"
        )
    return Query(
        statement.sql,
        selection.relation.base.table.name if selection.relation is not None else "",
        tuple(KeyColumn(key.column.name, key_type(key.column)) for key in groups.keys),
        groups.values,
        groups.labels,
        columns,
        arrangement,
    )


class _OutputReader:
    """Reads the items of the SELECT list."""

    def __init__(self, selection: Selection, groups: Groups) -> None:
        self._selection = selection
        self._groups = groups
        self._linear = LinearReader(selection, groups)
        self.released = ReleasedReader(selection, groups, self._linear)

    def column(self, item: exp.Expr, place: int) -> OutputColumn:
        """An item, and the name that DuckDB gives it."""
        output = self._output(bare(unaliased(item)), Aliases(place))
        return OutputColumn(self._selection.relations.output_name(item, self._selection.relation), output)

    def _output(self, node: exp.Expr, aliases: Aliases) -> Output:
        key = self._groups.key(node)
        if key is not None:
            return Key(key)
        if isinstance(node, exp.Grouping):
            return self._groups.grouping(node)
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
