"""DAWA and MWEM against tacit's default, on counts: who has less error, and at which ε.

    python benchmarks/data_dependent.py                              # generated counts: some two minutes
    python benchmarks/data_dependent.py --data A.npy B.npy           # counts from files, summed to --cells cells
    python benchmarks/data_dependent.py --cells 256 --queries 64 --runs 20

The workload is WRange: random ranges over ordered cells. Errors are mean squared errors of a query. The default's is
predicted, which is exact for it; the others' are measured over releases by the engine as it is, and have an error of
their own (± is one standard error of the mean over the runs). All are under pure ε.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tacit.engine import Strategy, optimize, release, total_error

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

EPSILONS = (0.001, 0.01, 0.1, 1.0)
COMPETITORS: dict[str, tuple[str, dict[str, float]]] = {
    "dawa": ("dawa", {}),
    "dawa, margin 1": ("dawa", {"margin": 1.0}),
    "dawa, no margin": ("dawa", {"margin": 0.0}),
    "mwem": ("mwem", {}),
    "mwem, 40 rounds": ("mwem", {"rounds": 40}),
}


def ranges(queries: int, cells: int, seed: int = 0) -> Matrix:
    """WRange: both ends of every query are uniform."""
    ends = np.sort(np.random.default_rng(seed).integers(0, cells, (queries, 2)), axis=1)
    numbers = np.arange(cells)
    return ((numbers >= ends[:, :1]) & (numbers <= ends[:, 1:])).astype(float)


def generated(cells: int) -> Iterator[tuple[str, Counts]]:
    """One data set that DAWA is made for, and one that it is not."""
    rng = np.random.default_rng(0)
    steps = np.repeat(rng.pareto(0.5, 16).clip(max=1000), cells // 16 + 1)[:cells]
    yield "generated, 16 steps", rng.poisson(steps)
    yield "generated, uneven", rng.integers(0, 60, cells)


def stored(paths: list[Path], cells: int) -> Iterator[tuple[str, Counts]]:
    """Counts from files of numpy's, neighbouring cells summed."""
    for path in paths:
        counts = np.load(path).astype(np.int64)
        whole = counts[: len(counts) // cells * cells]
        yield path.name.split(".")[0], whole.reshape(cells, -1).sum(axis=1)


def measured_error(strategy: Strategy, workload: Matrix, counts: Counts, epsilon: float, runs: int) -> Matrix:
    """The mean squared error of a query in each of some releases."""
    exact = workload @ counts
    return np.array([np.mean((release(strategy, counts, epsilon) - exact) ** 2) for _ in range(runs)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", type=Path, default=[], metavar="counts.npy")
    parser.add_argument("--cells", type=int, default=1024)
    parser.add_argument("--queries", type=int, default=256)
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    W = ranges(asked.queries, asked.cells)
    default = optimize(W)
    strategies = {
        label: optimize(W, strategy=name, **parameters)  # type: ignore[arg-type]
        for label, (name, parameters) in COMPETITORS.items()
    }
    print(f"WRange, {asked.queries} queries over {asked.cells} cells; the default is {default.name}")
    for title, x in stored(asked.data, asked.cells) if asked.data else generated(asked.cells):
        print(f"\n{title}: {x.sum():,} rows, {np.count_nonzero(x)} cells with any")
        print(f"{'ε':>6} {'default':>10} " + " ".join(f"{label:>22}" for label in strategies) + "  least")
        for epsilon in EPSILONS:
            predicted = total_error(default, epsilon) / len(W)
            errors = {name: measured_error(s, W, x, epsilon, asked.runs) for name, s in strategies.items()}
            means = {"default": predicted} | {name: float(e.mean()) for name, e in errors.items()}
            shown = " ".join(f"{e.mean():>12.3g} ±{e.std(ddof=1) / len(e) ** 0.5:<8.2g}" for e in errors.values())
            least = min(means, key=lambda name: means[name])
            print(f"{epsilon:>6} {predicted:>10.3g} {shown}  {least} ({predicted / means[least]:.2f}×)", flush=True)


if __name__ == "__main__":
    main()
