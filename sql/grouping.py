"""GROUP BY: its keys, the sets of keys that ROLLUP, CUBE and GROUPING SETS stand for, and the groups they make."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sqlglot import exp
from tacit.errors import LimitError, SqlError, TypeMismatchError, UnsupportedSqlError

from . import dialect
from .aggregate import AGGREGATES
from .catalog import Column, Values
from .constants import is_constant
from .declared import with_domain
from .domains import groups as groups_of
from .group_list import GroupList, LabelList
from .predicate import Or, Predicate
from .public_columns import public_owner
from .public_groups import is_listed, listed_public, numbered_combinations, public_key
from .selection import Aliases, Selection, unaliased
from .statement import bare
from .unit_rows import aggregates_of
from .workload import PublicValues

_MOST_CUBED = 15
_EVERYTHING = "(all)"
_MISREAD = re.compile(r"^NULL$|^'|[=,]|[\r\n]")


@dataclass(frozen=True)
class GroupKey:
    """One GROUP BY key: its expression and its column."""

    text: str
    """What identifies its expression (see ``Selection.text``)."""
    node: exp.Expr
    column: Column


@dataclass(frozen=True)
class Bundle:
    """Keys that come together: one key by itself, or several columns of a public table in the combinations it has."""

    keys: tuple[GroupKey, ...]
    groups: tuple[tuple[tuple[Any, ...], Predicate], ...]
    """(a value for each key, predicate) of each group."""


def key_type(column: Column) -> str:
    """An ``other`` label is not a value of an ENUM, so such a key column comes back as text."""
    other = isinstance(column.domain, Values) and column.domain.other is not None
    return "VARCHAR" if other else column.type


class Groups:
    """The groups of one SELECT, in the order of the frame: set after set, the last key running fastest."""

    def __init__(self, selection: Selection, bundles: list[Bundle], sets: list[tuple[int, ...]]) -> None:
        self._selection = selection
        self.bundles = bundles
        self.keys = [key for bundle in bundles for key in bundle.keys]
        self.sets = sets
        """The bundles that each grouping set groups by, by number."""
        self._bundle_of = [number for number, bundle in enumerate(bundles) for _ in bundle.keys]
        self._shapes = {_shape(key.node) for key in self.keys}
        """Only what has one of these shapes can repeat a key."""

    @property
    def sizes(self) -> list[int]:
        """How many groups each grouping set has."""
        return [math.prod(len(self.bundles[i].groups) for i in chosen) for chosen in self.sets]

    @cached_property
    def values(self) -> GroupList:
        """The key values of every group; a key that a grouping set leaves out is NULL."""
        return self._list(lambda _, value: value)

    def _list(self, shown: Callable[[GroupKey, Any], Any]) -> GroupList:
        values = tuple(
            tuple(tuple(map(shown, bundle.keys, combination)) for combination, _ in bundle.groups)
            for bundle in self.bundles
        )
        return GroupList(values, tuple(self.sets), tuple(len(bundle.keys) for bundle in self.bundles))

    @cached_property
    def predicates(self) -> list[tuple[tuple[Predicate, ...], ...]]:
        """For each grouping set and each of its keys, the predicates of the key's groups."""
        of_bundle = [tuple(predicate for _, predicate in bundle.groups) for bundle in self.bundles]
        return [tuple(of_bundle[i] for i in chosen) for chosen in self.sets]

    def labels(self, called: Mapping[int, str]) -> LabelList:
        """Each group in words, such as ``state=NY, sex=NULL``; a subtotal leaves out the keys that it adds up over.

        A key that is computed goes by what the SELECT calls it.
        """
        names = [
            called.get(i, key.column.own_name) if key.column.expression else key.column.own_name
            for i, key in enumerate(self.keys)
        ]
        if len(set(names)) < len(names):  # of two joined tables: only their labels tell them apart
            names = [key.column.name for key in self.keys]
        name_of = dict(zip(map(id, self.keys), names, strict=True))
        shown = self._list(lambda key, value: f"{name_of[id(key)]}={_shown(value)}")
        return LabelList(shown, _EVERYTHING if self.keys else "")

    def key(self, node: exp.Expr) -> int | None:
        """Which GROUP BY key an expression repeats."""
        if _shape(node) not in self._shapes or is_constant(node):
            return None
        if node.find(*AGGREGATES, exp.Query, exp.Window, exp.Grouping):
            return None
        try:
            text = self._selection.text(node)
        except SqlError:
            return None
        return next((i for i, key in enumerate(self.keys) if key.text == text), None)

    def grouping(self, node: exp.Grouping) -> PublicValues:
        """GROUPING(a, b): a bit for each key, set where a grouping set leaves it out."""
        keys = [self.key(bare(part)) for part in node.expressions]
        if not keys or None in keys:
            raise self._selection.error(
                UnsupportedSqlError, node, "GROUPING takes GROUP BY columns", "name columns of the GROUP BY"
            )
        values: list[int] = []
        for chosen, size in zip(self.sets, self.sizes, strict=True):
            bits = 0
            for key in keys:
                assert key is not None
                bits = bits * 2 + (self._bundle_of[key] not in chosen)
            values += [bits] * size
        return PublicValues(tuple(values))


def _shape(node: exp.Expr) -> tuple[type[exp.Expr], int]:
    """What equal expressions have in common and is quick to compare: the kind, and how deep the first operand lies."""
    depth = 0
    first: Any = node
    while isinstance(first, exp.Expr) and not isinstance(first, exp.Column | exp.Literal | exp.Placeholder):
        depth, first = depth + 1, first.args.get("this")
    return type(node), depth


def _shown(value: Any) -> str:
    """A key's value; text that could be read as something else in quotes."""
    if value is None:
        return "NULL"
    plain = not isinstance(value, str) or (value.strip() and value == value.strip() and not _MISREAD.search(value))
    return str(value) if plain else "'" + value.replace("'", "''") + "'"


def read_groups(selection: Selection) -> Groups:
    """The GROUP BY of a SELECT; one group of all rows without one."""
    clause = selection.select.args.get("group")
    keys = _keys(selection, clause)
    plain = clause is None or not clause.find(exp.Rollup, exp.Cube, exp.GroupingSets)
    bundles = _bundles(selection, keys) if plain else [_bundle(selection, key) for key in keys]
    sets = [tuple(range(len(bundles)))] if plain else _grouping_sets(selection, clause, keys)
    groups = Groups(selection, bundles, sets)
    size = sum(groups.sizes)
    if size > selection.batch.limits.rows:
        raise selection.error(
            LimitError, clause, f"GROUP BY makes {size:,} groups, too many for one batch", "group by fewer columns"
        )
    return groups


def _keys(selection: Selection, clause: exp.Expr | None) -> list[GroupKey]:
    nodes: list[exp.Expr] = []
    if clause is None and selection.select.args.get("distinct") and not aggregates_of(selection.select):
        nodes = [unaliased(item) for item in selection.items]  # DISTINCT groups by all that it shows
    if clause is not None and clause.args.get("all"):
        nodes = [item for item in selection.items if not item.find(*AGGREGATES, exp.Grouping, exp.Subquery)]
    elif clause is not None:
        nodes = list(itertools.chain.from_iterable(_mentioned(node) for node in clause.expressions))
    keys: dict[str, GroupKey] = {}
    for node in nodes:
        meant = _meant(selection, node)
        text = selection.text(meant)
        if text not in keys:
            keys[text] = _key(selection, meant, text)
    return list(keys.values())


def _key(selection: Selection, node: exp.Expr, text: str) -> GroupKey:
    if selection.relation is None:
        raise selection.error(UnsupportedSqlError, node, "there is no table to group", "add FROM table")
    relation, limits = selection.relation, selection.batch.limits
    column = public_key(relation, with_domain(node, selection.relations.scope(relation), limits.rows))
    if not dialect.has_dtype(key_type(column)):
        raise selection.error(
            TypeMismatchError, node, f"no frame can hold a {column.type}", "group by a CAST to another type"
        )
    return GroupKey(text, bare(node), column)


def _bundles(selection: Selection, keys: list[GroupKey]) -> list[Bundle]:
    """The keys in order; several of one public table are a bundle, in the place of the first."""
    together: dict[object, list[GroupKey]] = {}
    for key in keys:
        assert selection.relation is not None
        owner = public_owner(selection.relation, key.column)
        if selection.batch.catalog.read_public is None:  # no database at hand: what is declared must do
            owner = None
        together.setdefault(key if owner is None else owner, []).append(key)
    return [
        _bundle(selection, *found) if len(found) == 1 else _combinations(selection, found)
        for found in together.values()
    ]


def _bundle(selection: Selection, key: GroupKey) -> Bundle:
    """One key by itself."""
    relation, limits = selection.relation, selection.batch.limits
    assert relation is not None
    span = selection.statement.span(key.node)
    column = key.column if is_listed(key.column) else listed_public(selection, key.column, span)
    listed = groups_of(relation.base.holder, relation.base.attribute(column), column, span, limits)
    return Bundle((replace(key, column=column),), tuple(((value,), predicate) for value, predicate in listed))


def _combinations(selection: Selection, keys: list[GroupKey]) -> Bundle:
    """Several columns of one public table, in the combinations that it has."""
    relation = selection.relation
    assert relation is not None
    columns = [key.column for key in keys]
    number, values, missing = numbered_combinations(selection, columns, selection.statement.span(keys[0].node))
    attribute = relation.base.attribute(number)
    span, limits = selection.statement.span(keys[0].node), selection.batch.limits
    listed = groups_of(relation.base.holder, attribute, number, span, limits)
    asked: dict[int, list[Predicate]] = {}
    for value, predicate in listed:
        place = missing if value is None else value
        if place is not None:
            asked.setdefault(place, []).append(predicate)
    groups = tuple((values[place], parts[0] if len(parts) == 1 else Or(tuple(parts))) for place, parts in asked.items())
    return Bundle(tuple(keys), groups)


def _meant(selection: Selection, node: exp.Expr) -> exp.Expr:
    """GROUP BY 1 and GROUP BY alias name an item of the SELECT list; a column comes before an alias."""
    node = bare(node)
    if isinstance(node, exp.Alias):
        return unaliased(node)
    item = None
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
        item = selection.numbered(node)
    elif isinstance(node, exp.Column):
        item = selection.alias(node, Aliases(len(selection.items)))
    return node if item is None else unaliased(selection.items[item])


def _grouping_sets(selection: Selection, clause: exp.Expr | None, keys: list[GroupKey]) -> list[tuple[int, ...]]:
    """The sets of keys that rows are grouped by: one for a plain GROUP BY, several for ROLLUP, CUBE and their like."""
    if clause is None or clause.args.get("all"):
        return [tuple(range(len(keys)))]
    number = {key.text: i for i, key in enumerate(keys)}

    def index(node: exp.Expr) -> int:
        return number[selection.text(_meant(selection, node))]

    too_many = selection.error(LimitError, clause, "too many grouping sets", "use fewer columns in CUBE or ROLLUP")
    if any(len(cube.expressions) > _MOST_CUBED for cube in clause.find_all(exp.Cube)):
        raise too_many
    products: list[list[tuple[int, ...]]] = []
    for node in clause.expressions:
        products.append(_sets_of(node, index))
        if math.prod(map(len, products)) > 1 << _MOST_CUBED:
            raise too_many
    return [tuple(sorted(set(itertools.chain(*chosen)))) for chosen in itertools.product(*products)]


def _mentioned(node: exp.Expr) -> list[exp.Expr]:
    """The keys that a GROUP BY element mentions."""
    if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
        return list(itertools.chain.from_iterable(_mentioned(part) for part in node.expressions))
    if isinstance(node, exp.Paren):
        return _mentioned(node.this)
    return [node]


def _sets_of(node: exp.Expr, index: Callable[[exp.Expr], int]) -> list[tuple[int, ...]]:
    """The grouping sets that a GROUP BY element stands for."""
    if isinstance(node, exp.Rollup):
        parts = [_sets_of(part, index)[0] for part in node.expressions]
        return [tuple(itertools.chain(*parts[:n])) for n in range(len(parts), -1, -1)]
    if isinstance(node, exp.Cube):
        parts = [_sets_of(part, index)[0] for part in node.expressions]
        return [
            tuple(itertools.chain(*chosen))
            for n in range(len(parts), -1, -1)
            for chosen in itertools.combinations(parts, n)
        ]
    if isinstance(node, exp.GroupingSets):
        return list(itertools.chain.from_iterable(_sets_of(part, index) for part in node.expressions))
    if isinstance(node, exp.Tuple):
        return [tuple(index(part) for part in node.expressions)]
    if isinstance(node, exp.Paren):
        return _sets_of(node.this, index)
    return [(index(node),)]
