"""The door of the search: a workload in, the best strategy out, with a certificate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from tacit.engine.linalg import one_thread
from tacit.engine.search.arguments import (
    check_choice,
    check_manners,
    check_parameters,
    check_range,
    checked_weights,
    checked_workload,
)
from tacit.engine.search.bounds import ROUNDING, svd_bound
from tacit.engine.search.complete import Factorisation, factorise
from tacit.engine.search.minimax import Solve, least_largest
from tacit.engine.search.portfolio import search
from tacit.engine.search.reduce import Block, Reduction, reduce_workload
from tacit.engine.search.strategies.adaptive import adaptive
from tacit.engine.search.strategies.coa import coa
from tacit.engine.search.strategies.dual import dual
from tacit.engine.search.strategies.esm import esm
from tacit.engine.search.strategies.free import free
from tacit.engine.search.strategies.hierarchical import hierarchical
from tacit.engine.search.strategies.identity import identity
from tacit.engine.search.strategies.low_rank import low_rank
from tacit.engine.search.strategies.lrm import lrm
from tacit.engine.search.strategies.p_identity import p_identity
from tacit.engine.search.strategies.results import results
from tacit.engine.search.strategies.wavelet import wavelet
from tacit.engine.search.strategies.weighted import weighted
from tacit.engine.search.watch import Offset, Progress, Watch
from tacit.engine.strategy import Matrix, Privacy, Strategy, Vector, sensitivity
from tacit.errors import InternalError, ProgrammingError

Maker: TypeAlias = Callable[..., Matrix]
"""What a file in ``strategies/`` gives: (workload, privacy, watch) in, L out; parameters are keywords."""

_BY_NAME: dict[str, Maker] = {
    "identity": identity,
    "results": results,
    "hierarchical": hierarchical,
    "wavelet": wavelet,
    "esm": esm,
    "adaptive": adaptive,
    "lrm": lrm,
    "coa": coa,
    "weighted": weighted,
    "p-identity": p_identity,
    "low-rank": low_rank,
    "free": free,
    "dual": dual,
}

TARGET_GAP = 1e-5
"""Where the default search stops: 0.001 % above the best bound it has proven."""

_LARGE = 1 << 20
"""Entries of W from which on a look at its shape is cheap beside a search."""

Objective: TypeAlias = Literal["total", "largest"]


@dataclass(frozen=True)
class _Request:
    """What is asked of one search, apart from the workload."""

    privacy: Privacy
    strategy: str | None
    reduce: bool | None
    parameters: dict[str, Any]
    effort: float = 1.0
    """Share of the portfolio's work to spend."""


def strategies() -> tuple[str, ...]:
    """The names that ``strategy=`` takes.

    >>> "lrm" in strategies() and "coa" in strategies()
    True
    """
    return tuple(_BY_NAME)


def optimize(
    workload: ArrayLike,
    *,
    privacy: Privacy = "pure",
    strategy: str | None = None,
    weights: ArrayLike | None = None,
    objective: Objective = "total",
    deadline: float | None = None,
    target_gap: float = TARGET_GAP,
    reduce: bool | None = None,
    progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    **parameters: Any,
) -> Strategy:
    """The strategy of least total squared error for a workload W (queries × cells).

    Without ``strategy`` the workload is reduced exactly and a portfolio is searched; with a name from
    ``strategies()`` that one runs on W as given, as published, unless ``reduce=True``, and further keywords
    are its own parameters (``gamma=`` and ``rank=`` of lrm, ``theta=`` and ``iterations=`` of coa).

    ``weights`` multiply the squared error of each query; ``objective="largest"`` minimises the largest of
    them instead of their sum. ``error``, ``lower_bound`` and ``trace`` are then in that measure. Only their
    ratios, at most 1e60, matter to the strategy.

    ``deadline`` (seconds), ``target_gap`` and ``cancel`` stop the search with the best so far and a true
    bound; ``progress`` is called at every improvement. Without ``deadline`` and ``cancel`` the work is
    counted in operations, never in seconds, and the same workload gives the same strategy.

    Width: the default is never above identity up to 8,192 cells after merging (and up to twice as many cells as
    queries). Beyond, an L of n×n would not fit: under pure ε only strategies with about as many rows as W has are
    searched, and the result can be above ``identity``, which may still be asked for by name. Near that width the
    search takes up to a minute and 2.5 GB; ``deadline`` cuts the former.

    Guarantee: see ``Strategy``. The result is measured on the L and B that are returned, not on what a search
    said of itself: W = B·L holds to 1e-9 in every row, and ``sensitivity`` is the largest column norm of L.

    >>> s = optimize([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]], privacy="pure")
    >>> round(s.error, 6), round(s.sensitivity, 6)
    (4.0, 1.0)
    """
    W = checked_workload(workload)
    omega = checked_weights(weights, len(W))
    check_range(W, omega)
    check_choice("privacy", privacy, ("pure", "approximate"))
    check_choice("objective", objective, ("total", "largest"))
    check_manners(deadline, target_gap, reduce, progress, cancel)
    if strategy is not None:
        check_choice("strategy", strategy, strategies())
        check_parameters(strategy, _BY_NAME[strategy], parameters)
    elif parameters:
        raise ProgrammingError(f"{', '.join(parameters)}: parameters belong to a strategy; name one")
    scale = _scale(W)
    W = W if scale == 1.0 else W / scale
    weight = math.ldexp(1.0, round(float(np.log2(omega).mean())))  # the typical one: strategies' γ and θ are absolute
    omega = omega / weight
    unit = scale * scale * weight
    request = _Request(privacy, strategy, reduce, parameters)
    watch = Watch(deadline=deadline, target_gap=target_gap, progress=_scaled(progress, unit), cancel=cancel)
    with one_thread():
        if objective == "total":
            found = _total(W, omega, request, watch)
        else:
            found = _largest(W, omega, request, watch)
    return replace(
        found,
        B=found.B if scale == 1.0 else found.B * scale,
        error=found.error * unit,
        lower_bound=found.lower_bound * unit,
        trace=tuple((s, e * unit, b * unit) for s, e, b in found.trace),
    )


def _total(W: Matrix, omega: Vector, request: _Request, watch: Watch) -> Strategy:
    """Minimise Σ ω_i·(squared error of query i): the plain problem for diag(√ω)·W."""
    weighed = W if (omega == 1.0).all() else W * np.sqrt(omega)[:, None]
    if request.strategy in (None, "identity") and W.size > _LARGE and _single(W):
        return _cells(W, weighed, request.privacy, watch)
    name, L = _factor(weighed, request, watch)
    proven = request.strategy is None
    factors = factorise(W, L, request.privacy)
    if factors is None:
        name, factors = _evened(W, weighed, request, watch)
        proven = False
    L, B = factors.L, factors.B
    delta = sensitivity(L, request.privacy)
    error = float(delta**2 * np.dot(omega, np.einsum("ij,ij->i", B, B)))
    bound = watch.lower_bound
    # A run that has proven what was asked for, or was stopped with a bound of its own, needs no other.
    if not proven and not (bound > 0.0 and (watch.interrupted() or error <= bound * (1.0 + watch.target_gap))):
        bound = max(bound, _certificate(weighed, watch))
    bound, seconds = min(bound, error), watch.seconds
    # A search that ended where it had been before keeps that point: rounding may have put it a hair below.
    reached = ((s, max(e, error), min(b, bound)) for s, e, b in watch.trace if e >= error * (1.0 - 1e-9))
    trace = (*reached, (seconds, error, bound))
    watch.report(error, bound)  # a strategy that was completed or found on other terms has not been reported yet
    return Strategy(name, request.privacy, L, B, delta, error, bound, seconds, trace)


def _single(W: Matrix) -> bool:
    """Whether no row and no column of W has more than one entry: every query is a multiple of one cell's count."""
    rows = np.count_nonzero(W, axis=1)
    return bool(rows.max() == 1 and rows.sum() <= W.shape[1] and np.count_nonzero(W, axis=0).max() == 1)


def _cells(W: Matrix, weighed: Matrix, privacy: Privacy, watch: Watch) -> Strategy:
    """L = I for queries of one cell each, without a search: it is the optimum, in L1 and in L2.

    Its error is ‖W‖²_F. With W·diag(√d) = P·Σ·Qᵀ, Σ holds the |w_j|·√d_j, so the dual bound (tr Σ)²/Σd at d_j = w_j²
    is Σw_j²: the same.
    """
    n = W.shape[1]
    error = float(np.einsum("ij,ij->", weighed, weighed))
    bound = error * (1.0 - ROUNDING)
    watch.report(error, bound)
    seconds = watch.seconds
    return Strategy("identity", privacy, np.eye(n), W, 1.0, error, bound, seconds, ((seconds, error, bound),))


def _evened(W: Matrix, weighed: Matrix, request: _Request, watch: Watch) -> tuple[str, Factorisation]:
    """A strategy for rows of such different scales that the search has lost the small ones.

    They are raised to a hundred-thousandth of the largest, where they are seen and cost next to nothing.
    """
    sizes = np.abs(weighed).max(axis=1)
    lift = np.where(sizes > 0.0, np.maximum(1.0, 1e-5 * sizes.max() / np.where(sizes > 0.0, sizes, 1.0)), 1.0)
    stopped = Watch(target_gap=watch.target_gap, cancel=watch.interrupted)
    name, L = _factor(weighed * lift[:, None], request, stopped)
    factors = factorise(W, L, request.privacy)
    if factors is None:
        even = W / np.where(sizes > 0.0, np.abs(W).max(axis=1), 1.0)[:, None]
        name, L = ("results", even) if request.strategy is None else _factor(even, request, stopped)
        factors = factorise(W, L, request.privacy)
    if factors is None:
        raise InternalError("the strategy does not span the workload")
    return name, factors


def _largest(W: Matrix, omega: Vector, request: _Request, watch: Watch) -> Strategy:
    """Minimise max ω_i·(squared error of query i)."""
    if not W.any():
        return _total(W, omega, request, watch)

    def solve(request: _Request) -> Solve:
        return lambda weights, effort, watch: _total(W, weights, replace(request, effort=effort), watch)

    certified = solve(_Request("approximate", None, request.reduce, {}))
    own = None if request.privacy == "approximate" and request.strategy is None else solve(request)
    return least_largest(W, omega, certified, own, named=request.strategy is not None, watch=watch)


def _factor(W: Matrix, request: _Request, watch: Watch) -> tuple[str, Matrix]:
    """Name and L, by the portfolio or by the named strategy."""
    if not W.any():  # nothing to ask: one question that no answer uses keeps L a matrix
        watch.report(0.0)
        return request.strategy or "identity", np.ones((1, W.shape[1]))
    if request.strategy is None:
        reduction = reduce_workload(W) if request.reduce is not False else _whole(W)
        return _by_blocks(reduction, request.privacy, watch, lambda w, p, t: search(w, p, t, request.effort))
    name, make = request.strategy, _named(request.strategy, request.parameters)
    if not request.reduce:
        return name, make(W, request.privacy, watch)
    return _by_blocks(reduce_workload(W), request.privacy, watch, lambda w, p, t: (name, make(w, p, t)))


def _by_blocks(
    reduction: Reduction,
    privacy: Privacy,
    watch: Watch,
    solve: Callable[[Matrix, Privacy, Watch], tuple[str, Matrix]],
) -> tuple[str, Matrix]:
    """Solve every distinct block once; the name is that of the block with the largest error.

    The error of the whole is the sum of the blocks' errors, and so is the bound: any strategy of the whole,
    cut to a block's columns, is a strategy of that block at no larger sensitivity.
    """
    keys: list[Any] = [0]  # a single block, which may be large, needs no comparison
    if len(reduction.blocks) > 1:
        keys = [(block.workload.shape, block.workload.tobytes()) for block in reduction.blocks]
    distinct = dict(zip(keys, reduction.blocks, strict=True))
    copies = Counter(keys)
    errors = {key: float(np.sum(block.workload**2)) for key, block in distinct.items()}  # of identity
    to_come = _sums_after([copies[key] * errors[key] for key in distinct])
    work = [float(block.workload.size) for block in distinct.values()]
    work_to_come = _sums_after(work)
    done_error, done_bound = 0.0, 0.0
    names: dict[Any, str] = {}
    found: dict[Any, Matrix] = {}
    for k, (key, block) in enumerate(distinct.items()):
        offset = Offset(error=done_error + to_come[k], lower_bound=done_bound, copies=copies[key])
        part = watch.part(work[k] / (work[k] + work_to_come[k]), offset)
        names[key], found[key] = solve(block.workload, privacy, part)
        errors[key] = min(errors[key], part.error)
        done_error += copies[key] * errors[key]
        done_bound += copies[key] * part.lower_bound
    leader = max(distinct, key=lambda key: copies[key] * errors[key])
    return names[leader], reduction.lift([found[key] for key in keys], privacy)


def _sums_after(values: list[float]) -> list[float]:
    """For every value the sum of those behind it; there may be thousands of blocks, so each is added once."""
    return [*accumulate(reversed(values[1:]), initial=0.0)][::-1]


def _certificate(W: Matrix, watch: Watch) -> float:
    """The best bound that the time left proves, for a strategy that brings none of its own: one round at least."""
    bound = 0.0
    for block in reduce_workload(W).blocks:
        apart = Watch(target_gap=TARGET_GAP, cancel=watch.interrupted)
        dual(block.workload, "approximate", apart)
        # The dual's first round is this bound but for a few digits.
        bound += apart.lower_bound if watch.interrupted() else max(apart.lower_bound, svd_bound(block.workload))
    return bound


def _named(strategy: str, parameters: dict[str, Any]) -> Callable[[Matrix, Privacy, Watch], Matrix]:
    maker = _BY_NAME[strategy]
    return lambda workload, privacy, watch: maker(workload, privacy, watch, **parameters)


def _whole(W: Matrix) -> Reduction:
    columns = np.arange(W.shape[1], dtype=np.intp)
    return Reduction((Block(W, columns, columns),), W.shape[1])


def _scale(W: Matrix) -> float:
    """A power of two that brings extreme workloads to where squares neither overflow nor vanish; else 1."""
    largest = max(float(W.max()), -float(W.min()))
    if largest == 0.0 or 2.0**-30 < largest < 2.0**30:
        return 1.0
    return math.ldexp(1.0, math.frexp(largest)[1])


def _scaled(progress: Callable[[Progress], None] | None, unit: float) -> Callable[[Progress], None] | None:
    if progress is None or unit == 1.0:
        return progress
    return lambda p: progress(Progress(p.seconds, p.error * unit, p.lower_bound * unit))
