"""An aggregate taken apart into conditions on few columns and keys, and which columns those mix."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .cells import GroupedAggregate
from .conjunction import Condition, conjunction
from .predicate import Predicate
from .regions import Regions


@dataclass(frozen=True)
class Parts:
    """An aggregate taken apart: conditions that all hold, keys, and what is summed."""

    conditions: tuple[Condition, ...]
    keys: tuple[tuple[Predicate, ...], ...]
    summed: str | None


class Keys:
    """Keys that are equal as one object, so that what is computed of them is found by identity."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Predicate, ...]] = {}
        self._same: dict[tuple[Predicate, ...], tuple[Predicate, ...]] = {}

    def one(self, groups: tuple[Predicate, ...]) -> tuple[Predicate, ...]:
        """The object that stands for the key."""
        if id(groups) not in self._known:
            self._known[id(groups)] = self._same.setdefault(groups, groups)
        return self._known[id(groups)]


def taken_apart(aggregate: GroupedAggregate, keys: Keys) -> Parts | None:
    """None for an aggregate whose condition never holds."""
    conditions: dict[Condition, None] = {}
    for predicate in (aggregate.where, aggregate.present):
        taken = () if predicate is None else conjunction(predicate)
        if taken is None:
            return None
        conditions.update(dict.fromkeys(taken))
    return Parts(tuple(conditions), tuple(map(keys.one, aggregate.keys)), aggregate.summed)


class MixedColumns:
    """Columns put together that some condition or key mixes."""

    def __init__(self, regions: Sequence[Regions]) -> None:
        self._leader = {r.column.name: r.column.name for r in regions}
        self._points = {r.column.name: r.count for r in regions}

    def leader(self, name: str) -> str:
        """The column that stands for all that it is mixed with."""
        while self._leader[name] != name:
            self._leader[name] = self._leader[self._leader[name]]
            name = self._leader[name]
        return name

    def points(self, names: Iterable[str]) -> int:
        """Points of the grid of these columns and of all that they are mixed with."""
        return math.prod(self._points[leader] for leader in {self.leader(name) for name in names})

    def join(self, names: Iterable[str]) -> None:
        """Mix these."""
        leaders = sorted({self.leader(name) for name in names})
        points = self.points(leaders)
        for name in leaders:
            self._leader[name] = leaders[0]
            self._points[leaders[0]] = points
