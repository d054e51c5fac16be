"""JOIN. A join with a public table adds columns to the base and drops no row: an inner join is the outer join and the
condition that there was a match. A join of private tables is a base of its own."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp
from tacit.errors import TypeMismatchError, UnknownNameError, UnsupportedSqlError

from . import dialect
from .batch import BatchReader
from .catalog import Column, Table
from .names import folded, nearest
from .predicate import ALWAYS, ColumnQuestion
from .regions import IS_NULL, NOT_NULL
from .relation import Relation, RelationColumn, scope_of, stored_columns
from .scalar import scalar
from .scan import Join
from .statement import Statement, bare

Pairs = tuple[tuple[Column, Column], ...]
"""ON as pairs of (column on the left, column of the joined table)."""


class JoinReader:
    """Joins a stored table to a relation."""

    def __init__(self, batch: BatchReader, statement: Statement) -> None:
        self._batch = batch
        self._statement = statement
        self._error = statement.error

    def read(self, left: Relation, table: Table, join: exp.Join) -> Relation:
        """The relation with one more table joined to it."""
        alias = join.this.alias or join.this.name
        outer = str(join.args.get("side") or "").upper() == "LEFT"
        pairs = self._pairs(left, table, alias, join)
        if table.public:
            return self._public(left, table, alias, pairs, outer=outer)
        if outer:
            raise self._error(
                UnsupportedSqlError, join.this, "private tables are joined by inner joins only", "write JOIN"
            )
        return self._private(left, table, alias, pairs, join)

    def _pairs(self, left: Relation, table: Table, alias: str, join: exp.Join) -> Pairs:
        """ON as pairs of (column on the left, column of the joined table)."""
        using = join.args.get("using")
        on = join.args.get("on")
        if using:
            equations: list[tuple[exp.Expr, exp.Column]] = [
                (exp.column(u.name), exp.column(u.name, table=alias)) for u in using
            ]
        elif on is not None:
            parts = bare(on).flatten() if isinstance(bare(on), exp.And) else [on]
            equations = [self._sides(bare(part), alias) for part in parts]
        else:
            raise self._error(UnsupportedSqlError, join.this, "a join needs a condition", f"write ON … = {alias}.key")
        scope = scope_of(self._batch, self._statement, left)
        pairs = []
        for side, key in equations:
            column = table.column(key.name)
            if column is None:
                existing = [c.name for c in table.columns]
                raise self._error(
                    UnknownNameError,
                    join.this,
                    f"no such column in {table.name}: {key.name}",
                    nearest(key.name, existing),
                )
            foreign = scalar(side, scope)
            if foreign.type != column.type:
                raise self._error(
                    TypeMismatchError, join.this, f"the join compares a {foreign.type} with a {column.type}",
                    "give both the same type in the schema",
                )  # fmt: skip
            if not dialect.is_key(column.type):
                raise self._error(
                    TypeMismatchError, join.this, f"a {column.type} cannot be the key of a join",
                    "join on numbers, texts, dates or timestamps",
                )  # fmt: skip
            pairs.append((foreign, column))
        return tuple(pairs)

    def _sides(self, part: exp.Expr, alias: str) -> tuple[exp.Expr, exp.Column]:
        if isinstance(part, exp.EQ):
            for side, key in ((part.this, part.expression), (part.expression, part.this)):
                if isinstance(key, exp.Column) and folded(key.table) == folded(alias):
                    return side, key
        raise self._error(
            UnsupportedSqlError, part, "ON must equate columns of the two tables", f"write ON column = {alias}.key"
        )

    def _public(self, left: Relation, table: Table, alias: str, pairs: Pairs, *, outer: bool) -> Relation:
        after = frozenset(label for foreign, _ in pairs for label in foreign.labels)
        reads = frozenset(c.name for foreign, _ in pairs for c in foreign.stored)
        label = left.base.join(
            Join(table, tuple((foreign.reference, key.name) for foreign, key in pairs), after, reads)
        )
        columns = {
            name: RelationColumn(named.name, replace(named.column.of(label), nullable=True))
            for name, named in stored_columns(table).items()
        }
        relation = replace(left, names=(*left.names, (alias, columns)), joined=True)
        if outer:
            return relation
        matched = left.base.attribute(Column("", "BOOLEAN").of(label))
        matched.ask(IS_NULL)
        return relation.narrowed(ColumnQuestion(matched.column.name, matched.ask(NOT_NULL)))

    def _private(self, left: Relation, table: Table, alias: str, pairs: Pairs, join: exp.Join) -> Relation:
        if left.base.table.public:
            raise self._error(
                UnsupportedSqlError, join.this, "a join starts from the private table",
                f"write FROM {table.name} JOIN {left.base.table.name} ON …",
            )  # fmt: skip
        unit, other = left.base.table.privacy_unit, table.privacy_unit
        if unit is None or other is None:
            raise self._error(
                UnsupportedSqlError, join.this, "what one row adds to a join of private tables cannot be bounded",
                f"declare privacy_unit and max_rows_per_unit for {left.base.table.name} and {table.name}",
            )  # fmt: skip
        if not any(foreign.name == unit and not foreign.label and key.name == other for foreign, key in pairs):
            raise self._error(
                UnsupportedSqlError, join.this, "a join of private tables must equate their privacy units",
                f"add {left.names[0][0]}.{unit} = {alias}.{other} to ON",
            )  # fmt: skip
        if left.joined or any(foreign.expression for foreign, _ in pairs) or left.where != ALWAYS:
            raise self._error(
                UnsupportedSqlError, join.this, "join the private tables first, directly and by stored columns",
                "write FROM private JOIN private ON … JOIN public ON … WHERE …",
            )  # fmt: skip
        reads = frozenset(foreign.name for foreign, _ in pairs)
        on = tuple((foreign.name, key.name) for foreign, key in pairs)
        base = self._batch.joined(left.base, Join(table, on, reads=reads))
        label = base.private[-1][0]
        columns = {
            name: RelationColumn(named.name, named.column.of(label)) for name, named in stored_columns(table).items()
        }
        return Relation(base, (*left.names, (alias, columns)))
