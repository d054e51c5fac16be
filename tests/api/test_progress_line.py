"""The line that a long search shows on a terminal, and nowhere else."""

from __future__ import annotations

import io

import pytest
from tacit.engine import Progress
from tacit.progress_line import EVERY, PATIENCE, ProgressLine, describe_scan, describe_search


class Screen(io.StringIO):
    def __init__(self, *, terminal: bool = True) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def run(screen: Screen, *moments: float) -> str:
    clock = Clock()
    with ProgressLine(screen, clock) as line:
        line.note(Progress(0.0, 250.0, 200.0))
        for moment in moments:
            clock.now = 100.0 + moment
            assert line.tick() is False, "a line never ends a search"
    return screen.getvalue()


def test_a_quick_search_shows_nothing() -> None:
    assert run(Screen(), 0.1, 0.5, PATIENCE - 0.01) == ""


def test_a_long_one_rewrites_one_line_and_erases_it() -> None:
    text = run(Screen(), 1.5, 1.6, 1.5 + EVERY)
    line = "planning, 2 s: error 250, at most 25.00% above the least of its kind"
    assert text == f"\r\x1b[2K{line}\r\x1b[2K{line}\r\x1b[2K"
    assert "\n" not in text


def test_a_scan_shows_the_part_that_is_done() -> None:
    screen, clock = Screen(), Clock()
    with ProgressLine(screen, clock, describe_scan) as line:
        clock.now += 2.0
        line.note(None)
        line.note(0.25)
    assert screen.getvalue() == "\r\x1b[2Kcounting, 2 s: 25%\r\x1b[2K"


def test_nothing_is_shown_where_nobody_watches() -> None:
    assert run(Screen(terminal=False), 1.5, 9.0) == ""


def test_nothing_is_shown_before_there_is_something_to_say() -> None:
    screen, clock = Screen(), Clock()
    with ProgressLine(screen, clock) as line:
        clock.now += 5.0
        line.tick()
    assert screen.getvalue() == ""


def test_a_bound_of_nothing_is_not_spoken_of() -> None:
    assert describe_search(Progress(0.0, 7.0, 0.0), 3.4) == "planning, 3 s: error 7"


@pytest.mark.parametrize("failure", [OSError, ValueError])
def test_a_terminal_that_is_gone_does_not_end_the_search(failure: type[Exception]) -> None:
    class Gone(Screen):
        def write(self, text: str) -> int:
            raise failure

    assert run(Gone(), 1.5, 3.0) == ""


def test_a_closed_stream_is_no_terminal() -> None:
    stream = io.StringIO()
    stream.close()
    with ProgressLine(stream) as line:
        assert line.tick() is False
