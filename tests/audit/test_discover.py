"""What is found of a column: how far one unit moves the counts, and how often values show that it alone holds."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
from numpy.typing import NDArray
from support import seams
from tacit import BudgetError, Connection
from tacit.engine.mechanism.threshold import Threshold, key_threshold

from .tester import audit

Counts = dict[str, int]
SALT = bytes(range(32))
OTHERS = [(person, city) for person in range(40) for city in ("Oslo", "Rome")]


def connect(rows: Sequence[tuple[int, str]], k: int | None, accounting: str = "sum") -> Connection:
    """The curator's connection to a table of people and cities."""
    database = duckdb.connect()
    database.execute("CREATE TABLE v (person INTEGER, city VARCHAR, height INTEGER)")
    database.executemany("INSERT INTO v VALUES (?, ?, 170 + hash(?) % 20)", [(p, c, c) for p, c in rows])
    unit = {} if k is None else {"privacy_unit": "person", "max_rows_per_unit": k}
    budget = {"epsilon": 100.0, "delta": 0.1}
    policy = {"budget": budget, "accounting": accounting, "tables": {"v": {**unit, "version": "1"}}}
    return tacit.connect(database, policy=policy)


def counted(rows: Sequence[tuple[int, str]], k: int | None, monkeypatch: pytest.MonkeyPatch) -> Counts:
    """The exact counts that noise was added to, under the values they are for; the same rows are kept each time."""
    seen: list[NDArray[np.int64]] = []

    def everything(_: Threshold, counts: NDArray[np.int64]) -> Any:
        seen.append(counts)
        return np.ones(len(counts), dtype=np.bool_)

    read: dict[str, int] = {}
    values = seams.real("values")

    def salted(self: Any, scan: Any, salt: bytes, keep: Any) -> list[Any]:
        found = values(self, scan, SALT, keep)
        read.update(zip(found, np.concatenate(seen).tolist(), strict=True))
        return list(found)

    with monkeypatch.context() as patch:
        patch.setattr(Threshold, "passing", everything)
        seams.replace(patch, "values", salted)
        with connect(rows, k) as con:
            con.discover("v.city", epsilon=1, delta=1e-3)
    return read


@pytest.mark.parametrize("k", [None, 1, 2, 3])
def test_a_unit_adds_one_to_at_most_k_counts(k: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    own = [(99, city) for city in ("Oslo", "Oslo", "Oslo", "Kyiv", "Lima", "Rome")]
    for gone in ([own[0]] if k is None else own, own[:1], [own[0]] if k is None else own[:3]):
        there = counted(OTHERS, k, monkeypatch)
        here = counted([*OTHERS, *gone], k, monkeypatch)
        moved = [here.get(city, 0) - there.get(city, 0) for city in here.keys() | there.keys()]
        assert set(moved) <= {0, 1}
        assert 1 <= sum(moved) <= (k or 1)


def passes(noise: Threshold, own: int, draws: int) -> NDArray[np.float64]:
    """How often any of the values that one unit alone holds is found."""
    counts = np.ones((draws, own), dtype=np.int64)
    return noise.passing(counts.reshape(-1)).reshape(draws, own).any(axis=1).astype(np.float64)[:, None]


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("k", [1, 4])
def test_flags_a_threshold_that_is_a_third_too_low(k: int, broken: bool) -> None:
    """Values of one unit alone must not show more often than δ: on the neighbour without the unit they never do."""
    epsilon, delta = Decimal(1), Decimal("0.01")
    noise = key_threshold(k, epsilon, delta)
    if broken:
        noise = Threshold(noise.kind, noise.scale, noise.level * 2 // 3, k, epsilon, delta)
    here = passes(noise, k, 20_000)
    verdict = audit(here, np.zeros_like(here), float(epsilon), float(delta))
    assert verdict.flagged == broken


def test_the_order_of_the_rows_is_not_told() -> None:
    found = []
    for rows in (OTHERS, OTHERS[::-1]):
        with connect(rows, 2) as con:
            found.append(con.discover("v.city", epsilon=90, delta=1e-3).values)
    assert found == [("Oslo", "Rome")] * 2


def test_the_delta_of_keys_is_taken_off_the_cap_under_zcdp() -> None:
    """Σρ alone says nothing of the probability with which a threshold lets a value of one unit pass."""
    with connect(OTHERS, 2, "zcdp") as con:
        con.discover("v.height", epsilon=1)
        con.discover("v.city", epsilon=1, delta=0.09)
        spent = con.budget.spent
        rho = Decimal("0.5") + Decimal("0.5")
        stated = rho + 2 * (rho * (1 / Decimal("0.01")).ln()).sqrt()
        assert spent.epsilon == pytest.approx(stated, rel=Decimal("1e-9"))
        with pytest.raises(BudgetError):
            con.discover("lower(v.city)", epsilon=1, delta=0.02)
        assert con.budget.spent == spent
