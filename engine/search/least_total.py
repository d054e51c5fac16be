"""The least total error: the workload is reduced, each block is solved, and what comes back is measured again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from tacit.engine.linalg import columns
from tacit.engine.search.bounds import ROUNDING, svd_bound
from tacit.engine.search.complete import Factorisation, factorise
from tacit.engine.search.named import NAMED
from tacit.engine.search.options import TARGET_GAP, Options
from tacit.engine.search.portfolio import search
from tacit.engine.search.reduce import Block, Reduction, merge_columns, reduce_workload
from tacit.engine.search.strategies.dual import dual
from tacit.engine.search.strategies.identity import identity
from tacit.engine.search.watch import Offset, Watch
from tacit.engine.strategy import Matrix, Privacy, Questions, Strategy, Vector, sensitivity
from tacit.errors import InternalError

_LARGE = 1 << 20
"""Entries of W from which on a look at its shape is cheap beside a search."""
_RAISED = 1e-5
"""Least size, as a share of the largest row's, to which small rows are raised so that a search does not lose them."""

_Solve: TypeAlias = Callable[[Matrix, Watch], tuple[str, Questions]]
"""One block's workload in, the name and the L of a strategy out."""


def least_total(workload: Matrix, weights: Vector, options: Options, watch: Watch) -> Strategy:
    """Minimise Σ ω_i·(squared error of query i): the plain problem for diag(√ω)·W."""
    W, omega, privacy = workload, weights, options.privacy
    weighted = W if (omega == 1.0).all() else W * np.sqrt(omega)[:, None]
    if options.strategy in (None, "identity") and W.size > _LARGE and _asks_single_cells(W):
        return _cells(W, weighted, privacy, watch)
    if options.strategy is None and options.reduce is not False and W.size > _LARGE:
        merged, position = merge_columns(W)
        if 2 * merged.shape[1] <= W.shape[1]:  # every product and decomposition from here on is so much smaller
            result = least_total(merged, omega, options, watch)
            return replace(result, L=columns(result.L, position))
    name, L = _search(weighted, options, watch)
    factors = factorise(W, L, privacy)
    certified = options.strategy is None and factors is not None
    if factors is None:
        name, factors = _search_raised(W, weighted, options, watch)
    L, B = factors.L, factors.B
    delta = sensitivity(L, privacy)
    error = float(delta**2 * np.dot(omega, np.einsum("ij,ij->i", B, B)))
    bound = watch.lower_bound
    # A run that has proven what was asked for, or was stopped with a bound of its own, needs no other.
    if not certified and not (bound > 0.0 and (watch.interrupted() or error <= bound * (1.0 + watch.target_gap))):
        bound = max(bound, _certificate(weighted, watch))
    bound, seconds = min(bound, error), watch.seconds
    # A search that ended where it had been before keeps that point: rounding may have put it a hair below.
    reached = ((s, max(e, error), min(b, bound)) for s, e, b in watch.trace if e >= error * (1.0 - 1e-9))
    trace = (*reached, (seconds, error, bound))
    watch.report(error, bound)  # a strategy that was completed, or that comes of raised rows, has not been reported yet
    return Strategy(name, privacy, L, B, delta, error, bound, seconds, trace)


def _asks_single_cells(W: Matrix) -> bool:
    """Whether no row and no column of W has more than one entry: every query is a multiple of one cell's count."""
    rows = np.count_nonzero(W, axis=1)
    return bool(rows.max() == 1 and rows.sum() <= W.shape[1] and np.count_nonzero(W, axis=0).max() == 1)


def _cells(W: Matrix, weighted: Matrix, privacy: Privacy, watch: Watch) -> Strategy:
    """L = I for queries of one cell each, without a search: it is the optimum, in L1 and in L2.

    Its error is ‖W‖²_F. With W·diag(√d) = P·Σ·Qᵀ, Σ holds the |w_j|·√d_j, so the dual bound (tr Σ)²/Σd at d_j = w_j²
    is Σw_j²: the same.
    """
    error = float(np.einsum("ij,ij->", weighted, weighted))
    bound = error * (1.0 - ROUNDING)
    watch.report(error, bound)
    seconds = watch.seconds
    L = identity(W, privacy, watch)
    return Strategy("identity", privacy, L, W, 1.0, error, bound, seconds, ((seconds, error, bound),))


def _search(W: Matrix, options: Options, watch: Watch) -> tuple[str, Questions]:
    """Name and L, by the portfolio or by the named strategy."""
    if not W.any():  # nothing to ask: one question that no answer uses keeps L a matrix
        watch.report(0.0)
        return options.strategy or "identity", np.ones((1, W.shape[1]))
    if options.strategy is None:
        reduction = _whole(W) if options.reduce is False else reduce_workload(W)
        return _search_blocks(
            reduction, options.privacy, watch, lambda w, part: search(w, options.privacy, part, options.effort)
        )
    name, make = options.strategy, NAMED[options.strategy]
    if not options.reduce:
        return name, make(W, options.privacy, watch, **options.parameters)
    return _search_blocks(
        reduce_workload(W),
        options.privacy,
        watch,
        lambda w, part: (name, make(w, options.privacy, part, **options.parameters)),
    )


def _search_raised(W: Matrix, weighted: Matrix, options: Options, watch: Watch) -> tuple[str, Factorisation]:
    """A strategy for rows of such different sizes that the search has lost the small ones.

    They are raised to a small share of the largest, where they are seen and cost next to nothing; where that does not
    help, all rows are brought to one size.
    """
    sizes = np.abs(weighted).max(axis=1)
    lift = np.where(sizes > 0.0, np.maximum(1.0, _RAISED * sizes.max() / np.where(sizes > 0.0, sizes, 1.0)), 1.0)
    apart = Watch(target_gap=watch.target_gap, cancel=watch.interrupted)
    name, L = _search(weighted * lift[:, None], options, apart)
    factors = factorise(W, L, options.privacy)
    if factors is None:
        even = W / np.where(sizes > 0.0, np.abs(W).max(axis=1), 1.0)[:, None]
        name, L = ("results", even) if options.strategy is None else _search(even, options, apart)
        factors = factorise(W, L, options.privacy)
    if factors is None:
        raise InternalError("the strategy does not span the workload")
    return name, factors


def _search_blocks(reduction: Reduction, privacy: Privacy, watch: Watch, solve: _Solve) -> tuple[str, Questions]:
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
    solutions: dict[Any, Questions] = {}
    for k, (key, block) in enumerate(distinct.items()):
        offset = Offset(error=done_error + to_come[k], lower_bound=done_bound, copies=copies[key])
        part = watch.part(work[k] / (work[k] + work_to_come[k]), offset)
        names[key], solutions[key] = solve(block.workload, part)
        errors[key] = min(errors[key], part.error)
        done_error += copies[key] * errors[key]
        done_bound += copies[key] * part.lower_bound
    leader = max(distinct, key=lambda key: copies[key] * errors[key])
    return names[leader], reduction.lift([solutions[key] for key in keys], privacy)


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


def _whole(W: Matrix) -> Reduction:
    every = np.arange(W.shape[1], dtype=np.intp)
    return Reduction((Block(W, every, every),), W.shape[1])
