"""Which room imports which: a room that nobody imports upwards can be read, and replaced, on its own."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import ModuleType

import pytest
import tacit.engine

ROOT = Path(__file__).parents[1]
FOUNDATION = ("tacit.errors", "tacit.process")
"""What every room may import."""
ENGINE = tuple(
    f"tacit.engine.{name}"
    for name in ("components", "linalg", "measures", "product_answers", "product_workload", "strategy")
)
SEARCH = "tacit.engine.search"
MAY_IMPORT = {
    "sql": ("tacit.sql",),
    "engine": ("tacit.engine",),
    "engine/linalg.py": ENGINE,
    "engine/measures.py": ENGINE,
    "engine/strategy.py": ENGINE,
    "engine/search": (*ENGINE, SEARCH),
    "engine/accounting": (*ENGINE, "tacit.engine.accounting"),
    "engine/mechanism": (*ENGINE, SEARCH, "tacit.engine.accounting", "tacit.engine.mechanism"),
    "engine/inference": (
        *ENGINE,
        "tacit.engine.accounting.amounts",
        "tacit.engine.mechanism",
        "tacit.engine.inference",
    ),
}
"""A path, and the parts of tacit that the files below it may import beside the foundation."""
SHARED_NAMES = {"__init__", "ledger"}
"""Names of several files. ``tacit.ledger`` is public: the curator's door to ``engine/accounting/ledger.py``."""


def imported(file: Path) -> set[str]:
    """The modules of tacit that a file imports, wherever in it the import stands."""
    package = ".".join(["tacit", *file.relative_to(ROOT).parent.parts]).replace("tacit.api", "tacit")
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            # `from tacit.engine import linalg` imports a module too.
            names.update(f"{module}.{alias.name}" if is_package(module) else module for alias in node.names)
    return {name for name in names if name.partition(".")[0] == "tacit"}


def is_package(module: str) -> bool:
    parts = module.split(".")[1:]
    return (ROOT.joinpath(*parts) if parts else ROOT / "api").is_dir()


def within(name: str, allowed: tuple[str, ...]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in allowed)


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_what_it_may(room: str) -> None:
    files = [ROOT / room] if room.endswith(".py") else sorted((ROOT / room).rglob("*.py"))
    assert files
    wrong = {str(f.relative_to(ROOT)): {n for n in imported(f) if not within(n, (*FOUNDATION, *MAY_IMPORT[room]))}
             for f in files}  # fmt: skip
    assert not {file: names for file, names in wrong.items() if names}


def test_no_strategy_imports_another() -> None:
    files = sorted((ROOT / SEARCH.removeprefix("tacit.").replace(".", "/") / "strategies").glob("*.py"))
    assert len(files) > 5
    assert not {f.name: found for f in files if (found := [n for n in imported(f) if "search.strategies." in n])}


def test_a_file_name_means_one_module() -> None:
    files = defaultdict(list)
    for room in ("api", "engine", "sql"):
        for file in sorted((ROOT / room).rglob("*.py")):
            files[file.stem].append(str(file.relative_to(ROOT)))
    assert {name for name, places in files.items() if len(places) > 1} == SHARED_NAMES, files


def test_no_name_of_the_engine_is_a_module() -> None:
    """Nor hides one: ``tacit.engine.optimize`` cannot be a function and a module at once."""
    for name in tacit.engine.__all__:
        assert not isinstance(getattr(tacit.engine, name), ModuleType), name
        assert find_spec(f"tacit.engine.{name}") is None, f"tacit/engine/{name} is hidden"


def test_the_engine_loads_no_database_and_no_frames() -> None:
    code = "import sys, tacit.engine; print(*{'duckdb', 'sqlglot', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def test_the_front_door_does_not_know_how_a_strategy_is_found() -> None:
    assert not {
        f.name: wrong for f in (ROOT / "api").glob("*.py") if (wrong := [n for n in imported(f) if SEARCH in n])
    }


def test_an_engine_of_databases_does_not_know_what_a_query_means() -> None:
    """It may import what is handed to it, and the words that both sides use."""
    names = "backends catalog check_constraints derived literals names ordering product_scan regions scan scan_sets"
    handed = tuple(f"tacit.sql.{name}" for name in (*names.split(), "signature", "sorted_shares", "source", "workload"))
    files = sorted((ROOT / "sql" / "backends").rglob("*.py"))
    assert not {
        f.name: wrong for f in files if (wrong := [n for n in imported(f) if not within(n, (*FOUNDATION, *handed))])
    }
