"""docs/privacy.md says that each test it names fails without its claim: here the claims are taken away, one by one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .cases import LONG
from .mutations import Mutation, failing, places, read_table
from .test_document import CLAIMS, listed_tests

TABLE = read_table()
DOES_NOT_RUN = re.compile(
    r"\b(NameError|UnboundLocalError|ImportError|ModuleNotFoundError|SyntaxError|AttributeError)\b"
)
"""What Python raises when a breakage names what is no longer there: any test fails then, and none has noticed."""


@pytest.mark.parametrize(("title", "text"), CLAIMS, ids=[title for title, _ in CLAIMS])
def test_every_test_of_a_claim_has_a_breakage_that_it_must_notice(title: str, text: str) -> None:
    noticed = {test for mutation in TABLE if mutation.claim == title for test in mutation.tests}
    assert set(listed_tests(text)) == noticed


@pytest.mark.parametrize("mutation", TABLE, ids=str)
def test_what_a_breakage_replaces_stands_once(mutation: Mutation) -> None:
    assert mutation.claim in dict(CLAIMS), "there is no such section"
    assert mutation.replace and mutation.tests
    for old, new in mutation.replace:
        assert len(places(old)) == 1, f"{old!r} must stand once in the package: the code has changed, and so must this"
        assert old != new


@pytest.mark.parametrize("mutation", TABLE if LONG else TABLE[:1], ids=str)
def test_a_broken_claim_is_noticed(mutation: Mutation, tmp_path: Path) -> None:
    """``make audit`` breaks all of them, which takes a quarter of an hour; the short form breaks one."""
    failed, printed = failing(mutation, tmp_path)
    assert failed == set(mutation.tests), printed
    assert not DOES_NOT_RUN.search(printed), printed


def test_an_unbroken_copy_fails_nothing(tmp_path: Path) -> None:
    """Else the check above would say nothing: the copy itself could be what is broken."""
    tests = (
        "tests/engine/test_lattice.py::test_product_is_exact",
        "tests/sql/test_scan.py::test_an_empty_table_counts_nothing",
    )
    failed, printed = failing(Mutation("none", "nothing", (), tests), tmp_path)
    assert not failed and "2 passed" in printed, printed
