"""Post-processing: the best answers from one or several measurements of the same cells.

Nothing here sees private data, so nothing here costs budget; the whole file could be wrong and privacy
would hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tacit.engine.inference.intervals import RatioAnswer, covering_widths, ratio
from tacit.engine.inference.likelihood import WORTH_IT, Centre
from tacit.engine.inference.likelihood import simulate as simulate_centre
from tacit.engine.inference.nonnegative import fit, simulate
from tacit.engine.inference.product_spread import ProductSpread
from tacit.engine.inference.tiers import fitted, weighed
from tacit.engine.linalg import columns, row_norms, row_peaks, stacked, times
from tacit.engine.mechanism.lattice_widths import COARSE
from tacit.engine.mechanism.measurement import Measurement
from tacit.engine.mechanism.table_workload import TableWorkload
from tacit.engine.mechanism.widths import half_widths, lattice_spread
from tacit.engine.strategy import Questions, written
from tacit.errors import InternalError
from tacit.process import one_blas_thread

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = int | Sequence[int] | NDArray[np.int64]
Inference: TypeAlias = Literal["least squares", "likelihood"]
"""How measurements become answers; see ``estimate_from`` and ``likelihood``."""

_ANSWERED = 1e-6
"""A row is determined where B·stack misses it by no more than this part of its largest entry."""
_RARE = 2.0
"""Steps of a lattice, in units of the noise's scale, from which on three of four draws are zero."""
_UNUSED = 1e-9
"""An answer does not depend on a measurement whose coefficients are below this part of the largest."""


@dataclass(frozen=True, eq=False)
class Spread:
    """How the noise of the measurements reaches some rows of the batch."""

    rows: NDArray[np.int64]
    laplace: Matrix
    """Coefficients on independent Laplace(1) variables."""
    gaussian: Matrix
    """Coefficients on independent N(0, 1) variables."""
    simulated: Matrix | None = None
    """Or simulated deviations of the rows (rows × draws), where no formula holds."""
    linear: Shifted | None = None
    """Where the deviations are not the error's own, because that depends on the data: what the widths rest on."""
    steps: Vector | None = None
    """Per Laplace variable, how far apart its values are, in units of its scale; None where all lattices are fine.
    Where deviations are simulated, per measured question."""

    @property
    def _rare(self) -> bool:
        """Whether noise that is mostly zero was simulated for a fit beside least squares: too few draws have any."""
        return self.linear is not None and self.steps is not None and bool(self.steps.max(initial=0.0) >= _RARE)

    @property
    def stderr(self) -> Vector:
        """The standard error of each row."""
        if self.linear is not None and self._rare:
            return self.linear.spread.stderr
        if self.simulated is not None:
            return np.asarray(np.sqrt(np.square(self.simulated).mean(axis=-1)))
        return np.asarray(np.sqrt(2 * row_norms(self._laplace) ** 2 + row_norms(self.gaussian) ** 2))

    @property
    def _laplace(self) -> Matrix:
        """Coefficients on continuous variables of the same variance, which is less on a coarse lattice."""
        return self.laplace if self.steps is None else self.laplace * lattice_spread(self.steps)

    def covariance(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> Vector:
        """Between rows at positions i and j of this spread."""
        if self.linear is not None and self._rare:
            return self.linear.spread.covariance(i, j)
        if self.simulated is not None:
            return np.asarray((self.simulated[i] * self.simulated[j]).mean(axis=-1))
        laplace = 2 * (self._laplace[i] * self._laplace[j]).sum(axis=-1)
        return np.asarray(laplace + (self.gaussian[i] * self.gaussian[j]).sum(axis=-1))

    def combined(self, terms: Sequence[tuple[NDArray[np.int64], Vector]]) -> Spread:
        """The spread of Σ coefficient·row, elementwise; a row at position -1 is not of this spread."""
        count = len(terms[0][0])

        def mixed(coefficients: Matrix) -> Matrix:
            padded = np.vstack([coefficients, np.zeros((1, coefficients.shape[1]))])
            total = np.zeros((count, coefficients.shape[1]))
            for rows, factor in terms:
                total += factor[:, None] * padded[rows]
            return total

        simulated = None if self.simulated is None else mixed(self.simulated)
        linear = self.linear
        if linear is not None:
            # What a difference cannot fall below does not follow from what its two terms cannot fall below.
            shift = mixed(linear.shift[:, None])[:, 0]
            linear = Shifted(linear.spread.combined(terms), shift, np.full(count, np.inf))
        return Spread(np.arange(count), mixed(self.laplace), mixed(self.gaussian), simulated, linear, self.steps)

    def half_width(self, confidence: float, *, convex: bool = False) -> Vector:
        """The half-width of each row; ``convex`` as in ``half_widths``."""
        if self.linear is not None:
            return self.linear.half_width(confidence, convex=convex)
        if self.simulated is not None:
            return covering_widths(self.simulated, confidence)
        normal = np.linalg.norm(self.gaussian, axis=1)
        return half_widths(self.laplace, normal, confidence, self.steps, convex=convex)


@dataclass(frozen=True, eq=False)
class Shifted:
    """Answers beside those of least squares, whose intervals are exact whatever the data are."""

    spread: Spread
    """Of least squares."""
    shift: Vector
    """How far each answer is above that of least squares."""
    reach: Vector
    """How far each answer is above what it cannot fall below; infinite where it can be anything."""

    def half_width(self, confidence: float, *, convex: bool = False) -> Vector:
        """The least h whose interval around the answer holds all of least squares' that is possible.

        So it covers whenever that covers. Fits under constraints are biased, by far more than their scatter where many
        small counts are added up, and no simulation near the answer shows by how much.
        """
        width = self.spread.half_width(confidence, convex=convex)
        above, below = width - self.shift, np.minimum(width + self.shift, self.reach)
        return np.asarray(np.maximum(np.maximum(above, below), 0.0))


@dataclass(frozen=True, eq=False)
class Estimate:
    """Answers to the rows of a batch, with their errors."""

    values: Vector
    stderr: Vector
    spreads: tuple[Spread | ProductSpread, ...]
    cells: tuple[Vector, ...]
    """For each table, cell counts that every answer agrees with: ``matrix @ cells`` is ``values``."""
    used: tuple[NDArray[np.bool_], ...] = ()
    """For each table, which of its measurements any of the answers depends on."""
    whole: NDArray[np.bool_] | None = None
    """Which rows were rounded to whole numbers, if any were."""
    rounding: float = 1 / 12
    """The variance that rounding adds to those rows."""

    @property
    def predicted(self) -> bool:
        """Whether the errors are known: not where the data chose what was measured (``unpredicted``)."""
        return not np.isnan(self.stderr).any()

    def half_width(self, confidence: float = 0.95) -> Vector:
        """h with P(|value − truth| ≤ h) = confidence, row by row."""
        widths = np.zeros_like(self.values)
        for spread in self.spreads:
            widths[spread.rows] = spread.half_width(confidence)
        return widths if self.whole is None else widths + 0.5 * self.whole

    def covariance(self, i: Index, j: Index) -> Vector:
        """The covariance of the errors of rows i and j, elementwise; different tables are independent."""
        first, second = np.broadcast_arrays(np.atleast_1d(i), np.atleast_1d(j))
        result = np.zeros(first.shape)
        for spread in self.spreads:
            position = np.full(len(self.values), -1)
            position[spread.rows] = np.arange(len(spread.rows))
            a, b = position[first], position[second]
            both = (a >= 0) & (b >= 0)
            result[both] = spread.covariance(a[both], b[both])
        return result if self.whole is None else result + (first == second) * self.whole[first] * self.rounding

    def combined_half_width(self, terms: Sequence[tuple[Index, Vector]], confidence: float = 0.95) -> Vector:
        """h with P(|error of Σ coefficient·row| ≤ h) ≥ confidence, elementwise over (rows, coefficients).

        For figures that are not linear: see ``convex`` in ``half_widths``. Rows of several tables have independent
        errors; their widths are added, which is never too little.
        """
        listed = [(np.asarray(rows, dtype=np.int64), np.asarray(factor, dtype=np.float64)) for rows, factor in terms]
        result = np.zeros(len(listed[0][0]))
        for spread in self.spreads:
            position = np.full(len(self.values), -1)
            position[spread.rows] = np.arange(len(spread.rows))
            placed = [(position[rows], factor) for rows, factor in listed]
            if any((place >= 0).any() for place, _ in placed):
                result += spread.combined(placed).half_width(confidence, convex=True)
        if self.whole is not None:
            for rows, factor in listed:
                result += 0.5 * np.abs(factor) * self.whole[rows]
        return result

    @property
    def is_coarse(self) -> bool:
        """Whether some noise is so small beside its lattice that its widths are a few steps of it."""
        return any(s.steps is not None and s.steps.max(initial=0.0) >= COARSE for s in self.spreads)

    def rounded(self) -> Estimate:
        """Every noisy row as a whole number: post-processing that moves an answer by at most one half.

        So an interval that held before holds when it is widened by one half. The variance grows by no more than
        that of rounding, 1/12: for a Laplace scale b and t = 1/2b it is cosh t/(2 sinh² t), which is below
        2b² + 1/12; a Gaussian's differs from σ² + 1/12 by less than any digit shown once σ is above one. Noise on
        a coarse lattice may lie half way between whole numbers, as the mean of two counts does: there it is 1/4.
        """
        noisy = self.stderr > 0
        rounding = 1 / 4 if self.is_coarse else 1 / 12
        return replace(
            self,
            values=np.where(noisy, np.round(self.values), self.values),
            stderr=np.sqrt(self.stderr**2 + noisy * rounding),
            whole=noisy,
            rounding=rounding,
        )

    def ratio(
        self,
        numerator: Sequence[int] | NDArray[np.int64],
        denominator: Sequence[int] | NDArray[np.int64],
        low: Vector | float,
        high: Vector | float,
        confidence: float = 0.95,
    ) -> RatioAnswer:
        """values[numerator] / values[denominator] inside the clamp: see ``intervals.ratio``.

        The width of S − tN is that of the noise in S − tN, not of the noise in S or in N: three Laplace variables in
        either may be one in the difference, which needs more.
        """
        S, N = np.asarray(numerator, dtype=np.int64), np.asarray(denominator, dtype=np.int64)
        v_s, v_n, c = self.stderr[S] ** 2, self.stderr[N] ** 2, self.covariance(S, N)

        def reach(t: Vector) -> Vector:
            width = self.combined_half_width([(S, np.ones(len(S))), (N, -t)], confidence)
            stderr = np.sqrt(np.maximum(v_s - 2 * t * c + t**2 * v_n, 0.0))
            return np.divide(width, stderr, out=np.zeros_like(width), where=stderr > 0)

        return ratio(self.values[S], self.values[N], v_s, v_n, c, low, high, confidence, reach)


def joined(estimates: Sequence[tuple[NDArray[np.int64], Estimate]], rows: int) -> Estimate:
    """Estimates of different tables as one: (the places of their tables, estimate) each."""
    values, stderr = np.zeros(rows), np.zeros(rows)
    places: dict[int, tuple[Spread | ProductSpread, Vector]] = {}
    used: list[NDArray[np.bool_]] = []
    for tables, estimate in estimates:
        for table, spread, cells in zip(tables.tolist(), estimate.spreads, estimate.cells, strict=True):
            values[spread.rows], stderr[spread.rows] = estimate.values[spread.rows], estimate.stderr[spread.rows]
            places[table] = spread, cells
        used += estimate.used
    ordered = [places[table] for table in sorted(places)]
    return Estimate(values, stderr, tuple(s for s, _ in ordered), tuple(c for _, c in ordered), tuple(used))


@dataclass(frozen=True, eq=False)
class Stack:
    """Measurements of the same cells one below the other, each in units of its noise."""

    questions: Questions
    answers: Vector
    level: Vector
    """Per question, the noise against the size of what it is added to."""
    laplace: Vector
    """Per question, Laplace's b in units of its standard deviation; 0 for Gaussian noise."""
    steps: Vector
    """Per question with Laplace noise, the step of its lattice in units of b; 0 for Gaussian noise."""
    source: NDArray[np.int64]
    """Per question, which measurement it is of."""
    count: int
    """How many measurements there are."""

    @classmethod
    def of(cls, measurements: Sequence[Measurement], numbers: Sequence[int] | None = None) -> Stack:
        """``numbers`` say which measurement each is, where they are not 0, 1, 2, …"""
        if not measurements:
            raise InternalError("there is no measurement to estimate from")
        if len({m.cells for m in measurements}) != 1:
            raise InternalError("these measurements are not of the same cells")
        sizes = [len(m.noisy) for m in measurements]
        listed = range(len(measurements)) if numbers is None else numbers
        return cls(
            stacked([m.questions for m in measurements]),
            np.concatenate([m.answers for m in measurements]),
            np.repeat([m.level for m in measurements], sizes),
            np.repeat([m.scale / m.stddev if m.noise == "laplace" else 0.0 for m in measurements], sizes),
            np.repeat([1 / m.lattice_scale if m.noise == "laplace" else 0.0 for m in measurements], sizes),
            np.repeat(np.array(listed, dtype=np.int64), sizes),
            max(listed) + 1,
        )

    def lifted(self, origin: NDArray[np.int64]) -> Stack:
        """The same over finer cells; ``origin`` is the cell that holds each, -1 for none."""
        if np.array_equal(origin, np.arange(self.questions.shape[1])):
            return self
        padded = stacked([self.questions.T, np.zeros((1, len(self.answers)))]).T
        return replace(self, questions=columns(padded, origin))

    @classmethod
    def joined(cls, stacks: Sequence[Stack], count: int) -> Stack:
        """Stacks over the same cells, with sources numbered up to ``count``."""
        if len(stacks) == 1:
            return replace(stacks[0], count=count)
        return cls(
            stacked([stack.questions for stack in stacks]),
            np.concatenate([stack.answers for stack in stacks]),
            np.concatenate([stack.level for stack in stacks]),
            np.concatenate([stack.laplace for stack in stacks]),
            np.concatenate([stack.steps for stack in stacks]),
            np.concatenate([stack.source for stack in stacks]),
            count,
        )


Evidence = Stack | Sequence[Measurement]


def estimate_from(
    workloads: Sequence[TableWorkload],
    evidence: Sequence[Evidence],
    *,
    rows: int | None = None,
    inference: Inference = "least squares",
    nonnegative: bool = False,
    partial: bool = False,
) -> Estimate:
    """Answers to the rows of the batch from all measurements of each table's cells, by generalised least squares.

    Every measurement is divided by its standard deviation and B = W·(stacked L)⁺, the best linear
    unbiased estimator (Gauss–Markov; for one measurement, the A⁺ of COA's Eq. 2). More measurements only
    make answers better, and exact relations between rows (q1 = q2 + q3) hold between answers.

    With ``inference="likelihood"``, the centre of the likelihood takes the place of least squares for every table where
    that lowers the error enough to be worth simulating (``likelihood.WORTH_IT``): a choice that no data enter.
    Relations between rows hold there too.

    With ``partial``, a row that the measurements do not determine has the value NaN and an infinite error;
    without, it is a defect to ask for it.
    """
    count = max((int(w.rows.max(initial=-1)) + 1 for w in workloads), default=0) if rows is None else rows
    values, stderr = np.zeros(count), np.zeros(count)
    spreads, cells, used = [], [], []
    for workload, measurements in zip(workloads, evidence, strict=True):
        stack = measurements if isinstance(measurements, Stack) else Stack.of(measurements) if measurements else None
        with one_blas_thread():
            solved = _undetermined(workload) if stack is None else _solved(workload, stack, inference)
            if not solved.determined.all() and not partial:
                raise InternalError("these measurements do not answer this workload")
            used.append(solved.used)
            if nonnegative and stack is not None:
                solved = _nonnegative(workload, stack, solved)
        values[workload.rows] = np.where(solved.determined, solved.values, np.nan)
        stderr[workload.rows] = np.where(solved.determined, solved.spread.stderr, np.inf)
        spreads.append(solved.spread)
        cells.append(solved.cells)
    return Estimate(values, stderr, tuple(spreads), tuple(cells), tuple(used))


@dataclass(frozen=True, eq=False)
class _Solved:
    values: Vector
    cells: Vector
    spread: Spread
    determined: NDArray[np.bool_]
    used: NDArray[np.bool_]


def _undetermined(workload: TableWorkload) -> _Solved:
    m, n = workload.matrix.shape
    none = np.zeros((m, 0))
    return _Solved(
        np.zeros(m), np.zeros(n), Spread(workload.rows, none, none), np.zeros(m, np.bool_), np.zeros(0, np.bool_)
    )


def _solved(workload: TableWorkload, stack: Stack, inference: Inference) -> _Solved:
    S, z = stack.questions, stack.answers
    B = weighed(workload.matrix, S, stack.level)
    determined = np.asarray(row_peaks(workload.matrix - times(B, S)) <= _ANSWERED * row_peaks(workload.matrix))
    B[~determined] = 0.0
    weights = np.abs(B).max(axis=0, initial=0.0)
    relevant = weights > _UNUSED * weights.max(initial=0.0)
    used = np.zeros(stack.count, dtype=np.bool_)
    used[stack.source[relevant]] = True
    if inference == "likelihood":
        centre = Centre(written(S), stack.laplace, stack.level)
        errors = simulate_centre(centre, B, stack.laplace, stack.steps) if centre.redundant else None
        if errors is not None and errors.gain < WORTH_IT:
            z = centre.fit(z[:, None])[:, 0]
            used[stack.source] = True  # the centre depends on every answer, also where least squares does not
            nothing = np.zeros((len(workload.rows), 0))
            spread = Spread(workload.rows, nothing, nothing, errors.rows, steps=stack.steps)
            return _Solved(B @ z, fitted(S, z, stack.level), spread, determined, used)
    laplace = stack.laplace > 0
    steps = stack.steps[laplace]
    spread = Spread(workload.rows, B[:, laplace] * stack.laplace[laplace], B[:, ~laplace], steps=steps)
    return _Solved(B @ z, fitted(S, z, stack.level), spread, determined, used)


def _nonnegative(workload: TableWorkload, stack: Stack, linear: _Solved) -> _Solved:
    W = workload.matrix
    x = fit(stack.questions, stack.answers[:, None])[:, 0]
    values, deviations = W @ x, W @ simulate(stack.questions, x, stack.laplace, stack.steps)
    nothing = np.zeros((len(workload.rows), 0))
    used = np.zeros(stack.count, dtype=np.bool_)
    used[stack.source] = True
    reach = np.where((W >= 0).all(axis=1), values, np.inf)
    shifted = Shifted(linear.spread, values - linear.values, reach)
    spread = Spread(workload.rows, nothing, nothing, deviations, shifted, stack.steps)
    return _Solved(values, x, spread, linear.determined, used)
