"""What privacy itself costs in time: noise, calibration and the ledger, without planning and without the scan.

    python benchmarks/mechanism.py [measurements] [past releases]

Two figures for each: the processor's milliseconds, which is what a step costs beyond waiting for the disk and for other
processes, and the time that passed as a multiple of one fsync of this disk. A durable charge needs one fsync and a
stored release another; no ledger can be faster than that.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tacit.engine import Block, measure, pack, plan_release, unpack
from tacit.engine.calibrate import analytic_sigma, laplace_scale
from tacit.engine.ledger import Ledger, Request
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


def main(measurements: int = 1000, past: int = 1000) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        report(Path(folder), measurements, past)


def report(folder: Path, measurements: int, past: int) -> None:
    """Measure in a folder of its own."""
    sync = fsync(folder)
    print(f"one fsync of this disk: {sync.clock:.2f} ms\n")
    counts = np.random.default_rng(0).integers(0, 10**6, size=measurements)
    block = Block(np.eye(measurements), np.arange(measurements))
    kinds: tuple[tuple[str, Privacy, float], ...] = (("Laplace", "pure", 0.0), ("Gaussian", "approximate", 1e-6))
    for name, privacy, delta in kinds:
        plan = plan_release([block], privacy=privacy, strategy="identity")
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
            paid = ledger.charge(Request(f"{name} {i}", *cost, mechanism=plan.describe(0.5, delta)))
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
    few, many = admission(folder / "few", 10), admission(folder / "many", past)
    line("admission beside 10 past releases", few, sync)
    line(
        f"admission beside {past:,} past releases",
        many,
        sync,
        f"{many.busy / few.busy:.1f} times as busy; wanted: milliseconds",
    )
    line(f"open and verify a ledger of {past:,} releases", typical(lambda _: Ledger.open(folder / "many"), 3), sync)


def admission(path: Path, past: int) -> Cost:
    """One charge beside so many stored releases of 2 kB."""
    ledger = Ledger.create(path, 10**6)
    for i in range(past):
        ledger.store(ledger.charge(Request(f"past {i}", 0.001, mechanism="{}" * 200)).id, bytes(2000))
    return typical(lambda i: ledger.charge(Request(f"new {i}", 0.001, mechanism="{}" * 200)))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:3]))
