"""A joint plan: one lattice strategy for each private table, and what a release by it would cost and err."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.engine.accounting.amounts import Amount, to_amount, to_confidence, to_error
from tacit.engine.accounting.composition import rho_of_gaussian, rho_of_pure
from tacit.engine.accounting.description import MechanismRecord, PartRecord
from tacit.engine.measures import Measure, for_rows_per_unit, joint, measured
from tacit.engine.mechanism.calibrate import analytic_sigma, gaussian_multiplier, laplace_scale
from tacit.engine.mechanism.lattice import Asked, Lattice, Resolution
from tacit.engine.mechanism.lattice_widths import COARSE
from tacit.engine.mechanism.measurement import Measurement
from tacit.engine.mechanism.noise import geometric_variance
from tacit.engine.mechanism.product_lattice import ProductLattice
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.mechanism.table_plan import Calibrated, PartPlan, QuestionBlock, TablePlan
from tacit.engine.mechanism.table_workload import TableWorkload
from tacit.engine.search.across import Share, joint_bound
from tacit.engine.strategy import Privacy
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
class JointPlan:
    """How a batch will be measured. Data-free: made from the workload alone."""

    privacy: Privacy
    parts: tuple[PartPlan, ...]
    """One for each table."""
    rows: int
    """How many rows the batch has; rows that no part answers are exactly zero."""
    measure: Measure = "total"
    """What was minimised, and what ``error`` and ``lower_bound`` are in."""

    @property
    def name(self) -> str:
        """The strategy's name, or the names of the tables' strategies."""
        return " + ".join(dict.fromkeys(part.strategy.name for part in self.parts)) or "none"

    @property
    def workloads(self) -> tuple[TableWorkload | ProductTable, ...]:
        return tuple(part.workload for part in self.parts)

    @cached_property
    def blocks(self) -> tuple[QuestionBlock, ...]:
        """What is asked, table after table, each with a noise of its own."""
        return tuple(block for part in self.parts for block in part.blocks)

    @cached_property
    def error(self) -> float:
        """What was minimised: its squared errors times 2/ε² (pure; on integers less) or σ² are the answers'."""
        return joint(
            [for_rows_per_unit(p.strategy.error, p.rows_per_unit, self.measure) for p in self.parts],
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
            bounds = [for_rows_per_unit(p.strategy.lower_bound, p.rows_per_unit, self.measure) for p in self.parts]
            return min(max(bounds) if self.measure == "largest" else sum(bounds), self.error)
        listed = [p for p in self.parts if isinstance(p, TablePlan)]
        alone = [for_rows_per_unit(p.strategy.lower_bound, p.rows_per_unit, self.measure) for p in self.parts]
        if len(listed) < len(self.parts):  # a row of the batch is about one table: what one of them needs, all need
            return min(max(alone), self.error)
        shares = [
            Share(p.workload.matrix * p.row_weights[:, None], p.rows_per_unit, p.strategy.lower_bound) for p in listed
        ]
        return min(joint_bound(shares), self.error)

    def cost(self, epsilon: Any, delta: Any = 0) -> Amount:
        """What must be charged for a release at (ε, δ): Laplace noise does not use δ."""
        amount = self._asked(epsilon, delta)
        return amount if self.privacy == "approximate" else Amount(amount.epsilon, Decimal(0))

    def stderr(self, epsilon: Any, delta: Any = 0) -> Vector:
        """The standard error of each row of the batch."""
        result = np.zeros(self.rows)
        for part, noises in self._by_part(self.calibrate(epsilon, delta)):
            result[part.rows] = part.stderr(noises)
        return result

    def total_error(self, epsilon: Any, delta: Any = 0) -> float:
        """The expected sum of squared errors of the scaled and weighted rows; of another ``measure``, its value."""
        scaled = [part.row_weights * part.stderr(n) for part, n in self._by_part(self.calibrate(epsilon, delta))]
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
            rows = [part.rows_per_unit for part in self.parts if part.counts_whole_rows]
            per_row = float(amount.epsilon) / min(rows, default=1)
            share = geometric_variance(per_row) * per_row**2 / 2 if rows else 1.0
            stddev = math.sqrt(2 * share) / float(amount.epsilon)
        return self.lower_bound * (stddev if self.measure == "absolute" else stddev**2)

    def least_of_all(self, epsilon: Any) -> float:
        """No ε-private mechanism at all has a smaller ``total_error`` at ε: see ``calibrate.least_error``.

        A row of the batch reads one table, so the tables have directions of their own, and what they need adds up.
        Of other measures than the total, the value at what each row needs by itself.
        """
        if self.measure != "total":
            one_count = math.sqrt(geometric_variance(float(to_amount(epsilon, 0).epsilon)))
            alone = [one_count * part.rows_per_unit * part.scaled_peaks for part in self.parts]
            return measured(np.concatenate(alone or [np.zeros(0)]), self.measure)
        with one_blas_thread():
            return sum(part.least_of_all(epsilon) for part in self.parts)

    def epsilon_for(
        self, error: Any, confidence: float = 0.95, delta: Any = 0, rows: Sequence[int] | None = None
    ) -> Decimal:
        """The smallest ε at which P(|answer − truth| ≤ error) ≥ confidence for each row alone (of ``rows``).

        ``error`` is one for all, or one for each of those rows. Rounded up to 3 digits.
        """
        epsilon = self.least_epsilon(error, confidence, delta, rows)
        if epsilon is None:
            raise unreachable(error)
        return epsilon

    def least_epsilon(
        self, error: Any, confidence: float = 0.95, delta: Any = 0, rows: Sequence[int] | None = None
    ) -> Decimal | None:
        """The ε of ``epsilon_for``; None if no ε that is tried is large enough."""
        wanted, level = _errors(error), to_confidence(confidence)
        picked = slice(None) if rows is None else np.asarray(rows, dtype=np.int64)
        unit = [part.unit_widths(level) for part in self.parts]

        def enough(epsilon: float | Decimal) -> bool:
            noises = self.calibrate(epsilon, delta)
            widths = self._scaled(unit, noises, level)[picked]
            if bool((widths <= wanted).all()):
                return True
            if not _coarse(noises):
                return False
            return bool((self._widths(noises, level)[picked] <= wanted).all())

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

    def half_widths(self, epsilon: Any, delta: Any = 0, confidence: float = 0.95) -> Vector:
        """The half-width of each row's interval at (ε, δ), without any other release."""
        return self._widths(self.calibrate(epsilon, delta), to_confidence(confidence))

    def calibrate(self, epsilon: Any, delta: Any = 0) -> tuple[Calibrated, ...]:
        """The noise of every block of questions at (ε, δ), in the order of ``blocks``.

        Guarantee. One privacy unit may own rows in every table, and it is counted in every block of a table, so it
        moves the vectors of all blocks at once, block t by at most Δ_t = ``resolution.sensitivity`` (see
        ``lattice.released_resolution``). Pure: block t is (share_t·ε)-private and the shares sum to one, so the
        release is ε-private (sequential composition of LRM, Eq. 6). Approximate: σ_t = Δ_t·σ₁/√share_t, so the
        blocks together, each divided by its σ_t, move by at most √Σ(Δ_t/σ_t)² = 1/σ₁ in L2, which is one Gaussian
        mechanism of sensitivity 1 and σ₁ (COA, Eq. 2, with the calibration of ``calibrate.gaussian_multiplier``).
        """
        amount = self._asked(epsilon, delta)
        if not self.parts:
            return ()
        if self.privacy == "pure":
            return tuple(_calibrate_laplace(block, Fraction(amount.epsilon)) for block in self.blocks)
        return _calibrate_gaussian(self.blocks, amount)

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
                strategy=block.strategy,
                noise=noise.kind,
                scale=noise.scale,
                sensitivity=noise.resolution.sensitivity,
                coordinates=block.lattice.questions,
                rows_per_unit=block.rows_per_unit,
                lattice=block.lattice.digest(),
            )
            for block, noise in zip(self.blocks, self.calibrate(epsilon, delta), strict=True)
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

    def _by_part(self, noises: Sequence[Calibrated]) -> Iterator[tuple[PartPlan, Sequence[Calibrated]]]:
        """Every table with the noises of its blocks."""
        start = 0
        for part in self.parts:
            count = len(part.blocks)
            yield part, noises[start : start + count]
            start += count

    def _widths(self, noises: Sequence[Calibrated], level: float) -> Vector:
        result = np.zeros(self.rows)
        for part, own in self._by_part(noises):
            result[part.rows] = part.widths(own, level)
        return result

    def _scaled(self, unit_widths: list[Vector], noises: Sequence[Calibrated], level: float) -> Vector:
        """Widths that hold on any lattice, from those for noise of scale one."""
        result = np.zeros(self.rows)
        for (part, own), unit in zip(self._by_part(noises), unit_widths, strict=True):
            result[part.rows] = part.scaled_widths(unit, own, level)
        return result


def unreachable(error: Any) -> PrivacyParameterError:
    """The refusal of an error that no ε reaches."""
    least = float(np.min(_errors(error)))
    return PrivacyParameterError(f"no epsilon up to {_LARGEST_EPSILON:g} gets every query within ±{least:g}")


def _errors(error: Any) -> Vector:
    """One wanted half-width, or one for each row."""
    return np.array([to_error(one) for one in error] if np.ndim(error) else to_error(error), dtype=np.float64)


def predicted_measurements(plan: JointPlan, epsilon: Any, delta: Any = 0) -> tuple[Measurement, ...]:
    """What ``measure`` would return, with zeros for the noisy values: enough to predict errors, and data-free."""
    return tuple(
        measurement(block.lattice, np.zeros(block.lattice.questions, dtype=np.int64), noise)
        for block, noise in zip(plan.blocks, plan.calibrate(epsilon, delta), strict=True)
    )


def measurement(lattice: Asked, noisy: NDArray[np.int64], noise: Calibrated) -> Measurement:
    """Noisy answers with the questions that they answer."""
    if isinstance(lattice, ProductLattice):
        return Measurement.of_product(lattice, noisy, noise.step, noise.kind, noise.scale)
    assert isinstance(lattice, Lattice)
    return Measurement(lattice.L_int, lattice.exponent, noisy, noise.step, noise.kind, noise.scale)


def _calibrate_laplace(block: QuestionBlock, epsilon: Fraction) -> Calibrated:
    share = epsilon * block.share
    resolution = block.resolution(float(1 / share))
    scale = _fitting(laplace_scale(resolution.sensitivity, share))
    return Calibrated("laplace", resolution, scale, _step(block, resolution), share)


def _calibrate_gaussian(blocks: Sequence[QuestionBlock], amount: Amount) -> tuple[Calibrated, ...]:
    bare = analytic_sigma(float(amount.epsilon), float(amount.delta))
    roots = [math.nextafter(math.sqrt(block.share), 0) if block.share < 1 else 1.0 for block in blocks]
    resolutions = [block.resolution(bare / root) for block, root in zip(blocks, roots, strict=True)]
    reaches = [resolution.sensitivity / root for resolution, root in zip(resolutions, roots, strict=True)]
    questions = [(block.lattice.questions, reach) for block, reach in zip(blocks, reaches, strict=True)]
    sigma = gaussian_multiplier(amount.epsilon, amount.delta, questions)
    return tuple(
        Calibrated(
            kind="gaussian",
            resolution=resolution,
            scale=_fitting(reach * sigma * (1 + 2.0**-50)),
            step=_step(block, resolution),
            epsilon=Fraction(amount.epsilon),
        )
        for block, resolution, reach in zip(blocks, resolutions, reaches, strict=True)
    )


def _coarse(noises: Sequence[Calibrated]) -> bool:
    return any(noise.kind == "laplace" and noise.steps >= COARSE for noise in noises)


def _fitting(scale: float) -> float:
    if scale > _LARGEST_SCALE:
        raise PrivacyParameterError("epsilon is too small for a batch of this size: no release can hold such noise")
    return scale


def _step(block: QuestionBlock, resolution: Resolution) -> int:
    """x counts in 1/one_row, so dividing by one_row is no change of scale; only the rest of the shift is."""
    return block.lattice.exponent + resolution.shift - (block.one_row.bit_length() - 1)
