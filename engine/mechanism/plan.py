"""A joint plan: one lattice strategy for each private table, and what a release by it would cost and err."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.engine.accounting.amounts import Amount, to_amount, to_confidence, to_error
from tacit.engine.accounting.composition import rho_of_gaussian, rho_of_pure
from tacit.engine.accounting.description import MechanismRecord, PartRecord
from tacit.engine.linalg import row_norms, row_peaks
from tacit.engine.measures import Measure, for_rows_per_unit, joint, measured
from tacit.engine.mechanism.calibrate import analytic_sigma, gaussian_multiplier, laplace_scale, least_error
from tacit.engine.mechanism.lattice import Lattice, Resolution, released_resolution
from tacit.engine.mechanism.lattice_widths import COARSE
from tacit.engine.mechanism.measurement import Measurement
from tacit.engine.mechanism.noise import Kind, geometric_variance, variance
from tacit.engine.mechanism.table_workload import TableWorkload
from tacit.engine.mechanism.widths import half_widths
from tacit.engine.search.across import Share, joint_bound
from tacit.engine.strategy import Privacy, Strategy
from tacit.errors import PrivacyParameterError
from tacit.process import one_blas_thread

Vector = NDArray[np.float64]

_SHORT = Context(prec=3, rounding=ROUND_CEILING)
_SMALLEST_EPSILON, _LARGEST_EPSILON = 1e-6, 1e6
_LEAST = Amount(Decimal("1e-17"), Decimal("1e-300"))
"""Below this ε no noise fits the released integers; below this δ, σ has no float."""
_LARGEST_SCALE = 2.0**57
"""In steps of the released lattice. Values are clamped to ±2⁶², so larger noise would spill out of int64."""


@dataclass(frozen=True, eq=False)
class TablePlan:
    """One table's share of the plan."""

    workload: TableWorkload
    strategy: Strategy
    lattice: Lattice
    """``lattice.B @ lattice.L`` is the workload's matrix, unscaled."""
    row_weights: Vector = field(repr=False)
    """What each row was multiplied by when the error was minimised."""
    share: Fraction
    """Of ε (pure), or of 1/σ² (approximate); the shares of a plan sum to one."""

    def resolution(self, noise_per_sensitivity: float) -> Resolution:
        """Of what is released of this table; see ``lattice.released_resolution``."""
        workload = self.workload
        return released_resolution(self.lattice, workload.rows_per_unit, workload.one_row, noise_per_sensitivity)


@dataclass(frozen=True)
class Calibrated:
    """One part at one (ε, δ)."""

    kind: Kind
    resolution: Resolution
    scale: float
    """In steps of the released lattice."""
    step: int
    """One step of the released lattice is 2^step."""
    epsilon: Fraction
    """The part's share of ε (pure), or the whole ε (approximate)."""

    @property
    def stddev(self) -> float:
        return math.ldexp(math.sqrt(variance(self.kind, self.scale)), self.step)

    @property
    def real_scale(self) -> float:
        return math.ldexp(self.scale, self.step)

    @property
    def steps(self) -> float:
        """How far apart the values of the noise are, in units of its scale."""
        return 1 / self.scale


@dataclass(frozen=True, eq=False)
class JointPlan:
    """How a batch will be measured. Data-free: made from the workload alone."""

    privacy: Privacy
    parts: tuple[TablePlan, ...]
    rows: int
    """How many rows the batch has; rows that no part answers are exactly zero."""
    measure: Measure = "total"
    """What was minimised, and what ``error`` and ``lower_bound`` are in."""

    @property
    def name(self) -> str:
        """The strategy's name, or the names of the tables' strategies."""
        return " + ".join(dict.fromkeys(part.strategy.name for part in self.parts)) or "none"

    @property
    def workloads(self) -> tuple[TableWorkload, ...]:
        return tuple(part.workload for part in self.parts)

    @cached_property
    def error(self) -> float:
        """What was minimised: its squared errors times 2/ε² (pure; on integers less) or σ² are the answers'."""
        return joint(
            [for_rows_per_unit(p.strategy.error, p.workload.rows_per_unit, self.measure) for p in self.parts],
            self.privacy,
            self.measure,
        )

    @cached_property
    def lower_bound(self) -> float:
        """No plan of this kind with these cells has a smaller ``error``, nor one that mixes tables (``across``).

        For other measures than the total over several tables it is weaker: each table's own at the whole budget.
        """
        if not self.parts:
            return 0.0
        if self.measure != "total":
            bounds = [
                for_rows_per_unit(p.strategy.lower_bound, p.workload.rows_per_unit, self.measure) for p in self.parts
            ]
            return min(max(bounds) if self.measure == "largest" else sum(bounds), self.error)
        shares = [
            Share(p.workload.matrix * p.row_weights[:, None], p.workload.rows_per_unit, p.strategy.lower_bound)
            for p in self.parts
        ]
        return min(joint_bound(shares), self.error)

    def cost(self, epsilon: Any, delta: Any = 0) -> Amount:
        """What must be charged for a release at (ε, δ): Laplace noise does not use δ."""
        amount = self._asked(epsilon, delta)
        return amount if self.privacy == "approximate" else Amount(amount.epsilon, Decimal(0))

    def stderr(self, epsilon: Any, delta: Any = 0) -> Vector:
        """The standard error of each row of the batch."""
        result = np.zeros(self.rows)
        for part, noise in zip(self.parts, self.calibrate(epsilon, delta), strict=True):
            result[part.workload.rows] = noise.stddev * row_norms(part.lattice.B)
        return result

    def total_error(self, epsilon: Any, delta: Any = 0) -> float:
        """The expected sum of squared errors of the scaled and weighted rows; of another ``measure``, its value."""
        scaled = [
            noise.stddev * part.row_weights * row_norms(part.lattice.B)
            for part, noise in zip(self.parts, self.calibrate(epsilon, delta), strict=True)
        ]
        return measured(np.concatenate(scaled or [np.zeros(0)]), self.measure)

    def least_of_kind(self, epsilon: Any, delta: Any = 0) -> float:
        """No plan with this kind of noise and these cells has a smaller ``total_error`` at (ε, δ).

        Noise on integers of norm c has h(ε/kc) of the variance of continuous noise (``whole``), k rows being one unit;
        h falls with its argument, and no norm is below 1.
        """
        amount = self._asked(epsilon, delta)
        if self.privacy == "approximate":
            stddev = analytic_sigma(float(amount.epsilon), float(amount.delta))
        else:
            rows = [part.workload.rows_per_unit for part in self.parts if part.workload.one_row == 1]
            per_row = float(amount.epsilon) / min(rows, default=1)
            share = geometric_variance(per_row) * per_row**2 / 2 if rows else 1.0
            stddev = math.sqrt(2 * share) / float(amount.epsilon)
        return self.lower_bound * (stddev if self.measure == "absolute" else stddev**2)

    def least_of_all(self, epsilon: Any) -> float:
        """No ε-private mechanism at all has a smaller ``total_error`` at ε: see ``calibrate.least_error``.

        A row of the batch reads one table, so the tables have directions of their own, and what they need adds up.
        Of other measures than the total, the value at what each row needs by itself.
        """
        scaled = [(p.workload.matrix * p.row_weights[:, None], p.workload.rows_per_unit) for p in self.parts]
        if self.measure != "total":
            one_count = math.sqrt(geometric_variance(float(to_amount(epsilon, 0).epsilon)))
            alone = [one_count * k * row_peaks(W) for W, k in scaled]
            return measured(np.concatenate(alone or [np.zeros(0)]), self.measure)
        with one_blas_thread():
            return sum(least_error(W, epsilon, k) for W, k in scaled)

    def epsilon_for(
        self, error: Any, confidence: float = 0.95, delta: Any = 0, rows: Sequence[int] | None = None
    ) -> Decimal:
        """The smallest ε at which P(|answer − truth| ≤ error) ≥ confidence for each row alone (of ``rows``).

        Rounded up to 3 digits.
        """
        epsilon = self.least_epsilon(error, confidence, delta, rows)
        if epsilon is None:
            raise unreachable(error)
        return epsilon

    def least_epsilon(
        self, error: Any, confidence: float = 0.95, delta: Any = 0, rows: Sequence[int] | None = None
    ) -> Decimal | None:
        """The ε of ``epsilon_for``; None if no ε that is tried is large enough."""
        wanted, level = to_error(error), to_confidence(confidence)
        picked = slice(None) if rows is None else np.asarray(rows, dtype=np.int64)
        unit = self._unit_widths(level)

        def enough(epsilon: float | Decimal) -> bool:
            noises = self.calibrate(epsilon, delta)
            widths = self._scaled(unit, noises)[picked]
            if bool(widths.max(initial=0.0) <= wanted):
                return True
            if not _coarse(noises):
                return False
            return bool(self._widths(noises, level)[picked].max(initial=0.0) <= wanted)

        low, high = math.log(_SMALLEST_EPSILON), math.log(_LARGEST_EPSILON)
        if not enough(math.exp(high)):
            return None
        while high - low > 1e-5:
            middle = (low + high) / 2
            low, high = (low, middle) if enough(math.exp(middle)) else (middle, high)
        epsilon = _SHORT.create_decimal(Decimal(math.exp(low)))
        while not enough(epsilon):
            epsilon = _SHORT.add(epsilon, Decimal((0, (1,), epsilon.adjusted() - 2)))
        return Decimal(f"{epsilon.normalize():f}")

    def calibrate(self, epsilon: Any, delta: Any = 0) -> tuple[Calibrated, ...]:
        """The noise of every part at (ε, δ).

        Guarantee. One privacy unit may own rows in every table, so it moves the vectors of all parts at once,
        part t by at most Δ_t = ``resolution.sensitivity`` (see ``lattice.released_resolution``).
        Pure: part t is (share_t·ε)-private and the shares sum to one, so the release is ε-private (sequential
        composition of LRM, Eq. 6). Approximate: σ_t = Δ_t·σ₁/√share_t, so the parts together, each
        divided by its σ_t, move by at most √Σ(Δ_t/σ_t)² = 1/σ₁ in L2, which is one Gaussian mechanism of
        sensitivity 1 and σ₁ (COA, Eq. 2, with the calibration of ``calibrate.gaussian_multiplier``).
        """
        amount = self._asked(epsilon, delta)
        if not self.parts:
            return ()
        if self.privacy == "pure":
            return tuple(_calibrate_laplace(part, Fraction(amount.epsilon)) for part in self.parts)
        return _calibrate_gaussian(self.parts, amount)

    def is_coarse(self, epsilon: Any, delta: Any = 0) -> bool:
        """Whether some noise is so small beside its lattice that widths fall in jumps and not as 1/ε."""
        return _coarse(self.calibrate(epsilon, delta))

    def rho(self, epsilon: Any, delta: Any = 0) -> Decimal:
        """What a release at (ε, δ) costs in zCDP: see ``composition``."""
        amount = self._asked(epsilon, delta)
        if self.privacy == "pure":
            return rho_of_pure(amount.epsilon)
        return rho_of_gaussian([(n.resolution.sensitivity, n.scale) for n in self.calibrate(*amount)])

    def describe(self, epsilon: Any, delta: Any = 0, units: Mapping[str, str] | None = None) -> MechanismRecord:
        """What a release at (ε, δ) does, without data: the ledger records it with the charge.

        ``units`` says what is protected of each table; a plan knows no tables.
        """
        parts = tuple(
            PartRecord(
                strategy=part.strategy.name,
                noise=noise.kind,
                scale=noise.scale,
                sensitivity=noise.resolution.sensitivity,
                coordinates=part.lattice.L_int.shape[0],
                rows_per_unit=part.workload.rows_per_unit,
                lattice=_digest(part.lattice),
            )
            for part, noise in zip(self.parts, self.calibrate(epsilon, delta), strict=True)
        )
        return MechanismRecord(self.privacy, self.cost(epsilon, delta), parts, units or {})

    def _asked(self, epsilon: Any, delta: Any) -> Amount:
        amount = to_amount(epsilon, delta)
        if self.privacy == "approximate" and amount.delta == 0:
            raise PrivacyParameterError("Gaussian noise needs a delta greater than 0")
        for name, asked, least in zip(Amount._fields, amount, _LEAST, strict=True):
            if 0 < asked < least:
                raise PrivacyParameterError(f"no release can be made at {name} = {asked:g}; {least:g} is the least")
        return amount

    def _widths(self, noises: Sequence[Calibrated], level: float) -> Vector:
        result = np.zeros(self.rows)
        for part, noise in zip(self.parts, noises, strict=True):
            B = noise.real_scale * part.lattice.B
            if noise.kind == "laplace":
                widths = half_widths(B, None, level, np.full(B.shape[1], noise.steps))
            else:
                widths = half_widths(np.zeros((len(B), 1)), row_norms(B), level)
            result[part.workload.rows] = widths
        return result

    def _unit_widths(self, level: float) -> list[Vector]:
        """The widths for noise of scale one on a fine lattice."""
        if self.privacy == "pure":
            return [half_widths(part.lattice.B, None, level) for part in self.parts]
        none = np.zeros((1, 1))
        z = float(half_widths(none, np.ones(1), level)[0])
        return [z * row_norms(part.lattice.B) for part in self.parts]

    def _scaled(self, unit_widths: list[Vector], noises: tuple[Calibrated, ...]) -> Vector:
        """Widths that hold on any lattice (``lattice_widths``): those of fine ones, and half of the largest step."""
        result = np.zeros(self.rows)
        for part, width, noise in zip(self.parts, unit_widths, noises, strict=True):
            half_step = 0.5 * noise.steps * row_peaks(part.lattice.B) if noise.kind == "laplace" else 0.0
            result[part.workload.rows] = noise.real_scale * (width + half_step)
        return result


def unreachable(error: Any) -> PrivacyParameterError:
    """The refusal of an error that no ε reaches."""
    return PrivacyParameterError(f"no epsilon up to {_LARGEST_EPSILON:g} gets every query within ±{to_error(error):g}")


def predicted_measurements(plan: JointPlan, epsilon: Any, delta: Any = 0) -> tuple[Measurement, ...]:
    """What ``measure`` would return, with zeros for the noisy values: enough to predict errors, and data-free."""
    return tuple(
        Measurement(
            part.lattice.L_int,
            part.lattice.exponent,
            np.zeros(part.lattice.L_int.shape[0], dtype=np.int64),
            noise.step,
            noise.kind,
            noise.scale,
        )
        for part, noise in zip(plan.parts, plan.calibrate(epsilon, delta), strict=True)
    )


def _calibrate_laplace(part: TablePlan, epsilon: Fraction) -> Calibrated:
    share = epsilon * part.share
    resolution = part.resolution(float(1 / share))
    scale = _fitting(laplace_scale(resolution.sensitivity, share))
    return Calibrated("laplace", resolution, scale, _step(part, resolution), share)


def _calibrate_gaussian(parts: Sequence[TablePlan], amount: Amount) -> tuple[Calibrated, ...]:
    bare = analytic_sigma(float(amount.epsilon), float(amount.delta))
    roots = [math.nextafter(math.sqrt(part.share), 0) if part.share < 1 else 1.0 for part in parts]
    resolutions = [part.resolution(bare / root) for part, root in zip(parts, roots, strict=True)]
    reaches = [resolution.sensitivity / root for resolution, root in zip(resolutions, roots, strict=True)]
    questions = [(part.lattice.L_int.shape[0], reach) for part, reach in zip(parts, reaches, strict=True)]
    sigma = gaussian_multiplier(amount.epsilon, amount.delta, questions)
    return tuple(
        Calibrated(
            kind="gaussian",
            resolution=resolution,
            scale=_fitting(reach * sigma * (1 + 2.0**-50)),
            step=_step(part, resolution),
            epsilon=Fraction(amount.epsilon),
        )
        for part, resolution, reach in zip(parts, resolutions, reaches, strict=True)
    )


def _coarse(noises: Sequence[Calibrated]) -> bool:
    return any(noise.kind == "laplace" and noise.steps >= COARSE for noise in noises)


def _fitting(scale: float) -> float:
    if scale > _LARGEST_SCALE:
        raise PrivacyParameterError("epsilon is too small for a batch of this size: no release can hold such noise")
    return scale


def _step(part: TablePlan, resolution: Resolution) -> int:
    """x counts in 1/one_row, so dividing by one_row is no change of scale; only the rest of the shift is."""
    return part.lattice.exponent + resolution.shift - (part.workload.one_row.bit_length() - 1)


def _digest(lattice: Lattice) -> str:
    digest = hashlib.sha256(f"{lattice.exponent} {lattice.L_int.shape}".encode())
    digest.update(np.ascontiguousarray(lattice.L_int, dtype="<i8").tobytes())
    return digest.hexdigest()
