"""docs/privacy.md speaks of code and tests that exist, and leaves no claim without either."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
NAME = re.compile(r"`([\w/]+\.py)::([\w.:]+)`")
NAMES = NAME.findall(PAGE)
CLAIMS = re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)


def listed_tests(text: str) -> list[str]:
    """The tests that fail without a section's claim, as it says; under the names that pytest takes."""
    _, _, listed = " ".join(text.split()).partition("Fail without it:")
    return [f"{path}::{name}" for path, name in NAME.findall(listed)]


@cache
def defined(path: str) -> frozenset[str]:
    """Everything that a file defines, methods and properties with their class."""
    found: set[str] = set()

    def walk(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(prefix + node.name)
                if isinstance(node, ast.ClassDef):
                    walk(node.body, f"{prefix}{node.name}.")

    walk(ast.parse((ROOT / path).read_text(encoding="utf-8")).body, "")
    return frozenset(found)


def test_every_name_on_the_page_exists() -> None:
    assert len(NAMES) > 60
    missing = [
        f"{path}::{name}"
        for path, name in NAMES
        if not (ROOT / path).is_file() or name.replace("::", ".") not in defined(path)
    ]
    assert not missing


@pytest.mark.parametrize(("title", "text"), CLAIMS, ids=[title for title, _ in CLAIMS])
def test_every_claim_names_its_code_and_a_test(title: str, text: str) -> None:
    named = NAME.findall(text)
    assert [path for path, _ in named if not path.startswith("tests/")], "which function carries it?"
    assert listed_tests(text), "which test fails without it?"
    assert all(re.fullmatch(r"tests/[\w/]+\.py::(\w+::)?test_\w+", test) for test in listed_tests(text))


def test_what_is_not_promised_is_said() -> None:
    last = PAGE.split("## What is not promised")[1]
    for word in ("Timing", "host", "copied database", "cut tail"):
        assert word in last


def test_a_name_that_is_gone_is_noticed() -> None:
    assert "audit" in defined("tests/audit/tester.py")
    assert "no_such_function" not in defined("tests/audit/tester.py")
