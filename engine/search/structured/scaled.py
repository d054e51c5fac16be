"""A product workload as the search sees it: rows scaled to a largest entry of 1, equal factors known by one number."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from tacit.engine.linalg import row_peaks
from tacit.engine.product_workload import Axes, ProductWorkload
from tacit.engine.strategy import Matrix, Vector


@dataclass(frozen=True)
class Term:
    """Groups with the same factors: the factor of each axis by its number, and the sum of their weights."""

    axes: Axes
    factors: tuple[int, ...]
    weight: float
    part: int = 0
    """The first statement that asks for it."""


@dataclass(frozen=True, eq=False)
class Scaled:
    """The terms of a workload. The error of a strategy is Σ weight · (the squared errors of the term's rows)."""

    sizes: tuple[int, ...]
    matrices: tuple[Matrix, ...] = field(repr=False)
    terms: tuple[Term, ...] = field(repr=False)

    @cached_property
    def axes(self) -> Axes:
        """The axes that anything is asked of."""
        return tuple(sorted({axis for term in self.terms for axis in term.axes}))

    @cached_property
    def common(self) -> frozenset[int]:
        """The axes that every term names."""
        sets = [frozenset(term.axes) for term in self.terms]
        return frozenset.intersection(*sets) if sets else frozenset()

    @cached_property
    def column_sets(self) -> tuple[Axes, ...]:
        return tuple(dict.fromkeys(term.axes for term in self.terms))

    def factors_of(self, axis: int) -> tuple[int, ...]:
        """The different factors that terms have for an axis."""
        found = (term.factors[term.axes.index(axis)] for term in self.terms if axis in term.axes)
        return tuple(dict.fromkeys(found))

    @cached_property
    def parts(self) -> tuple[Scaled, ...]:
        """The terms of each statement by themselves."""
        numbers = dict.fromkeys(term.part for term in self.terms)
        return tuple(self.restricted([term for term in self.terms if term.part == number]) for number in numbers)

    def points(self, axes: Sequence[int]) -> int:
        return math.prod(self.sizes[axis] for axis in axes)

    def restricted(self, terms: Sequence[Term]) -> Scaled:
        return Scaled(self.sizes, self.matrices, tuple(terms))


def scaled(workload: ProductWorkload, weights: Vector | None = None) -> Scaled:
    """The rows of each factor divided by their largest entries, so that every row of a product has a largest entry
    of 1.

    A group counts as much as its rows do on average: rows of one group belong to one query.
    """
    numbers: dict[tuple[tuple[int, int], bytes], int] = {}
    matrices: list[Matrix] = []
    known: dict[int, int] = {}
    sums: dict[tuple[Axes, tuple[int, ...]], float] = {}
    parts: dict[tuple[Axes, tuple[int, ...]], int] = {}
    for group in workload.groups:
        ids = []
        for factor in group.factors:
            if id(factor) not in known:
                matrix = np.ascontiguousarray(factor / row_peaks(factor)[:, None])
                key = (matrix.shape, matrix.tobytes())
                if key not in numbers:
                    numbers[key] = len(matrices)
                    matrices.append(matrix)
                known[id(factor)] = numbers[key]
            ids.append(known[id(factor)])
        order = sorted(range(len(ids)), key=lambda k: group.axes[k])
        place = tuple(group.axes[k] for k in order), tuple(ids[k] for k in order)
        weight = 1.0 if weights is None else float(np.mean(weights[group.rows]))
        sums[place] = sums.get(place, 0.0) + weight
        parts.setdefault(place, group.part)
    terms = [Term(*place, weight, parts[place]) for place, weight in sums.items()]
    return Scaled(workload.sizes, *_products_of_rows(terms, matrices))


def _products_of_rows(terms: list[Term], matrices: list[Matrix]) -> tuple[tuple[Matrix, ...], tuple[Term, ...]]:
    """Terms of one row each that are all combinations of some rows per axis, as one term: a query for each point.

    Every combination of ``a <= i AND b <= j`` is a product of two factors, however many statements it was asked in.
    """
    single: dict[tuple[Axes, float], list[Term]] = {}
    result: list[Term] = []
    for term in terms:
        if term.axes and all(len(matrices[f]) == 1 for f in term.factors):
            single.setdefault((term.axes, term.weight), []).append(term)
        else:
            result.append(term)
    merged = list(matrices)
    for (axes, weight), alike in single.items():
        columns = [tuple(dict.fromkeys(term.factors[k] for term in alike)) for k in range(len(axes))]
        if len(alike) == 1 or len(alike) != math.prod(map(len, columns)):  # no two of them are equal
            result += alike
            continue
        numbers = []
        for ids in columns:
            numbers.append(len(merged))
            merged.append(np.ascontiguousarray(np.vstack([matrices[f] for f in ids])))
        result.append(Term(axes, tuple(numbers), weight, min(term.part for term in alike)))
    return tuple(merged), tuple(result)


def subsets(axes: Axes, needed: frozenset[int] = frozenset()) -> Iterator[Axes]:
    """Every subset that holds the needed ones, in the order of the axes."""
    free = [axis for axis in axes if axis not in needed]
    for size in range(len(free) + 1):
        for chosen in itertools.combinations(free, size):
            yield tuple(axis for axis in axes if axis in needed or axis in chosen)
