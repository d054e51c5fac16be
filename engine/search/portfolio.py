"""The default search on one reduced block: the families of strategies in order, and the least error wins.

Under (ε, δ) the dual optimum is proven and little else is needed. Under pure ε no family wins everywhere:
p-identity on batches of nearly full rank, a free low-rank L on thin ones, the cells or the weighted queries
on others. The work is counted in operations, so that the result does not depend on the machine's speed.

CONTRIBUTING.md says how a family is added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tacit.engine.linalg import is_even_triangle
from tacit.engine.search.bounds import svd_bound
from tacit.engine.search.contest import Contest
from tacit.engine.search.shape import Shape
from tacit.engine.search.strategies import free, low_rank, lrm, p_identity, weighted
from tacit.engine.search.strategies.adaptive import adaptive
from tacit.engine.search.strategies.dual import find_optimum, prove
from tacit.engine.search.strategies.hierarchical import hierarchical
from tacit.engine.search.strategies.identity import identity
from tacit.engine.search.strategies.results import results
from tacit.engine.search.strategies.wavelet import wavelet
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy, Questions, sensitivity


@dataclass(frozen=True)
class Family:
    """One line of the portfolio."""

    name: str
    applies: Callable[[Shape], bool]
    run: Callable[[Contest], object]
    """Enters the family's strategies in the contest."""
    unconditional: bool = False
    """Runs even when the caller will not wait: it gives the first strategy to return, or the bound."""
    full_effort: bool = False
    """Runs only when the whole of the work may be spent."""
    leader: str | None = None
    """Runs only while this family leads."""


def search(workload: Matrix, privacy: Privacy, watch: Watch, effort: float = 1.0) -> tuple[str, Questions]:
    """Name and L of the best strategy for one block, at a share of the full effort."""
    contest = Contest(workload, privacy, watch, effort)
    if contest.shape.cells == 1:
        watch.report(float(np.sum(contest.workload**2)), svd_bound(contest.workload))
        return "identity", np.eye(1)
    run_families(PORTFOLIO[privacy], contest)
    return contest.name, contest.best


def run_families(families: tuple[Family, ...], contest: Contest) -> None:
    """Run those that apply, in order, until the watch says stop and there is a strategy to return."""
    for family in families:
        if contest.error < float("inf") and not family.unconditional and contest.watch.stop():
            continue
        if family.full_effort and contest.effort < 1.0:
            continue
        if family.leader in (None, contest.name) and family.applies(contest.shape):
            family.run(contest)


def _once(name: str, make: Callable[[Matrix, Privacy, Watch], Questions]) -> Callable[[Contest], object]:
    """A family that is one strategy."""
    return lambda contest: contest.enter(name, make(contest.workload, contest.privacy, contest.watch))


def _ask_queries(contest: Contest) -> None:
    """As they were before their rows were compressed.

    W·W⁺ is a projection, and so the error is Δ² times the rank: where the rank is known, so is the outcome.
    """
    if contest.shape.is_large() and is_even_triangle(contest.workload):
        known = sensitivity(contest.queries, contest.privacy) ** 2 * contest.shape.cells
        of_cells = float(np.sum(contest.workload**2)) if contest.shape.fits_square() else float("inf")
        if known >= min(contest.error, of_cells):
            return
    contest.enter("results", results(contest.queries, contest.privacy, contest.watch))


def _ask_cells(contest: Contest) -> None:
    """Their error is ‖W‖²_F, which says beforehand whether a wide workload, or one whose time is up, needs them."""
    better = float(np.sum(contest.workload**2)) < contest.error
    if better or (contest.shape.fits_square() and not contest.watch.stop()):
        contest.enter("identity", identity(contest.workload, contest.privacy, contest.watch))


def _svd_bound(contest: Contest) -> None:
    """The dual is certified through squares and loses a few digits that this bound has."""
    contest.watch.report(contest.watch.error, svd_bound(contest.workload))


PORTFOLIO: dict[Privacy, tuple[Family, ...]] = {
    "approximate": (
        Family("dual", Shape.always, find_optimum, unconditional=True),
        Family("results", Shape.has_queries_worth_asking, _ask_queries),
        Family("identity", Shape.always, _ask_cells, unconditional=True),
        Family("svd bound", Shape.is_quick_to_decompose, _svd_bound, unconditional=True),
    ),
    "pure": (
        Family("results", Shape.has_queries_worth_asking, _ask_queries, unconditional=True),
        Family("identity", Shape.always, _ask_cells, unconditional=True),
        Family("svd bound", Shape.is_quick_to_decompose, _svd_bound, unconditional=True),
        Family("dual", Shape.always, prove, unconditional=True),
        Family("hierarchical", Shape.fits_trees, _once("hierarchical", hierarchical)),
        Family("wavelet", Shape.fits_trees, _once("wavelet", wavelet)),
        Family("weighted", Shape.is_thin_with_few_queries, weighted.search_thin),
        Family("low-rank", Shape.is_thin, low_rank.search),
        Family("p-identity", Shape.fits_square, p_identity.search),
        Family("weighted", Shape.is_full_with_few_queries, weighted.search_full),
        Family("adaptive", Shape.is_stiff, _once("adaptive", adaptive)),
        Family("low-rank", Shape.always, low_rank.search_longer, full_effort=True),
        Family("lrm", lrm.applies, lrm.search, full_effort=True, leader="low-rank"),
        Family("free", free.applies, free.search, full_effort=True),
    ),
}
"""What is searched under each kind of privacy, in this order."""
