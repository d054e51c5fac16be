"""The groups of a query without a list of them: there can be a million, made of a few values per key."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class GroupList(Sequence[tuple[Any, ...]]):
    """The key values of every group: grouping set after grouping set, the last key running fastest.

    Keys that come together in listed combinations are one bundle. A bundle that a grouping set leaves out is None in
    each of its columns.
    """

    values: tuple[tuple[tuple[Any, ...], ...], ...]
    """The combinations of each bundle."""
    sets: tuple[tuple[int, ...], ...]
    """The bundles of each grouping set."""
    widths: tuple[int, ...]
    """How many columns each bundle has."""

    @cached_property
    def _sizes(self) -> list[int]:
        return [math.prod(len(self.values[bundle]) for bundle in chosen) for chosen in self.sets]

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum(self._sizes, dtype=np.int64)

    @cached_property
    def _nothing(self) -> list[tuple[None, ...]]:
        return [(None,) * width for width in self.widths]

    @property
    def of_all(self) -> NDArray[np.bool_]:
        """Which groups hold all rows: they are there even if there is no row."""
        return np.repeat([not chosen for chosen in self.sets], self._sizes).astype(bool)

    def __len__(self) -> int:
        return int(self._ends[-1]) if self.sets else 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for chosen in self.sets:
            parts = (v if b in chosen else (self._nothing[b],) for b, v in enumerate(self.values))
            for combination in itertools.product(*parts):
                yield tuple(itertools.chain.from_iterable(combination))

    @overload
    def __getitem__(self, index: int) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[Any, ...]]: ...
    def __getitem__(self, index: int | slice) -> tuple[Any, ...] | list[tuple[Any, ...]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        number = int(np.searchsorted(self._ends, place, side="right"))
        place -= int(self._ends[number]) - self._sizes[number]
        group: list[tuple[Any, ...]] = list(self._nothing)
        for bundle in reversed(self.sets[number]):
            place, value = divmod(place, len(self.values[bundle]))
            group[bundle] = self.values[bundle][value]
        return tuple(itertools.chain.from_iterable(group))

    def column(self, key: int) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
        """One key of every group: its values, None last if a set leaves it out, and which each group has."""
        bundle, place = next((b, p) for b, p, k in self._places if k == key)
        values = tuple(combination[place] for combination in self.values[bundle])
        codes = []
        for chosen, size in zip(self.sets, self._sizes, strict=True):
            if bundle not in chosen:
                codes.append(np.full(size, len(values), dtype=np.int64))
                continue
            faster = math.prod(len(self.values[other]) for other in chosen[chosen.index(bundle) + 1 :])
            slower = size // max(1, faster * len(values))
            codes.append(np.tile(np.repeat(np.arange(len(values)), faster), slower))
        left_out = any(bundle not in chosen for chosen in self.sets)
        return (*values, *((None,) if left_out else ())), np.concatenate([np.zeros(0, dtype=np.int64), *codes])

    @cached_property
    def _places(self) -> list[tuple[int, int, int]]:
        """(bundle, place in it, number) of every key."""
        flat = [(bundle, place) for bundle, width in enumerate(self.widths) for place in range(width)]
        return [(bundle, place, key) for key, (bundle, place) in enumerate(flat)]


@dataclass(frozen=True)
class LabelList(Sequence[str]):
    """Every group in words, from its keys in words; a subtotal leaves out the keys that it adds up over."""

    parts: GroupList
    everything: str
    """What the group of all rows is called."""

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[str]:
        return map(self._label, self.parts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return [*map(self._label, self.parts[index])] if isinstance(index, slice) else self._label(self.parts[index])

    def _label(self, parts: tuple[str | None, ...]) -> str:
        return ", ".join(part for part in parts if part is not None) or self.everything
