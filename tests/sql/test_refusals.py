"""Every refused statement names its class, underlines the place and says what to write instead."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tacit import errors
from tacit.sql import Catalog, Limits, compile_batch

REFUSED: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "refused.toml").read_text())["refused"]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: str(case["sql"])[:60])
def test_refused(catalog: Catalog, case: dict[str, Any]) -> None:
    with pytest.raises(errors.SqlError) as caught:
        compile_batch(case["sql"], catalog, case.get("params"))
    error = caught.value
    assert type(error).__name__ == case["error"], error
    assert case["says"] in str(error)
    assert error.hint, "every refusal says what to write instead"
    if "at" in case:
        assert error.sql[error.start : error.end] == case["at"]
        assert "^" * len(case["at"]) in str(error)


def test_limits(catalog: Catalog) -> None:
    one = "SELECT count(*) FROM t"
    for batch, limits in (
        (one, Limits(characters=10)),
        ([one] * 3, Limits(statements=2)),
        (f"{one} WHERE {'(' * 101}i = 1{')' * 101}", Limits()),
        (f"{one} WHERE {'NOT ' * 5000}p", Limits()),
        (f"{one} WHERE i = {'- ' * 5000}1", Limits()),
        ("SELECT s, count(*) FROM t GROUP BY s", Limits(rows=3)),
        (f"{one} WHERE i < 5; {one} WHERE b < 5", Limits(entries=3)),
    ):
        with pytest.raises(errors.LimitError):
            compile_batch(batch, catalog, limits=limits)


def test_deep_but_allowed(catalog: Catalog) -> None:
    workload = compile_batch(f"SELECT count(*) FROM t WHERE {'(' * 99}i = 1{')' * 99}", catalog)
    assert workload.matrix.shape == (1, 1)


@pytest.mark.parametrize("batch", ["", " ", ";", "-- nothing", [], ["", ";;"]])
def test_empty(catalog: Catalog, batch: Any) -> None:
    with pytest.raises(errors.SqlSyntaxError, match="empty"):
        compile_batch(batch, catalog)


@pytest.mark.parametrize("batch", [None, 5, [5], b"SELECT 1"])
def test_not_text(catalog: Catalog, batch: Any) -> None:
    with pytest.raises(errors.SqlSyntaxError):
        compile_batch(batch, catalog)


def test_a_wide_line_is_cut_around_the_span(catalog: Catalog) -> None:
    text = "SELECT count(*) FROM t WHERE " + " AND ".join(f"i < {k}" for k in range(100)) + " AND nosuch = 1"
    with pytest.raises(errors.UnknownNameError) as caught:
        compile_batch(text, catalog)
    lines = str(caught.value).splitlines()
    assert max(map(len, lines)) < 180
    at = lines[2].index("^")
    assert lines[1][at : at + 6] == "nosuch"


GOOD = "SELECT count(*) FROM t WHERE i < ?"
BROKEN = [
    ("SELECT count(*) FROM t WHERE nosuch = ?", "UnknownNameError", "nosuch"),
    ("SELEC count(*) FROM t", "SqlSyntaxError", "parse"),
    ("DROP TABLE t", "UnsupportedSqlError", "SELECT and nothing else"),
    ("SELECT count(*) FROM nowhere", "UnknownNameError", "nowhere"),
    ("SELECT count(*) FROM t WHERE i = 'x'", "TypeMismatchError", "cannot be compared"),
    ("SELECT count(*) FROM t WHERE i < ? AND b < $1", "ParameterError", "mixed"),
]


@pytest.mark.parametrize("script", [True, False])
def test_all_errors_of_a_batch_are_reported_at_once(catalog: Catalog, script: bool) -> None:
    texts = [GOOD, *(sql for sql, _, _ in BROKEN), GOOD]
    batch: Any = ";\n".join(texts) if script else texts
    with pytest.raises(errors.UnknownNameError) as caught:
        compile_batch(batch, catalog, [1, 2, 3, 4])
    error = caught.value
    assert [type(e).__name__ for e in error.errors] == [kind for _, kind, _ in BROKEN]
    assert [e.query for e in error.errors] == [1, 2, 3, 4, 5, 6]
    shown = str(error)
    assert shown.startswith("6 queries of the batch cannot be answered\nquery 1: no such column")
    for number, (_, _, says) in enumerate(BROKEN, start=1):
        place = shown.index(f"query {number}: ")
        assert says in shown[place : shown.find(f"query {number + 1}: ", place)]
    assert error.sql[error.start : error.end] == "nosuch"
    assert error.hint and error.query == 1
    assert not isinstance(error, errors.NotSupportedError), "the class is that of the first"


def test_an_error_by_itself_reads_as_ever(catalog: Catalog) -> None:
    with pytest.raises(errors.UnknownNameError) as caught:
        compile_batch([GOOD, BROKEN[0][0], GOOD], catalog, [1, 2, 3])
    alone = caught.value
    with pytest.raises(errors.UnknownNameError) as caught:
        compile_batch(BROKEN[0][0], catalog, [1])
    assert str(alone) == str(caught.value)
    assert (alone.errors, alone.query) == ((alone,), 1)


def test_text_that_does_not_end_is_one_error_of_its_own(catalog: Catalog) -> None:
    with pytest.raises(errors.SqlSyntaxError) as caught:
        compile_batch(["SELECT 'a", "SELECT count(*) FROM t", "SELECT count(*) FROM nowhere"], catalog)
    assert [(e.query, type(e).__name__) for e in caught.value.errors] == [
        *((0, "SqlSyntaxError"), (2, "UnknownNameError"))
    ]


@pytest.mark.parametrize(
    ("text", "opening"),
    [
        ("SELECT 'a", "'a"),
        ("SELECT \"it's", "\"it's"),
        ("SELECT 'a', \"b\" -- it's\n, 'c", "'c"),
        ("SELECT 'a' /* it's", "/* it's"),
        ("SELECT 'it''s \"", "'it''s \""),
        ("SELECT $$it's", "$$it's"),
        ("SELECT $x$ 'a' $$", "$x$ 'a' $$"),
        ("SELECT /* a */ 'b' /* \" */ 'c", "'c"),
        ("SELECT /* a /* b */ c", "/* b */ c"),
        ("SELECT E'a\\'", "'"),
    ],
)
def test_what_is_not_closed_is_underlined_from_where_it_begins(catalog: Catalog, text: str, opening: str) -> None:
    with pytest.raises(errors.SqlSyntaxError, match="not closed") as caught:
        compile_batch(text, catalog)
    assert caught.value.sql[caught.value.start : caught.value.end] == opening


def test_no_more_errors_than_a_page(catalog: Catalog) -> None:
    with pytest.raises(errors.UnknownNameError) as caught:
        compile_batch(["SELECT count(nosuch) FROM t"] * 500, catalog)
    assert len(caught.value.errors) == 20
    assert str(caught.value).startswith("more than 19 queries of the batch cannot be answered")


def test_what_is_wrong_with_the_batch_as_a_whole_is_said_once(catalog: Catalog) -> None:
    with pytest.raises(errors.LimitError) as caught:
        compile_batch([f"SELECT count(*) FROM t WHERE i < {k}" for k in range(50)], catalog, limits=Limits(rows=5))
    assert len(caught.value.errors) == 1


def test_the_reference_lists_them(catalog: Catalog) -> None:
    """docs/reference-errors.md is made by searching the sources for errors: those that occur here must be found."""
    page = (Path(__file__).parents[2] / "docs" / "reference-errors.md").read_text(encoding="utf-8")
    listed: dict[str, list[re.Pattern[str]]] = {}
    for section in page.split("\n## ")[1:]:
        rows = [line for line in section.splitlines() if line.startswith("| ")]
        said = [re.sub(r"\\(.)", r"\1", re.split(r"(?<!\\) \| ", row)[0].removeprefix("| ")) for row in rows]
        known = [words for words in said if len(words.replace("…", "").strip()) > 6]
        listed[section.splitlines()[0]] = [re.compile(".*".join(map(re.escape, words.split("…")))) for words in known]
    missing = set()
    for case in REFUSED:
        with pytest.raises(errors.SqlError) as caught:
            compile_batch(case["sql"], catalog, case.get("params"))
        message = " ".join(caught.value.message.split())
        if not any(pattern.fullmatch(message) for pattern in listed[case["error"]]):
            missing.add(f"{case['error']}: {message}")
    assert not missing, "\n".join(sorted(missing))
