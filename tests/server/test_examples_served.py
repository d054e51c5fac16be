"""The examples over a server: nothing of them changes but the line that connects.

Each starts a server of its own: one runs in the suite, all with ``TACIT_AUDIT=long``.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tacit
from support.serving import Serving

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["census", "from_smartnoise", "quantiles", "report", "tutorial", "weblog"]
LONG = os.environ.get("TACIT_AUDIT") == "long"


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Callable[..., tacit.Connection]]:
    """``tacit.connect`` to a server over a copy of the database that the example has made."""
    running: list[Serving] = []
    connections: list[tacit.Connection] = []

    def opened(database: Any, *, policy: Any = None, epsilon: Any = None, **options: Any) -> tacit.Connection:
        file, rules = tmp_path / f"{len(running)}.duckdb", tmp_path / f"{len(running)}.toml"
        if isinstance(database, duckdb.DuckDBPyConnection):
            database.execute(f"ATTACH '{file}' AS served; COPY FROM DATABASE memory TO served; DETACH served")
        else:
            file.write_bytes(Path(database).read_bytes())
        stated = dict(policy or {"budget": {"epsilon": epsilon}})
        rules.write_text("".join(f"{key} = {toml(value)}\n" for key, value in stated.items()))
        running.append(Serving(rules, file))
        connections.append(tacit.connect(running[-1].address, token=running[-1].token(), **options))
        return connections[-1]

    yield opened
    for connection in connections:  # a notebook closes none
        connection.close()
    for server in running:
        server.stop()


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else json.dumps(value, default=str)


@pytest.mark.parametrize("name", NAMES if LONG else ["report"])
def test_an_example(name: str, connect: Callable[..., tacit.Connection], monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = tacit.connect
    # Connections to the server are made with the embedded function: only the example's own line changes.
    monkeypatch.setattr(tacit, "connect", lambda *a, **k: embedded(*a, **k) if "token" in k else connect(*a, **k))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if name == "tutorial":
            cells = json.loads((EXAMPLES / f"{name}.ipynb").read_text())["cells"]
            code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
            shown = "\n".join("".join(c["outputs"][0]["text"]) for c in cells if c["cell_type"] == "code")
            exec(compile("\n".join(code), name, "exec"), {})
        else:
            shown = (EXAMPLES / f"{name}.py").read_text().split("# It prints, up to the noise:\n")[1]
            runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert shape(printed.getvalue()) == shape(re.sub(r"^# ?", "", shown, flags=re.MULTILINE))


def shape(text: str) -> list[str]:
    """The words and the layout, without the numbers; a budget of a server has a line for the analyst who asks."""
    masked = re.sub(r"-?\d[\d,]*(\.\d+)?%?", "#", text)
    return [" ".join(line.split()) for line in masked.splitlines() if line.strip() and "ana: spent" not in line]
