"""The table of breakages, and a copy of the package with one of them in it.

``mutations.toml`` has an entry for each way in which a claim of docs/privacy.md is broken on purpose, and the tests of
the page that must notice. A breakage is a replacement of text, so it is found wherever the code has moved to; each text
that is replaced must stand exactly once in the whole package.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import tacit

ROOT = Path(__file__).parents[2]
PACKAGE = Path(tacit.__file__).parent
_TABLE = Path(__file__).with_name("mutations.toml")


@dataclass(frozen=True)
class Mutation:
    """One claim of the page without the code that carries it."""

    claim: str
    """The title of its section."""
    broken: str
    """What is wrong with the package, in words."""
    replace: tuple[tuple[str, str], ...]
    """(text that stands once in the package, what stands there instead)."""
    tests: tuple[str, ...]
    """Tests that the section names. Each of them must fail."""

    def __str__(self) -> str:
        return f"{self.claim}: {self.broken}"


def read_table() -> tuple[Mutation, ...]:
    """All breakages."""
    listed = tomllib.loads(_TABLE.read_text(encoding="utf-8"))["mutation"]
    return tuple(
        Mutation(m["claim"], m["broken"], tuple((old, new) for old, new in m["replace"]), tuple(m["tests"]))
        for m in listed
    )


def places(text: str) -> list[Path]:
    """The files of the package that hold a text, each as often as it stands there."""
    return [
        file.relative_to(PACKAGE)
        for file in sorted(PACKAGE.rglob("*.py"))
        for _ in range(file.read_text(encoding="utf-8").count(text))
    ]


def broken_package(mutation: Mutation, place: Path) -> None:
    """A copy of the package below ``place``, with the mutation in it."""
    # Compiled files are copied too: a file keeps its time stamp unless it is changed, and is not compiled again.
    shutil.copytree(PACKAGE, place / "tacit")
    for old, new in mutation.replace:
        (name,) = places(old)
        file = place / "tacit" / name
        file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def failing(mutation: Mutation, place: Path) -> tuple[set[str], str]:
    """Those of the mutation's tests that fail with it, and what pytest printed."""
    broken_package(mutation, place)
    code = f"import sys, pytest, tacit; assert tacit.__file__.startswith({str(place)!r}); sys.exit(pytest.main())"
    options = ["-n", "0", "-p", "no:cacheprovider", "--tb=line", "-rfE", "-o", "console_output_style=classic"]
    environment = {name: value for name, value in os.environ.items() if name not in ("TACIT_AUDIT", "COLUMNS")}
    done = subprocess.run(
        [sys.executable, "-c", code, *options, *mutation.tests],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(place), "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        check=False,
    )
    failed = set(re.findall(r"^FAILED ([\w/.:]+)", done.stdout, flags=re.MULTILINE))
    return failed & set(mutation.tests), done.stdout + done.stderr
