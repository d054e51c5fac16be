"""Every outcome goes to disk as soon as it is measured: a run of hours that is broken off can be taken up again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.paper.tasks import Outcome, Task


class Store:
    """One JSON line per task, in a file of the output folder. A run that does not resume starts it anew."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self._path = path
        self._known: dict[str, Outcome] = {}
        if resume and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                self._known[entry["task"]] = Outcome(entry["measures"], entry["reason"])
        else:
            path.write_text("", encoding="utf-8")

    def missing(self, tasks: Iterable[Task]) -> list[Task]:
        return [task for task in tasks if repr(task) not in self._known]

    def keep(self, tasks: Sequence[Task], measured: Iterable[Outcome]) -> None:
        """Write the outcomes down one by one, as they come."""
        with self._path.open("a", encoding="utf-8") as stream:
            for done, (task, outcome) in enumerate(zip(tasks, measured, strict=True), start=1):
                self._known[repr(task)] = outcome
                entry = {"task": repr(task), "measures": dict(outcome.measures), "reason": outcome.reason}
                print(json.dumps(entry), file=stream, flush=True)
                if done % 50 == 0:
                    print(f"{done} of {len(tasks)} measured", flush=True)

    def outcomes(self, tasks: Iterable[Task]) -> dict[Task, Outcome]:
        return {task: self._known[repr(task)] for task in tasks}
