"""Common cells: every row falls into one of them, and that one knows its cell in each of the scans."""

from __future__ import annotations

import json
from bisect import bisect_right
from typing import Any

import numpy as np
import pytest
from tacit.errors import LedgerError
from tacit.sql import Catalog, Column, Range, Table, compile_batch
from tacit.sql.refine import Axis, Grid, Refinement, grid_of

LIMITS = {"points": 1 << 20, "cells": 1 << 20}
WORDS = ["", "CA", "NJ", "NY", "WA"]


def random_axis(rng: np.random.Generator, key: str) -> Axis:
    if key == "state":
        cuts: list[Any] = sorted({(str(w), int(i)) for w in rng.choice(WORDS, 2) for i in (0, 1)})
    else:
        cuts = sorted({int(v) for v in rng.integers(0, 20, size=rng.integers(0, 4))})
    number = {int(r): None for r in rng.integers(0, 3, size=len(cuts) + 1)}
    regions = [list(number)[i % len(number)] for i in range(len(cuts) + 1)]
    ranks = {r: i for i, r in enumerate(dict.fromkeys(regions))}
    nullable = bool(rng.random() < 0.6)
    return Axis(key, tuple(cuts), tuple(ranks[r] for r in regions), len(ranks) + nullable, nullable)


def random_grid(rng: np.random.Generator) -> Grid:
    keys = rng.permutation(["age", "state", "income"])[: rng.integers(0, 4)]
    axes = tuple(random_axis(rng, str(key)) for key in keys)
    points = int(np.prod([a.count for a in axes], initial=1))
    cells = rng.integers(-1, 3, size=points)
    _, cell_of = np.unique(cells, return_inverse=True)
    cell_of = cell_of - (1 if cells.min() == -1 else 0)
    return Grid("t", axes, cell_of.astype(np.int64), int(cell_of.max()) + 1)


def cell(axes: list[Axis], cell_of: Any, row: dict[str, Any]) -> int:
    """The cell of a row, region by region."""
    place = 0
    for axis in axes:
        value = row[axis.key]
        region = axis.null_region if value is None else axis.region_of_piece[bisect_right(axis.cuts, value)]
        place = place * axis.count + region
    return int(cell_of[place])


@pytest.mark.parametrize("seed", range(40))
def test_a_common_cell_knows_its_cell_in_every_scan(seed: int) -> None:
    rng = np.random.default_rng(seed)
    grids = [random_grid(rng) for _ in range(3)]
    common: Refinement | None = Refinement.of(grids[0])
    for grid in grids[1:]:
        assert common is not None
        common = common.refined(grid, **LIMITS)
    assert common is not None
    for _ in range(60):
        row = {
            "age": None if rng.random() < 0.2 else int(rng.integers(-2, 22)),
            "income": None if rng.random() < 0.2 else int(rng.integers(-2, 22)),
            "state": None if rng.random() < 0.2 else (str(rng.choice([*WORDS, "NJX", "ZZ"])), 0),
        }
        common_cell = cell(list(common.axes.values()), common.cell_of, row)
        expected = [cell(list(grid.axes), grid.cell_of, row) for grid in grids]
        if common_cell < 0:
            assert expected == [-1, -1, -1]
        else:
            assert [int(origin[common_cell]) for origin in common.origins] == expected


def test_limits() -> None:
    rng = np.random.default_rng(3)
    a, b = (Grid("t", (random_axis(rng, k),), np.zeros(0, np.int64), 1) for k in ("age", "income"))
    a, b = (Grid("t", g.axes, np.arange(g.axes[0].count), g.axes[0].count) for g in (a, b))
    size = a.cells * b.cells
    assert Refinement.of(a).refined(b, points=size - 1, cells=100) is None
    assert Refinement.of(a).refined(b, points=size, cells=size - 1) is None
    refined = Refinement.of(a).refined(b, points=size, cells=size)
    assert refined is not None
    assert refined.cells == size


TABLE = Table("t", (Column("age", "INTEGER", domain=Range(0, 120)), Column("s", "VARCHAR")), version="1")
SQL = "SELECT count(*), sum(age) FROM t WHERE s IN ('a', 'ü''\"b') AND age < 40"


def grid(sql: str = SQL, **changes: Any) -> Grid:
    table = Table(**{**{name: getattr(TABLE, name) for name in ("name", "columns", "version")}, **changes})
    (scan,) = compile_batch(sql, Catalog((table,))).scans
    return grid_of(scan)


def test_a_description_survives_the_ledger() -> None:
    written = grid()
    again = Grid.from_json(json.loads(json.dumps(written.to_json())))
    assert (again.subject, again.axes, again.cells) == (written.subject, written.axes, written.cells)
    np.testing.assert_array_equal(again.cell_of, written.cell_of)


def test_an_axis_without_null_says_so_and_the_others_stand_as_before() -> None:
    columns = (Column("age", "INTEGER", False), Column("s", "VARCHAR"))
    written = grid("SELECT count(*) FROM t WHERE s = 'a' AND age < 40", columns=columns)
    described = written.to_json()
    assert [axis[4:] for axis in described["axes"]] == [[False], []]
    assert Grid.from_json(json.loads(json.dumps(described))).axes == written.axes
    assert [axis.count for axis in written.axes] == [2, 3]


@pytest.mark.parametrize(
    "damage",
    [
        {"cells": 1},
        {"cells": "2"},
        {"cell_of": "AAAA"},
        {"axes": []},
        {"axes": [["age", [1, 0], [0, 0, 0], 2]]},
        {"axes": [["age", [], [5], 2]]},
        {"axes": [["age", [3], [0, 1], 2]]},
        {"axes": [["age", [3], [0, 1], 2, 0]]},
        {"axes": [["age", [3], [0, 1], 2, False, False]]},
        {"subject": 7},
    ],
)
def test_a_damaged_description_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(LedgerError):
        Grid.from_json(grid().to_json() | damage)


def test_subjects_are_table_states() -> None:
    assert grid().subject == grid("SELECT count(*) FROM T").subject
    others = [
        grid(version="2"),
        grid(name="t2", sql=SQL.replace("FROM t", "FROM t2")),
        grid(privacy_unit="s", max_rows_per_unit=2),
        grid(privacy_unit="s", max_rows_per_unit=3),
    ]
    assert len({g.subject for g in [grid(), *others]}) == 5


def test_measures_with_other_clamps_are_other_axes() -> None:
    wide = (Column("age", "INTEGER", domain=Range(0, 200)), Column("s", "VARCHAR"))
    narrow, other = ({a.key for a in g.axes if a.key.startswith('["sum"')} for g in (grid(), grid(columns=wide)))
    assert len(narrow) == len(other) == 1
    assert narrow.isdisjoint(other)
