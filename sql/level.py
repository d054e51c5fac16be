"""What the names inside one SELECT mean, before it is known how its tables are joined.

A derived table, a CTE or a view that filters and projects is a level of its own inside the level that reads it. All
their tables are leaves of one FROM clause in the end, so that joins can be made in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from sqlglot import exp
from tacit.errors import UnknownNameError, UnsupportedSqlError

from .catalog import Column, Table
from .names import MAIN, folded, nearest
from .statement import Statement


@dataclass(frozen=True, eq=False)
class Leaf:
    """A table that FROM brings in: stored, or computed by ``Table.rows``."""

    table: Table
    alias: str
    statement: Statement
    place: exp.Expr
    """What to underline."""


@dataclass(frozen=True, eq=False)
class Named:
    """A column as an item of FROM offers it: of a table, or an expression inside a derived table."""

    name: str
    leaf: Leaf | None = None
    column: Column | None = None
    """Of the leaf."""
    level: Level | None = None
    node: exp.Expr | None = None
    """Over the columns of the level."""
    declared: Column | None = None
    """What the policy says of it as a view's column."""

    def traced(self) -> Named:
        """The column of a table that it stands for, where it is no more than another name of one."""
        named = self
        while named.level is not None and isinstance(named.node, exp.Column):
            named = named.level.find(named.node)
        return named


class HasName(Protocol):
    """A column under the name that it has here."""

    @property
    def name(self) -> str:
        """As it is shown."""
        ...


N = TypeVar("N", bound=HasName)
Items = tuple[tuple[str, Mapping[str, N]], ...]
"""(alias, columns by folded name) of everything that FROM brings in."""


@dataclass(eq=False)
class Level:
    """One SELECT: the items of its FROM clause."""

    statement: Statement
    items: list[tuple[str, Mapping[str, Named]]] = field(default_factory=list)
    shared: dict[str, Named] = field(default_factory=dict)
    """Columns that USING has made one: what the bare name means."""
    hidden: dict[str, Mapping[str, Named]] = field(default_factory=dict)
    """What conditions look up, under names that no text can mean."""

    def find(self, node: exp.Column) -> Named:
        """The column that a name means."""
        if node.table in self.hidden:
            return self.hidden[node.table][folded(node.name)]
        return find(self.statement, tuple(self.items), self.shared, node)

    def leaves(self, node: exp.Expr) -> set[Leaf]:
        """The tables that an expression reads."""
        return set(self._leaves(node))

    def _leaves(self, node: exp.Expr) -> Iterator[Leaf]:
        for column in node.find_all(exp.Column):
            named = self.find(column)
            if named.leaf is not None:
                yield named.leaf
            elif named.level is not None and named.node is not None:
                yield from named.level._leaves(named.node)


def find(statement: Statement, items: Items[N], shared: Mapping[str, N], node: exp.Column) -> N:
    """The column that a name means; it must be of one table alone."""
    name = folded(node.name)
    if not node.table and name in shared:
        return shared[name]
    tables = items_of(statement, items, node, node.table)
    columns = [columns[name] for _, columns in tables if name in columns]
    aliases = [alias for alias, _ in items]
    if not columns and not node.table and name in map(folded, aliases):
        raise statement.error(
            UnsupportedSqlError, node, f"{node.name} is a table here and stands for its whole row",
            f"write {node.name}.column",
        )  # fmt: skip
    if not columns:
        existing = [column.name for _, columns in tables for column in columns.values()]
        shown = " and ".join(alias for alias in aliases if alias) or "the table"
        raise statement.error(
            UnknownNameError, node, f"no such column in {shown}: {node.name}", nearest(node.name, existing)
        )
    if len(columns) > 1:
        owners = [alias for alias, columns in tables if name in columns]
        raise statement.error(
            UnknownNameError, node, f"{node.name} is a column of several tables", f"write {owners[0]}.{node.name}"
        )
    return columns[0]


def items_of(statement: Statement, items: Items[N], node: exp.Expr, alias: str) -> Items[N]:
    """The items of FROM that a name before a dot means: all of them where there is none."""
    tables = tuple((name, columns) for name, columns in items if folded(alias) in ("", folded(name)))
    if not tables or folded(node.text("db")) not in ("", MAIN) or node.text("catalog"):
        first = items[0][0] if items else "table"
        raise statement.error(
            UnknownNameError, node, f"no such table in this query: {alias}", f"write {first}.{node.name}"
        )
    return tables
