"""Statements: one SELECT, or several joined by UNION ALL."""

from __future__ import annotations

from sqlglot import exp
from tacit.errors import SqlError, UnsupportedSqlError

from .batch import BatchReader
from .from_clause import RelationReader
from .present import is_number
from .select import read_select
from .statement import Statement
from .workload import Computed, Key, Linear, Mode, Output, OutputColumn, PublicValues, Quantile, Query, Ratio, Stacked


def read_query(batch: BatchReader, statement: Statement) -> Query:
    """The query that a statement stands for."""
    tree: exp.Expr = statement.tree
    if isinstance(tree, exp.Subquery) and not any(v for k, v in tree.args.items() if k != "this"):
        tree = tree.this
    if isinstance(tree, exp.Union):
        return _UnionReader(batch, statement).read(tree)
    if not isinstance(tree, exp.Select):
        what = "a statement of this kind" if isinstance(tree, exp.Command) else type(tree).__name__.upper()
        raise statement.error(
            UnsupportedSqlError, tree, f"tacit answers SELECT and nothing else, not {what}", "write a SELECT"
        )
    return read_select(batch, statement, RelationReader(batch, statement), tree)


class _UnionReader:
    """UNION ALL of queries: their rows one below the other, under the names of the first."""

    def __init__(self, batch: BatchReader, statement: Statement) -> None:
        self._batch = batch
        self._statement = statement

    def read(self, union: exp.Union) -> Query:
        relations = RelationReader(self._batch, self._statement).with_ctes(union)
        selects = self._branches(union, union)
        parts = [read_select(self._batch, self._statement, relations, select) for select in selects]
        first = parts[0]
        if any(len(part.columns) != len(first.columns) for part in parts):
            raise self._error(union, "the queries of a UNION ALL must have as many columns each", "make them equal")
        if any(part.arrangement is not None for part in parts):
            raise self._error(union, "ORDER BY and LIMIT inside UNION ALL are not supported", "leave them out")
        columns = []
        for i, column in enumerate(first.columns):
            stacked = [(len(part.groups), _value_of(part, part.columns[i].output)) for part in parts]
            if len({is_number(output) for _, output in stacked}) > 1:
                raise self._error(
                    union, f"column {i + 1} of the UNION ALL is a released number in one query and not in another",
                    "put numbers below numbers",
                )  # fmt: skip
            columns.append(OutputColumn(column.name, Stacked(tuple(stacked))))
        groups = tuple(() for part in parts for _ in part.groups)
        labels = [f"select {i}{label and f': {label}'}" for i, part in enumerate(parts) for label in part.labels]
        return Query(self._statement.sql, first.table, (), groups, tuple(labels), tuple(columns))

    def _branches(self, node: exp.Expr, top: exp.Expr) -> list[exp.Select]:
        if isinstance(node, exp.Paren | exp.Subquery) and not any(v for k, v in node.args.items() if k != "this"):
            node = node.this
        if isinstance(node, exp.Select):
            return [node]
        allowed = ("this", "expression", "distinct", *(["with_"] if node is top else []))
        if (
            not isinstance(node, exp.Union)
            or node.args.get("distinct")
            or any(v for k, v in node.args.items() if k not in allowed)
        ):
            raise self._error(node, "of the set operations only a plain UNION ALL is supported", "write UNION ALL")
        return [*self._branches(node.this, top), *self._branches(node.expression, top)]

    def _error(self, node: exp.Expr, message: str, hint: str) -> SqlError:
        return self._statement.error(UnsupportedSqlError, node, message, hint)


def _value_of(query: Query, output: Output) -> Key | Linear | Ratio | Quantile | Mode | PublicValues | Computed:
    if isinstance(output, Key):
        return PublicValues(tuple(group[output.index] for group in query.groups))
    assert not isinstance(output, Stacked)
    return output
