"""Statements: one SELECT, several joined by UNION ALL, or a statement over the results of such."""

from __future__ import annotations

from sqlglot import exp
from tacit.errors import SqlError, UnsupportedSqlError

from .batch import BatchReader
from .from_clause import RelationReader
from .name_reader import Kind, unwrapped
from .outer import is_plain, read_outer
from .present import is_number
from .probe import without_rows
from .select import read_select
from .statement import Statement
from .workload import (
    Computed,
    Key,
    Linear,
    Mode,
    OuterQuery,
    Output,
    OutputColumn,
    PublicValues,
    Quantile,
    Query,
    Ratio,
    Stacked,
)


def read_query(batch: BatchReader, statement: Statement) -> Query | OuterQuery:
    """The query that a statement stands for."""
    tree = unwrapped(statement.tree)
    if not isinstance(tree, exp.Select | exp.SetOperation):
        what = "a statement of this kind" if isinstance(tree, exp.Command) else type(tree).__name__.upper()
        raise statement.error(
            UnsupportedSqlError, tree, f"tacit answers SELECT and nothing else, not {what}", "write a SELECT"
        )
    reader = RelationReader(batch, statement)
    if isinstance(tree, exp.Select):
        if (probe := without_rows(reader, tree)) is not None:
            return read_outer(batch, statement, reader, probe)
        if _is_outer(reader, tree):
            return read_outer(batch, statement, reader, tree)
        return read_select(batch, statement, reader, tree)
    kind = reader.kind(tree)
    if kind is Kind.ROWS:
        raise statement.error(
            UnsupportedSqlError, tree, "the rows of private tables are not released, only counts and sums of them",
            "add COUNT(*), SUM(…) or AVG(…) to each SELECT",
        )  # fmt: skip
    if kind is Kind.RELEASED and _is_stacked(reader, tree):
        return _UnionReader(batch, statement).read(tree)
    return read_outer(batch, statement, reader, tree)


def _is_outer(reader: RelationReader, select: exp.Select) -> bool:
    """Whether a SELECT is computed from released frames and public tables, and not from private rows."""
    if select.args.get("from_") is None:
        return False
    kind = reader.kind(select)
    return kind is Kind.PUBLIC or (kind is Kind.RELEASED and not is_plain(reader, select))


def _is_stacked(reader: RelationReader, tree: exp.Expr) -> bool:
    """Whether a set operation is a UNION ALL of SELECTs that aggregate private rows, and nothing else."""
    inner = reader.with_ctes(tree)
    if isinstance(tree, exp.Select):
        return tree.args.get("from_") is None or (is_plain(inner, tree) and not _arranged(tree))
    plain = isinstance(tree, exp.Union) and not tree.args.get("distinct")
    extra = [k for k, v in tree.args.items() if v and k not in ("this", "expression", "distinct", "with_")]
    return plain and not extra and all(_is_stacked(inner, unwrapped(s)) for s in (tree.this, tree.expression))


def _arranged(select: exp.Select) -> bool:
    return any(select.args.get(clause) for clause in ("having", "order", "limit", "offset", "distinct"))


class _UnionReader:
    """UNION ALL of queries: their rows one below the other, under the names of the first."""

    def __init__(self, batch: BatchReader, statement: Statement) -> None:
        self._batch = batch
        self._statement = statement

    def read(self, union: exp.SetOperation) -> Query:
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
