"""Documentation that runs: the blocks of a page are executed in order and must print what the page shows.

    ```python            is executed; a ```text block that follows is what it prints
    ```console           lines after "$ " are commands: tacit, cat, ls, and echo "…" | tacit
    ```sql title="F"     is written to the file F, and so is any other block with a title; Python is executed too

Numbers may differ from run to run, as noise does; words and layout may not.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from pathlib import Path
from typing import Any

from tacit.cli.program import app
from typer.testing import CliRunner

BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```\n(?:^```text\n(.*?)^```\n)?', re.DOTALL | re.MULTILINE)


class Page:
    """A page, run in the current folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: dict[str, Any] = {}

    def now(self) -> str:
        """The whole text, with what its blocks print now."""
        return BLOCK.sub(self._run, self.path.read_text(encoding="utf-8"))

    def _run(self, found: re.Match[str]) -> str:
        language, title, body, shown = found.groups()
        if title is not None:
            Path(title).write_text(body, encoding="utf-8")
            if language == "python":
                exec(compile(body, title, "exec"), {})
        elif language == "console":
            commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", body, re.MULTILINE)
            return "```console\n" + "\n".join(f"$ {command}\n{printed(command)}" for command in commands) + "```\n"
        elif language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(body, self.path.name, "exec"), self.names)
            text = "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())
            return f"```python\n{body}```\n" + (f"```text\n{text}```\n" if text or shown else "")
        return found[0]


def printed(command: str) -> str:
    """What a command prints, stderr included."""
    stdin = None
    if piped := re.fullmatch(r'echo "(.*)" \| (.*)', command):
        stdin, command = f"{piped[1]}\n", piped[2]
    name, *arguments = shlex.split(command.replace("\\\n", ""))
    if name == "cat":
        return Path(arguments[0]).read_text(encoding="utf-8")
    if name == "ls":
        return "".join(f"{file}\n" for file in sorted(os.listdir(arguments[0] if arguments else ".")))
    assert name == "tacit", f"a page cannot run {name}"
    done = CliRunner().invoke(app, arguments, input=stdin, prog_name="tacit")
    return "\n".join(line.rstrip() for line in done.output.strip("\n").splitlines()) + "\n" if done.output else ""


def shape(text: str) -> list[str]:
    """The words and the layout: numbers differ from run to run, and so do the widths of their columns."""
    masked = re.sub(r"-?\d[\d,]*(\.\d+)?(e[+-]?\d+)?", "#", re.sub("[─ ]+", " ", text))
    return [line.strip() for line in masked.strip().splitlines()]
