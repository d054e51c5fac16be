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

    A key that a grouping set leaves out is None.
    """

    values: tuple[tuple[Any, ...], ...]
    """The values of each key."""
    sets: tuple[tuple[int, ...], ...]
    """The keys of each grouping set."""

    @cached_property
    def _sizes(self) -> list[int]:
        return [math.prod(len(self.values[key]) for key in chosen) for chosen in self.sets]

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum(self._sizes, dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1]) if self.sets else 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for chosen in self.sets:
            yield from itertools.product(*(v if key in chosen else (None,) for key, v in enumerate(self.values)))

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
        group: list[Any] = [None] * len(self.values)
        for key in reversed(self.sets[number]):
            place, value = divmod(place, len(self.values[key]))
            group[key] = self.values[key][value]
        return tuple(group)

    def column(self, key: int) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
        """One key of every group: its distinct values, None last if a set leaves it out, and which each group has."""
        values = self.values[key]
        codes = []
        for chosen, size in zip(self.sets, self._sizes, strict=True):
            if key not in chosen:
                codes.append(np.full(size, len(values), dtype=np.int64))
                continue
            faster = math.prod(len(self.values[other]) for other in chosen[chosen.index(key) + 1 :])
            slower = size // max(1, faster * len(values))
            codes.append(np.tile(np.repeat(np.arange(len(values)), faster), slower))
        left_out = any(key not in chosen for chosen in self.sets)
        return (*values, *((None,) if left_out else ())), np.concatenate([np.zeros(0, dtype=np.int64), *codes])


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
