"""Strategies against their bounds, the targets and the peers' recorded figures, in one run.

    python benchmarks/strategies.py            # everything, some four minutes on an idle core
    python benchmarks/strategies.py pure       # one part: approximate, pure, memory, small, floor
    python benchmarks/strategies.py pure lrm   # with LRM by name in the pure table: minutes more
    python benchmarks/strategies.py small      # batches of few queries under pure ε, LRM at full length: two minutes
    python benchmarks/strategies.py floor      # ranges under pure ε from many start points: ten minutes

Errors are ‖L‖²·‖B‖²_F without the noise's constant. Peers' figures were recorded on the same workloads by the
authors' own programs. Seconds are CPU seconds, so that a busy machine does not blur them.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tacit.engine import Privacy, Strategy, optimize
from tacit.engine.search.bounds import svd_bound
from tacit.engine.search.reduce import compress_rows, reduce_workload
from tacit.engine.search.strategies.p_identity import Problem, hats
from tacit.engine.search.watch import Watch

Matrix = NDArray[np.float64]


def discrete(m: int, n: int) -> Matrix:
    return np.where(np.random.default_rng(0).random((m, n)) < 0.02, 1.0, -1.0)


def ranges(m: int, n: int) -> Matrix:
    ends = np.sort(np.random.default_rng(0).integers(0, n, (m, 2)), axis=1)
    cells = np.arange(n)
    return ((cells >= ends[:, :1]) & (cells <= ends[:, 1:])).astype(float)


def related(m: int, n: int, percent: int) -> Matrix:
    stream = np.random.default_rng(0)
    rank = int(percent / 100 * min(m, n))
    return np.asarray(stream.normal(size=(m, rank)) @ stream.normal(size=(rank, n)))


def prefix(n: int) -> Matrix:
    return np.tril(np.ones((n, n)))


def all_ranges(n: int) -> Matrix:
    return np.vstack([np.hstack([np.zeros((n - i, i)), np.tril(np.ones((n - i, n - i)))]) for i in range(n)])


def marginals(*shape: int) -> Matrix:
    """All two-way marginals."""
    cells = np.indices(shape).reshape(len(shape), -1)
    pairs = [(a, b) for a in range(len(shape)) for b in range(a + 1, len(shape))]
    rows = [(cells[a] == u) & (cells[b] == v) for a, b in pairs for u in range(shape[a]) for v in range(shape[b])]
    return np.array(rows, dtype=float)


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[], Matrix]
    peer: str
    """The best figure recorded for a peer."""
    target: float
    """What is asked for; 0 when nothing is."""


APPROXIMATE = [
    Case("Discrete 256×256", lambda: discrete(256, 256), "HDMM 5827", 0),
    Case("Range 256×256", lambda: ranges(256, 256), "HDMM 1949", 0),
    Case("Range 256×1024", lambda: ranges(256, 1024), "COA 5578", 0),
    Case("Related-10 256×256", lambda: related(256, 256, 10), "LRM 197073", 0),
    Case("Related-10 256×1024", lambda: related(256, 1024, 10), "COA 350075", 0),
    Case("Prefix 256", lambda: prefix(256), "HDMM 1631.4", 0),
    Case("Prefix 1024", lambda: prefix(1024), "COA 28219", 0),
    Case("Marginals 8×8×16", lambda: marginals(8, 8, 16), "RP 834.149", 0),
    Case("Related-50 256×256", lambda: related(256, 256, 50), "–", 0),
    Case("Range 1024×512", lambda: ranges(1024, 512), "–", 0),
    Case("AllRange 256", lambda: all_ranges(256), "–", 0),
    Case("random 100×700", lambda: np.random.default_rng(1).normal(size=(100, 700)), "–", 0),
    Case("random 0/1 300×900", lambda: np.random.default_rng(2).integers(0, 2, (300, 900)).astype(float), "–", 0),
]

PURE = [
    Case("Range 256×256", lambda: ranges(256, 256), "HDMM 7985", 7_400),
    Case("Range 256×1024", lambda: ranges(256, 1024), "HDMM 14074", 10_000),
    Case("Discrete 256×256", lambda: discrete(256, 256), "HDMM 12416", 12_372),
    Case("Related-10 256×256", lambda: related(256, 256, 10), "HDMM 1.6036e6", 1.6036e6),
    Case("Related-10 256×1024", lambda: related(256, 1024, 10), "LRM 3.049e6", 2.86e6),
    Case("Prefix 256", lambda: prefix(256), "HDMM 6918", 6_830),
    Case("AllRange 256", lambda: all_ranges(256), "HDMM 1.0698e6", 1.066e6),
    Case("Marginals 8×8×16", lambda: marginals(8, 8, 16), "HDMM 2517", 2_517),
    Case("Range 1024×512", lambda: ranges(1024, 512), "HDMM 47465", 46_500),
    Case("Related-50 256×256", lambda: related(256, 256, 50), "HDMM 8.333e6", 8.333e6),
    Case("LRM's Figure 1", lambda: np.array([[0.0, 2, 1, 1], [0, 1, 0, 2], [1, 0, 2, 2]]), "LRM 19.5", 19.005),
]

RACES = {"Range 256×1024": 0.2, "Related-10 256×1024": 0.2, "Prefix 1024": 1.0}
"""Largest allowed share of coa's own time for reaching a gap of 0.1 %."""


def timed(workload: Matrix, privacy: Privacy, strategy: str | None = None, **options: float) -> tuple[Strategy, float]:
    start = time.process_time()
    result = optimize(workload, privacy=privacy, strategy=strategy, **options)  # type: ignore[arg-type]
    return result, time.process_time() - start


def approximate() -> None:
    print("(ε, δ): error against the best peer and the proven bound; the gap must be at most 0.1 %")
    print(f"{'workload':22}{'SVD bound':>12}{'peer':>16}{'tacit':>14}{'bound':>14}{'gap':>9}{'seconds':>9}")
    for case in APPROXIMATE:
        W = case.make()
        result, seconds = timed(W, "approximate", target_gap=1e-3)
        verdict = "" if result.gap <= 1e-3 else "  ABOVE 0.1 %"
        print(
            f"{case.name:22}{svd_bound(W):12.6g}{case.peer:>16}{result.error:14.7g}{result.lower_bound:14.7g}"
            f"{result.gap:9.2%}{seconds:9.2f}{verdict}",
            flush=True,
        )
        if case.name in RACES:
            slow = optimize(W, privacy="approximate", strategy="coa")
            ratio = result.seconds / slow.seconds
            verdict = "" if ratio <= RACES[case.name] else "  TOO SLOW"
            print(
                f"{'':22}coa, ten iterations: {slow.error:.6g} ({slow.gap:.1%} above the bound) in "
                f"{slow.seconds:.2f} s; tacit takes {ratio:.3f} of that{verdict}",
                flush=True,
            )


def pure(with_lrm: bool) -> None:
    names = ["identity", "results", "hierarchical", "wavelet", "p-identity", *(["lrm"] if with_lrm else [])]
    print("\npure ε: error by name and by default; the default must be below all of them")
    print(
        f"{'workload':20}"
        + "".join(f"{name:>13}" for name in names)
        + f"{'peer':>15}{'target':>10}{'tacit':>12}{'after 2 s':>12}{'seconds':>9}  winner"
    )
    for case in PURE:
        W = case.make()
        # Named strategies of 30,000 rows differ from those of R with RᵀR = WᵀW in nothing but time.
        named = {name: timed(W, "pure", name)[0].error for name in names if name != "results" or len(W) < 5000}
        result, seconds = timed(W, "pure")
        early = min((e for s, e, _ in result.trace if s <= 2.0), default=float("nan"))
        verdict = "ok" if result.error <= case.target else f"{result.error / case.target - 1:+.2%}"
        behind = [name for name, error in named.items() if error < result.error * (1 - 1e-9)]
        print(
            f"{case.name:20}"
            + "".join(f"{named.get(name, float('nan')):13.5g}" for name in names)
            + f"{case.peer:>15}{case.target:10.5g}{result.error:12.6g}{early:12.6g}{seconds:9.2f}"
            + f"  {result.name}, target {verdict}{'  WORSE THAN ' + ', '.join(behind) if behind else ''}",
            flush=True,
        )


def memory() -> None:
    print("\nmemory: planning Range 1024×8192 (peak resident set of this process so far, target under 2 GB)")
    W = ranges(1024, 8192)
    for privacy in ("approximate", "pure"):
        result, seconds = timed(W, privacy, deadline=20.0)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{privacy:12} {result!r} in {seconds:.1f} s, {peak:.2f} GB", flush=True)


def small() -> None:
    """The default against nine named strategies on random batches of few queries, which most batches are."""
    named = ("identity", "results", "hierarchical", "wavelet", "p-identity", "weighted", "adaptive", "low-rank", "lrm")
    kinds: dict[str, Callable[[np.random.Generator], Matrix]] = {
        "4 predicates": lambda rng: (rng.random((4, 16)) < 0.5).astype(float),
        "8 predicates": lambda rng: (rng.random((8, 24)) < 0.5).astype(float),
        "16 ranges": lambda rng: intervals(np.sort(rng.integers(0, 64, (16, 2)), axis=1), 64),
        "4 sums": lambda rng: rng.normal(size=(4, 16)),
    }
    print("\npure ε, small batches: error of the best named strategy over that of the default; below 1 it is ahead")
    for name, make in kinds.items():
        ratios, seconds = [], []
        for seed in range(8):
            W = make(np.random.default_rng(seed))
            ours, taken = timed(W, "pure")
            best = min((optimize(W, strategy=other, reduce=True) for other in named), key=lambda s: s.error)
            ratios.append(best.error / ours.error)
            seconds.append(taken)
        shown = " ".join(f"{ratio:.3f}" for ratio in sorted(ratios))
        print(f"{name:14} {shown}  mean {np.mean(ratios):.3f}; {np.mean(seconds):.1f} s", flush=True)


def intervals(ends: NDArray[np.int64], n: int) -> Matrix:
    cells = np.arange(n)
    return ((ends[:, :1] <= cells) & (cells <= ends[:, 1:])).astype(float)


def floor() -> None:
    """How low p-identity goes on the ranges: long annealing from hats and from random sums, at many numbers of sums."""
    print("\npure ε, ranges: error after slow annealing from five start points for each number of sums")
    for case, counts in ((PURE[0], range(9, 18)), (PURE[1], range(22, 31))):
        (block,) = reduce_workload(case.make()).blocks
        W = compress_rows(block.workload)
        problem, n = Problem(W), W.shape[1]
        print(f"{case.name}: {n} columns, target {case.target:g}")
        for count in counts:
            errors = []
            for seed in range(5):
                stream = np.random.default_rng(seed)
                start = np.vstack([hats(n, count - 1), np.full((1, n), 0.3)])
                if seed % 2:
                    start = 0.5 * stream.random((count, n))
                elif seed:
                    start += 0.3 * stream.standard_normal((count, n))
                errors.append(problem.anneal(start, 60, 60, Watch())[0])
            print(f"{count:6} sums: " + " ".join(f"{error:9.1f}" for error in sorted(errors)), flush=True)


if __name__ == "__main__":
    parts = [part for part in sys.argv[1:] if part != "lrm"] or ["approximate", "pure", "memory"]
    if "memory" in parts:  # first: the peak is of the whole process
        memory()
    if "approximate" in parts:
        approximate()
    if "pure" in parts:
        pure("lrm" in sys.argv)
    if "small" in parts:
        small()
    if "floor" in parts:
        floor()
