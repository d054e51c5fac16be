"""A process that asks for an answer, and is interrupted in the middle of a step, as by Ctrl-C."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import Any

_VICTIM = """
import json, os, signal, sys, threading, time, traceback
sys.path[:0] = json.loads(sys.argv[1])
import pytest, tacit
from support import seams

signal.signal(signal.SIGINT, signal.default_int_handler)
patch = pytest.MonkeyPatch()
times = dict()

def interrupt_soon(delay=0.2):
    def send():
        times["sent"] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)
    threading.Timer(delay, send).start()

def shown(error):
    lines = traceback.format_exception(error)
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if "tacit" in frame.f_code.co_filename:
                lines += [repr(value) for value in frame.f_locals.values()]
        error = error.__cause__ or error.__context__
    return "".join(lines)

PREPARE
outcome = dict(raised=None)
try:
    con.answer(SQL, epsilon=0.5)
except BaseException as error:
    outcome["seconds"] = time.monotonic() - times["sent"]
    outcome["raised"] = type(error).__name__
    outcome["shown"] = shown(error)
patch.undo()
outcome["spent"] = float(con.budget.spent.epsilon)
answers = con.answer(SQL, epsilon=0.5)
outcome["cost"], outcome["value"] = float(answers.cost.epsilon), float(answers[0].df.iloc[0, 0])
outcome["threads"] = [thread.name for thread in threading.enumerate()]
con.close()
print(json.dumps(outcome))
"""


def outcome_of(prepare: str) -> dict[str, Any]:
    """What became of an answer. ``prepare`` makes ``con`` and ``SQL``, and calls ``interrupt_soon`` inside a slow step.

    The answer is asked for again afterwards, on the same connection: ``cost`` and ``value`` are of that one.
    """
    script = _VICTIM.replace("PREPARE", textwrap.dedent(prepare))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, json.dumps(sys.path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
