"""Where questions to one column are true, as runs of neighbouring places: there can be a hundred thousand of them.

The places are the pieces of the column's line, and later its regions. A table of every question by every place would
grow with the square of the constants; runs grow with the constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .ordering import Place

FALSE, UNKNOWN, TRUE = np.uint8(0), np.uint8(1), np.uint8(2)
Truth = NDArray[np.uint8]
Integers = NDArray[np.int64]
Runs = tuple[tuple[int, int], ...]
"""(first, beyond the last) of neighbouring places, ascending and apart."""

_FEW = 8
"""Runs up to which each is moved by itself."""


@dataclass(frozen=True)
class Question:
    """Something the batch asks of a column: a comparison, a list, or whether it is NULL.

    A value for which any of ``pieces`` holds gets ``TRUE``; any other value gets ``otherwise``; NULL gets
    ``when_null``.
    """

    pieces: tuple[tuple[str, Place], ...]
    otherwise: np.uint8
    when_null: np.uint8


class Truths(Mapping[Question, Truth]):
    """The truth of every question on every region; an array is made when it is asked for, and not kept."""

    def __init__(self, runs: Mapping[Question, Runs], count: int, *, nullable: bool) -> None:
        """``runs`` are over the regions of values; of ``count`` regions the last is NULL's, if it has one."""
        self._runs, self._count, self._nullable = runs, count, nullable

    def __getitem__(self, question: Question) -> Truth:
        truth = np.full(self._count, question.otherwise, dtype=np.uint8)
        for first, beyond in self._runs[question]:
            truth[first:beyond] = TRUE
        if self._nullable:
            truth[-1] = question.when_null
        return truth

    def __iter__(self) -> Iterator[Question]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def where_true(self, question: Question) -> Integers:
        """The regions in which a question is true."""
        if question.otherwise == TRUE:
            return np.flatnonzero(self[question] == TRUE)
        runs = [np.arange(first, beyond) for first, beyond in self._runs[question]]
        if self._nullable and question.when_null == TRUE:
            runs.append(np.array([self._count - 1]))
        return runs[0] if len(runs) == 1 else np.concatenate([*runs, np.zeros(0, dtype=np.int64)])

    def joined(self, questions: Iterable[Question]) -> tuple[Integers, Integers, Truths]:
        """(first region of values of every new one, the new one of each, truths): as far as the questions tell apart.

        The region of NULL stays what it is.
        """
        return joined({question: self._runs[question] for question in questions}, self._count - self._nullable,
                      nullable=self._nullable)  # fmt: skip


def joined(runs: Mapping[Question, Runs], places: int, *, nullable: bool) -> tuple[Integers, Integers, Truths]:
    """(first place of every region, region of every place, truths); regions in the order they first appear.

    Places are alike when every question has one answer for both. They are found by a hash of their answers and then
    compared, so that a collision of the hash cannot join different places.
    """
    told = [own for question, own in runs.items() if question.otherwise != TRUE]
    steps = np.zeros(places + 1, dtype=np.uint64)  # differences of the sums, which wrap around
    marks = np.repeat(np.array([multiplier(k) for k in range(len(told))], dtype=np.uint64), list(map(len, told)))
    ends = np.array([run for own in told for run in own], dtype=np.int64).reshape(-1, 2)
    np.add.at(steps, ends[:, 0], marks)
    np.subtract.at(steps, ends[:, 1], marks)
    keys = np.cumsum(steps[:-1], dtype=np.uint64)
    while True:
        _, starts, region = np.unique(keys, return_index=True, return_inverse=True)
        sizes = np.bincount(region)
        clash = next((own for own in told if not _is_union(own, region, sizes)), None)
        if clash is None:
            break
        keys = (region * 2 + _inside(clash, places)).astype(np.uint64)
    rank = np.argsort(np.argsort(starts))
    chosen = np.sort(starts).astype(np.int64)
    moved = {question: _at(own, chosen, places) for question, own in runs.items()}
    return chosen, rank[region].astype(np.int64), Truths(moved, len(chosen) + nullable, nullable=nullable)


def merged_runs(runs: Iterable[tuple[int, int]]) -> Runs:
    """Runs in any order, which may overlap or touch, put together."""
    result: list[tuple[int, int]] = []
    for first, beyond in sorted(run for run in runs if run[0] < run[1]):
        if result and first <= result[-1][1]:
            result[-1] = (result[-1][0], max(beyond, result[-1][1]))
        else:
            result.append((first, beyond))
    return tuple(result)


def runs_of(inside: NDArray[np.bool_]) -> Runs:
    """The runs of places that are marked."""
    edges = np.flatnonzero(np.diff(inside.astype(np.int8), prepend=0, append=0)).tolist()
    return tuple(zip(edges[::2], edges[1::2], strict=True))


def _is_union(runs: Runs, region: Integers, sizes: Integers) -> bool:
    """Whether the runs hold regions whole."""
    if len(runs) == 1 and runs[0][1] - runs[0][0] == 1:
        return bool(sizes[region[runs[0][0]]] == 1)
    held = np.bincount(np.concatenate([region[:0], *(region[first:beyond] for first, beyond in runs)]))
    return bool(np.all((held == 0) | (held == sizes[: len(held)])))


def _inside(runs: Runs, places: int) -> NDArray[np.bool_]:
    inside = np.zeros(places, dtype=np.bool_)
    for first, beyond in runs:
        inside[first:beyond] = True
    return inside


def _at(runs: Runs, chosen: Integers, places: int) -> Runs:
    """The runs of those of the chosen places, ascending, that lie in the runs."""
    if len(runs) <= _FEW:
        ends = np.searchsorted(chosen, np.array(runs, dtype=np.int64).reshape(-1)).tolist()
        return merged_runs(zip(ends[::2], ends[1::2], strict=True))
    return runs_of(_inside(runs, places)[chosen])


def multiplier(k: int) -> np.uint64:
    """The k-th number of the splitmix64 sequence, made odd."""
    z = (0x9E3779B97F4A7C15 * (k + 1)) & 0xFFFFFFFFFFFFFFFF
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return np.uint64((z ^ (z >> 31)) | 1)
