"""What privacy itself costs in time: noise, calibration and the ledger, without planning and without the scan.

    python benchmarks/mechanism.py [measurements]              # and what a ledger's past costs, 10 to 10,000 releases
    python benchmarks/mechanism.py history [related] [sizes]   # only that; related: past releases of the same table
    python benchmarks/mechanism.py noise                       # variance on a fine lattice over that on the integers

Two figures for each: the processor's milliseconds, which is what a step costs beyond waiting for the disk and for other
processes, and the time that passed as a multiple of one fsync of this disk. A durable charge needs one fsync and a
stored release another; no ledger can be faster than that.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import tacit
from tacit.engine import (
    Amount,
    PlanOptions,
    TableWorkload,
    choose_plan,
    least_error,
    measure,
    pack,
    plan_release,
    table_workload,
    unpack,
)
from tacit.engine.accounting.description import MechanismRecord, PartRecord
from tacit.engine.accounting.ledger import ChargeRequest, Ledger
from tacit.engine.mechanism.calibrate import analytic_sigma, laplace_scale
from tacit.engine.mechanism.table_plan import TablePlan
from tacit.engine.strategy import Privacy


class Cost(NamedTuple):
    """Milliseconds: of the processor, and on the clock."""

    busy: float
    clock: float


def typical(run: Callable[[int], object], times: int = 7) -> Cost:
    """The medians of a few runs, the first one left out: it pays for imports and caches."""
    run(0)
    busy, clock = [], []
    for i in range(1, times + 1):
        start = time.process_time(), time.perf_counter()
        run(i)
        busy.append(time.process_time() - start[0])
        clock.append(time.perf_counter() - start[1])
    return Cost(1000 * sorted(busy)[times // 2], 1000 * sorted(clock)[times // 2])


def fsync(folder: Path) -> Cost:
    """One write of a page that reaches the disk."""
    with open(folder / "page", "wb", buffering=0) as file:

        def write(_: int) -> None:
            file.write(bytes(4096))
            os.fsync(file.fileno())

        return typical(write, 31)


def line(what: str, cost: Cost, sync: Cost, note: str = "") -> None:
    """One line of the table."""
    print(f"{what:52} {cost.busy:8.2f} ms busy {cost.clock / sync.clock:8.1f} × fsync  {note}".rstrip())


def main(arguments: Sequence[str]) -> None:
    """Print the tables."""
    numbers = [int(word) for word in arguments if word.isdigit()]
    if "noise" in arguments:
        return noise()
    with tempfile.TemporaryDirectory() as folder:
        if "history" not in arguments:
            report(Path(folder), *numbers[:1])
            numbers = []
        related = "related" in arguments
        history(Path(folder), numbers or (RELATED if related else PAST), related=related)


def report(folder: Path, measurements: int = 1000) -> None:
    """Measure in a folder of its own."""
    sync = fsync(folder)
    print(f"one fsync of this disk: {sync.clock:.2f} ms\n")
    counts = np.random.default_rng(0).integers(0, 10**6, size=measurements)
    workload = TableWorkload(np.eye(measurements), np.arange(measurements))
    kinds: tuple[tuple[str, Privacy, float], ...] = (("Laplace", "pure", 0.0), ("Gaussian", "approximate", 1e-6))
    for name, privacy, delta in kinds:
        plan = plan_release([workload], privacy=privacy, options=PlanOptions(strategy="identity"))
        plan.calibrate(0.5, delta)  # caches what does not depend on the amount

        def calibrate(i: int, plan=plan, delta=delta) -> object:  # type: ignore[no-untyped-def]
            laplace_scale.cache_clear()
            analytic_sigma.cache_clear()
            return plan.calibrate(0.5 + i / 1000, delta)

        def draw(i: int, plan=plan, delta=delta) -> object:  # type: ignore[no-untyped-def]
            return measure(plan, [counts], 0.5, delta)

        release = measure(plan, [counts], 0.5, delta)
        payload = pack(release)
        ledger = Ledger.create(folder / name, 10**6, 0.1)

        def whole(i: int, plan=plan, delta=delta, ledger=ledger, name=name) -> object:  # type: ignore[no-untyped-def]
            """Everything from the charge to the stored release but the scan."""
            cost = plan.cost(0.5, delta)
            request = ChargeRequest(f"{name} {i}", cost.epsilon, cost.delta, mechanism=plan.describe(0.5, delta))
            paid = ledger.charge(request)
            return unpack(ledger.store(paid.id, pack(measure(plan, [counts], paid.epsilon, paid.delta))))

        line(f"{name}: calibration, nothing cached", typical(calibrate), sync)
        drawing = typical(draw)
        line(
            f"{name}: draw {measurements:,} measurements",
            drawing,
            sync,
            f"{1000 * drawing.busy / measurements:.0f} µs each",
        )
        line(f"{name}: pack them, {len(payload) / 1000:.0f} kB", typical(lambda _, r=release: pack(r)), sync)  # type: ignore[misc]
        line(f"{name}: charge, draw, store and read back", typical(whole), sync, "wanted: less than 100 ms busy")
        print()


def noise() -> None:
    """What noise on the integers gains: plans of whole rows against the same plans for rows in fixed point."""
    print(f"{'':22}   ε  strategy on integers    fine/integers  drawn/stated  error/least of any mechanism")
    x = np.arange(64)
    for name, W in {"64 disjoint counts": np.eye(64), "prefix counts of 16": np.tril(np.ones((16, 64)))}.items():
        whole, fixed = table_workload(W), table_workload(W, one_row=16)
        for epsilon in (1, 2, 4):
            plan, fine = choose_plan([whole], epsilon), choose_plan([fixed], epsilon)
            (part,) = plan.parts
            assert isinstance(part, TablePlan)
            B = part.lattice.B
            errors = [B @ m.values - W @ x for m in (measure(plan, [x], epsilon)[0] for _ in range(300))]
            drawn = float(np.square(errors).sum(axis=1).mean())
            stated = plan.total_error(epsilon)
            print(
                f"{name:22}{epsilon:4}  {plan.name:22} {fine.total_error(epsilon) / stated:14.3f}"
                f"{drawn / stated:14.3f}{stated / least_error(W, epsilon):14.3f}"
            )


PAST = (10, 1_000, 10_000)
RELATED = (10, 100, 1_000)


def history(folder: Path, sizes: Sequence[int], *, related: bool) -> None:
    """What everyday calls cost the processor beside so many past releases, of other tables or of the same one."""
    about = "the same table" if related else "other tables"
    print(f"milliseconds of the processor beside past releases of {about}")
    print(f"{'':28}" + "".join(f"{size:>12,}" for size in sizes) + "   last / first")
    columns = [everyday(folder / f"{about} {size}.duckdb", size, related=related) for size in sizes]
    for name in columns[0]:
        costs = [column[name].busy for column in columns]
        print(f"{name:28}" + "".join(f"{cost:12.2f}" for cost in costs) + f"{costs[-1] / costs[0]:15.1f}")
    print()


def everyday(path: Path, past: int, *, related: bool) -> dict[str, Cost]:
    """A charge, opening the ledger, ``con.budget``, a new question and one that was asked before."""
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE t AS SELECT (i % 1000)::INTEGER AS a FROM range(10000) r(i)")
    with tacit.connect(path, epsilon=10**6) as con:
        known = "SELECT count(*) FROM t WHERE a < 500"
        con.answer(known, epsilon=0.01)
        ledger = con._session.access.open()
        repeat(ledger, past, related=related)
        part = PartRecord("results", "laplace", 2.0**30, 2**28, 1, 1, "0" * 64)
        record = MechanismRecord("pure", Amount(Decimal("0.001"), Decimal(0)), (part,), {"t": "a row"})
        return {
            "charge": typical(lambda i: ledger.charge(ChargeRequest(f"new {i}", 0.001, mechanism=record))),
            "open the ledger": typical(lambda _: Ledger.open(f"{path}.ledger")),
            "con.budget": typical(lambda _: con.budget),
            "a new question": typical(lambda i: con.answer(f"SELECT count(*) FROM t WHERE a < {i}", epsilon=0.01)),
            "a known question": typical(lambda _: con.answer(known, epsilon=0.01)),
        }


def repeat(ledger: Ledger, times: int, *, related: bool) -> None:
    """Write the ledger's one release so many times more, about other tables or about its own, in one transaction."""
    charge = next(entry for entry in ledger.entries() if entry.kind == "charge")
    (stored,) = ledger.releases(charge.fingerprint)
    with ledger.transaction(write=True) as log:
        [(subject,)] = log.connection.execute("SELECT subject FROM subjects").fetchall()
        for i in range(times):
            name = f"past {i}"
            paid = log.append("charge", charge.amount, fingerprint=name, detail=charge.detail)
            log.append_release(paid, stored.payload, [subject if related else name])


if __name__ == "__main__":
    main(sys.argv[1:])
