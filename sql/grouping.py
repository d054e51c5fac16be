"""GROUP BY: its keys, and the sets of keys that ROLLUP, CUBE and GROUPING SETS stand for."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from .catalog import Column, Values
from .predicate import Predicate

_EVERYTHING = "(all)"
_MISREAD = re.compile(r"^NULL$|^'|[=,]|[\r\n]")


@dataclass(frozen=True)
class Grouping:
    """One GROUP BY key: its column, and (value, predicate) of each of its groups."""

    text: str
    column: Column
    groups: tuple[tuple[Any, Predicate], ...]


def key_type(column: Column) -> str:
    """An ``other`` label is not a value of an ENUM, so such a key column comes back as text."""
    other = isinstance(column.domain, Values) and column.domain.other is not None
    return "VARCHAR" if other else column.type


def size_of(keys: list[Grouping]) -> int:
    """How many groups the keys make together."""
    return math.prod(len(key.groups) for key in keys)


def labels_of(keys: list[Grouping], sets: list[tuple[int, ...]]) -> list[str]:
    """Each group in words, such as ``state=NY, sex=NULL``; a subtotal leaves out the keys that it adds up over."""
    names = [key.column.own_name for key in keys]
    if len(set(names)) < len(names):  # of two joined tables: only their labels tell them apart
        names = [key.column.name for key in keys]
    shown = [[f"{name}={_shown(value)}" for value, _ in key.groups] for name, key in zip(names, keys, strict=True)]
    everything = _EVERYTHING if keys else ""
    return [
        ", ".join(parts) or everything for chosen in sets for parts in itertools.product(*(shown[i] for i in chosen))
    ]


def _shown(value: Any) -> str:
    """A key's value; text that could be read as something else in quotes."""
    if value is None:
        return "NULL"
    plain = not isinstance(value, str) or (value.strip() and value == value.strip() and not _MISREAD.search(value))
    return str(value) if plain else "'" + value.replace("'", "''") + "'"


def group_nodes(node: exp.Expr) -> list[exp.Expr]:
    """The keys that a GROUP BY element mentions."""
    if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
        return list(itertools.chain.from_iterable(group_nodes(part) for part in node.expressions))
    if isinstance(node, exp.Paren):
        return group_nodes(node.this)
    return [node]


def sets_of(node: exp.Expr, index: Callable[[exp.Expr], int]) -> list[tuple[int, ...]]:
    """The grouping sets that a GROUP BY element stands for."""
    if isinstance(node, exp.Rollup):
        parts = [sets_of(part, index)[0] for part in node.expressions]
        return [tuple(itertools.chain(*parts[:n])) for n in range(len(parts), -1, -1)]
    if isinstance(node, exp.Cube):
        parts = [sets_of(part, index)[0] for part in node.expressions]
        return [
            tuple(itertools.chain(*chosen))
            for n in range(len(parts), -1, -1)
            for chosen in itertools.combinations(parts, n)
        ]
    if isinstance(node, exp.GroupingSets):
        return list(itertools.chain.from_iterable(sets_of(part, index) for part in node.expressions))
    if isinstance(node, exp.Tuple):
        return [tuple(index(part) for part in node.expressions)]
    if isinstance(node, exp.Paren):
        return sets_of(node.this, index)
    return [(index(node),)]
