"""Tables with a column of so many points that its rows are combinations of products over short views of it.

Product rows are then means to an end: their errors are not the batch's, and neither are their bounds. What is compared
here are the errors of the rows of the batch, each read in the way that has least noise (``ProductTable``).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from tacit.engine.components import AxisQuestions, Evidence, evidence_of
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.product_workload import Axes, Block, ProductStrategy
from tacit.engine.search.structured.marginals import LARGEST_TABLE
from tacit.engine.strategy import Privacy, Vector
from tacit.process import one_blas_thread


def best_of(table: ProductTable, found: list[ProductStrategy], weights: Vector) -> ProductStrategy:
    """The strategy with least error over the rows of the batch, and that error.

    It is never worse than noise on the count of every combination of points, which is one of those compared. The bound
    is that of rows which exclude each other: scaled to a largest entry of 1 they hold a diagonal matrix of √weights,
    and its nuclear norm squared over its size is below every strategy's error (``bounds``).
    """
    points = _every_point(table, found[0].privacy)
    found = found if points is None else [*found, points]
    with one_blas_thread():
        errors = [_error(table, one, weights) for one in found]
    bound = max((float(np.sqrt(weights[rows]).sum()) ** 2 / len(rows) for rows in rows_apart(table)), default=0.0)
    best = min(range(len(found)), key=lambda k: errors[k])
    return replace(found[best], error=errors[best], lower_bound=min(bound, errors[best]))


def _error(table: ProductTable, strategy: ProductStrategy, weights: Vector) -> float:
    stderr = table.stderr(table.answered(evidence_of(strategy.blocks, strategy.spreads)))
    return float(np.sum(weights * np.square(stderr / table.row_peaks)))


def _every_point(table: ProductTable, privacy: Privacy) -> ProductStrategy | None:
    """One table of counts that all rows can be added up from; None where it is too large."""
    axes = _axes(table)
    if not axes or table.products.points(axes) > LARGEST_TABLE:
        return None
    block = Block(axes, tuple(np.eye(table.products.sizes[a]) for a in axes), (None,) * len(axes))
    return ProductStrategy("marginals", privacy, (block,), (1.0,), math.inf, 0.0)


def _axes(table: ProductTable) -> Axes:
    """Those of the reading that has the most in common: all ranges of a column over one view of it."""
    joint = table.read_as(len(table.readings) - 1)
    return tuple(sorted({axis for group in joint.products.groups for axis in group.axes}))


def rows_apart(table: ProductTable) -> list[NDArray[np.int64]]:
    """Places of rows that exclude each other, in several ways: those of groups of points."""
    indices, factors = table.terms
    places = np.full(table.combination.shape[1], -1, dtype=np.int64)
    single = np.flatnonzero(np.count_nonzero(factors, axis=1) == 1)
    places[indices[single, 0]] = single
    found = []
    for group in table.products.groups:
        own = places[group.rows]
        if (own >= 0).any() and all(np.count_nonzero(factor, axis=0).max() <= 1 for factor in group.factors):
            found.append(own[own >= 0])
    return found


def lengths(table: ProductTable) -> Vector:
    """The length of every row over the cells: its standard error where each cell has noise of variance 1."""
    questions = tuple(AxisQuestions(np.eye(table.products.sizes[axis])) for axis in _axes(table))
    joint = table.read_as(len(table.readings) - 1)
    return joint.stderr(joint.answered([Evidence(_axes(table), questions, 1.0)]))


def result_norms(table: ProductTable) -> tuple[float, float] | None:
    """The largest L1 and L2 norm of a column of the rows, each of a largest entry of 1; None where cells are too many.

    A row is the indicator of a range times its other factors, so the sizes of its entries are the same combination of
    the sizes of those, and so are their squares.
    """
    joint = table.read_as(len(table.readings) - 1)
    axes = _axes(table)
    if table.products.points(axes) > LARGEST_TABLE:
        return None
    norms = []
    for power in (1, 2):
        weights = joint.combination.T @ (1 / table.row_peaks**power)
        total = np.zeros([table.products.sizes[axis] for axis in axes])
        for group in joint.products.groups:
            tensor = weights[group.rows].reshape(group.shape)
            for place, factor in enumerate(group.factors):
                tensor = np.moveaxis(np.tensordot(np.abs(factor) ** power, tensor, axes=(0, place)), 0, place)
            total += tensor.reshape([table.products.sizes[a] if a in group.axes else 1 for a in axes])
        norms.append(float(np.abs(total).max(initial=0.0)))
    return norms[0], math.sqrt(norms[1])
