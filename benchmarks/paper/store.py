"""Every outcome goes to disk as soon as it is measured: a run of hours that is broken off can be taken up again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import tacit.engine.search

from benchmarks.paper.tasks import FAILED, LATE, Outcome, Task


class Store:
    """One JSON line per task, in a file of the output folder. A run that does not resume starts it anew.

    A line that was cut off when a run was killed is ignored. What failed is tried again, and so is what a limit ended
    if there is more time now. Each line names the code that measured it: a search that has changed since does not lose
    hours of work, but the report says so.
    """

    def __init__(self, path: Path, *, resume: bool, limit: float | None = None) -> None:
        self._path = path
        self._limit = limit
        self._outcomes: dict[str, Outcome] = {}
        self._code = code()
        self._by_code: dict[str, str] = {}
        if resume and path.exists():
            self._read(path.read_text(encoding="utf-8"))
        else:
            path.write_text("", encoding="utf-8")

    def _read(self, text: str) -> None:
        for line in text.splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            outcome = Outcome(entry["measures"], entry["reason"])
            if not self._again(outcome, entry["limit"]):
                self._outcomes[entry["task"]] = outcome
                self._by_code[entry["task"]] = entry["code"]
        if text and not text.endswith("\n"):
            with self._path.open("a", encoding="utf-8") as stream:
                print(file=stream)

    def _again(self, outcome: Outcome, limit: float | None) -> bool:
        if outcome.reason.startswith(FAILED):
            return True
        ended = outcome.reason.startswith(LATE) or bool(outcome.measures.get("stopped"))
        return ended and limit is not None and (self._limit is None or self._limit > limit)

    def missing(self, tasks: Iterable[Task]) -> list[Task]:
        return [task for task in tasks if repr(task) not in self._outcomes]

    def keep(self, task: Task, outcome: Outcome) -> None:
        self._outcomes[repr(task)] = outcome
        self._by_code[repr(task)] = self._code
        entry = {
            "task": repr(task),
            "measures": dict(outcome.measures),
            "reason": outcome.reason,
            "limit": self._limit,
            "code": self._code,
        }
        with self._path.open("a", encoding="utf-8") as stream:
            print(json.dumps(entry), file=stream)

    def outcomes(self, tasks: Iterable[Task]) -> dict[Task, Outcome]:
        """What is measured of them."""
        return {task: self._outcomes[repr(task)] for task in tasks if repr(task) in self._outcomes}

    def other_code(self, tasks: Iterable[Task]) -> int:
        """How many outcomes were measured by a search whose source was not today's."""
        return sum(self._by_code.get(repr(task), self._code) != self._code for task in tasks)


def code() -> str:
    """A fingerprint of the source of all strategies, and of what chooses among them."""
    digest = hashlib.sha256()
    search = Path(tacit.engine.search.__path__[0])
    for path in (*sorted((search / "strategies").glob("*.py")), search / "portfolio.py", search / "least_total.py"):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
