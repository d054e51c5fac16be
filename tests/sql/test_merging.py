"""Merging is exact: the errors predicted for the merged workload are those of the unmerged one."""

from __future__ import annotations

import numpy as np
import pytest
from tacit.engine import optimize
from tacit.sql import Catalog, compile_batch

BATCH = [
    "SELECT count(*) FROM t WHERE i < 18",
    "SELECT count(*) FROM t WHERE i < 18 OR p",
    "SELECT count(*) FROM t WHERE i BETWEEN 10 AND 65 AND k IN (1, 2)",
    "SELECT e, count(*) FROM t WHERE s LIKE 'N%' GROUP BY e",
    "SELECT sum(d) FROM t WHERE i >= 65",
]


def unmerged(matrix: np.ndarray, cell_of: np.ndarray) -> np.ndarray:
    """A column for every point of the grid; a point that no query counts has a column of zeros."""
    return np.hstack([matrix, np.zeros((len(matrix), 1))])[:, cell_of.reshape(-1)]


@pytest.mark.parametrize("privacy", ["pure", "approximate"])
def test_columns(catalog: Catalog, privacy: str) -> None:
    workload = compile_batch(BATCH, catalog)
    (scan,) = workload.scans
    W, wide = workload.matrix, unmerged(workload.matrix, scan.cell_of)
    assert wide.shape[1] > 2 * W.shape[1]
    strategy = optimize(W, privacy=privacy)
    L = unmerged(strategy.L, scan.cell_of)
    np.testing.assert_allclose(strategy.B @ L, wide, atol=1e-6 * np.abs(W).max())
    norm = np.abs(L).sum(axis=0) if privacy == "pure" else np.sqrt((L**2).sum(axis=0))
    assert norm.max() == pytest.approx(strategy.sensitivity)
    assert optimize(wide, privacy=privacy).error == pytest.approx(strategy.error, rel=2e-3)


def test_rows(catalog: Catalog) -> None:
    """A query that is asked twice is one row, and neither its cells nor anybody's row changes."""
    once, twice = compile_batch(BATCH, catalog), compile_batch(BATCH + BATCH, catalog)
    np.testing.assert_array_equal(once.matrix, twice.matrix)
    assert once.fingerprint == twice.fingerprint
    first, second = twice.queries[: len(BATCH)], twice.queries[len(BATCH) :]
    assert [q.columns for q in first] == [q.columns for q in second]


def test_texts_inside_expressions_tell_scans_apart(catalog: Catalog) -> None:
    """Equal fingerprints share an unused charge, so they must mean equal measurements."""
    for one, other in (("s LIKE 'A%'", "s LIKE 'a%'"), ("contains(s, 'A')", "contains(s, 'a')")):
        first, second = (compile_batch(f"SELECT count(*) FROM t WHERE {text}", catalog) for text in (one, other))
        assert first.fingerprint != second.fingerprint
        assert (
            first.fingerprint
            == compile_batch(f"select COUNT(*) from T where {one.replace('s', 'S', 1)}", catalog).fingerprint
        )
