"""Every refused statement names its class, underlines the place and says what to write instead."""

from __future__ import annotations

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
        (f"{one} WHERE i < 5 AND b < 5 AND d < 5", Limits(cells=10)),
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
