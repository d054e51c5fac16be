"""What better inference is worth, from the same noisy answers: two tables.

    python benchmarks/inference.py                              # both, some five minutes on an idle core
    python benchmarks/inference.py likelihood                   # the centre of the likelihood against least squares
    python benchmarks/inference.py nonnegative [--data FILE]    # non-negative against plain least squares
    python benchmarks/inference.py --tiny                       # both at toy sizes, in seconds

``likelihood``: the mean squared error of all queries as a share of least squares', on the same draws, for three
estimates under Laplace noise: the maximum of the likelihood (a linear program), its mean (Pitman's estimate, by Gibbs
sampling; no estimate that follows shifts has less), and the centre that ``inference="likelihood"`` computes; then how
often its 95 % intervals hold on these draws, which are not those that they come from, and how wide they are beside
those of least squares. A dash where least squares stays, because too little would be gained.

``nonnegative``: the matrix-mechanism talk's plot "all range queries, non-negative least squares" (synthetic sparse
data, ε = 0.1, n = 1024) as numbers: the mean squared error per query by the size of the range. ``--data`` takes a .npy
file of counts, such as SEARCHLOGS or NETTRACE, whose cells are merged to n; without one the data are generated. All
n·(n+1)/2 ranges are differences of prefix sums, so no matrix of them is formed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse
from numpy.typing import NDArray
from tacit.engine import optimize
from tacit.engine.inference.intervals import covering_widths
from tacit.engine.inference.likelihood import WORTH_IT, Centre, simulate
from tacit.engine.inference.nonnegative import fit
from tacit.engine.mechanism.widths import half_widths
from tacit.process import one_blas_thread

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

B_ONE = np.sqrt(0.5)
"""Laplace's scale at unit variance."""
SWEEPS, BURN_IN = 600, 100
SIZES = ((1, 4), (5, 16), (17, 64), (65, 256), (257, 1024))


def all_ranges_root(n: int) -> Matrix:
    """R with RᵀR = WᵀW for all ranges: the same strategies at the same errors, on n rows."""
    j = np.arange(1, n + 1)
    gram = np.minimum(j, j[:, None]) * (n + 1.0 - np.maximum(j, j[:, None]))
    return np.asarray(np.linalg.cholesky(gram).T)


def some_ranges(m: int, n: int) -> Matrix:
    ends = np.sort(np.random.default_rng(0).integers(0, n, (m, 2)), axis=1)
    cells = np.arange(n)
    return ((cells >= ends[:, :1]) & (cells <= ends[:, 1:])).astype(float)


def maximum(S: Matrix, answers: Matrix) -> Matrix:
    """S·x̂ for the x̂ of least Σ|z_i − S_i·x|, column by column: a vertex of the linear program."""
    q, n = S.shape
    system = scipy.sparse.csc_array(np.hstack([S, np.eye(q), -np.eye(q)]))
    cost, least = np.r_[np.zeros(n), np.ones(2 * q)], np.r_[np.full(n, -np.inf), np.zeros(2 * q)]
    bounds = np.stack([least, np.full(n + 2 * q, np.inf)], axis=1)
    solve: Any = scipy.optimize.linprog  # its stubs know neither sparse matrices nor bounds in one array
    solutions = [solve(cost, A_eq=system, b_eq=z, bounds=bounds).x[:n] for z in answers.T]
    return np.asarray(S @ np.array(solutions).T)


def mean(S: Matrix, answers: Matrix) -> Matrix:
    """S·x̂ for the mean x̂ of the likelihood: Laplace noise is Gaussian noise of random variance (Gibbs sampling)."""
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(S)[0]
    rate, c = 1 / B_ONE, answers.T @ basis
    total = np.zeros_like(c)
    for sweep in range(BURN_IN + SWEEPS):
        residual = np.abs(answers.T - c @ basis.T) + 1e-12
        precision = np.maximum(rng.wald(rate / residual, rate**2), 1e-12)
        weighted = np.swapaxes(precision[:, :, None] * basis, 1, 2)
        system = weighted @ basis
        centre = np.linalg.solve(system, weighted @ answers.T[:, :, None])[:, :, 0]
        root = np.linalg.cholesky(system)
        c = centre + np.linalg.solve(np.swapaxes(root, 1, 2), rng.normal(size=c.shape)[:, :, None])[:, :, 0]
        if sweep >= BURN_IN:
            total += centre
    return np.asarray(basis @ (total / SWEEPS).T)


def evidence(n: int) -> Iterator[tuple[str, Matrix, Matrix]]:
    """A name, the workload, and the questions."""
    every, some = all_ranges_root(n), some_ranges(n, n)
    default, thin = optimize(every).L, optimize(some).L
    tree = optimize(every, strategy="hierarchical").L
    yield "all ranges, default", every, default
    yield "all ranges, p-identity", every, optimize(every, strategy="p-identity").L
    yield "all ranges, wavelet", every, optimize(every, strategy="wavelet").L
    yield "all ranges, hierarchical", every, tree
    yield f"{n} ranges, default", some, thin
    yield f"{4 * n} ranges asked as they are", (asked := some_ranges(4 * n, n)), asked
    for times in (2, 3, 5, 10):
        yield f"all ranges, default × {times}", every, np.vstack([default] * times)
    yield f"{n} ranges, default × 5", some, np.vstack([thin] * 5)
    yield "all ranges, hierarchical × 5", every, np.vstack([tree] * 5)


def likelihood(n: int, draws: int, *, others: bool) -> None:
    print(f"\nn = {n}; mean squared error as a share of least squares', {draws} draws (± its standard error)")
    print(f"{'':34} {'questions':>9} {'maximum':>14} {'mean':>14} {'centre':>14} {'95 % holds':>10} {'width':>6} s")
    for name, W, L in evidence(n):
        U, s, Vt = np.linalg.svd(L, full_matrices=False)
        r = int((s > 1e-9 * s[0]).sum())
        S = U[:, :r] * s[:r]
        B = W @ Vt[:r].T @ np.linalg.pinv(S)
        laplace = np.full(len(S), B_ONE)
        noise = np.random.default_rng(5).laplace(scale=B_ONE, size=(len(S), draws))
        linear = np.sum((B @ noise) ** 2, axis=0)
        start = time.process_time()
        centre = Centre(S, laplace, np.ones(len(S)))
        stated = simulate(centre, B, laplace, np.zeros(len(S)))
        seconds = time.process_time() - start
        errors = B @ centre.fit(noise)
        used = np.abs(B).max(axis=1) > 0
        widths, exact = covering_widths(stated.rows, 0.95)[used], half_widths(B * B_ONE, None, 0.95)[used]
        holds = np.abs(errors[used]) <= widths[:, None]
        taken = stated.gain < WORTH_IT
        columns = [
            _share(np.sum((B @ maximum(S, noise)) ** 2, axis=0), linear) if others else "",
            _share(np.sum((B @ mean(S, noise)) ** 2, axis=0), linear) if others else "",
            _share(np.sum(errors**2, axis=0), linear),
            f"{holds.mean():.4f}" if taken else "–",
            f"{np.mean(widths / exact):.3f}" if taken else "–",
            f"{seconds:.1f}",
        ]
        print(f"{name:34} {len(S):4}/{r:<4} {columns[0]:>14} {columns[1]:>14} {columns[2]:>14} {columns[3]:>10} "
              f"{columns[4]:>6} {columns[5]}", flush=True)  # fmt: skip


def _share(squares: Vector, linear: Vector) -> str:
    """The ratio of two means over the same draws, with its standard error."""
    ratio = squares.mean() / linear.mean()
    spread = np.std(squares - ratio * linear) / linear.mean() / np.sqrt(len(linear))
    return f"{ratio:.3f} ± {spread:.3f}"


def generated(n: int, density: float, total: int) -> Vector:
    """Counts that fall off like a power law over a random share of the cells."""
    rng = np.random.default_rng(7)
    places = rng.choice(n, size=max(1, int(density * n)), replace=False)
    x = np.zeros(n)
    x[places] = rng.multinomial(total, (shares := 1 / np.arange(1, len(places) + 1)) / shares.sum())
    return x


def stored(path: str, n: int) -> Vector:
    counts = np.load(path).astype(np.float64)
    if len(counts) % n:
        raise SystemExit(f"{path} has {len(counts)} counts, which do not merge to {n}")
    return np.asarray(counts.reshape(n, -1).sum(axis=1))


def by_size(errors: Matrix) -> tuple[list[float], float]:
    """The mean squared error of a range query: for ranges of each size class, and for all; from the cells' errors."""
    n = len(errors)
    P = np.vstack([np.zeros((1, errors.shape[1])), np.cumsum(errors, axis=0)])
    each = np.array([np.mean((P[k:] - P[:-k]) ** 2) for k in range(1, n + 1)])
    count = n + 1.0 - np.arange(1, n + 1)
    classes = [slice(low - 1, min(high, n)) for low, high in SIZES if low <= n]
    return [float(np.average(each[part], weights=count[part])) for part in classes], float(
        np.average(each, weights=count)
    )


def nonnegative(n: int, x: Vector, what: str, epsilon: float, runs: int, strategies: dict[str, Matrix]) -> None:
    print(f"\nall ranges over {n} cells, ε = {epsilon:g}; {what}: {int(x.sum()):,} rows, {np.mean(x > 0):.1%} of the "
          f"cells not empty; mean squared error per query, {runs} runs")  # fmt: skip
    heads = [f"{low}–{min(high, n)}" for low, high in SIZES if low <= n]
    print(f"{'':14} {'inference':14}" + "".join(f"{head:>12}" for head in [*heads, "all"]))
    for name, L in strategies.items():
        scale = float(np.abs(L).sum(axis=0).max()) / epsilon
        noise = np.random.default_rng(3).laplace(scale=scale, size=(len(L), runs))
        answers = (L @ x)[:, None] + noise
        inverse = np.asarray(np.linalg.pinv(L), dtype=np.float64)
        plain = by_size(inverse @ noise)
        constrained = by_size(fit(L, answers, inverse @ answers) - x[:, None])
        for label, (classes, every) in (("least squares", plain), ("non-negative", constrained)):
            print(f"{name:14} {label:14}" + "".join(f"{value:12.4g}" for value in [*classes, every]))
        ratios = [b / a for a, b in zip([*plain[0], plain[1]], [*constrained[0], constrained[1]], strict=True)]
        print(f"{'':14} {'ratio':14}" + "".join(f"{ratio:12.3f}" for ratio in ratios), flush=True)


def strategies_for(n: int) -> dict[str, Matrix]:
    W = all_ranges_root(n)
    named = {name: optimize(W, strategy=name).L for name in ("identity", "hierarchical", "wavelet")}
    return {**named, "default": optimize(W).L}


def main() -> None:
    parser = argparse.ArgumentParser(description="What better inference is worth.")
    parser.add_argument("part", nargs="?", choices=["likelihood", "nonnegative"])
    parser.add_argument("--data", help="a .npy file of counts in place of the generated ones")
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--tiny", action="store_true")
    asked = parser.parse_args()
    with one_blas_thread():
        if asked.part != "nonnegative":
            likelihood(4 if asked.tiny else 16, 20 if asked.tiny else 500, others=True)
            if not asked.tiny:
                likelihood(128, 1000, others=False)
        if asked.part != "likelihood":
            n, runs = (16, 3) if asked.tiny else (1024, 20)
            made = strategies_for(n)
            if asked.data:
                nonnegative(n, stored(asked.data, n), asked.data, asked.epsilon, runs, made)
            else:
                for density in (0.03, 0.3, 1.0):
                    nonnegative(n, generated(n, density, 20 * n), "generated", asked.epsilon, runs, made)


if __name__ == "__main__":
    main()
