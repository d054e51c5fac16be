"""The best structured strategy for a workload of products: the door of this room."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from tacit.engine.components import evidence_of
from tacit.engine.linalg import is_identity
from tacit.engine.measures import joint, share_root
from tacit.engine.product_answers import ProductAnswers, View, total_error
from tacit.engine.product_workload import Block, ProductStrategy, ProductWorkload
from tacit.engine.search.structured.apart import apart
from tacit.engine.search.structured.axis import AxisSolver
from tacit.engine.search.structured.candidate import Candidate
from tacit.engine.search.structured.marginals import axis_factors, marginals
from tacit.engine.search.structured.residual import residual_split
from tacit.engine.search.structured.scaled import Scaled, scaled
from tacit.engine.search.structured.structure_bound import structure_bound
from tacit.engine.strategy import Privacy, Vector
from tacit.process import one_blas_thread

_MOST_STATEMENTS = 8
"""Statements that are planned by themselves too."""
_ASIDE = 0.25
"""Of the work of a full search."""
_CATCHES_UP = 1.5
"""A way whose short search ends so many times above the best is not searched at full length. A margin, not a proof: on
the workloads that were tried, a longer search of one way gained a sixth at most."""
NAMES = ("product", "components", "marginals", "marginals of ranges")
"""What structured strategies are called."""


def optimize_products(
    workload: ProductWorkload,
    *,
    privacy: Privacy,
    weights: Vector | None = None,
    quick: bool = False,
    aside: bool = False,
    deadline: float | None = None,
    cancel: Callable[[], bool] | None = None,
) -> ProductStrategy:
    """The strategy of least total squared error that is found, with a bound that no strategy can beat.

    ``weights`` are those of the rows of the batch. Rows are scaled to a largest entry of 1 first. A ``quick`` search
    looks for no better weights than equal ones; so does one that ``deadline``, in seconds, or ``cancel`` has ended.
    The searches over single axes share the deadline: what is left of it when each begins.
    One that is made ``aside``, for another reading of rows that have a full search, takes a part of the work.
    """
    begin = time.perf_counter()

    def seconds_left() -> float | None:
        return None if deadline is None else max(0.0, deadline - (time.perf_counter() - begin))

    def ended() -> bool:
        return quick or seconds_left() == 0.0 or (cancel is not None and cancel())

    with one_blas_thread():
        small = scaled(workload, weights)

        def measure(one: Candidate) -> float:
            """Blocks of statements that split an axis differently may not be read together: inf."""
            return _of_all_blocks(workload, one, privacy, weights) if one.name == "product" else one.error

        search = _pure if privacy == "pure" else _approximate
        solver = AxisSolver(privacy, _ASIDE if aside else 1.0, seconds_left)
        candidates, bound = search(small, solver, ended, measure, statements=not aside)
        error, k = min((measure(one), k) for k, one in enumerate(candidates))
        best = candidates[k]
    return ProductStrategy(
        name=best.name,
        privacy=privacy,
        blocks=best.blocks,
        shares=best.shares,
        error=error,
        lower_bound=min(bound, error),
        seconds=time.perf_counter() - begin,
    )


def points_of_products(workload: ProductWorkload, strategy: ProductStrategy) -> ProductStrategy:
    """In place of a strategy: the table of every set of columns, asked for its points. Small integers,
    whatever is asked."""
    small = scaled(workload)
    sets = dict.fromkeys(small.column_sets)
    identities = {axis: np.eye(small.sizes[axis]) for axis in small.axes}
    blocks, errors = [], []
    for axes in sets:
        blocks.append(Block(axes, tuple(identities[a] for a in axes), (None,) * len(axes)))
        errors.append(
            sum(
                term.weight * math.prod(float(np.square(small.matrices[f]).sum()) for f in term.factors)
                for term in small.terms
                if term.axes == axes
            )
        )
    found = Candidate.of("marginals", strategy.privacy, blocks, errors)
    return replace(strategy, name=found.name, blocks=found.blocks, shares=found.shares, error=found.error)


def _of_all_blocks(workload: ProductWorkload, best: Candidate, privacy: Privacy, weights: Vector | None) -> float:
    """Sets that were planned apart are answered together: a row that several blocks tell of is taken from all."""
    if len(best.blocks) == 1:
        return best.error
    strategy = ProductStrategy(best.name, privacy, best.blocks, best.shares, best.error, 0.0)
    evidence = evidence_of(strategy.blocks, strategy.spreads)
    answers = ProductAnswers([View(workload.groups, tuple(evidence))], int(workload.rows.max()) + 1)
    return total_error(workload, answers, weights)


def _approximate(
    workload: Scaled,
    solver: AxisSolver,
    ended: Callable[[], bool],
    measure: Callable[[Candidate], float],
    *,
    statements: bool,
) -> tuple[list[Candidate], float]:
    splits: dict[int, Vector] = {}

    def found(part: Scaled) -> list[Candidate]:
        candidates = [apart(part, solver)]
        if len(part.column_sets) > 1 and (split := residual_split(part, solver, ended)) is not None:
            candidates.append(split[0])
            if part is workload:
                splits.update(split[1])
        return candidates

    candidates = [*found(workload), *(_statements_apart(workload, "approximate", found) if statements else ())]
    return candidates, structure_bound(workload, splits, solver) if statements else 0.0


def _pure(
    workload: Scaled,
    solver: AxisSolver,
    ended: Callable[[], bool],
    measure: Callable[[Candidate], float],
    *,
    statements: bool,
) -> tuple[list[Candidate], float]:
    short = solver.beside("pure", _ASIDE)

    def found(part: Scaled) -> list[Candidate]:
        """Every way after short searches of its axes, and the ways that may win after full ones."""
        if len(part.column_sets) == 1:
            return [apart(part, solver)]

        def of_points(part: Scaled, solver: AxisSolver) -> Candidate | None:
            return marginals(part, axis_factors(part, solver, points=True), "marginals", ended)

        def of_ranges(part: Scaled, solver: AxisSolver) -> Candidate | None:
            """None where the strategies for ranges are the points themselves."""
            factors = axis_factors(part, solver, points=False)
            if all(is_identity(factor) for factor in factors.values()):
                return None
            return marginals(part, factors, "marginals of ranges", ended)

        ways: dict[str, Callable[[Scaled, AxisSolver], Candidate | None]] = {
            "product": apart,
            "marginals": of_points,
            "marginals of ranges": of_ranges,
        }
        first = short if statements else solver
        candidates = [c for way in ways.values() if (c := way(part, first)) is not None]
        if first is solver:
            return candidates
        errors = {c.name: measure(c) if part is workload else c.error for c in candidates}
        best = min(errors.values())
        for name in sorted(errors, key=errors.__getitem__):
            if errors[name] <= _CATCHES_UP * best and name != "marginals":  # points need no search
                candidate = ways[name](part, solver)
                candidates += [] if candidate is None else [candidate]
        return candidates

    candidates = [*found(workload), *(_statements_apart(workload, "pure", found) if statements else ())]
    return candidates, structure_bound(workload, {}, solver.beside("approximate")) if statements else 0.0


def _statements_apart(
    workload: Scaled, privacy: Privacy, found: Callable[[Scaled], list[Candidate]]
) -> list[Candidate]:
    """The best of every statement, each with its share of the budget, where some statement is more than one table."""
    large = [part for part in workload.parts if len(part.column_sets) > 1]
    if len(workload.parts) == 1 or not 0 < len(large) <= _MOST_STATEMENTS:
        return []
    best = [min(found(part), key=lambda candidate: candidate.error) for part in workload.parts]
    root = share_root(privacy, "total")
    roots = [candidate.error**root for candidate in best]
    blocks: list[Block] = []
    shares: list[float] = []
    for candidate, value in zip(best, roots, strict=True):
        blocks += candidate.blocks
        shares += [share * value / sum(roots) for share in candidate.shares]
    error = joint([candidate.error for candidate in best], privacy, "total")
    return [Candidate("product", tuple(blocks), tuple(shares), error)]
