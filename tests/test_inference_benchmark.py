"""The benchmark of inference runs, and its figures over all ranges are those of a matrix of all ranges."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import inference as benchmark

FILE = Path(__file__).parents[1] / "benchmarks" / "inference.py"


def test_all_ranges_without_their_matrix() -> None:
    n = 20
    ends = [(i, j) for i in range(n) for j in range(i, n)]
    W = np.array([[float(i <= k <= j) for k in range(n)] for i, j in ends])
    root = benchmark.all_ranges_root(n)
    assert root.T @ root == pytest.approx(W.T @ W)
    errors = np.random.default_rng(0).normal(size=(n, 3))
    squares, sizes = np.mean((W @ errors) ** 2, axis=1), W.sum(axis=1)
    classes, every = benchmark.by_size(errors)
    assert every == pytest.approx(squares.mean())
    expected = [squares[(sizes >= a) & (sizes <= b)].mean() for a, b in benchmark.SIZES if a <= n]
    assert classes == pytest.approx(expected)


def test_the_maximum_and_the_mean_are_what_they_say() -> None:
    """Of one number measured five times: the median, and the mean of the likelihood by integration."""
    S, z = np.ones((5, 1)), np.random.default_rng(2).laplace(size=(5, 4))
    assert benchmark.maximum(S, z)[0] == pytest.approx(np.median(z, axis=0))
    x = np.linspace(-10, 10, 20001)
    likelihood = np.exp(-np.abs(z[:, None, :] - x[:, None]).sum(axis=0) / benchmark.B_ONE)
    exact = (x[:, None] * likelihood).sum(axis=0) / likelihood.sum(axis=0)
    assert benchmark.mean(S, z)[0] == pytest.approx(exact, abs=0.1)


def test_it_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(FILE), "nonnegative", "--tiny"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("non-negative") == 12
