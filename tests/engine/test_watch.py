"""When a search stops, and what it has recorded by then: on a clock that the tests move."""

from __future__ import annotations

import pytest
from tacit.engine.search.watch import Offset, Progress, Watch


class Clock:
    """Seconds that pass when a test says so; the origin is not zero."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_without_conditions_nothing_stops_it(clock: Clock) -> None:
    watch = Watch(clock=clock)
    watch.report(5.0, 4.0)
    clock.now += 1e9
    assert not watch.stop() and not watch.interrupted()
    assert watch.seconds == 1e9


def test_the_deadline_interrupts_at_its_second(clock: Clock) -> None:
    watch = Watch(deadline=2.0, clock=clock)
    clock.now += 1.75
    assert not watch.interrupted() and not watch.stop()
    clock.now += 0.25
    assert watch.interrupted() and watch.stop()
    assert Watch(deadline=0.0, clock=clock).interrupted()


def test_a_cancel_interrupts_as_soon_as_it_is_true(clock: Clock) -> None:
    answers = iter([False, True])
    watch = Watch(cancel=lambda: next(answers), clock=clock)
    assert [watch.interrupted(), watch.interrupted()] == [False, True]


@pytest.mark.parametrize(("gap", "reached"), [(0.0, 100.0), (0.01, 101.0), (0.5, 150.0)])
def test_a_gap_that_is_tight_enough_stops_but_does_not_interrupt(clock: Clock, gap: float, reached: float) -> None:
    watch = Watch(target_gap=gap, clock=clock)
    watch.report(reached + 1e-6, 100.0)
    assert not watch.stop()
    watch.report(reached)
    assert watch.stop()
    assert not watch.interrupted()


def test_the_trace_holds_improvements_only_and_so_does_the_progress(clock: Clock) -> None:
    seen: list[Progress] = []
    watch = Watch(progress=seen.append, clock=clock)
    for error, bound in ((9.0, 0.0), (9.0, 0.0), (10.0, 1.0), (11.0, 0.5), (7.0, 0.5), (7.0, 1.0)):
        clock.now += 1.0
        watch.report(error, bound)
    assert watch.trace == ((1.0, 9.0, 0.0), (3.0, 9.0, 1.0), (5.0, 7.0, 1.0))
    assert [(p.seconds, p.error, p.lower_bound) for p in seen] == list(watch.trace)
    assert (watch.error, watch.lower_bound) == (7.0, 1.0)


def test_a_part_reports_to_the_whole_with_what_the_others_contribute(clock: Clock) -> None:
    whole = Watch(clock=clock)
    part = whole.part(0.5, Offset(error=100.0, lower_bound=10.0, copies=3))
    clock.now += 1.0
    part.report(7.0, 2.0)
    assert (part.error, part.lower_bound) == (7.0, 2.0)
    assert whole.trace == ((1.0, 121.0, 16.0),)


def test_a_part_has_its_share_of_the_time_that_is_left(clock: Clock) -> None:
    whole = Watch(deadline=10.0, clock=clock)
    clock.now += 2.0
    part = whole.part(0.25, Offset(0.0, 0.0, 1))
    clock.now += 1.5
    assert not part.interrupted()
    clock.now += 0.5
    assert part.interrupted() and not whole.interrupted()
    clock.now += 20.0
    assert whole.part(1.0, Offset(0.0, 0.0, 1)).interrupted(), "no time is left, and it is not negative"


def test_a_part_has_the_gap_and_the_cancel_of_the_whole(clock: Clock) -> None:
    part = Watch(target_gap=0.5, clock=clock).part(1.0, Offset(0.0, 0.0, 1))
    part.report(15.0, 10.0)
    assert part.stop() and not part.interrupted()
    assert Watch(cancel=lambda: True, clock=clock).part(1.0, Offset(0.0, 0.0, 1)).interrupted()
