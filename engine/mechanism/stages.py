"""A plan whose questions are chosen in stages that look at the data: what is known of it before, and its run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from tacit.engine.accounting.amounts import Amount, to_amount
from tacit.engine.accounting.composition import rho_of_pure
from tacit.engine.accounting.description import MechanismRecord, StageRecord
from tacit.engine.linalg import row_peaks
from tacit.engine.mechanism.dawa import expanded_cells, partition_noise, run_dawa
from tacit.engine.mechanism.exact import Integers, integer_vector
from tacit.engine.mechanism.measurement import Measurement
from tacit.engine.mechanism.mwem import draws, query_lattice, run_mwem, selection_noise, synthetic_cells
from tacit.engine.mechanism.table_workload import TableWorkload
from tacit.engine.search.data_dependent import DataDependent, Dawa
from tacit.engine.search.optimize import optimize
from tacit.engine.strategy import Matrix, Vector
from tacit.errors import InternalError, PrivacyParameterError
from tacit.process import one_blas_thread

_LEAST_EPSILON = Decimal("1e-6")
"""Of each table: with that, the noise of every stage fits its integers (``choice.coarseness``)."""

Measurements = tuple[tuple[Measurement, ...], ...]
"""For each table, what its stages measured."""


@dataclass(frozen=True)
class Stage:
    """One draw, or several of one kind, and the ε of all of them together."""

    name: str
    epsilon: Fraction
    scale: float
    """The largest scale of its noise, in steps of its lattice; NaN where the lattice follows from an earlier stage."""
    count: int
    """How many mechanisms of this kind are run."""


@dataclass(frozen=True, eq=False)
class StagedPlan:
    """How a batch will be measured by a strategy that looks at the data. Made from the workload alone.

    The tables share ε evenly: what a table's stages will be good for is not known beforehand.
    """

    name: str
    workloads: tuple[TableWorkload, ...]
    strategies: tuple[DataDependent, ...]
    privacy: Literal["pure"] = "pure"

    @property
    def share(self) -> Fraction:
        """Of ε, for each table."""
        return Fraction(1, len(self.workloads))

    def cost(self, epsilon: Any, delta: Any = 0) -> Amount:
        """What must be charged for a release: ε. No stage uses δ."""
        amount = to_amount(epsilon, delta)
        least = _LEAST_EPSILON * len(self.workloads)
        if amount.epsilon < least:
            raise PrivacyParameterError(
                f"{self.name} can make no release at epsilon = {amount.epsilon:g}; {least:g} is the least"
            )
        return Amount(amount.epsilon, Decimal(0))

    def rho(self, epsilon: Any, delta: Any = 0) -> Decimal:
        """What a release costs in zCDP."""
        return rho_of_pure(self.cost(epsilon, delta).epsilon)

    def stages(self, epsilon: Any) -> tuple[tuple[Stage, ...], ...]:
        """For each table the stages at ε.

        Guarantee: the ε of all stages of all tables sum to ε exactly, and each is what the stage is run with
        (``run_dawa``, ``run_mwem``). One unit may own rows in every table, so they add up (sequential composition).
        """
        whole = Fraction(self.cost(epsilon).epsilon) * self.share
        return tuple(_stages(s, w, whole) for s, w in zip(self.strategies, self.workloads, strict=True))

    def describe(self, epsilon: Any, delta: Any = 0, units: Mapping[str, str] | None = None) -> MechanismRecord:
        """What a release at ε does, without data: the ledger records it with the charge."""
        parts = tuple(
            StageRecord(
                strategy=self.name,
                stage=stage.name,
                epsilon=str(stage.epsilon),
                scale=stage.scale,
                count=stage.count,
                rows_per_unit=workload.rows_per_unit,
                lattice=_digest(strategy, workload),
            )
            for workload, strategy, stages in zip(self.workloads, self.strategies, self.stages(epsilon), strict=True)
            for stage in stages
        )
        return MechanismRecord(self.privacy, self.cost(epsilon, delta), parts, units or {})


def plan_in_stages(workloads: Sequence[TableWorkload], name: str, weights: Vector | None = None) -> StagedPlan:
    """The plan of a batch by a strategy of ``data_dependent_strategies()``.

    As for every plan, a row counts after it was divided by its largest entry, times the row's weight.
    """
    strategies = []
    for workload in workloads:
        scaled = workload.matrix / row_peaks(workload.matrix)[:, None]
        strategy = optimize(scaled, strategy=name, weights=None if weights is None else weights[workload.rows])
        assert isinstance(strategy, DataDependent)
        strategies.append(strategy)
    return StagedPlan(name, tuple(workloads), tuple(strategies))


def measure_in_stages(plan: StagedPlan, xs: Sequence[Integers], epsilon: Any) -> Measurements:
    """Run every stage on the counts of every table.

    Guarantee: ε-private for one privacy unit added or removed, by ``StagedPlan.stages``. What is returned is noisy
    integers, and which questions they answer, which private choices made.
    """
    if len(xs) != len(plan.workloads):
        raise InternalError("one vector of counts is needed for each table")
    paid = plan.cost(epsilon).epsilon
    results = []
    with one_blas_thread():
        for strategy, workload, x in zip(plan.strategies, plan.workloads, xs, strict=True):
            counts = integer_vector(x, workload.matrix.shape[1])
            run = run_dawa if isinstance(strategy.settings, Dawa) else run_mwem
            results.append(run(strategy, workload, counts, paid, plan.share))
    return tuple(results)


def estimated_cells(name: str, measurements: tuple[Measurement, ...]) -> Vector:
    """The counts of one table's cells: a function of what was measured alone, so post-processing."""
    with one_blas_thread():
        return expanded_cells(measurements) if name == "dawa" else synthetic_cells(measurements)


def _stages(strategy: DataDependent, workload: TableWorkload, epsilon: Fraction) -> tuple[Stage, ...]:
    settings = strategy.settings
    if isinstance(settings, Dawa):
        noise = partition_noise(workload, settings, epsilon)
        return (
            Stage("partition", noise.epsilon, max(noise.scales), 1),
            Stage("counts of the buckets", epsilon - noise.epsilon, float("nan"), 1),
        )
    each = epsilon / draws(settings)
    selection = selection_noise(workload, query_lattice(strategy.workload, strategy.weights), each)
    return (
        Stage("total", each, float("nan"), 1),
        Stage("choices", settings.rounds * each, selection.scale, settings.rounds),
        Stage("counts of the chosen", settings.rounds * each, float("nan"), settings.rounds),
    )


def _digest(strategy: DataDependent, workload: TableWorkload) -> str:
    """Equal for equal questions to equal counts, as far as they are known."""
    head = f"{strategy.settings} {strategy.workload.shape} {workload.rows_per_unit} {workload.one_row}"
    digest = hashlib.sha256(head.encode())
    for array in (strategy.workload, strategy.weights):
        digest.update(_bytes(array))
    return digest.hexdigest()


def _bytes(array: Matrix | Vector) -> bytes:
    return np.ascontiguousarray(array, dtype="<f8").tobytes()
