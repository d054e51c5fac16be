"""How the tables of a FROM clause are joined, whatever order they stand in.

One table is the base, whose rows are counted. A table of which each row of the base matches at most one row adds
columns to the base and no row: a public table joined on its key, and a private one that has a single row for each unit.
An inner join is then the outer join and the condition that there was a match, so that all queries of a batch share the
base. Private tables that have several rows for a unit make a base of their own with the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp
from tacit.errors import SqlError, TypeMismatchError, UnsupportedSqlError

from . import dialect
from .batch import BatchReader, TableBatch
from .catalog import UNIT_NAME, Column, KeyStep, Table
from .declared import with_domain
from .derived import UnitRows
from .level import Leaf, Level, Named
from .names import folded
from .predicate import ALWAYS, And, ColumnQuestion, Predicate
from .regions import IS_NULL, NOT_NULL
from .scalar import Scope, scalar, truth
from .scan import Join, join_reads
from .statement import bare

Condition = tuple[Level, exp.Expr]
"""A condition, and what the names in it mean."""
Pair = tuple[Condition, Condition, Named]
"""The condition, its side over what is attached, and the column of the table to attach that it equates."""


@dataclass(eq=False)
class Tables:
    """What a FROM clause brings together, with everything that stands inside its derived tables."""

    leaves: list[Leaf] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    """All of WHERE and of the inner joins: each must hold."""
    outer: dict[Leaf, list[Condition]] = field(default_factory=dict)
    """Tables whose columns are NULL where no row of theirs satisfies the conditions."""
    kept: set[Leaf] = field(default_factory=set)
    """Private tables that an outer join leaves out of some rows of a public table."""
    matching: set[int] = field(default_factory=set)
    """Conditions of such joins, by their nodes' identity: rows for which they do not hold are there all the same."""


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that all must hold; of an OR, also what every branch demands."""
    node = bare(node)
    if isinstance(node, exp.And):
        return [part for side in node.flatten() for part in conjuncts(side)]
    if isinstance(node, exp.Or):
        branches = [conjuncts(branch) for branch in node.flatten()]
        common = [part for part in branches[0] if isinstance(part, exp.EQ) and all(part in b for b in branches[1:])]
        return [*common, node]
    return [node]


class Attacher:
    """Joins the tables of one FROM clause to its base."""

    def __init__(self, batch: BatchReader, tables: Tables, *, apart: bool) -> None:
        self._batch = batch
        self._tables = tables
        self._apart = apart
        """Whether the base is not the batch's: its rows are computed with, and not counted."""
        self._columns: dict[Leaf, dict[str, Column]] = {}
        """The columns of what is attached, as the scan calls them, by folded name."""
        self._computed: dict[Named, Column] = {}
        self._used: set[int] = set()
        """Conditions that the joins have taken care of."""
        self._matched: list[Column] = []
        self._labels: dict[str, Leaf] = {}
        self.equal: dict[str, Column] = {}
        """The key of a public table that a column must equal, by the column's SQL."""
        self._units: set[str] = set()
        """The columns that hold the privacy unit, as the scan calls them."""
        self.base = self._first()

    # what names stand for

    def scope(self, level: Level) -> Scope:
        """What names mean at a level."""
        return Scope(level.statement, self._batch.params, lambda node: self.column(level.find(node)))

    def column(self, named: Named) -> Column:
        """The column that a name stands for."""
        if named not in self._computed:
            self._computed[named] = self._column(named)
        return self._computed[named]

    def _column(self, named: Named) -> Column:
        if named.leaf is not None and named.column is not None:
            column = self._columns[named.leaf][folded(named.column.name)]
        else:
            assert named.level is not None and named.node is not None
            column = with_domain(named.node, self.scope(named.level), self._batch.limits.rows)
        return _with_declared(column, named.declared)

    # the base

    def _first(self) -> TableBatch:
        """The base: the private table that the others can be attached to. Tables are attached when it is known."""
        leaves = self._tables.leaves
        private = [leaf for leaf in leaves if not leaf.table.public]
        inner = [leaf for leaf in private if leaf not in self._tables.outer] or private
        detail = [(len(leaf.table.unit_path or ()), _rows(leaf.table)) for leaf in inner]
        base = inner[detail.index(max(detail))] if inner else leaves[0]
        self._base_leaf = base
        rows = base.table.rows
        if isinstance(rows, UnitRows) and rows.whole and not rows.bounded:
            first = self._asked_of(_units(base.table, rows))  # shared by all queries about these units
            self._attach_columns(first, base, Join(base.table, (), unit=True), inner=True)
            return first
        self._columns[base] = {folded(column.name): column for column in base.table.columns}
        self._note_unit(base, "")
        return self._asked_of(base.table)

    def _asked_of(self, table: Table) -> TableBatch:
        return TableBatch(table, self._batch.catalog.labels) if self._apart else self._batch.table(table)

    def attached(self) -> TableBatch:
        """The base with everything attached to it."""
        pending = [leaf for leaf in self._tables.leaves if leaf not in self._columns]
        pending.sort(key=lambda leaf: leaf.table.public)  # private tables first: see ``_product``
        while pending:
            leaf = self._next(pending)
            pending.remove(leaf)
            pairs = self._pairs(leaf)
            if leaf.table.public:
                self._attach_public(leaf, pairs)
            else:
                self._attach_private(leaf, pairs)
        return self.base

    def _next(self, pending: Sequence[Leaf]) -> Leaf:
        """A table that can be joined now: better one whose conditions can all be computed."""
        private = [leaf for leaf in pending if not leaf.table.public] or pending
        linked = [leaf for leaf in private if self._pairs(leaf)]
        complete = [leaf for leaf in linked if not self._waiting(leaf)]
        single = [leaf for leaf in private if leaf.table.public and not self._equated(leaf)]
        return (complete or linked or single or list(private))[0]

    def _conditions(self, leaf: Leaf) -> list[Condition]:
        return self._tables.outer.get(leaf, self._tables.conditions)

    def _pairs(self, leaf: Leaf) -> list[Pair]:
        """The conditions that equate a column of a table with something that is attached already."""
        pairs: list[Pair] = []
        for level, node in self._conditions(leaf):
            for side, named in self._equation(level, node, leaf):
                leaves = level.leaves(side)
                if leaves and leaves <= self._columns.keys():
                    pairs.append(((level, node), (level, side), named))
                    break
        return pairs

    def _equated(self, leaf: Leaf) -> list[exp.Expr]:
        return [
            n for level, n in self._conditions(leaf) if any(level.leaves(s) for s, _ in self._equation(level, n, leaf))
        ]

    def _waiting(self, leaf: Leaf) -> bool:
        """Whether a condition equates it with a table that is still to come."""
        return len(self._equated(leaf)) > len(self._pairs(leaf))

    @staticmethod
    def _equation(level: Level, node: exp.Expr, leaf: Leaf) -> Iterable[tuple[exp.Expr, Named]]:
        """(side, column of the leaf) of an equality, in either order."""
        if not isinstance(node, exp.EQ):
            return
        for side, key in ((node.this, bare(node.expression)), (node.expression, bare(node.this))):
            if not isinstance(key, exp.Column):
                continue
            named = level.find(key).traced()
            if named.leaf is leaf and leaf not in level.leaves(side) and not _has_query(side):
                yield bare(side), named

    # public tables

    def _attach_public(self, leaf: Leaf, pairs: Sequence[Pair]) -> None:
        outer = leaf in self._tables.outer
        if not pairs and leaf.table.rows is None:
            raise self._unjoined(leaf)
        sides = [(self._side(condition), named) for _, condition, named in pairs]
        for (foreign, named), (condition, _, _) in zip(sides, pairs, strict=True):
            self._check_types(condition, foreign, named)
        on = tuple((foreign.reference, _own(named).name) for foreign, named in sides)
        after = frozenset(label for foreign, _ in sides for label in foreign.labels)
        reads = frozenset(c.name for foreign, _ in sides for c in foreign.stored)
        join = Join(leaf.table, on, after=after, reads=reads, where=self._matching(leaf, pairs))
        self._attach_columns(self.base, leaf, join, inner=not outer)
        if not outer:
            keys = {foreign.reference: self._columns[leaf][folded(_own(named).name)] for foreign, named in sides}
            self.equal = keys | self.equal
        self._used |= {id(node) for (_, node), _, _ in pairs}

    def _matching(self, leaf: Leaf, pairs: Sequence[Pair]) -> tuple[Column, ...]:
        """What an outer join says beside its equalities: which rows of the table that may have no match can match."""
        equations = {id(node) for (_, node), _, _ in pairs}
        rest = [(level, node) for level, node in self._tables.outer.get(leaf, ()) if id(node) not in equations]
        for level, node in rest:
            if _has_query(node) or not level.leaves(node) <= {leaf}:
                raise self._error(
                    leaf, "an outer join equates columns, and says of nothing else than the table that it adds",
                    "put the other conditions into WHERE",
                )  # fmt: skip
        known = self._computed, self._columns
        self._computed, own = {}, {folded(c.name): c for c in leaf.table.columns}
        self._columns = {**self._columns, leaf: own}  # the conditions speak of its own columns, before it has a label
        try:
            return tuple(truth(node, self.scope(level)) for level, node in rest)
        finally:
            self._computed, self._columns = known

    def _attach_columns(self, base: TableBatch, leaf: Leaf, join: Join, *, inner: bool) -> None:
        """Join a table that adds columns and no row."""
        label = base.join(join)
        own = {folded(c.name): c.of(label) for c in leaf.table.columns}
        if not inner:  # where there is no match, they are NULL whatever the table declares
            own = {name: replace(column, nullable=True) for name, column in own.items()}
        self._columns[leaf] = own
        self._labels[label] = leaf
        if inner and join.unit:
            self._note_unit(leaf, label)
        if inner:
            self._matched.append(Column("", "BOOLEAN").of(label))

    def _side(self, condition: Condition) -> Column:
        level, node = condition
        return scalar(node, self.scope(level))

    def _check_types(self, condition: Condition, foreign: Column, named: Named) -> None:
        level, node = condition
        column = _own(named)
        if not dialect.is_joinable(foreign.type, column.type):
            raise level.statement.error(
                TypeMismatchError, node, f"the join compares a {foreign.type} with a {column.type}",
                "give both the same type in the schema",
            )  # fmt: skip
        if not dialect.is_key(column.type):
            raise level.statement.error(
                TypeMismatchError, node, f"a {column.type} cannot be the key of a join",
                "join on numbers, texts, dates or timestamps",
            )  # fmt: skip

    def _unjoined(self, leaf: Leaf) -> SqlError:
        return self._error(leaf, f"nothing says how {leaf.alias} is joined", f"write ON … = {leaf.alias}.key")

    # private tables

    def _note_unit(self, leaf: Leaf, label: str) -> None:
        unit = leaf.table.unit_column
        if unit is not None:
            self._units.add(f"{label}.{unit}" if label else unit)

    def _attach_private(self, leaf: Leaf, pairs: Sequence[Pair]) -> None:
        """A private table: joined on the privacy unit, or along the keys by which a unit is reached."""
        base, table = self._base_leaf.table, leaf.table
        if base.privacy_unit is None or table.privacy_unit is None:
            raise self._error(
                leaf, "what one row adds to a join of private tables cannot be bounded",
                f"declare privacy_unit and max_rows_per_unit for {base.name} and {table.name}; or public = true for "
                "the one that says nothing of people",
            )  # fmt: skip
        sides = [(self._side(condition), named) for _, condition, named in pairs]
        for (foreign, named), (condition, _, _) in zip(sides, pairs, strict=True):
            self._check_types(condition, foreign, named)
        by_unit = [
            n for n, (f, named) in enumerate(sides) if self._is_unit(f) and _own(named).name == table.unit_column
        ]
        by_key = [named for foreign, named in sides if self._leads(foreign, leaf, named)]
        if not by_unit and not by_key:
            raise self._error(
                leaf, "a join of private tables must equate their privacy units, or follow the key that leads to one",
                self._unit_hint(leaf),
            )  # fmt: skip
        outer, where = leaf in self._tables.outer, self._matching(leaf, pairs)
        if _rows(table) == 1 or by_key:
            rest = [side for n, side in enumerate(sides) if n not in by_unit]
            on = tuple((foreign.reference, _own(named).name) for foreign, named in rest)
            after = frozenset(label for foreign, _ in rest for label in foreign.labels)
            reads = frozenset(c.name for foreign, _ in rest for c in foreign.stored)
            join = Join(table, on, after=after, reads=reads, unit=True, where=where)
            self._attach_columns(self.base, leaf, join, inner=not outer)
        else:
            self._product(leaf, sides, outer=outer, where=where)
        self._used |= {id(node) for (_, node), _, _ in pairs}

    def _is_unit(self, column: Column) -> bool:
        return not column.expression and column.name in self._units

    def _leads(self, foreign: Column, leaf: Leaf, named: Named) -> bool:
        """Whether an equality is the first step by which one of two tables reaches its unit, and the other is there.

        A row leads to every unit of the rows that hold its key, so the two have that unit in common. The table that is
        added must have one row for each unit and key: it is the one that is reached, or it is grouped by the key.
        """
        attached = next((a for a, columns in self._columns.items() for c in columns.values() if c == foreign), None)
        if attached is None or foreign.expression:
            return False
        own = _own(named)
        step = _first_step(attached.table, foreign)
        if step is not None and _is_at(step, leaf.table, own.name):
            return True
        step, rows = _first_step(leaf.table, own), leaf.table.rows
        grouped = isinstance(rows, UnitRows) and [name for name, _ in rows.keys] == [UNIT_NAME, own.name]
        return grouped and step is not None and _is_at(step, attached.table, foreign.own_name)

    def _unit_hint(self, leaf: Leaf) -> str:
        base, table = self._base_leaf, leaf.table
        units = base.table.unit_column, table.unit_column
        if None in units or table.rows is not None or base.table.rows is not None:
            return "join tables on the column that holds the privacy unit, or on the key that privacy_unit names"
        return f"add {base.alias}.{units[0]} = {leaf.alias}.{units[1]} to ON"

    def _product(
        self, leaf: Leaf, sides: Sequence[tuple[Column, Named]], *, outer: bool, where: tuple[Column, ...]
    ) -> None:
        """Every pair of a unit's rows in both tables: a base of its own."""
        joined = {label for label, _ in self.base.private}
        direct = all(not foreign.expression and foreign.label in {"", *joined} for foreign, _ in sides)
        if not direct or len(self._columns) > 1 + len(joined):
            raise self._error(
                leaf, "private tables with several rows for a unit are joined first, directly and by stored columns",
                "write FROM private JOIN private ON … JOIN public ON … WHERE …",
            )  # fmt: skip
        reads = frozenset(foreign.name for foreign, _ in sides)
        on = tuple((foreign.name, _own(named).name) for foreign, named in sides)
        join = Join(leaf.table, on, reads=reads, outer=outer, where=where)
        self.base = self.base.joined(join) if self._apart else self._batch.joined(self.base, join)
        label = self.base.private[-1][0]
        own = {folded(c.name): c.of(label) for c in leaf.table.columns}
        self._columns[leaf] = {n: replace(c, nullable=True) for n, c in own.items()} if outer else own
        if not outer:
            self._note_unit(leaf, label)

    def _error(self, leaf: Leaf, message: str, hint: str) -> SqlError:
        return leaf.statement.error(UnsupportedSqlError, leaf.place, message, hint)

    # conditions

    def rest(self) -> list[Condition]:
        """The conditions that no join has taken care of."""
        return [(level, node) for level, node in self._tables.conditions if id(node) not in self._used]

    def conditions_on(self, label: str) -> list[Column]:
        """The conditions that speak of one joined table alone."""
        leaf = self._labels[label]
        rest = [(level, n) for level, n in self.rest() if not _has_query(n) and id(n) not in self._tables.matching]
        alone = [(level, node) for level, node in rest if level.leaves(node) == {leaf}]
        return [truth(node, self.scope(level)) for level, node in alone]

    @property
    def optional(self) -> frozenset[str]:
        """The labels of tables whose columns are NULL where there is no match."""
        return frozenset(label for label, leaf in self._labels.items() if leaf in self._tables.outer)

    def matches(self) -> list[Predicate]:
        """That each inner join has found its row."""
        asked: list[Predicate] = []
        for column in self._matched:
            matched = self.base.attribute(column)
            matched.ask(IS_NULL)
            asked.append(ColumnQuestion(matched.column.name, matched.ask(NOT_NULL)))
        return asked

    @property
    def matched(self) -> list[Column]:
        """The columns that are NULL where an inner join has found no row."""
        return self._matched


def together(parts: Sequence[Predicate]) -> Predicate:
    """All of some conditions."""
    asked = tuple(part for part in parts if part != ALWAYS)
    return And(asked) if len(asked) > 1 else (asked[0] if asked else ALWAYS)


def _rows(table: Table) -> int:
    """At most so many rows of a unit."""
    return table.max_rows_per_unit if table.privacy_unit is not None else 1


def _first_step(table: Table, column: Column) -> KeyStep | None:
    """The first step to the unit of a row, where a column holds the key that it begins with."""
    home, held = table, dialect.quote(column.own_name)
    if isinstance(table.rows, UnitRows):
        home, held = table.rows.table, dict(table.rows.keys).get(column.own_name, "")
    return home.unit_path[0] if home.unit_path and held == dialect.quote(home.unit_key) else None


def _is_at(step: KeyStep, table: Table, column: str) -> bool:
    stored = table.rows is None  # a computed one has the text of a query for its name
    return stored and step.table.key == table.key and step.key == column


def _own(named: Named) -> Column:
    assert named.column is not None
    return named.column


def _with_declared(column: Column, declared: Column | None) -> Column:
    """A view's column with what the policy says of it there, in place of what it says of the table behind."""
    if declared is None:
        return column
    domain = column.domain if declared.domain is None else declared.domain
    return replace(column, domain=domain, nullable=column.nullable and declared.nullable)


def _units(table: Table, rows: UnitRows) -> Table:
    """The units that have any row in the tables behind some rows, a row for each."""
    reads = frozenset(name for label, join in rows.private for name in join_reads(label, join))
    every = replace(rows, where=(), keys=rows.keys[:1], columns=(), joins=(), reads=reads)
    return replace(table, name=f"units of {rows.table.name}", columns=(), rows=every)


def _has_query(node: exp.Expr) -> bool:
    return node.find(exp.Query) is not None
