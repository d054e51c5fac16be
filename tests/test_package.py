"""The package as it is imported and published."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tomllib
from importlib.metadata import metadata, version
from pathlib import Path

import tacit
from packaging.requirements import Requirement
from packaging.version import Version
from tacit import connecting

ROOT = Path(__file__).parents[1]


def test_version() -> None:
    assert tacit.__version__ == version("tacit")
    releases = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert releases[0] == "Unreleased"
    assert releases[1:] == sorted(releases[1:], key=Version, reverse=True)
    assert Version(tacit.__version__) > Version(releases[1]) or tacit.__version__ == releases[1]


def test_dir_shows_the_public_names_only() -> None:
    shown = {name for name in dir(tacit) if not name.startswith("__")}
    assert shown == {name for name in tacit.__all__ if not name.startswith("__")}
    for name in tacit.__all__:
        assert getattr(tacit, name) is not None


def test_importing_tacit_loads_nothing_heavy() -> None:
    """``connect`` does, when it is called; its signature is written twice for that."""
    heavy = "{'pandas', 'numpy', 'scipy', 'duckdb', 'sqlglot', 'opendp', 'dp_accounting', 'pyarrow', 'polars'}"
    code = f"import sys, tacit; tacit.connect; print(*{heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
    assert inspect.signature(tacit.connect) == inspect.signature(connecting.connect)


def test_an_answer_loads_no_library_that_it_does_not_use() -> None:
    code = (
        "import sys, duckdb, tacit; db = duckdb.connect(); db.execute('CREATE TABLE t AS SELECT 1 AS x');"
        "con = tacit.connect(db, epsilon=1); con.answer('SELECT count(*) FROM t WHERE x < 2', epsilon=0.5);"
        "print(*{'polars', 'sklearn', 'sqlalchemy', 'dp_accounting', 'scipy.optimize'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-X", "dev", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [], "")


def test_metadata() -> None:
    about = metadata("tacit")
    assert about["License-Expression"] == "MIT"
    assert "Typing :: Typed" in about.get_all("Classifier", [])
    extras = set(about.get_all("Provides-Extra", []))
    assert {"arrow", "polars", "sqlalchemy"} <= extras


def test_the_lowest_versions_are_those_that_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    stated = [*project["dependencies"], *extras["arrow"], *extras["polars"], *extras["sqlalchemy"]]
    lowest = {line for line in (ROOT / "tests" / "lowest.txt").read_text().splitlines() if line[:1] != "#"}
    pins = {requirement.name: Version(str(requirement.specifier)[2:]) for requirement in map(Requirement, lowest)}
    assert pins == {r.name: Version(str(r.specifier).removeprefix(">=")) for r in map(Requirement, stated)}
