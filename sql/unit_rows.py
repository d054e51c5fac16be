"""Derived tables that group private rows by the privacy unit: tables of one row for each unit, or each unit and key.

What is computed for a unit comes from that unit's rows alone, so counts and sums over such a table are as private as
those over any other: see ``UnitRows``. A table of distinct values is the same without aggregates and without the unit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from tacit.errors import TypeMismatchError, UnknownNameError, UnsupportedSqlError

from . import dialect
from .catalog import UNIT_NAME, Column, Range, Table
from .declared import bounds, with_domain
from .derived import UnitRows
from .joins import Tables, conjuncts
from .level import Leaf, Level, Named
from .names import folded
from .scalar import Scope, scalar, truth
from .scan import join_reads, rows_per_unit
from .statement import bare, parts_of, rebuilt

if TYPE_CHECKING:
    from .from_clause import RelationReader
    from .relation import Relation

_READ = ("expressions", "from_", "where", "with_", "joins", "group", "having", "distinct", "order")
ONLY_PRESENT = "tacit: only rows with a value"
"""Set where rows of NULL are left out of a derived table afterwards."""
_WIDEST_SUM = 28
"""Digits of a DECIMAL whose sums no table is long enough to overflow."""


@dataclass(frozen=True)
class UnitKeys:
    """What a derived table is grouped by."""

    nodes: tuple[exp.Expr, ...]
    whole: bool
    """Whether the unit is one of the keys, or follows from one."""
    only: bool
    """Whether every key is the unit."""
    unit: exp.Expr | None = None
    """The key that holds the unit, if one does."""


def is_grouped(select: exp.Select) -> bool:
    """Whether a SELECT makes groups of the rows that it reads."""
    args = select.args
    return bool(args.get("group") or args.get("distinct") or args.get("having") or aggregates_of(select))


def aggregates_of(select: exp.Select) -> list[exp.Expr]:
    """The aggregates over the rows of a SELECT, those inside its subqueries and windows left out."""
    clauses = [*select.expressions, *(select.args.get(name) for name in ("having", "order", "qualify"))]
    return [found for clause in clauses if clause is not None for found in aggregates_in(clause)]


def aggregates_in(node: exp.Expr) -> list[exp.Expr]:
    """The aggregates of an expression; a FILTER, a WITHIN GROUP belongs to its aggregate."""
    if isinstance(node, exp.Query):
        return []
    if isinstance(node, exp.Filter | exp.WithinGroup | exp.AggFunc | exp.ArrayAgg) and not _is_window(node):
        return [node]
    inner: list[exp.Expr] = []
    for value in node.args.values():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr):
                inner += aggregates_in(part)
    return inner


def _is_window(node: exp.Expr) -> bool:
    """Whether a function is computed over a window and not over groups; FILTER and IGNORE NULLS may stand between."""
    while isinstance(node.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def group_nodes(select: exp.Select, level: Level | None = None) -> list[exp.Expr] | None:
    """The expressions that a SELECT groups by; None where ROLLUP and its like make several groupings."""
    items = [item.this if isinstance(item, exp.Alias) else item for item in select.expressions]
    clause = select.args.get("group")
    if clause is None:
        return items if select.args.get("distinct") and not aggregates_of(select) else []
    if clause.args.get("all"):
        return [item for item in items if not aggregates_in(item)]
    nodes: list[exp.Expr] = []
    for node in map(bare, clause.expressions):
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            return None
        nodes.append(bare(_meant(node, select, items, level)))
    return nodes


def groupings(select: exp.Select, level: Level) -> tuple[list[exp.Expr], exp.Group | None]:
    """All expressions that a SELECT groups by, and the clause with those in place of numbers and aliases."""
    plain = group_nodes(select, level)
    if plain is not None:
        return plain, exp.Group(expressions=[node.copy() for node in plain]) if plain else None
    items = [item.this if isinstance(item, exp.Alias) else item for item in select.expressions]
    nodes: list[exp.Expr] = []

    def written(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple | exp.Group):
            return rebuilt(node, [written(part) for part in parts_of(node)])
        if isinstance(node, exp.Paren):
            return exp.Paren(this=written(node.this))
        nodes.append(bare(_meant(node, select, items, level)))
        return nodes[-1].copy()

    clause = written(select.args["group"])
    assert isinstance(clause, exp.Group)
    return nodes, clause


def _meant(node: exp.Expr, select: exp.Select, items: list[exp.Expr], level: Level | None) -> exp.Expr:
    """GROUP BY 1 and GROUP BY alias name an item of the SELECT list; a column comes before an alias."""
    if isinstance(node, exp.Literal) and str(node.this).isdecimal() and 0 < int(str(node.this)[:9]) <= len(items):
        return items[int(str(node.this)[:9]) - 1]
    if not isinstance(node, exp.Column) or node.table:
        return node
    if level is not None:
        try:
            level.find(node)
        except UnknownNameError:
            pass
        else:
            return node
    called = [i.this for i in select.expressions if isinstance(i, exp.Alias) and folded(i.alias) == folded(node.name)]
    return called[-1] if called else node


def unit_keys(reader: RelationReader, select: exp.Select) -> UnitKeys | None:
    """What a derived table groups by, if a unit adds a bounded number of rows to it; None for any other."""
    if (distinct := select.args.get("distinct")) is not None and distinct.args.get("on") is not None:
        return None
    tables = Tables()
    level = reader.level(select, tables)
    nodes = group_nodes(select, level)
    if not nodes:
        return None
    units = [_is_unit(reader, level, node, tables.outer) for node in nodes]
    if any(unit is not None for unit in units):
        held = next((node for node, unit in zip(nodes, units, strict=True) if unit), None)
        return UnitKeys(tuple(nodes), whole=True, only=all(units), unit=held)
    plain = not aggregates_of(select) and not select.args.get("having")
    return UnitKeys(tuple(nodes), whole=False, only=False) if plain else None


def _is_unit(reader: RelationReader, level: Level, node: exp.Expr, optional: Collection[Leaf]) -> bool | None:
    """True for a column that holds the privacy unit, False for one that the unit follows from, None for any other.

    The columns of a table that may have no match (``optional``) are NULL for some rows of a unit, so they hold no unit.
    """
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    named = level.find(node).traced()
    if named.leaf is None or named.column is None or named.leaf.table.public or named.leaf in optional:
        return None
    table, name = named.leaf.table, named.column.name
    if name == table.unit_column:
        return True
    if table.rows is not None:
        return None  # its name is the text of a query, and could be that of a stored table
    steps = [step for other in reader.batch.catalog.tables for step in other.unit_path or ()]
    leads = table.unit_path is not None and name == table.unit_key
    return False if leads or any(s.table.key == table.key and s.key == name for s in steps) else None


def read_unit_rows(
    reader: RelationReader, select: exp.Select, alias: str, place: exp.Expr, tables: Tables
) -> Mapping[str, Named]:
    """The columns of a derived table that groups by the privacy unit, or that has no aggregates."""
    for clause, value in select.args.items():
        if value and clause not in _READ:
            raise reader.statement.error(
                UnsupportedSqlError, place, f"a derived table with {clause.strip('_').upper()} is not supported",
                "leave it out",
            )  # fmt: skip
    keys = unit_keys(reader, select)
    assert keys is not None
    relation = reader.read(select, apart=True)
    if relation.kept and not select.meta.get(ONLY_PRESENT):
        raise reader.statement.error(
            UnsupportedSqlError, place, "rows of a public table without a match would be grouped here, and they are "
            "not among the rows of people", "write JOIN in place of the outer join",
        )  # fmt: skip
    made = _Maker(reader, relation, keys)
    table = made.table(select)
    leaf = Leaf(table, alias, reader.statement, place)
    tables.leaves.append(leaf)
    inner = Level(reader.statement, [("", {folded(c.name): Named(c.name, leaf, c) for c in table.columns})])
    if select.args.get("having"):
        tables.conditions += [(inner, part) for part in conjuncts(made.rewritten(select.args["having"].this))]
    columns: dict[str, Named] = {}
    for item in select.expressions:
        name = reader.output_name(item, relation.level)
        node = made.rewritten(item.this if isinstance(item, exp.Alias) else item)
        named = Named(name, level=inner, node=node).traced()
        columns[folded(name)] = Named(name, named.leaf, named.column, named.level, named.node)
    return columns


class _Maker:
    """Computes keys and aggregates of one derived table."""

    def __init__(self, reader: RelationReader, relation: Relation, keys: UnitKeys) -> None:
        self._reader = reader
        self._relation = relation
        self._scope: Scope = reader.scope(relation)
        self._keys = keys
        self._columns: dict[exp.Expr, tuple[Column, str]] = {}
        """Each key and aggregate, the column that it becomes, and its SQL."""
        self._reads: set[str] = set()
        base = relation.base
        self._rows = rows_per_unit(base.table, base.private)

    def table(self, select: exp.Select) -> Table:
        base = self._relation.base
        for node in self._keys.nodes:
            self._key(node)
        keys = [(column.name, sql) for column, sql in self._columns.values()]
        found = aggregates_of(select)
        for node in found:
            if node not in self._columns:
                self._aggregate(node)
        columns = [(column.name, sql) for column, sql in self._columns.values()][len(keys) :]
        if self._keys.only:  # one group for each unit, whatever its columns hold
            columns = [*((name, f"min({sql})") for name, sql in keys), *columns]
            keys = []
        if self._keys.whole:
            keys.insert(0, (UNIT_NAME, dialect.quote(UNIT_NAME)))
        for column in self._relation.filters:
            self._reads |= {c.name for c in column.stored}
        where = tuple(column.reference for column in self._relation.filters)
        joins = tuple((label, join) for join, label in base.joins.items())
        rows = UnitRows(
            base.table,
            base.private,
            joins,
            where,
            tuple(keys),
            tuple(columns),
            frozenset(self._reads).union(*(join_reads(label, join) for label, join in (*base.private, *joins))),
            whole=self._keys.whole,
            bounded=not self._keys.only,
        )
        held = self._columns.get(bare(self._keys.unit)) if self._keys.unit is not None else None
        unit = UNIT_NAME if held is None else held[0].name
        named = ", ".join(column.name for column, _ in list(self._columns.values())[: len(self._keys.nodes)])
        return Table(
            f"{base.table.name} by {named}",
            tuple(column for column, _ in self._columns.values()),
            privacy_unit=unit if base.table.privacy_unit is not None else None,
            max_rows_per_unit=1 if self._keys.only else self._rows,
            rows=rows,
        )

    def rewritten(self, node: exp.Expr) -> exp.Expr:
        """An expression over the derived table's own columns."""
        bared = bare(node)
        if isinstance(bared, exp.IgnoreNulls):  # sqlglot reads any_value(x) as any_value(x IGNORE NULLS), which it is
            bared = bare(bared.this)
        if bared in self._columns:
            return exp.column(self._columns[bared][0].name, quoted=True)
        if isinstance(bared, exp.Column):
            raise self._scope.error(
                UnsupportedSqlError, bared, f"{bared.name} is neither grouped by nor aggregated",
                f"add it to GROUP BY, or write max({bared.name})",
            )  # fmt: skip
        written = rebuilt(bared, [self.rewritten(part) for part in parts_of(bared)])
        return exp.Paren(this=written) if isinstance(bared, exp.Binary | exp.Connector) else written

    def _key(self, node: exp.Expr) -> None:
        column = with_domain(node, self._scope, self._reader.batch.limits.rows)
        if not dialect.is_key(column.type):
            raise self._scope.error(
                TypeMismatchError, node, f"a {column.type} cannot be grouped by here", "group by a CAST to another type"
            )
        origin = self._origin(column)
        self._put(node, column.type, column.reference, column.nullable, column.domain, column, origin=origin)

    def _origin(self, column: Column) -> tuple[Table, Column] | None:
        """The stored column that a domain would have to be declared for."""
        behind = [c for c in column.stored if not c.expression and (c is column or c.domain is None)]
        if not behind:
            return None
        first = behind[0]
        return first.origin or (self._relation.base.holder(first), replace(first, name=first.own_name, label=""))

    def _put(
        self,
        node: exp.Expr,
        type_: str,
        sql: str,
        nullable: bool,
        domain: Any,
        *read: Column,
        origin: tuple[Table, Column] | None = None,
    ) -> None:
        name = dialect.write(node)[:60].replace(".", " ")  # a dot ends the label of a joined table: see Catalog.labels
        names = {folded(c.name) for c, _ in self._columns.values()}
        while folded(name) in names:
            name += "'"
        self._reads |= {c.name for column in read for c in column.stored}
        self._columns[bare(node)] = Column(name, type_, nullable, domain, origin=origin), sql

    # what is computed for a unit

    def _aggregate(self, node: exp.Expr) -> None:
        """An aggregate as SQL that fails on no rows and is the same in whatever order they are read."""
        where, core = "", node
        read: list[Column] = []
        if isinstance(node, exp.Filter):
            condition = truth(node.expression.this, self._scope)
            where, core, read = f" FILTER (WHERE {condition.reference})", node.this, [condition]
        argument = core.this
        distinct = isinstance(argument, exp.Distinct)
        if isinstance(argument, exp.Distinct):
            if len(argument.expressions) != 1:
                raise self._refused(node)
            argument = argument.expressions[0]
        most = self._rows
        if isinstance(core, exp.Count) and (argument is None or isinstance(argument, exp.Star)):
            self._put(node, "BIGINT", f"count(*){where}", False, Range(0 if where else 1, most), *read)
            return
        if (
            not isinstance(argument, exp.Expr)
            or isinstance(argument, exp.Star | exp.Order)
            or core.args.get("expressions")
        ):
            raise self._refused(node)
        column = scalar(argument, self._scope)
        kind, value = dialect.kind_of(column.type), column.reference
        ends = bounds(argument, self._scope)
        limit = self._reader.batch.limits.rows
        reach = Range(*ends) if ends is not None else with_domain(argument, self._scope, limit).domain
        read.append(column)
        if isinstance(core, exp.Count):
            word = "DISTINCT " if distinct else ""
            self._put(node, "BIGINT", f"count({word}{value}){where}", False, Range(0, most), *read)
        elif isinstance(core, exp.CountIf) and kind == "truth":
            self._put(node, "BIGINT", f"count_if({value}){where}", True, Range(0, most), *read)  # NULL over NULLs alone
        elif isinstance(core, exp.LogicalOr | exp.LogicalAnd) and kind == "truth":
            word = "bool_or" if isinstance(core, exp.LogicalOr) else "bool_and"
            self._put(node, "BOOLEAN", f"{word}({value}){where}", True, None, *read)
        elif isinstance(core, exp.Min | exp.Max | exp.AnyValue) and dialect.is_key(column.type):
            word = "max" if isinstance(core, exp.Max) else "min"  # any value: the least, which is always the same one
            self._put(node, column.type, f"{word}({value}){where}", True, reach, *read, origin=self._origin(column))
        elif isinstance(core, exp.Sum | exp.Avg) and kind in ("number", "truth") and not distinct:
            self._sum(node, core, column, where, ends, read)
        else:
            raise self._refused(node)

    def _sum(
        self,
        node: exp.Expr,
        core: exp.Expr,
        column: Column,
        where: str,
        ends: tuple[float, float] | None,
        read: list[Column],
    ) -> None:
        """SUM and AVG. Sums of fractions depend on the order of the rows, so these are put in order first."""
        value = f"CAST({column.reference} AS INTEGER)" if dialect.kind_of(column.type) == "truth" else column.reference
        type_ = "HUGEINT" if dialect.is_joinable(column.type, "BIGINT") or column.type == "BOOLEAN" else "DOUBLE"
        if column.type.startswith("DECIMAL("):
            digits, _, scale = column.type[8:-1].partition(",")
            type_ = f"DECIMAL(38,{scale})" if int(digits) <= _WIDEST_SUM else "DOUBLE"
        exact = type_ != "DOUBLE"
        present = f"{column.reference} IS NOT NULL"
        origin = self._origin(column)
        condition = f" FILTER (WHERE {present}{' AND ' + where[15:-1] if where else ''})"
        total = f"sum({value}){where}" if exact else f"list_sum(list_sort(list(CAST({value} AS DOUBLE)){condition}))"
        if isinstance(core, exp.Avg):
            count = f"count({column.reference}){where}"
            reach = None if ends is None else Range(*ends)
            self._put(
                node, "DOUBLE", f"CAST({total} AS DOUBLE) / nullif({count}, 0)", True, reach, *read, origin=origin
            )
            return
        wide = None if ends is None else Range(min(0, self._rows * ends[0]), max(0, self._rows * ends[1]))
        self._put(node, type_, f"CAST({total} AS {type_})", True, wide, *read, origin=origin)

    def _refused(self, node: exp.Expr) -> Exception:
        return self._scope.error(
            UnsupportedSqlError, node, "this cannot be computed for each unit",
            "write COUNT, SUM, AVG, MIN, MAX, bool_or, bool_and or any_value of one expression",
        )  # fmt: skip
