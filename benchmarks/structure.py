"""Batches with structure against the best that is known of them: errors, planning, answers.

    python -m benchmarks.structure                  # everything, in minutes
    python -m benchmarks.structure table planning   # some: table, planning, weighted, published, answers, apart

``table``      cubes, marginals, ranges and mixtures: error against the L2 optimum, and the best peer's under L1
``planning``   CPU seconds as a multiple of importing pandas in the same run, and peak memory, a process each
``weighted``   2-way marginals with random weights, pure: against the best weighted marginals (HDMM's template)
``published``  RMSE of up-to-3-way marginals of three domains, against published figures
``answers``    2-way marginals of 15 columns over a million rows, from SQL: seconds, spread, consistency
``apart``      counts of states beside counts below ages, pure: one batch against two at the best split of ε

Errors are those of the data-free figure that strategies compete on, so they are exact. Figures of others are from the
papers and from their public code. Where SQL would have thousands of statements, the line says "engine".
"""

from __future__ import annotations

import itertools
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from tacit.engine import Privacy

from benchmarks import structured_workloads as made

Floats = NDArray[np.float64]
KINDS: tuple[Privacy, ...] = ("approximate", "pure")


def timed(source: made.Source, privacy: Privacy) -> tuple[made.Planned, float]:
    """A plan and its CPU seconds, without the compilation."""
    if isinstance(source, made.SqlBatch):
        _ = source.compiled
    before = time.process_time()
    planned = source.plan(privacy)
    return planned, time.process_time() - before


def title(text: str, line: str, *names: str) -> None:
    print(f"\n{text}\n" + line.format(*names), flush=True)


# ---- table

TABLE: tuple[tuple[str, Callable[[], made.Source], float, float], ...] = (
    ("CUBE of 3 × 10", lambda: made.cube([10] * 3), 3491.003, 7762.9),
    ("CUBE of 4 × 10", lambda: made.cube([10] * 4), 52958.26, 154217.5),
    ("CUBE of 5 × 10", lambda: made.cube([10] * 5), 803372.8, 2996406),
    ("2-way of 5 × 10", lambda: made.marginals([10] * 5, 2), 8157.021, 85600),
    ("2-way of 8 × 10", lambda: made.marginals([10] * 8, 2), 60702.39, 1835344),
    ("2-way of 10 × 10", lambda: made.marginals([10] * 10, 2), 153797.95, 7565400),
    ("2-way of 15 × 10", lambda: made.marginals([10] * 15, 2), 813670.88, 95267025),
    ("3-way of 8 × 10", lambda: made.marginals([10] * 8, 3), 2182466, 135365440),
    ("3-way of 15 × 10", lambda: made.marginals([10] * 15, 3), 132255410, 7.0458e10),
    ("Adult, 14 columns, 2-way", lambda: made.marginals(made.ADULT, 2), 5989671, 4.147e8),
    ("Adult, 14 columns, 3-way", lambda: made.products(made.ADULT, [3]), 2.310328e9, 5.748e11),
    ("Adult, 8 columns, 2-way", lambda: made.marginals(made.ADULT_8, 2), 23515.02, 554675),
    ("prefix 16 ⊗ 16", lambda: made.product_of_prefixes(16), 2085.33, 11196),
    ("prefix 64 ⊗ 64", lambda: made.product_of_prefixes(64), 79637.8, 821548),
    ("prefix 100 ⊗ 100", lambda: made.products([100] * 2, [2], range(2)), 249745, 3121877),
    ("prefix 32 ⊗ 32 ⊗ 32", lambda: made.products([32] * 3, [3], range(3)), 1503481, 31086299),
    ("prefix 85 ⊗ CUBE(2, 5)", lambda: made.prefixes_by_cube(85), 12610.5, 55571),
    ("prefix 85 beside CUBE(2, 5)", lambda: made.prefixes_beside_cube(85), 606.29, 4344.6),
)
"""Name, workload, L2 optimum, and the best L1 error of a peer."""


def table() -> None:
    line = "{:<28} {:>10} {:>7} {:>6}  {:<20} {:>13} {:>9} {:>10} {:>7}"
    names = ("workload", "queries", "from", "noise", "strategy", "error", "÷ known", "gap", "CPU s")
    title("Errors: ÷ known is by the L2 optimum (Gauss) and by the best peer's L1 error (Laplace)", line, *names)
    ratios: dict[Privacy, list[float]] = {kind: [] for kind in KINDS}
    for name, make, optimum, peer in TABLE:
        source = make()
        for privacy in KINDS:
            known = peer if privacy == "pure" else optimum
            planned, seconds = timed(source, privacy)
            ratios[privacy].append(planned.error / known)
            print(
                line.format(
                    *(name, f"{source.queries:,}", source.origin, "Gauss" if privacy == "approximate" else "Laplace"),
                    *(planned.strategy, f"{planned.error:.7g}", f"{ratios[privacy][-1]:.5f}"),
                    *(f"{planned.gap:.2%}" if planned.gap < 99.995 else f"× {planned.gap + 1:.3g}", f"{seconds:.2f}"),
                ),
                flush=True,
            )
    for privacy in KINDS:
        mean, worst = math.exp(float(np.mean(np.log(ratios[privacy])))), max(ratios[privacy])
        label = "the best peer" if privacy == "pure" else "the L2 optimum"
        print(f"÷ {label}: geometric mean {mean:.4f}, largest {worst:.5f}")


# ---- planning

PLANNING: dict[str, tuple[Callable[[], made.SqlBatch], float]] = {
    "CUBE of 3 × 12": (lambda: made.cube([12] * 3), 2),
    "2-way of 15 × 10": (lambda: made.marginals([10] * 15, 2), 10),
    "3-way of 8 × 10": (lambda: made.marginals([10] * 8, 3), 20),
    "Adult, 14 columns, 2-way": (lambda: made.marginals(made.ADULT, 2), 20),
}
"""Name, workload, and how many times the import of pandas planning may take."""

IMPORT = "import time; before = time.process_time(); import pandas; print(time.process_time() - before)"


def import_pandas() -> float:
    """CPU seconds, numpy included."""
    return float(subprocess.run([sys.executable, "-c", IMPORT], stdout=subprocess.PIPE, check=True, text=True).stdout)


def plan_alone(name: str, privacy: Privacy) -> dict[str, Any]:
    """One line of the planning table, in this process: CPU seconds to compile and to plan, and peak memory in MB."""
    source = PLANNING[name][0]()
    before = time.process_time()
    _ = source.compiled
    compiling = time.process_time() - before
    planned, seconds = timed(source, privacy)
    memory = peak_memory()
    return {"strategy": planned.strategy, "compiling": compiling, "seconds": seconds, "memory": memory}


def peak_memory() -> int:
    """In MB. Where Linux says it, that of this program alone: ``getrusage`` starts from the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def planning() -> None:
    pandas = min(import_pandas() for _ in range(3))
    line = "{:<28} {:>8}  {:<12} {:>10} {:>10} {:>9} {:>8} {:>7}"
    names = ("workload", "noise", "strategy", "compile s", "plan s", "× pandas", "at most", "MB")
    title(f"Planning from SQL, in CPU seconds; importing pandas takes {pandas:.3f}", line, *names)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for name, (_, most) in PLANNING.items():
        for privacy in KINDS:
            command = [sys.executable, "-m", "benchmarks.structure", "--child", name, privacy]
            run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
            result = json.loads(run.stdout)
            print(
                line.format(
                    *(name, "Laplace" if privacy == "pure" else "Gauss", result["strategy"]),
                    *(f"{result['compiling']:.3f}", f"{result['seconds']:.3f}"),
                    *(f"{result['seconds'] / pandas:.2f}", f"{most:g}", result["memory"]),
                ),
                flush=True,
            )


# ---- weighted


def template(sizes: Sequence[int], weights: dict[tuple[int, ...], float], starts: int = 300) -> float:
    """The least error of weighted marginals under L1, over all subsets of the columns: HDMM's OPT_M.

    With θ_S on the marginal over S, LᵀL has the eigenvalue Σ_{S ⊇ U} θ_S² Π_{a ∉ S} n_a on the space of U.
    """
    sets = [s for k in range(len(sizes) + 1) for s in itertools.combinations(range(len(sizes)), k)]
    beside = {s: math.prod(n for a, n in enumerate(sizes) if a not in s) for s in sets}
    inside = np.array([[set(u) <= set(s) for s in sets] for u in sets]) * np.array([beside[s] for s in sets])
    asked = np.array(
        [
            math.prod(sizes[a] - 1 for a in u) * sum(w * beside[s] for s, w in weights.items() if set(u) <= set(s))
            for u in sets
        ]
    )

    needed = asked > 0
    inside, asked = inside[needed], asked[needed]

    def error(z: Floats) -> tuple[float, Floats]:
        theta = np.exp(np.maximum(z - z.max(), -30.0))
        eigenvalues = inside @ theta**2
        parts = asked / eigenvalues
        gradient = -2 * theta * (inside.T @ (parts / eigenvalues)) / parts.sum()
        return math.log(parts.sum()) + 2 * math.log(theta.sum()), gradient + 2 * theta / theta.sum()

    rng = np.random.default_rng(0)
    spreads = itertools.islice(itertools.cycle((0.3, 1.0, 2.0)), starts)
    runs = (minimize(error, rng.normal(0, s, len(sets)), jac=True, method="L-BFGS-B") for s in spreads)
    return math.exp(min(float(run.fun) for run in runs))


def weighted(draws: int = 6) -> None:
    sizes = (8, 6, 5, 4)
    line = "{:<44} {:<20} {:>11} {:>11} {:>9} {:>7}"
    names = ("weights", "strategy", "error", "template", "÷", "CPU s")
    title("2-way marginals of 8 × 6 × 5 × 4, weighted, pure: against the best weighted marginals", line, *names)
    pairs = list(itertools.combinations(range(4), 2))
    rng = np.random.default_rng(1)
    for draw in range(draws):
        weights = np.ones(6) if draw == 0 else np.exp(rng.normal(0, 1.5, 6))
        weights = weights / weights.max()  # as requests have them
        planned, seconds = timed(made.marginals(sizes, 2, weights.tolist()), "pure")
        best = template(sizes, dict(zip(pairs, weights.tolist(), strict=True)))
        print(
            line.format(
                *(" ".join(f"{w:.3f}" for w in weights), planned.strategy, f"{planned.error:.6g}", f"{best:.6g}"),
                *(f"{planned.error / best:.4f}", f"{seconds:.2f}"),
            ),
            flush=True,
        )


# ---- published

DOMAINS: dict[str, tuple[tuple[int, ...], int, float, float]] = {
    "Adult": ((100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2), 5, 10.665, 45.17),
    "CPS": ((50, 100, 7, 4, 2), 2, 2.276, 7.57),
    "Loans": ((101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15), 4, 8.876, 34.14),
}
"""Sizes, numeric columns first; how many are numeric; RMSE of the optimum, and of ResidualPlanner+ with prefixes."""


def published() -> None:
    line = "{:<8} {:<10} {:>12} {:<12} {:>9} {:>10} {:>9} {:>10} {:>7}"
    names = ("domain", "numeric", "queries", "strategy", "RMSE", "published", "÷", "gap", "CPU s")
    title("RMSE of up-to-3-way marginals at σ = 1 for Δ = 1 (engine)", line, *names)
    for name, (sizes, numeric, optimum, peer) in DOMAINS.items():
        for kind, ranges, known in (("points", 0, optimum), ("prefixes", numeric, peer)):
            source = made.products(sizes, range(4), range(ranges))
            planned, seconds = timed(source, "approximate")
            rmse = math.sqrt(planned.error / source.queries)
            print(
                line.format(
                    *(name, kind, f"{source.queries:,}", planned.strategy, f"{rmse:.4f}", f"{known:g}"),
                    *(f"{rmse / known:.4f}", f"{planned.gap:.2%}", f"{seconds:.2f}"),
                ),
                flush=True,
            )


# ---- answers


def generated(rows: int, columns: int) -> Any:
    """A database of its own, and so a ledger of its own: one release must not serve the other."""
    import duckdb

    database = duckdb.connect()
    database.execute(f"CREATE TYPE level AS ENUM ({', '.join(repr(f'v{i}') for i in range(10))})")
    database.execute(f"CREATE TABLE t ({', '.join(f'c{i} level NOT NULL' for i in range(columns))})")
    # the smaller of two draws, so that the counts are not even
    drawn = ", ".join(f"('v' || least(hash(i, {k}) % 10, hash(i, -1 - {k}) % 10))::level" for k in range(columns))
    database.execute(f"INSERT INTO t SELECT {drawn} FROM range({rows}) AS r(i)")
    return database


def answers(rows: int = 1_000_000, columns: int = 15) -> None:
    import tacit

    batch = list(made.marginals_sql(columns, 2))
    line = "{:<8} {:<12} {:>8} {:>8} {:>10} {:>12} {:>10} {:>14} {:>16}"
    heads = ("noise", "strategy", "wall s", "CPU s", "again s", "stderr", "spread", "largest |z|", "disagreement")
    text = f"{len(batch)} marginals of {columns} columns over {rows:,} rows, ε = 1, from SQL"
    title(f"{text}: spread is the root mean square of (answer - exact) / stderr", line, *heads)
    for noise, delta in (("Gauss", 1e-9), ("Laplace", 0.0)):
        with tacit.connect(generated(rows, columns), epsilon=1.0, delta=1e-6) as connection:
            exact = tacit.testing.exact_answers(connection, batch)
            truth = np.concatenate([frame.iloc[:, -1].to_numpy(float) for frame in exact])
            wall, cpu = time.perf_counter(), time.process_time()
            answered = connection.answer(batch, epsilon=1.0, delta=delta)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            begin = time.perf_counter()
            connection.answer(batch, epsilon=1.0, delta=delta)
            again = time.perf_counter() - begin
        long = answered.df()
        stderr = long["stderr"].to_numpy(float)
        z = (long["value"].to_numpy(float) - truth) / stderr
        print(
            line.format(
                *(noise, answered.strategy, f"{wall:.2f}", f"{cpu:.2f}", f"{again:.2f}", f"{np.mean(stderr):.4g}"),
                *(f"{np.sqrt(np.mean(z**2)):.4f}", f"{np.abs(z).max():.2f}", f"{disagreement(answered):.3g}"),
            ),
            flush=True,
        )


def disagreement(answered: Any) -> float:
    """The largest difference between the counts of one column, added up from different marginals."""
    sums: dict[str, list[Floats]] = {}
    for answer in answered:
        counts = answer.df.iloc[:, -1].to_numpy(float).reshape(10, 10)
        for axis, name in enumerate(answer.df.columns[:2]):
            sums.setdefault(str(name), []).append(counts.sum(axis=1 - axis))
    return max(float(np.ptp(np.array(listed), axis=0).max()) for listed in sums.values())


# ---- apart

SIZES = ((5, 20), (20, 50), (30, 50), (40, 50), (50, 50), (30, 100), (50, 100), (100, 200), (200, 500))


def apart() -> None:
    line = "{:>7} {:>6} {:>9} {:<20} {:>12} {:>12} {:>8} {:>7}"
    names = ("states", "ages", "cells", "strategy", "joint", "apart", "÷", "CPU s")
    title("Counts of states beside counts below ages, pure: one batch, and two at the best split of ε", line, *names)
    for states, ages in SIZES:
        first, second, both = made.states_and_ages(states, ages)
        planned, seconds = timed(both, "pure")
        alone = [source.plan("pure").error for source in (first, second)]
        split = sum(error ** (1 / 3) for error in alone) ** 3
        print(
            line.format(
                *(states, ages, f"{both.cells:,}" if both.cells else "unlisted", planned.strategy),
                *(f"{planned.error:.6g}", f"{split:.6g}", f"{planned.error / split:.4f}", f"{seconds:.2f}"),
            ),
            flush=True,
        )


PARTS: dict[str, Callable[[], None]] = {
    part.__name__: part for part in (table, planning, weighted, published, answers, apart)
}


def main(parts: list[str]) -> None:
    if not set(parts) <= PARTS.keys():
        raise SystemExit(__doc__)
    for name in parts or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--child", name, "pure" | "approximate" as privacy]:
            print(json.dumps(plan_alone(name, privacy)))
        case parts:
            main(parts)
