"""Whatever fails between the count and the stored release, no exception leads back to an exact count."""

from __future__ import annotations

import gc
import signal
import sys
import traceback
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest
import tacit
from support import seams
from tacit import Connection
from tacit.errors import LedgerError

SQL = "SELECT count(*) FROM visits WHERE age < 40; SELECT count(*) FROM visits WHERE sex"
EXACT = 731_934_517
"""A count that no other number in the process is equal to."""


class Counted:
    """Stands in for the scan, and remembers the arrays that it gave, without keeping them alive."""

    def __init__(self) -> None:
        self.given: list[weakref.ref[Any]] = []

    def __call__(self, _source: Any, scan: Any, _salt: bytes) -> Any:
        counts = np.full(scan.cells, EXACT, dtype=np.int64)
        self.given.append(weakref.ref(counts))
        return counts


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A job in the background is started with SIGINT ignored: then no interrupt would come."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    source = Counted()
    seams.replace(monkeypatch, "count", lambda *args: source(*args))
    return source


def failing(error: BaseException, *, after: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A function that does its work and then fails, with the exact figures in its arguments and its locals."""

    def fail(*args: Any, **options: Any) -> Any:
        done = None if after is None else after(*args, **options)
        circle = [args, done]
        try:
            raise ValueError(f"the row {EXACT}", args)
        except ValueError as inner:
            circle.append(inner)  # this frame and the exception hold each other
            raise error from inner

    return fail


def exceptions(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def shows(value: Any, depth: int = 3) -> bool:
    """Whether a value holds the exact count, in itself or a few steps inside."""
    if isinstance(value, (int, np.integer)):
        return int(value) == EXACT
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iufO" and bool((value == EXACT).any())
    if isinstance(value, str):
        return str(EXACT) in value
    if depth and isinstance(value, (list, tuple, set)):
        return any(shows(v, depth - 1) for v in value)
    if depth and isinstance(value, dict):
        return any(shows(v, depth - 1) for v in value.values())
    if depth and hasattr(value, "__closure__"):
        return any(shows(cell.cell_contents, depth - 1) for cell in value.__closure__ or ())
    return False


def leaks(error: BaseException, counted: Counted) -> list[str]:
    """Every place that an exception leads to where the exact count is."""
    found = [str(one) for one in exceptions(error) if shows([str(one), *one.args])]
    own = sys._getframe(1)
    for one in exceptions(error):
        for frame, _ in traceback.walk_tb(one.__traceback__):
            if frame is not own:
                found += [f"{frame.f_code.co_name}: {n}" for n, v in frame.f_locals.items() if shows(v)]
    for frame in (thing for thing in gc.get_objects() if isinstance(thing, FrameType)):
        if frame is not own and frame.f_code.co_filename.find("tacit") >= 0:
            found += [f"{frame.f_code.co_name}: {n}" for n, v in frame.f_locals.items() if shows(v)]
    found += ["the array itself" for ref in counted.given if ref() is not None]
    return found


STEPS = ("measure", "laplace", "pack", "store", "unpack")
ERRORS = [OSError(28, "No space left"), MemoryError(), KeyboardInterrupt(), SystemExit(3), LedgerError("disk is full")]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("step", STEPS)
def test_no_exception_leads_to_an_exact_count(
    step: str, error: BaseException, late: bool, con: Connection, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = type(error)(*error.args)
    with monkeypatch.context() as patch:
        seams.replace(patch, step, failing(failure, after=seams.real(step) if late else None))
        with pytest.raises((tacit.Error, KeyboardInterrupt, SystemExit)) as caught:
            con.answer(SQL, epsilon=0.5)
    assert counted.given, "the count was reached"
    del failure
    assert leaks(caught.value, counted) == []
    assert not con.answer(SQL, epsilon=0.5).cost.epsilon, "and the repetition is free"


def test_a_count_that_fails_half_way(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two tables the first is counted and the second fails."""
    counted = Counted()

    def count(source: Any, scan: Any, salt: bytes) -> Any:
        if counted.given:
            raise RuntimeError(f"could not convert {EXACT}")
        return counted(source, scan, salt)

    seams.replace(monkeypatch, "count", count)
    with pytest.raises(tacit.OperationalError, match="was charged") as caught:
        con.answer("SELECT count(*) FROM visits; SELECT count(*) FROM labs", epsilon=0.5)
    assert leaks(caught.value, counted) == []


def test_what_is_said_of_a_full_disk(con: Connection, counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    seams.replace(monkeypatch, "store", failing(LedgerError("the disk that holds the ledger is full")))
    with pytest.raises(tacit.LedgerError, match=r"is full\nhint: the batch was charged; repeating it costs nothing"):
        con.answer(SQL, epsilon=0.5)


def test_an_exit_keeps_its_code(con: Connection, counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    for raised, code in ((SystemExit(3), 3), (SystemExit(f"{EXACT}"), 1)):
        seams.replace(monkeypatch, "measure", failing(raised))
        with pytest.raises(SystemExit) as caught:
            con.answer(SQL, epsilon=0.5)
        assert caught.value.code == code


def test_an_answer_keeps_no_exact_count(con: Connection, counted: Counted) -> None:
    answers = con.answer(SQL, epsilon=0.5)
    assert counted.given and not any(ref() is not None for ref in counted.given)
    assert len(answers) == 2


def test_the_check_can_fail(con: Connection, counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of 0.1.0, which counted, drew and stored one after the other, is found out."""
    seams.replace(monkeypatch, "sealed", lambda step, source: step())
    seams.replace(monkeypatch, "store", failing(LedgerError("full")))
    with pytest.raises(tacit.LedgerError) as caught:
        con.answer(SQL, epsilon=0.5)
    assert leaks(caught.value, counted)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_the_rest_is_cleared_away(
    con: Connection, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reaches the thread that waits, which holds nothing."""
    real = seams.real("without rows")

    def interrupted(error: BaseException) -> BaseException:
        signal.raise_signal(signal.SIGINT)
        return real(error)

    seams.replace(monkeypatch, "without rows", interrupted)
    seams.replace(monkeypatch, "measure", failing(MemoryError()))
    with pytest.raises(KeyboardInterrupt) as caught:
        con.answer(SQL, epsilon=0.5)
    for error in exceptions(caught.value):
        for frame, _ in traceback.walk_tb(error.__traceback__):
            assert not any(shows(value) for value in frame.f_locals.values()), frame
