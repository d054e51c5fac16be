"""FROM: which rows are read, under which names, and with which filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlglot import exp
from tacit.errors import SqlSyntaxError, UnknownNameError, UnsupportedSqlError

from . import dialect
from .batch import BatchReader
from .catalog import Column, Table
from .declared import with_domain
from .joins import JoinReader
from .names import MAIN, folded, nearest, spelled
from .parse import Limits, parse_batch
from .predicate import Predicate, PredicateReader
from .relation import Relation, RelationColumn, column_of, scope_of, stored_columns, tables_of
from .scalar import Scope
from .statement import Statement, bare

_CLAUSES = {
    "joins": "JOIN", "having": "HAVING", "order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET",
    "distinct": "DISTINCT", "qualify": "QUALIFY", "windows": "WINDOW", "sample": "TABLESAMPLE", "laterals": "LATERAL",
    "into": "INTO", "with_": "WITH", "group": "GROUP BY",
}  # fmt: skip


class RelationReader:
    """Reads FROM clauses of one statement; knows the statement's CTEs."""

    def __init__(
        self,
        batch: BatchReader,
        statement: Statement,
        ctes: Mapping[str, tuple[exp.CTE, RelationReader]] | None = None,
        schema: str = MAIN,
    ) -> None:
        self._batch = batch
        self._statement = statement
        self._error = statement.error
        self._ctes = dict(ctes or {})
        """Each CTE with the reader of its own text, which knows only what stands before it."""
        self._schema = schema
        """Where a table without a schema is looked for first: a view's own schema."""

    def with_ctes(self, select: exp.Query) -> RelationReader:
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
            reader = RelationReader(self._batch, self._statement, ctes, self._schema)
        return reader

    def read(self, select: exp.Select) -> Relation:
        """The relation of a SELECT's FROM clause, joins included; WHERE is not part of it."""
        clause = select.args.get("from_")
        if clause is None:
            raise self._error(UnsupportedSqlError, select, "a query reads a table", "add FROM table")
        relation = self._item(clause.this)
        joins = list(select.args.get("joins") or [])
        if isinstance(clause.this, exp.Table | exp.Subquery):
            joins = list(clause.this.args.get("joins") or []) + joins
        for join in joins:
            relation = self._join(relation, join)
        return relation

    def filtered(self, relation: Relation, where: exp.Expr | None) -> Relation:
        """The relation with a WHERE clause added."""
        if where is None:
            return relation
        return relation.narrowed(self.predicate(relation, where))

    def predicate(self, relation: Relation, node: exp.Expr) -> Predicate:
        """A condition over the relation's columns."""
        return PredicateReader(self.scope(relation), relation.base.attribute).read(node)

    def scope(self, relation: Relation) -> Scope:
        """What names mean over a relation."""
        return scope_of(self._batch, self._statement, relation)

    # one item of FROM

    def _item(self, node: exp.Expr) -> Relation:
        if isinstance(node, exp.Subquery):
            relation = self._derived(node.this, node)
            alias = node.alias or "subquery"
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            relation, alias = self._named(node)
        else:
            raise self._error(
                UnsupportedSqlError, node, "a query reads tables by name; table functions and files are not supported",
                "write FROM table",
            )  # fmt: skip
        extra = [n for n, value in node.args.items() if value and n not in ("this", "db", "catalog", "alias", "joins")]
        if extra:
            what = extra[0].upper().replace("_", " ")
            raise self._error(UnsupportedSqlError, node, f"{what} is not supported", "write FROM table alias")
        ((_, columns),) = relation.names
        return replace(relation, names=((alias, self._renamed(columns, node)),))

    def _renamed(self, columns: Mapping[str, RelationColumn], node: exp.Expr) -> Mapping[str, RelationColumn]:
        """``AS alias(a, b)``: new names for the first columns; the others keep theirs."""
        alias = node.args.get("alias")
        new = [part.name for part in alias.args.get("columns") or ()] if alias is not None else []
        if len(new) > len(columns):
            raise self._error(
                UnsupportedSqlError, node, f"{len(new)} names are given to {len(columns)} columns", "give fewer names"
            )
        names = [*new, *(named.name for named in list(columns.values())[len(new) :])]
        renamed = {
            folded(name): RelationColumn(name, c.column) for name, c in zip(names, columns.values(), strict=True)
        }
        if len(renamed) < len(names):
            raise self._error(UnsupportedSqlError, node, "two columns have one name", "give every column its own name")
        return renamed

    def _named(self, node: exp.Table) -> tuple[Relation, str]:
        alias = node.alias or node.name
        if not node.db and folded(node.name) in self._ctes:
            cte, reader = self._ctes[folded(node.name)]
            relation = reader._derived(cte.this, node)
            ((_, columns),) = relation.names
            return replace(relation, names=((alias, reader._renamed(columns, cte)),)), alias
        table = self._table(node)
        if table.view:
            return self._view(table, node), alias
        return Relation(self._batch.table(table), ((alias, stored_columns(table)),)), alias

    def _table(self, node: exp.Table) -> Table:
        """The table that a name means. As in DuckDB, a view's own schema comes first, then the main one."""
        schemas = [node.db] if node.db else list(dict.fromkeys((self._schema, MAIN)))
        candidates = (self._batch.catalog.at(schema, node.name) for schema in schemas)
        table = next((table for table in candidates if table is not None), None)
        if table is None or node.catalog:
            name = spelled((schemas[-1], node.name))
            existing = [t.name for t in self._batch.catalog.tables] + list(self._ctes)
            raise self._error(UnknownNameError, node, f"no such table: {name}", nearest(name, existing))
        return table

    def _view(self, table: Table, node: exp.Table) -> Relation:
        """A view is read as if its text stood in its place, so that it can only filter and project."""
        try:
            (statement,) = parse_batch(table.view, Limits())
            inner = RelationReader(self._batch, statement, schema=table.path[0] if table.path else MAIN)
            relation = inner._derived(statement.tree, statement.tree)
        except (SqlSyntaxError, UnsupportedSqlError, ValueError):
            raise self._error(
                UnsupportedSqlError, node, f"the view {table.name} does more than filter and project",
                "query the tables behind it",
            ) from None  # fmt: skip
        declared = {folded(c.name): c for c in table.columns}
        ((alias, columns),) = relation.names
        return replace(
            relation,
            names=((alias, {n: _with_declared(named, declared.get(n)) for n, named in columns.items()}),),
        )

    def _derived(self, node: exp.Expr, place: exp.Expr) -> Relation:
        """A SELECT without aggregates: its filter and the columns it computes."""
        if not isinstance(node, exp.Select):
            raise self._error(
                UnsupportedSqlError,
                place,
                "a derived table is one SELECT that filters and projects",
                "write (SELECT … FROM …)",
            )
        for clause, value in node.args.items():
            if value and clause not in ("expressions", "from_", "where", "with_", "joins"):
                name = _CLAUSES.get(clause, clause.strip("_").upper())
                raise self._error(
                    UnsupportedSqlError, place, f"a derived table with {name} is not supported",
                    "let it filter and project only, and aggregate outside",
                )  # fmt: skip
        reader = self.with_ctes(node)
        relation = reader.read(node)
        relation = reader.filtered(relation, node.args["where"].this if node.args.get("where") else None)
        columns: dict[str, RelationColumn] = {}
        for named in reader._projected(node, relation):
            if folded(named.name) in columns:
                raise self._error(
                    UnsupportedSqlError, place, f"the derived table has two columns named {named.name}",
                    "rename one with AS",
                )  # fmt: skip
            columns[folded(named.name)] = named
        return replace(relation, names=(("", columns),))

    def _projected(self, select: exp.Select, relation: Relation) -> Iterator[RelationColumn]:
        scope = self.scope(relation)
        for item in select.expressions:
            node = item.this if isinstance(item, exp.Alias) else item
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                if any(node.args.get(k) for k in ("except_", "except", "replace", "rename")):
                    raise self._error(
                        UnsupportedSqlError, node, "* with exceptions is not supported", "list the columns"
                    )
                alias = node.table if isinstance(node, exp.Column) else ""
                for _, columns in tables_of(self._statement, relation, node, alias):
                    yield from columns.values()
                continue
            column = with_domain(node, scope, self._batch.limits.rows)
            yield RelationColumn(self.output_name(item, relation), column)

    def output_name(self, item: exp.Expr, relation: Relation | None) -> str:
        """The name that DuckDB gives to an item of a SELECT list."""
        if isinstance(item, exp.Alias):
            return item.alias
        if isinstance(item, exp.Count) and (item.this is None or isinstance(item.this, exp.Star)):
            return "count_star()"
        column = bare(item)
        if isinstance(column, exp.Column) and relation is not None:
            return column_of(self._statement, relation, column).name
        relations = tuple(
            (alias or "t", tuple((named.name, named.column.type) for named in columns.values()))
            for alias, columns in (relation.names if relation is not None else ())
        )
        inner = {table.name: self._batch.catalog.table(table.name) for table in item.find_all(exp.Table)}
        tables = tuple(
            (name, tuple((c.name, c.type) for c in table.columns)) for name, table in inner.items() if table is not None
        )
        text = dialect.write(item, comments=True, functions_as_typed=True)
        return dialect.display_name(text, relations, tables) or text

    def _join(self, left: Relation, join: exp.Join) -> Relation:
        side, kind, method = (str(join.args.get(k) or "").upper() for k in ("side", "kind", "method"))
        if method or side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
            raise self._error(
                UnsupportedSqlError, join.this,
                f"a {' '.join(filter(None, (method, side, kind)))} JOIN is not supported",
                "write JOIN … ON … or LEFT JOIN … ON …",
            )  # fmt: skip
        if not isinstance(join.this, exp.Table) or not isinstance(join.this.this, exp.Identifier):
            raise self._error(UnsupportedSqlError, join.this, "a join takes a table by name", "write JOIN table ON …")
        table = self._table(join.this)
        if table.view or (not join.this.db and folded(join.this.name) in self._ctes):
            raise self._error(UnsupportedSqlError, join.this, "a join takes a stored table", "join the table behind it")
        return JoinReader(self._batch, self._statement).read(left, table, join)


def _with_declared(named: RelationColumn, declared: Column | None) -> RelationColumn:
    """A view's column with what the policy says of it there, in place of what it says of the table behind."""
    if declared is None:
        return named
    column, domain = named.column, named.column.domain if declared.domain is None else declared.domain
    return RelationColumn(named.name, replace(column, domain=domain, nullable=column.nullable and declared.nullable))
