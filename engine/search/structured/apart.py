"""Every set of columns by itself: a product of strategies of its axes, and a share of the budget for each set.

It knows nothing of what the sets have in common, so it is what a batch must never be worse than.
"""

from __future__ import annotations

import math

from tacit.engine.product_workload import Axes, Block
from tacit.engine.search.structured.axis import AxisSolver, AxisStrategy, stacked
from tacit.engine.search.structured.candidate import Candidate
from tacit.engine.search.structured.scaled import Scaled, Term


def apart(workload: Scaled, solver: AxisSolver) -> Candidate:
    """A block for each set of columns."""
    sets: dict[Axes, list[Term]] = {}
    for term in workload.terms:
        sets.setdefault(term.axes, []).append(term)
    blocks, errors = [], []
    for axes, terms in sets.items():
        strategies = product_for(workload, axes, terms, solver)
        blocks.append(Block(axes, tuple(s.L for s in strategies), (None,) * len(axes)))
        errors.append(
            sum(
                term.weight
                * math.prod(s.error_of(workload.matrices[f]) for s, f in zip(strategies, term.factors, strict=True))
                for term in terms
            )
        )
    return Candidate.of("product", solver.privacy, blocks, errors)


def product_for(workload: Scaled, axes: Axes, terms: list[Term], solver: AxisSolver) -> list[AxisStrategy]:
    """A strategy for each axis, for all factors that the terms have there."""
    strategies = []
    for k in range(len(axes)):
        weights: dict[int, float] = {}
        for term in terms:
            weights[term.factors[k]] = weights.get(term.factors[k], 0.0) + term.weight
        strategies.append(solver.rows(stacked([workload.matrices[f] for f in weights], list(weights.values()))))
    return strategies
