"""What no strategy with Gaussian noise, and so none with Laplace noise, can beat on a workload of products.

For weights d on the cells, ‖W·diag(√d)‖²_* / Σd is below every strategy's error (``bounds``). Take d = ⊗ d_c with
Σd_c = 1. In the scaled coordinates the components over different sets S have orthogonal row spaces (the split with p
= d), with singular values that are products: N_S = √v_S · Π ‖rests of c‖_*. For any C with ‖C‖ ≤ 1, ‖W̃‖_* ≥ ⟨C,
W̃⟩. With W̃_S = U_S Σ_S Q_Sᵀ let C = Σ t_S U_S Q_Sᵀ / λ: ⟨C, W̃⟩ = Σ t_S N_S / λ, and ‖Σ t_S U_S Q_Sᵀ‖² is the
largest eigenvalue of the Gram matrix of the t_S U_S, at most that of the matrix of its blocks' norms. A block's norm
is a product over the axes: 1 where both sets have the axis, and the cosine between the means and the rests of its
rows where one has. For marginals all cosines are zero, λ = 1, and the bound is the error of ``residual``: the
optimum.
"""

from __future__ import annotations

import math

import numpy as np
from tacit.engine.product_workload import Axes
from tacit.engine.search.structured.axis import AxisSolver, rests
from tacit.engine.search.structured.scaled import Scaled, Term, subsets
from tacit.engine.strategy import Matrix, Vector

_MOST_SETS = 1500
"""Sets of axes beyond which the matrix of cosines takes too long."""
_ROUNDING = 1 - 1e-9


def structure_bound(workload: Scaled, splits: dict[int, Vector], solver: AxisSolver) -> float:
    """The better of the bound above, at two choices of d, and that of each term by itself."""
    bound = max((_of_term(workload, term, solver) for term in workload.terms), default=0.0)
    main = _main_terms(workload)
    if len({term.axes for term in main}) > 1:
        even = {axis: np.full(workload.sizes[axis], 1 / workload.sizes[axis]) for axis in workload.axes}
        bound = max(bound, _of_components(workload, main, even, solver))
        found = {axis: splits.get(axis, even[axis]) for axis in even}
        found = {axis: p if (p > 0).all() else even[axis] for axis, p in found.items()}
        if any(np.abs(found[a] - even[a]).max() > 0 for a in even):
            bound = max(bound, _of_components(workload, main, found, solver))
    return bound * _ROUNDING


def _of_term(workload: Scaled, term: Term, solver: AxisSolver) -> float:
    """Of one product: the product of its factors' bounds, because nuclear norms multiply."""
    return term.weight * math.prod(solver.rows(workload.matrices[f]).lower_bound for f in term.factors)


def _main_terms(workload: Scaled) -> list[Term]:
    """One factor for each axis, the one with most weight: fewer queries never have a larger error."""
    weights: dict[tuple[int, int], float] = {}
    for term in workload.terms:
        rows = math.prod(len(workload.matrices[f]) for f in term.factors)
        for place in zip(term.axes, term.factors, strict=True):
            weights[place] = weights.get(place, 0.0) + term.weight * rows
    main: dict[int, int] = {}
    for (axis, factor), _ in sorted(weights.items(), key=lambda item: item[1]):
        main[axis] = factor
    return [t for t in workload.terms if all(main[a] == f for a, f in zip(t.axes, t.factors, strict=True))]


def _of_components(workload: Scaled, terms: list[Term], weights: dict[int, Vector], solver: AxisSolver) -> float:
    common = frozenset.intersection(*(frozenset(term.axes) for term in terms))
    by_axis = {a: workload.matrices[f] for term in terms for a, f in zip(term.axes, term.factors, strict=True)}
    beside = math.prod(solver.rows(by_axis[a]).lower_bound for a in common)
    parts = {a: _parts(matrix, weights[a]) for a, matrix in by_axis.items() if a not in common}
    needed = {term: tuple(a for a in term.axes if a not in common) for term in terms}
    v: dict[Axes, float] = {}
    for term, axes in needed.items():
        for S in subsets(axes):
            v[S] = v.get(S, 0.0) + term.weight * math.prod(parts[a][0] for a in axes if a not in S)
    sets = [S for S in v if v[S] > 0 and all(parts[a][1] > 0 for a in S)]
    norms = np.array([math.sqrt(v[S]) * math.prod(parts[a][1] for a in S) for S in sets])
    if all(parts[a][2] == 0.0 for a in parts):
        return beside * float(norms.sum()) ** 2
    if len(sets) > _MOST_SETS:
        return 0.0
    place = {S: k for k, S in enumerate(sets)}
    gram = np.zeros((len(sets), len(sets)))
    for term, axes in needed.items():
        inside = [S for S in subsets(axes) if S in place]
        for S in inside:
            for other in inside:
                apart = set(S) ^ set(other)
                neither = [a for a in axes if a not in S and a not in other]
                gram[place[S], place[other]] += (
                    term.weight
                    * math.prod(parts[a][0] for a in neither)
                    * math.prod(math.sqrt(parts[a][0]) * parts[a][2] for a in apart)
                )
    scale = np.sqrt([v[S] for S in sets])
    gram /= scale[:, None] * scale
    # t = the leading eigenvector of what remains: a few rounds of t ← N / (gram t) raise the bound from t = 1.
    t = np.ones(len(sets))
    best = 0.0
    for _ in range(12):
        largest = float(np.linalg.eigvalsh(t[:, None] * gram * t)[-1])
        best = max(best, float(t @ norms) ** 2 / largest)
        t = np.sqrt(t * norms / np.maximum(gram @ (t * norms.mean()), 1e-300))
        t /= t.max()
    return beside * best


def _parts(matrix: Matrix, d: Vector) -> tuple[float, float, float]:
    """In coordinates scaled by √d: the squared length of the means, the nuclear norm of the rests, and their cosine."""
    mean = matrix @ d
    rest = rests(matrix, d) * np.sqrt(d)
    U, sigma, _ = np.linalg.svd(rest, full_matrices=False)
    kept = sigma > 1e-12 * max(sigma[0], 1e-300)
    a = float(mean @ mean)
    along = float(np.linalg.norm(mean @ U[:, kept]) / math.sqrt(a)) if a > 0 and kept.any() else 0.0
    return a, float(sigma[kept].sum()), 0.0 if along < 1e-9 else min(along, 1.0)
