"""FROM and WHERE: which rows are read, under which names, and with which conditions.

Derived tables, CTEs and views that filter and project are taken apart (``level.py``); those that read public tables
alone are public tables of their own, and those that group by the privacy unit are tables of one row for each unit. What
is left, tables and conditions, is put together in ``joins.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp
from tacit.errors import SqlSyntaxError, UnknownNameError, UnsupportedSqlError

from . import dialect
from .catalog import Column, Table
from .joins import Attacher, Condition, Tables, conjuncts, together
from .level import Leaf, Level, Named, items_of
from .name_reader import Kind, NameReader, is_bracket, unwrapped
from .names import folded, nearest
from .predicate import Predicate, PredicateReader
from .public import public_table
from .relation import Relation, scope_of, stored_columns
from .scalar import Scope, truth
from .set_operations import as_select
from .statement import bare
from .subqueries import SubqueryReader
from .unit_rows import is_grouped, read_unit_rows, unit_keys

_CLAUSES = {
    "joins": "JOIN", "having": "HAVING", "order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET",
    "distinct": "DISTINCT", "qualify": "QUALIFY", "windows": "WINDOW", "sample": "TABLESAMPLE", "laterals": "LATERAL",
    "into": "INTO", "with_": "WITH", "group": "GROUP BY",
}  # fmt: skip
_PROJECTS = ("expressions", "from_", "where", "with_", "joins")
"""The clauses of a SELECT that filters and projects."""


class RelationReader(NameReader):
    """Reads FROM clauses of one statement."""

    def read(self, select: exp.Select, *, apart: bool = False) -> Relation:
        """The relation of a SELECT's FROM and WHERE.

        ``apart``: its rows are not counted but computed with, so the batch is not asked about them.
        """
        if select.args.get("from_") is None:
            raise self._error(UnsupportedSqlError, select, "a query reads a table", "add FROM table")
        tables = Tables()
        level = self.level(select, tables)
        attacher = Attacher(self.batch, tables, apart=apart)
        base = attacher.attached()
        relation = Relation(
            base,
            level,
            attacher.column,
            equal=attacher.equal,
            conditions_on=attacher.conditions_on,
            kept=frozenset(tables.kept),
            optional=attacher.optional,
        )
        if apart:
            filters = [truth(node, attacher.scope(inner)) for inner, node in attacher.rest()]
            return replace(relation, filters=(*attacher.matched, *filters))
        asked = [PredicateReader(attacher.scope(inner), base.attribute).read(node) for inner, node in attacher.rest()]
        return replace(relation, where=together([*attacher.matches(), *asked]))

    def predicate(self, relation: Relation, node: exp.Expr) -> Predicate:
        """A condition over the relation's columns."""
        return PredicateReader(self.scope(relation), relation.base.attribute).read(node)

    def scope(self, relation: Relation) -> Scope:
        """What names mean over a relation."""
        return scope_of(self.batch, relation)

    def _is_by_unit(self, select: exp.Select) -> bool:
        return bool(unit_keys(self, select))

    def level(self, select: exp.Select, tables: Tables) -> Level:
        """What names mean in a SELECT; its tables and conditions are added to ``tables``."""
        level = Level(self.statement)
        clause = select.args["from_"]
        self._joined(clause.this, list(select.args.get("joins") or []), level, tables)
        where = select.args.get("where")
        inner = SubqueryReader(self, level, tables)
        tables.conditions = [(at, inner.without(part) if at is level else part) for at, part in tables.conditions]
        if where is not None:
            tables.conditions += [(level, inner.without(part)) for part in conjuncts(where.this)]
        return level

    def hidden_item(self, query: exp.Select, alias: str, place: exp.Expr, level: Level, tables: Tables) -> Leaf:
        """A derived table that no name of the text means; it must be one table."""
        before = len(tables.leaves)
        columns = self._derived(query, alias, place, tables)
        if len(tables.leaves) != before + 1:
            raise self._error(
                UnsupportedSqlError, place, "this subquery cannot be looked up", "join a derived table in its place"
            )
        level.hidden[alias] = columns
        return tables.leaves[-1]

    def _joined(self, node: exp.Expr, joins: list[exp.Join], level: Level, tables: Tables) -> list[Leaf]:
        first = len(tables.conditions)
        leaves = self._item(node, level, tables)
        if isinstance(node, exp.Table | exp.Subquery):
            joins = list(node.args.get("joins") or []) + joins
        for join in joins:
            leaves += self._join(join, leaves, first, level, tables)
        return leaves

    def _item(self, node: exp.Expr, level: Level, tables: Tables) -> list[Leaf]:
        """One item of FROM: what it is called, and the tables that it brings in."""
        if is_bracket(node):
            return self._joined(node.this, [], level, tables)
        before = len(tables.leaves)
        extra = [n for n, value in node.args.items() if value and n not in ("this", "db", "catalog", "alias", "joins")]
        if extra and not isinstance(node, exp.Values):
            what = extra[0].upper().replace("_", " ")
            raise self._error(UnsupportedSqlError, node, f"{what} is not supported", "write FROM table alias")
        alias = node.alias or (node.name if isinstance(node, exp.Table) else "") or "subquery"
        columns = self._renamed(self._offered(node, alias, tables), node)
        level.items.append((alias, columns))
        return tables.leaves[before:]

    def _offered(self, node: exp.Expr, alias: str, tables: Tables) -> Mapping[str, Named]:
        """The columns that an item of FROM offers."""
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            found = self.cte(node)
            if found is not None:
                cte, reader = found
                return reader._renamed(reader._derived(cte.this, alias, node, tables), cte)
            table = self.table(node)
            if table.view:
                return self._view(table, alias, node, tables)
            leaf = Leaf(table, alias, self.statement, node)
            tables.leaves.append(leaf)
            return stored_columns(table, leaf)
        if isinstance(node, exp.Subquery):
            return self._derived(node.this, alias, node, tables)
        if isinstance(node, exp.Values):
            inner = exp.Select(expressions=[exp.Star()], from_=exp.From(this=node.copy()))
            return self._leaf(public_table(self, inner), alias, node, tables)
        raise self._error(
            UnsupportedSqlError, node, "a query reads tables by name; table functions and files are not supported",
            "write FROM table",
        )  # fmt: skip

    def _view(self, table: Table, alias: str, node: exp.Table, tables: Tables) -> Mapping[str, Named]:
        query, reader = self.view(table, node)
        try:
            columns = reader._derived(query, alias, query, tables)
        except (SqlSyntaxError, UnsupportedSqlError):
            raise self.view_error(table, node) from None
        declared = {folded(c.name): c for c in table.columns}
        return {name: replace(named, declared=declared.get(name)) for name, named in columns.items()}

    def _renamed(self, columns: Mapping[str, Named], node: exp.Expr) -> Mapping[str, Named]:
        """``AS alias(a, b)``: new names for the first columns; the others keep theirs."""
        alias = node.args.get("alias")
        new = [part.name for part in alias.args.get("columns") or ()] if alias is not None else []
        if not new:
            return columns
        if len(new) > len(columns):
            raise self._error(
                UnsupportedSqlError, node, f"{len(new)} names are given to {len(columns)} columns", "give fewer names"
            )
        names = [*new, *(named.name for named in list(columns.values())[len(new) :])]
        renamed = {folded(name): replace(c, name=name) for name, c in zip(names, columns.values(), strict=True)}
        if len(renamed) < len(names):
            raise self._error(UnsupportedSqlError, node, "two columns have one name", "give every column its own name")
        return renamed

    def _leaf(self, table: Table, alias: str, place: exp.Expr, tables: Tables) -> Mapping[str, Named]:
        leaf = Leaf(table, alias, self.statement, place)
        tables.leaves.append(leaf)
        return stored_columns(table, leaf)

    def _derived(self, query: exp.Expr, alias: str, place: exp.Expr, tables: Tables) -> Mapping[str, Named]:
        """The columns of a derived table."""
        query = unwrapped(query)
        kind = self.kind(query)
        if kind is Kind.PUBLIC:
            return self._leaf(self._once(query, lambda: public_table(self, query)), alias, place, tables)
        if kind is Kind.RELEASED:
            raise self._error(
                UnsupportedSqlError, place, "a result that is released cannot be joined with private rows",
                "group the derived table by the privacy unit, or join it to other results only",
            )  # fmt: skip
        query = self._as_select(query)
        if not isinstance(query, exp.Select):
            raise self._error(
                UnsupportedSqlError, place, "a derived table is one SELECT that filters and projects",
                "write (SELECT … FROM …)",
            )  # fmt: skip
        reader = self.with_ctes(query)
        if is_grouped(query):
            return read_unit_rows(reader, query, alias, place, tables)
        for clause, value in query.args.items():
            if value and clause not in (*_PROJECTS, "order"):
                name = _CLAUSES.get(clause, clause.strip("_").upper())
                raise self._error(
                    UnsupportedSqlError, place, f"a derived table with {name} is not supported",
                    "let it filter and project only, and aggregate outside",
                )  # fmt: skip
        level = reader.level(query, tables)
        columns: dict[str, Named] = {}
        for named in reader.projected(query, level):
            if folded(named.name) in columns:
                raise self._error(
                    UnsupportedSqlError, place, f"the derived table has two columns named {named.name}",
                    "rename one with AS",
                )  # fmt: skip
            columns[folded(named.name)] = named
        return columns

    def _as_select(self, query: exp.Expr) -> exp.Expr:
        """A set operation as the SELECT that it stands for; made once, since queries are known by their identity."""
        if not isinstance(query, exp.SetOperation):
            return query
        if id(query) not in self.memory.selects:
            self.memory.nodes.append(query)
            self.memory.selects[id(query)] = as_select(query)
        return self.memory.selects[id(query)]

    def _once(self, query: exp.Expr, make: Any) -> Table:
        """A table that is computed, made once for each query that stands in the text."""
        if id(query) not in self.memory.tables:
            self.memory.nodes.append(query)
            self.memory.tables[id(query)] = make()
        return self.memory.tables[id(query)]

    def projected(self, select: exp.Select, level: Level) -> Iterator[Named]:
        """The columns of a SELECT list."""
        for item in select.expressions:
            node = item.this if isinstance(item, exp.Alias) else item
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                if any(node.args.get(k) for k in ("except_", "except", "replace", "rename")):
                    raise self._error(
                        UnsupportedSqlError, node, "* with exceptions is not supported", "list the columns"
                    )
                alias = node.table if isinstance(node, exp.Column) else ""
                for _, columns in items_of(self.statement, tuple(level.items), node, alias):
                    yield from columns.values()
                continue
            name = self.output_name(item, level)
            if isinstance(bare(node), exp.Column):
                yield replace(level.find(bare(node)), name=name)  # type: ignore[arg-type]
            else:
                yield Named(name, level=level, node=node)

    def output_name(
        self, item: exp.Expr, level: Level | None, column_of: Callable[[Named], Column] | None = None
    ) -> str:
        """The name that DuckDB gives to an item of a SELECT list; ``column_of`` says what type a column has."""
        if isinstance(item, exp.Alias):
            return item.alias
        if isinstance(item, exp.Count) and (item.this is None or isinstance(item.this, exp.Star)):
            return "count_star()"
        column = bare(item)
        if isinstance(column, exp.Column) and level is not None:
            return level.find(column).name
        mentioned = {folded(part.name) for part in item.find_all(exp.Column)}
        relations = tuple(
            (alias or "t", tuple((c.name, _type(c, column_of)) for n, c in columns.items() if n in mentioned))
            for alias, columns in (level.items if level is not None else ())
        )
        inner = {table.name: self.batch.catalog.table(table.name) for table in item.find_all(exp.Table)}
        tables = tuple(
            (name, tuple((c.name, c.type) for c in table.columns)) for name, table in inner.items() if table is not None
        )
        written = dialect.write(item, comments=True, functions_as_typed=True)
        typed = self.statement.item_text(item)
        named = dialect.display_name(typed, relations, tables) if typed is not None else None
        return named or dialect.display_name(written, relations, tables) or written

    def _join(self, join: exp.Join, before: list[Leaf], first: int, level: Level, tables: Tables) -> list[Leaf]:
        """One join; ``first`` is where the conditions of what stands before it begin."""
        side, kind, method = (str(join.args.get(k) or "").upper() for k in ("side", "kind", "method"))
        if method not in ("", "NATURAL") or kind not in ("", "INNER", "OUTER", "CROSS") or side == "FULL":
            raise self._error(
                UnsupportedSqlError, join.this,
                f"a {' '.join(filter(None, (method, side, kind)))} JOIN is not supported",
                "write JOIN … ON … or LEFT JOIN … ON …",
            )  # fmt: skip
        earlier, middle = list(level.items), len(tables.conditions)
        added = self._joined(join.this, [], level, tables)
        conditions = [(level, part) for part in self._on(join, earlier, level, natural=method == "NATURAL", side=side)]
        inside = slice(middle, None) if side == "LEFT" else slice(first, middle)
        self._put(join, side, before, added, conditions, inside, tables)
        if side:
            optional = range(len(earlier), len(level.items)) if side == "LEFT" else range(len(earlier))
            keys = [key for key in _keys(conditions) if key.leaf in tables.outer]
            for place in optional if keys else ():
                alias, columns = level.items[place]
                level.items[place] = alias, {n: _where_matched(c, keys[0], level) for n, c in columns.items()}
        return added

    def _put(
        self,
        join: exp.Join,
        side: str,
        before: list[Leaf],
        added: list[Leaf],
        conditions: list[Any],
        inside: slice,
        tables: Tables,
    ) -> None:
        """Inner joins are conditions; of an outer join, one side is a table that may have no match.

        The conditions ``inside`` that side decide what can match, and not which rows are there.
        """
        if not side:
            tables.conditions += conditions
            return
        kept, optional = (before, added) if side == "LEFT" else (added, before)
        private = [leaf for leaf in optional if not leaf.table.public]
        if private and all(leaf.table.public for leaf in kept):
            tables.conditions += conditions
            tables.kept.update(private)
            tables.matching.update(id(node) for _, node in conditions)
            return
        if len(optional) != 1:
            raise self._error(
                UnsupportedSqlError, join.this, "an outer join takes one table that may have no match",
                "join the other tables before, or in a derived table of public tables",
            )  # fmt: skip
        if any(key.leaf in tables.kept for key in _keys(conditions)):
            tables.kept.add(optional[0])  # a row without those has none of this table either
        tables.outer[optional[0]] = [*conditions, *tables.conditions[inside]]
        del tables.conditions[inside]

    def _on(
        self, join: exp.Join, earlier: list[tuple[str, Mapping[str, Named]]], level: Level, *, natural: bool, side: str
    ) -> list[exp.Expr]:
        """The conditions of a join; columns of USING are one column afterwards."""
        on, using = join.args.get("on"), [part.name for part in join.args.get("using") or ()]
        alias, columns = level.items[-1]
        if natural:
            using = [named.name for name, named in columns.items() if any(name in other for _, other in earlier)]
        if on is not None:
            return conjuncts(on)
        conditions: list[exp.Expr] = []
        for name in using:
            owners = [other for other, offered in earlier if folded(name) in offered]
            if folded(name) not in columns or not owners:
                existing = [named.name for named in columns.values()]
                raise self._error(
                    UnknownNameError, join.this, f"no such column in {alias}: {name}", nearest(name, existing)
                )
            left = next(offered[folded(name)] for other, offered in earlier if other == owners[0])
            conditions.append(
                exp.EQ(
                    this=exp.column(name, table=owners[0], quoted=True),
                    expression=exp.column(name, table=alias, quoted=True),
                )
            )
            level.shared[folded(name)] = columns[folded(name)] if side == "RIGHT" else left
        return conditions


def _keys(conditions: Sequence[Condition]) -> Iterator[Named]:
    """The columns of tables that conditions equate: none is NULL in a row that satisfies them."""
    for level, node in conditions:
        for side in (bare(node.this), bare(node.expression)) if isinstance(node, exp.EQ) else ():
            if isinstance(side, exp.Column):
                yield level.find(side).traced()


def _where_matched(named: Named, witness: Named, level: Level) -> Named:
    """A column of a table that may have no match. What is computed from its columns is NULL then, whatever it is."""
    if named.leaf is not None or named.node is None:
        return named
    both = {"match": replace(witness, name="match"), "value": replace(named, name="value")}
    inner = Level(level.statement, [("", both)])
    matched = exp.Not(this=exp.Is(this=exp.column("match"), expression=exp.Null()))
    node = exp.Case(ifs=[exp.If(this=matched, true=exp.column("value"))])
    return Named(named.name, level=inner, node=node)


def _type(named: Named, column_of: Callable[[Named], Column] | None) -> str:
    """The type of a column, as far as it is needed to name an expression over it."""
    if column_of is not None:
        return column_of(named).type
    traced = named.traced()
    return traced.column.type if traced.column is not None else "INTEGER"
