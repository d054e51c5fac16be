"""The compiler knows its engine through one module, and no noise, budget or policy at all."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOM = Path(__file__).parents[2] / "sql"
COMPILER = sorted(path for path in ROOM.glob("*.py") if path.name not in ("dialect.py", "__init__.py"))
ALLOWED = {"tacit.errors", "tacit.process"}


def imported(path: Path) -> set[str]:
    """The modules that a file imports, those of its own folder with their dots."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
    return names


@pytest.mark.parametrize("path", COMPILER, ids=lambda path: path.stem)
def test_only_the_dialect_knows_the_engine(path: Path) -> None:
    assert not [name for name in imported(path) if "duckdb" in name or name.startswith(".backends")]
    strings = [
        node.value for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Constant)
    ]
    assert "duckdb" not in strings, "ask tacit.sql.dialect to write SQL"


@pytest.mark.parametrize("path", sorted(ROOM.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOM)))
def test_the_room_knows_no_other(path: Path) -> None:
    assert {name for name in imported(path) if name.split(".")[0] == "tacit"} <= ALLOWED
