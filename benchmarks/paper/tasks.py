"""What is measured: one task is one strategy on one workload, and is run once however many figures show it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from tacit.engine import optimize
from tacit.engine.search.options import TARGET_GAP
from tacit.engine.search.strategies.lrm import decompose
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Privacy, sensitivity
from tacit.errors import InternalError, NotSupportedError
from threadpoolctl import threadpool_limits

from benchmarks.paper.data import SEARCH, unit_counts
from benchmarks.paper.lemmas import coa_upper_bound, lemma3_bound, lemma4_figure
from benchmarks.paper.workloads import Setting

EPSILON, DELTA = 0.1, 1e-4
"""LRM's default and COA's only privacy parameters."""
LAPLACE = 2.0 / EPSILON**2
"""Variance of a Laplace draw at sensitivity 1 (LRM, Lemma 1)."""
GAUSS = 2.0 * math.log(2.0 / DELTA) / EPSILON**2
"""σ² at sensitivity 1 as the COA paper calibrates it; the analytic Gaussian that tacit releases with needs less, by the
same factor for every strategy."""
LATE = "took more than"
"""What a reason starts with when a task was ended; more time may help."""
FAILED = "failed"
"""What a reason starts with that is our defect, not a strategy's stated limit."""
RUNS = 20
"""Executions that both papers average over."""

THETA = 1e-3
"""COA's θ in its experiments (its Section 5)."""
GAMMA = 0.01
"""LRM's default γ (its Table 1)."""

Measures = Mapping[str, float]
Parameters = tuple[tuple[str, float | str], ...]
"""A named strategy's own keywords; a tuple, so that a task has a hash."""


class Task(Protocol):
    """Anything with named figures to measure; hashable, so that equal tasks are run once.

    Its repr names it in the file of a run, and leaves out the seconds that it may take.
    """

    def run(self) -> Measures: ...


@dataclass(frozen=True)
class Planned:
    """A strategy by name, or tacit's own search for ``strategy=None``.

    Measures: ``error`` and ``lower bound`` (expected squared error per query), ``seconds`` (of CPU, on one thread: a
    busy machine does not change them), ``proven`` (them again, but only if ``gap`` was reached), and ``stopped``,
    which is 1 when the time limit ended it.
    """

    setting: Setting
    privacy: Privacy
    strategy: str | None
    limit: float | None = field(default=None, repr=False)
    gap: float = TARGET_GAP
    parameters: Parameters = ()

    def run(self) -> Measures:
        W = self.setting.matrix()
        start = time.process_time()
        s = optimize(
            W,
            privacy=self.privacy,
            strategy=self.strategy,
            deadline=self.limit,
            target_gap=self.gap,
            **dict[str, Any](self.parameters),
        )
        seconds = time.process_time() - start
        scale = (LAPLACE if self.privacy == "pure" else GAUSS) / self.setting.m
        stopped = self.strategy is not None and self.limit is not None and s.seconds >= self.limit
        return {
            "error": scale * s.error,
            "lower bound": scale * s.lower_bound,
            "seconds": seconds,
            "stopped": float(stopped),
            **({"proven": seconds} if s.gap <= self.gap else {}),
        }


@dataclass(frozen=True)
class Lemmas:
    """What the papers' own lemmas say of the workload alone; no search is needed.

    Measures, per query and in the unit of the errors: ``LRM lemma 3`` and ``LRM lemma 4`` for pure ε, ``COA lemma 4``
    (its upper side) for (ε, δ). LRM's Lemma 4 has an unnamed constant, here 1, and is no bound.
    """

    setting: Setting
    privacy: Privacy

    def run(self) -> Measures:
        W = self.setting.matrix()
        with threadpool_limits(limits=1, user_api="blas"):
            if self.privacy == "approximate":
                return {"COA lemma 4": GAUSS / len(W) * coa_upper_bound(W)}
            scale = LAPLACE / len(W)
            return {"LRM lemma 3": scale * lemma3_bound(W), "LRM lemma 4": scale * lemma4_figure(W)}


@dataclass(frozen=True)
class Relaxed:
    """LRM's Algorithm 1 as published: the residual W − B·L stays in the answers as a bias.

    Measures: ``error 1``, ``error 0.1``, ``error 0.01`` (per query at that ε: noise by Lemma 1 plus the squared bias on
    Search Log, the paper's data set for these), ``noise`` (at ε = 0.1) and ``bias`` apart, ``residual`` (‖W − B·L‖_F),
    ``seconds`` (of CPU) and ``stopped``.
    """

    setting: Setting
    gamma: float = GAMMA
    ratio: float = 1.2
    folder: str | None = None
    limit: float | None = field(default=None, repr=False)

    def run(self) -> Measures:
        W = self.setting.matrix()
        rank = max(1, round(self.ratio * int(np.linalg.matrix_rank(W))))
        start = time.process_time()
        with threadpool_limits(limits=1, user_api="blas"):
            B, L = decompose(W, "pure", Watch(deadline=self.limit), rank, self.gamma)
        seconds = time.process_time() - start
        stopped = self.limit is not None and seconds >= self.limit
        residual = W - B @ L
        bias = float(np.sum((residual @ unit_counts(SEARCH, W.shape[1], self.folder)) ** 2)) / len(W)
        noise = 2.0 * (sensitivity(L, "pure") * float(np.linalg.norm(B))) ** 2 / len(W)
        errors = {f"error {epsilon:g}": noise / epsilon**2 + bias for epsilon in (1.0, 0.1, 0.01)}
        return {
            **errors,
            "noise": noise / EPSILON**2,
            "bias": bias,
            "residual": float(np.linalg.norm(residual)),
            "seconds": seconds,
            "stopped": float(stopped),
        }


@dataclass(frozen=True)
class Step:
    """COA's Algorithm 1 with θ = 10⁻³ (COA, Section 5) after ``iterations`` steps.

    Measures: ``objective`` (of Program 10, θ included, per query), ``gradient`` (‖G‖_F, the paper's optimality
    measure), ``free gradient`` (its off-diagonal part, which is what vanishes at the optimum because diag(X) is fixed),
    ``test error`` (per query, averaged over 20 draws) and ``lower bound``.
    """

    setting: Setting
    iterations: int
    parameters: Parameters = ()
    relative: bool = False
    """Whether θ is a share of the mean of diag(WᵀW)."""

    def run(self) -> Measures:
        W = self.setting.matrix()
        parameters = dict[str, Any](self.parameters)
        s = optimize(W, privacy="approximate", strategy="coa", iterations=self.iterations, theta=THETA, **parameters)
        inverse = np.linalg.inv(s.L.T @ s.L)
        V = W.T @ W
        V += THETA * (np.mean(np.diag(V)) if self.relative else 1.0) * np.eye(len(V))
        G = -inverse @ V @ inverse
        # W = B·L, so the data cancels and only the noise is left; no data is here, so any generator will do.
        draws = np.random.default_rng(self.iterations).standard_normal((len(s.L), RUNS))
        scale = GAUSS / len(W)
        return {
            "objective": scale * float(np.vdot(inverse, V)),
            "gradient": float(np.linalg.norm(G)),
            "free gradient": float(np.linalg.norm(G - np.diag(np.diag(G)))),
            "test error": scale * s.sensitivity**2 * float(np.sum((s.B @ draws) ** 2)) / RUNS,
            "lower bound": scale * s.lower_bound,
        }


@dataclass(frozen=True)
class Outcome:
    """What a task measured; ``reason`` says why it could not."""

    measures: Measures
    reason: str = ""


def attempt(task: Task) -> Outcome:
    """Run a task; a strategy that refuses a size or breaks leaves a gap in its curve, not an end to a run of hours."""
    try:
        return Outcome(task.run())
    except NotSupportedError as error:
        return Outcome({}, str(error))
    except MemoryError:
        return Outcome({}, "needs more memory than there is")
    except (InternalError, np.linalg.LinAlgError) as error:
        return Outcome({}, f"{FAILED}: {task}: {error}")
