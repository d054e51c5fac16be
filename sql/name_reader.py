"""What the names in a statement's FROM mean: stored tables, views and CTEs, and whose rows are behind each."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

from sqlglot import exp
from tacit.errors import SqlError, SqlSyntaxError, UnknownNameError, UnsupportedSqlError

from . import dialect
from .batch import BatchReader
from .catalog import Table
from .names import MAIN, folded, nearest, spelled
from .parse import Limits, parse_batch
from .statement import Statement
from .unit_rows import is_grouped

_FILE = re.compile(r"(?i)read_?(parquet|csv|json|text|blob)\w*|\w+_scan|.*\.(parquet|pq|csv|tsv)(\.gz)?")
"""What a view that reads files has in FROM."""


class Kind(Enum):
    """What the rows of a query are."""

    PUBLIC = "public"
    ROWS = "rows of people"
    RELEASED = "released"


@dataclass(frozen=True)
class Memory:
    """What was found out about the queries inside one statement, by their nodes' identity."""

    kinds: dict[int, Kind] = field(default_factory=dict)
    tables: dict[int, Table] = field(default_factory=dict)
    selects: dict[int, exp.Expr] = field(default_factory=dict)
    """What set operations of private rows stand for."""
    views: dict[tuple[str, ...], tuple[exp.Expr, Any]] = field(default_factory=dict)
    nodes: list[exp.Expr] = field(default_factory=list)
    """Kept, so that no other node can take the identity of one."""


class NameReader(ABC):
    """Knows the tables, views and CTEs that one statement can name."""

    def __init__(
        self,
        batch: BatchReader,
        statement: Statement,
        ctes: Mapping[str, tuple[exp.CTE, Self]] | None = None,
        schema: str = MAIN,
        memory: Memory | None = None,
    ) -> None:
        self.batch = batch
        self.statement = statement
        self._error = statement.error
        self._ctes = dict(ctes or {})
        """Each CTE with the reader of its own text, which knows only what stands before it."""
        self._schema = schema
        """Where a table without a schema is looked for first: a view's own schema."""
        self.memory = memory or Memory()

    def with_ctes(self, select: exp.Expr) -> Self:
        """A reader that also knows the CTEs of a WITH clause.

        As in DuckDB, a CTE sees those before it and not itself: inside it, its name still means what it meant outside.
        """
        clause = select.args.get("with_")
        if clause is None:
            return self
        if clause.args.get("recursive"):
            raise self._error(UnsupportedSqlError, clause, "recursive queries are not supported", "leave RECURSIVE out")
        defined: set[str] = set()
        reader = self
        for cte in clause.expressions:
            name = folded(cte.alias)
            if name in defined:
                raise self._error(
                    SqlSyntaxError, cte, f"the WITH clause has two tables named {cte.alias}", "rename one"
                )
            defined.add(name)
            ctes = {**reader._ctes, name: (cte, reader)}
            reader = type(self)(self.batch, self.statement, ctes, self._schema, self.memory)
        return reader

    def is_public(self, query: exp.Expr) -> bool:
        """Whether a query reads public tables alone."""
        return self.kind(query) is Kind.PUBLIC

    def kind(self, query: exp.Expr) -> Kind:
        """What the rows of a query are; found out once."""
        query = unwrapped(query)
        if id(query) not in self.memory.kinds:
            self.memory.nodes.append(query)
            self.memory.kinds[id(query)] = self._kind(query)
        return self.memory.kinds[id(query)]

    def _kind(self, query: exp.Expr) -> Kind:
        reader = self.with_ctes(query)
        if isinstance(query, exp.SetOperation):
            kinds = {reader.kind(query.this), reader.kind(query.expression)}
            return next(kind for kind in (Kind.RELEASED, Kind.ROWS, Kind.PUBLIC) if kind in kinds)
        if not isinstance(query, exp.Select):
            return Kind.PUBLIC
        kinds = {reader.item_kind(node) for node in from_items(query)}
        if Kind.RELEASED in kinds or (Kind.ROWS not in kinds and reader._asks_rows(query)):
            return Kind.RELEASED
        if Kind.ROWS not in kinds:
            return Kind.PUBLIC
        if not is_grouped(query):
            return Kind.ROWS
        return Kind.ROWS if not reader.stacks_rows(query) and reader._is_by_unit(query) else Kind.RELEASED

    @abstractmethod
    def _is_by_unit(self, select: exp.Select) -> bool:
        """Whether a SELECT over private rows groups them by the privacy unit."""

    def _asks_rows(self, select: exp.Select) -> bool:
        """Whether a subquery in an expression reads private rows."""
        inner = [q for q in select.find_all(exp.Query) if q is not select and not isinstance(q, exp.Subquery)]
        return any(
            isinstance(q, exp.Select) and self.kind(q) is not Kind.PUBLIC for q in inner if _in_expression(q, select)
        )

    def item_kind(self, node: exp.Expr) -> Kind:
        """What the rows of one item of FROM are."""
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            if not node.db and folded(node.name) in self._ctes:
                cte, reader = self._ctes[folded(node.name)]
                return reader.kind(cte.this)
            table = self.table(node)
            if table.view:
                query, of_view = self.view(table, node)
                return of_view.kind(query)
            return Kind.PUBLIC if table.public else Kind.ROWS
        if isinstance(node, exp.Subquery):
            return self.kind(node.this)
        return Kind.PUBLIC

    def behind(self, node: exp.Expr) -> tuple[Self, exp.Expr] | None:
        """The query of a derived table or CTE, and the reader of its text; None for a stored table."""
        if isinstance(node, exp.Subquery):
            return self, unwrapped(node.this)
        found = self.cte(node) if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) else None
        return None if found is None else (found[1], unwrapped(found[0].this))

    def stacks_rows(self, select: exp.Select) -> bool:
        """Whether a SELECT reads private rows of several SELECTs, one below the other."""
        queries = [self.behind(node) for node in from_items(select)]
        return any(found is not None and isinstance(found[1], exp.SetOperation) and found[0].kind(found[1]) is Kind.ROWS
                   for found in queries)  # fmt: skip

    def cte(self, node: exp.Table) -> tuple[exp.CTE, Self] | None:
        """The CTE that a name means, and the reader of its text."""
        return None if node.db else self._ctes.get(folded(node.name))

    def table(self, node: exp.Table) -> Table:
        """The table that a name means. As in DuckDB, a view's own schema comes first, then the main one."""
        schemas = [node.db] if node.db else list(dict.fromkeys((self._schema, MAIN)))
        candidates = (self.batch.catalog.at(schema, node.name) for schema in schemas)
        table = next((table for table in candidates if table is not None), None)
        if table is None or folded(node.catalog or "") not in ("", folded(self.batch.catalog.database)):
            name = spelled((schemas[-1], node.name))
            existing = [t.name for t in self.batch.catalog.tables]
            if not node.db:  # no CTE has a schema
                existing += [cte.alias for cte, _ in self._ctes.values()]
            shown = ".".join(part.name for part in node.parts) if node.db else name
            if table is not None or (node.db and folded(node.name) in self._ctes):
                hint = f"write {node.name if table is None else table.name} alone"
            else:
                hint = nearest(name, existing)
            raise self._error(UnknownNameError, node, f"no such table: {shown}", hint)
        return table

    def view(self, table: Table, node: exp.Table) -> tuple[exp.Expr, Self]:
        """The query behind a view, which is read as if its text stood in its place."""
        if table.key not in self.memory.views:
            try:
                (statement,) = parse_batch(table.view, Limits())
            except (SqlSyntaxError, UnsupportedSqlError, ValueError):
                raise self.view_error(table, node) from None
            reader = type(self)(self.batch, statement, schema=table.path[0] if table.path else MAIN, memory=self.memory)
            for call in list(statement.tree.find_all(exp.Anonymous, exp.ToDays)):
                written = _as_typed(call)
                if written is not None:
                    call.replace(written)
            if any(reader._reads_files(inner) for inner in statement.tree.find_all(exp.Table)):
                raise self._error(
                    UnsupportedSqlError, node, f"the view {table.name} reads files in a way that tacit does not",
                    "let one view be SELECT * FROM read_parquet('…') without options, over files that are there and "
                    "alike, and others be over that one; csv files need types in the policy",
                )  # fmt: skip
            self.memory.views[table.key] = statement.tree, reader
        return self.memory.views[table.key]

    def _reads_files(self, node: exp.Table) -> bool:
        called = node.this
        if isinstance(called, exp.Identifier):
            known = self.cte(node) or self.batch.catalog.at(node.db or self._schema, node.name)
            return known is None and _FILE.fullmatch(called.name) is not None
        name = called.name if isinstance(called, exp.Anonymous) else called.key
        return _FILE.fullmatch(name) is not None

    def view_error(self, table: Table, node: exp.Expr) -> SqlError:
        return self._error(
            UnsupportedSqlError, node, f"the view {table.name} does more than filter and project",
            "query the tables behind it",
        )  # fmt: skip


def _as_typed(call: exp.Expr) -> exp.Expr | None:
    """What DuckDB writes for count(*) and for an INTERVAL in the text of a view, as it was typed."""
    name = "to_days" if isinstance(call, exp.ToDays) else str(call.this).lower()
    if name == "count_star":
        return exp.Count(this=exp.Star())
    unit = _INTERVALS.get(name)
    amount = call.this if isinstance(call, exp.ToDays) else next(iter(call.expressions), None)
    value = dialect.fold(dialect.write(amount)) if unit is not None and isinstance(amount, exp.Expr) else None
    if value is None or not isinstance(value[0], int):
        return None
    return exp.Interval(this=exp.Literal.string(str(value[0])), unit=exp.Var(this=unit))


_INTERVALS = {
    f"to_{unit}": unit.upper() for unit in ("years", "months", "weeks", "days", "hours", "minutes", "seconds")
}


def unwrapped(query: exp.Expr) -> exp.Expr:
    """A query without the parentheses around it."""
    while isinstance(query, exp.Subquery | exp.Paren) and not any(v for k, v in query.args.items() if k != "this"):
        query = query.this
    return query


def is_bracket(node: exp.Expr) -> bool:
    """Whether an item of FROM is a join in parentheses, which may be several."""
    inside = node.this if isinstance(node, exp.Subquery) and not node.alias else None
    if isinstance(inside, exp.Subquery):
        return bool(inside.args.get("joins")) or is_bracket(inside)
    return isinstance(inside, exp.Table)


def from_items(select: exp.Select) -> Iterator[exp.Expr]:
    """The items of a FROM clause, those of parenthesised joins too."""
    clause = select.args.get("from_")
    pending = [] if clause is None else [clause.this, *(join.this for join in select.args.get("joins") or ())]
    while pending:
        node = pending.pop(0)
        pending += [join.this for join in node.args.get("joins") or ()]
        if is_bracket(node):
            pending.insert(0, node.this)
        else:
            yield node


def _in_expression(query: exp.Expr, select: exp.Select) -> bool:
    """Whether a query stands in an expression of a SELECT, and not in its FROM, its WITH or inside another query."""
    node = query
    while node.parent is not None and node.parent is not select:
        if isinstance(node.parent, exp.From | exp.Join | exp.With | exp.Select | exp.SetOperation):
            return isinstance(node.parent, exp.Join) and node.arg_key == "on"
        node = node.parent
    return True
