"""docs/: pages print what they show, the reference is what the code says, links lead somewhere, the site builds.

``python tests/test_docs.py`` writes what the pages print now, and the reference, into them: read the diff.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import matplotlib
import pytest
from support.pages import Page, shape
from tacit import errors, policy
from tacit.cli.demo import build_clinic
from tacit.policy_column import ColumnPolicy
from tacit.policy_server import ServerPolicy
from tacit.policy_table import TablePolicy
from tacit.sql import Limits

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
EXECUTED = ("tutorial", "how-to-owner", "how-to-analyst")
SECTIONS = (TablePolicy, ColumnPolicy, ServerPolicy, Limits)
CLINIC = ("how-to-owner", "how-to-analyst")
"""Pages that are typed in the folder of ``tacit demo --keep clinic``."""


def script(path: Path) -> ModuleType:
    """A script of the repository as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", EXECUTED)
def test_a_page_shows_what_its_blocks_print(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("TACIT_DB", "TACIT_POLICY", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TACIT_PROGRESS", "0")
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    if name in CLINIC:
        build_clinic(tmp_path)
    page = Page(DOCS / f"{name}.md")
    shown, now = page.path.read_text(encoding="utf-8"), page.now()
    assert shape(now) == shape(shown)
    costs = re.compile(r"^cost.*$", re.MULTILINE)
    assert costs.findall(now) == costs.findall(shown) != [], "what is free or costs so much has no noise"


def test_the_reference_is_what_the_code_says() -> None:
    for name, text in script(DOCS / "make_reference.py").pages().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, "run python docs/make_reference.py"


def test_the_reference_has_every_class_and_every_key() -> None:
    page = (DOCS / "reference-errors.md").read_text(encoding="utf-8")
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.Error):
            assert re.search(rf"\b{name}\b", page), name
    page = (DOCS / "reference-policy.md").read_text(encoding="utf-8")
    for keys in (policy.SECTIONS, policy.BUDGET, policy.ANALYST, policy.LOG, *map(fields, SECTIONS)):
        for key in keys:
            assert f"| `{getattr(key, 'name', key)}` |" in page, key


def slug(heading: str) -> str:
    """The anchor of a heading, as Python-Markdown makes it."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = page if not name else page.parent / name
        assert target.exists(), link
        if page.parent == DOCS:
            assert target.parent in (DOCS, DOCS / "pictures"), f"{link} leads out of the site"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert anchor in map(slug, headings), link


def test_every_page_is_in_the_navigation_and_the_site_builds(tmp_path: Path) -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert sorted(re.findall(r": ([\w-]+\.md)$", settings, flags=re.MULTILINE)) == [page.name for page in PAGES]
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for page in PAGES:
        assert (tmp_path / "build" / "site" / f"{page.stem}.html").exists()
    tutorial = (tmp_path / "build" / "site" / "tutorial.html").read_text(encoding="utf-8")
    assert 'id="6-publish"' in tutorial, "anchors are made as slug() says"


def test_pictures_are_drawn_from_plans(tmp_path: Path) -> None:
    pictures = script(DOCS / "make_pictures.py")
    pictures.main(tmp_path, ["cells", "factors"])  # those that are more than a call of tacit's own
    for name in ("cells", "factors"):
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_the_comparison_measures_errors() -> None:
    """The part of benchmarks/peers.py that needs no other environment, on a few questions."""
    peers = script(ROOT / "benchmarks" / "peers.py")
    questions = peers.REPORT[:5]
    exact = peers.exact_answers(questions)
    assert sum(exact[0].values()) == 20_000 and len(exact[2]) == 6
    for way in peers.own_ways(questions, runs=1):
        error = peers.root_mean_squares(way.runs, exact)
        assert len(error) == 13 and 0 < error.max() < 400 and way.spent == peers.EPSILON


if __name__ == "__main__":
    matplotlib.use("Agg")
    script(DOCS / "make_reference.py").main()
    for name in EXECUTED:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            os.environ["TACIT_PROGRESS"] = "0"
            if name in CLINIC:
                build_clinic(Path(folder))
            page = Page(DOCS / f"{name}.md")
            page.path.write_text(page.now(), encoding="utf-8")
            os.chdir(ROOT)
    sys.stdout.write("written\n")
