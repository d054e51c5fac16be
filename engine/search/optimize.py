"""The door of the search: a workload in, the best strategy out, with a certificate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from tacit.engine.measures import Objective
from tacit.engine.search.arguments import (
    check_range,
    checked_options,
    checked_weights,
    checked_workload,
    weights_of_sizes,
)
from tacit.engine.search.data_dependent import DATA_DEPENDENT, data_dependent
from tacit.engine.search.least_absolute import least_absolute
from tacit.engine.search.least_total import least_total
from tacit.engine.search.minimax import least_largest
from tacit.engine.search.options import LARGE, LARGE_GAP, TARGET_GAP, Options
from tacit.engine.search.watch import Progress, Watch
from tacit.engine.strategy import Matrix, Privacy, Strategy
from tacit.process import one_blas_thread


def optimize(
    workload: ArrayLike,
    *,
    privacy: Privacy = "pure",
    strategy: str | None = None,
    weights: ArrayLike | None = None,
    objective: Objective = "total",
    sizes: ArrayLike | None = None,
    deadline: float | None = None,
    target_gap: float = TARGET_GAP,
    reduce: bool | None = None,
    progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    **parameters: Any,
) -> Strategy:
    """The strategy of least error, by default of least total squared error, for a workload W (queries × cells).

    Without ``strategy`` the workload is reduced exactly and a portfolio is searched; with a name from
    ``strategies()`` that one runs on W as given, as published, unless ``reduce=True``, and further keywords
    are its own parameters (``gamma=`` and ``rank=`` of lrm, ``settings=`` and ``theta=`` of coa). "dawa" and
    "mwem" look at the data when they run: what comes back has neither L nor a predicted error (``DataDependent``).

    ``objective`` is what is least, and ``error``, ``lower_bound`` and ``trace`` are in its measure. With e_i =
    sensitivity²·‖B_i‖², the squared error of query i but for the noise's own constant, and ``weights`` ω_i:

    - ``"total"``: Σ ω_i·e_i, the sum of squared errors;
    - ``"largest"``: max ω_i·e_i;
    - ``"absolute"``: Σ ω_i·√e_i, the sum of standard errors. The mean absolute error of a query is √e_i times a
      constant: exactly under Gaussian noise, nearly under Laplace noise;
    - ``"relative"``: Σ ω_i·e_i/size_i², where ``sizes`` says how large each query's answer is expected to be.

    Only the ratios of the weights, at most 1e60, matter to the strategy.

    ``deadline`` (seconds), ``target_gap`` (by default 1e-5, and 8e-4 from 512 queries and cells on) and ``cancel``
    stop the search with the best so far and a true bound; ``progress`` is called at every improvement. Without
    ``deadline`` and ``cancel`` the work is counted in operations, never in seconds, and the same workload gives the
    same strategy.

    Width: the default is never above identity. Up to 8,192 cells after merging (and up to twice as many cells as
    queries) all families are searched. Beyond, a dense L of n×n would not fit: under pure ε identity, as a sparse L,
    competes with strategies that have about as many rows as W. Near that width the search takes up to a minute and
    2.5 GB; ``deadline`` cuts the former.

    Guarantee: see ``Strategy``. The result is measured on the L and B that are returned, not on what a search
    said of itself: W = B·L holds to 1e-9 in every row, and ``sensitivity`` is the largest column norm of L.

    >>> s = optimize([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]], privacy="pure")
    >>> round(s.error, 6), round(s.sensitivity, 6)
    (4.0, 1.0)
    """
    W = checked_workload(workload)
    options = checked_options(
        Options(privacy, strategy, objective, deadline, target_gap, reduce, progress, cancel, parameters)
    )
    omega = checked_weights(checked_weights(weights, len(W)) * weights_of_sizes(sizes, objective, len(W)), len(W))
    check_range(W, omega)
    if strategy in DATA_DEPENDENT:
        return data_dependent(W, omega, options)
    scale = _scale(W)
    W = W if scale == 1.0 else W / scale
    typical = math.ldexp(1.0, round(float(np.log2(omega).mean())))  # γ and θ of the strategies are absolute figures
    unit = typical * (scale if objective == "absolute" else scale * scale)
    if target_gap == TARGET_GAP and strategy is None and min(W.shape) >= LARGE:
        target_gap = LARGE_GAP
    watch = Watch(deadline=deadline, target_gap=target_gap, progress=_scaled(progress, unit), cancel=cancel)
    with one_blas_thread():
        result = _SEARCH[objective](W, omega / typical, options, watch)
    return replace(
        result,
        B=result.B if scale == 1.0 else result.B * scale,
        error=result.error * unit,
        lower_bound=result.lower_bound * unit,
        trace=tuple((s, e * unit, b * unit) for s, e, b in result.trace),
    )


_SEARCH = {
    "total": least_total,
    "largest": least_largest,
    "absolute": least_absolute,
    "relative": least_total,
}


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
