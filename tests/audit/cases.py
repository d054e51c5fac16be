"""Random neighbouring tables and batches, and draws of what a real answer measured."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
from numpy.typing import NDArray
from support import seams
from support.estimates import estimate_batch
from tacit import Connection
from tacit.engine import JointPlan, Measurement
from tacit.sql import Workload

from .tester import Scores

LONG = os.environ.get("TACIT_AUDIT") == "long"
"""``make audit`` has time for many draws and many kills; the short form is part of every test run."""

Row = tuple[int | None, str | None, int | None, float | None]

COLUMNS = "person INTEGER, state VARCHAR, age INTEGER, cost DOUBLE"
SALT = bytes(range(32))


def policy(rows_per_unit: int | None) -> dict[str, Any]:
    """The table's declared domains; with a bound, a unit is a person, otherwise a row.

    The version is declared, because that of a database in memory is the database's own, whatever it holds.
    """
    unit = {} if rows_per_unit is None else {"privacy_unit": "person", "max_rows_per_unit": rows_per_unit}
    columns = {
        "state": {"values": ["NY", "NJ"], "other": True},
        "age": {"min": 0, "max": 99},
        "cost": {"min": 0.0, "max": 100.0},
    }
    return {"budget": {"epsilon": 1000.0, "delta": 0.1}, "tables": {"v": {**unit, "version": "1", "columns": columns}}}


def table_of(rows: Sequence[Row]) -> duckdb.DuckDBPyConnection:
    """A database in memory with a table that holds ``rows``."""
    database = duckdb.connect()
    database.execute(f"CREATE TABLE v ({COLUMNS})")
    if rows:
        database.executemany("INSERT INTO v VALUES (?, ?, ?, ?)", rows)
    return database


def open_table(rows: Sequence[Row], rows_per_unit: int | None = None) -> Connection:
    """The curator's connection to it."""
    return tacit.connect(table_of(rows), policy=policy(rows_per_unit))


@dataclass(frozen=True)
class Case:
    """Two tables that differ by one privacy unit, and a batch to ask of them."""

    here: tuple[Row, ...]
    there: tuple[Row, ...]
    batch: tuple[str, ...]
    epsilon: float
    delta: float = 0.0
    rows_per_unit: int | None = None
    strategy: str | None = None


_FILTERS = (
    "age < {a}", "age BETWEEN {a} AND {b}", "state = 'NY'", "state IN ('NY', 'NJ') AND age >= {a}",
    "cost > {b}", "age IS NULL OR cost < {a}", "NOT (state = 'NJ' AND age < {b})", "person % 2 = 0",
)  # fmt: skip
_WHOLE = (
    "SELECT count(*) FROM v", "SELECT sum(cost) FROM v", "SELECT state, count(*) FROM v GROUP BY state",
    "SELECT sum(age), avg(cost) FROM v", "SELECT count(cost) FROM v",
)  # fmt: skip


def random_case(rng: np.random.Generator, delta: float = 0.0) -> Case:
    """Some rows, one unit more or less, and a few queries."""
    k = rng.choice([None, 1, 2])
    rows = [_row(rng, int(person)) for person in rng.integers(0, 4, size=rng.integers(0, 8))]
    # The unit that differs owns more rows than are kept of it, and often sits where every query counts it.
    gone = [_row(rng, 9) for _ in range(1 if k is None else 5)]
    a, b = sorted(rng.integers(1, 98, size=2).tolist())
    batch = [f"SELECT count(*) FROM v WHERE {f.format(a=a, b=b)}" for f in rng.choice(_FILTERS, size=2, replace=False)]
    batch.append(str(rng.choice(_WHOLE)))
    return Case(
        here=(*rows, *gone),
        there=tuple(rows),
        batch=tuple(batch),
        epsilon=float(rng.choice([0.5, 1.0])),
        delta=delta,
        rows_per_unit=None if k is None else int(k),
        # The search for a strategy takes longer than the draws, so the short form leaves it to the Gaussian cases.
        strategy=None if delta else [None if LONG else "results", "results", "identity"][int(rng.integers(3))],
    )


def _row(rng: np.random.Generator, person: int) -> Row:
    state = [None, "NY", "NJ", "secret-state"][int(rng.integers(4))]
    age = None if rng.random() < 0.1 else int(rng.integers(0, 120))
    cost = [None, float("nan"), float("inf"), -3.0, float(rng.uniform(0, 100)), 100.0][int(rng.integers(6))]
    return person, state, age, cost


@dataclass(frozen=True)
class Sampler:
    """What ``con.answer`` measured of one table of a case; every draw is a fresh release of it."""

    workload: Workload
    plan: JointPlan
    counts: list[NDArray[Any]]
    paid: tuple[Any, Any]

    @classmethod
    def of(cls, case: Case, rows: Sequence[Row]) -> Sampler:
        """One answer through the front door, of which the call that meets the rows with noise is kept.

        Both tables of a case are counted with one salt, as two states of one table would be.
        """
        calls: list[tuple[JointPlan, Any, Any, Any]] = []
        count = seams.real("count")
        with pytest.MonkeyPatch.context() as patch, open_table(rows, case.rows_per_unit) as con:
            seams.replace(patch, "count", lambda source, scan, _: count(source, scan, SALT))
            seams.watch(patch, "measure", lambda *call: calls.append(call))
            con.answer(list(case.batch), epsilon=case.epsilon, delta=case.delta, strategy=case.strategy)
            workload = tacit.sql.compile_batch(list(case.batch), con.catalog)
        ((plan, counts, *paid),) = calls
        return cls(workload, plan, list(counts), (paid[0], paid[1]))

    def draw(self) -> tuple[Measurement, ...]:
        """One release, charged in full."""
        measured: tuple[Measurement, ...] = seams.real("measure")(self.plan, self.counts, *self.paid)
        return measured

    def draws(self, number: int) -> NDArray[np.float64]:
        """The values of many releases at once.

        One real release is watched, and each call that it makes for noise is made again, with every vector
        repeated ``number`` times: a tenth of the time of that many releases, and the same calls.
        """
        calls: list[tuple[Any, Any]] = []

        def watched(real: Any) -> Any:
            def call(values: Any, *args: Any, **options: Any) -> Any:
                calls.append((values, lambda many: real(many, *args, **options)))
                return real(values, *args, **options)

            return call

        with pytest.MonkeyPatch.context() as patch:
            for seam in ("laplace", "gaussian"):
                seams.replace(patch, seam, watched(seams.real(seam)))
            release = self.draw()
        assert len(calls) == len(release)
        parts = []
        for measurement, (values, again) in zip(release, calls, strict=True):
            noisy = again(np.tile(values, number)).reshape(number, -1)
            parts.append(np.ldexp(noisy.astype(np.float64), measurement.step))
        return np.concatenate(parts, axis=1)

    def answers(self, drawn: tuple[Measurement, ...]) -> NDArray[np.float64]:
        """Every row of the batch, as the analyst would get it."""
        return estimate_batch(self.plan.workloads, [drawn], rows=self.plan.rows).values


@dataclass(frozen=True)
class Pair:
    """Both tables of a case."""

    here: Sampler
    there: Sampler

    @classmethod
    def of(cls, case: Case) -> Pair:
        """One answer of each; what is not data must be equal."""
        pair = cls(Sampler.of(case, case.here), Sampler.of(case, case.there))
        one, other = pair.here, pair.there
        assert one.workload.fingerprint == other.workload.fingerprint, "the compiler looked at the data"
        assert one.paid == other.paid
        assert one.plan.describe(*one.paid) == other.plan.describe(*one.paid)
        return pair

    def in_bulk(self, number: int) -> tuple[Scores, Scores]:
        """Scores of many draws, for ``tester.audit``."""
        return self._scores(self.here.draws(number)), self._scores(self.there.draws(number))

    def one_by_one(self, number: int) -> tuple[Scores, Scores]:
        """The same of whole releases and of the answers that are rebuilt from them."""
        both = []
        for sampler in (self.here, self.there):
            drawn = [sampler.draw() for _ in range(number)]
            scores = self._scores(np.array([np.concatenate([m.values for m in one]) for one in drawn]))
            both.append(np.column_stack([scores, [sampler.answers(one) for one in drawn]]))
        return both[0], both[1]

    def _scores(self, z: NDArray[np.float64]) -> Scores:
        """What a tester who knows both tables can make of an output.

        The privacy loss by the noise that the release states; the measurements one by one and along the
        difference of the tables; and the lowest set bit of each, which is where floating-point noise shows
        what it was added to.
        """
        release = self.here.draw()
        scale = np.concatenate([np.full(len(m.values), m.scale) for m in release])
        centres = [
            np.concatenate([m.L @ (x / b.one_row) for m, x, b in zip(release, t.counts, t.plan.workloads, strict=True)])
            for t in (self.here, self.there)
        ]
        a, b = ((z - centre) / scale for centre in centres)
        gaussian = release[0].noise == "gaussian"
        loss = (b**2 - a**2).sum(axis=1) / 2 if gaussian else (np.abs(b) - np.abs(a)).sum(axis=1)
        along = z @ ((centres[0] - centres[1]) / scale)
        return np.column_stack([loss, along, z, _lowest_bit(z)])


def _lowest_bit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The exponent of the lowest set bit; 0 has none, and counts as very coarse."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.log2(np.where(whole == 0, 1, whole & -whole).astype(np.float64))
    return np.where(whole == 0, 2000.0, exponent - 53 + lowest)
