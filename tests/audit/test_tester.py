"""The tester never flags tacit, and it flags engines that are broken on purpose."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
from tacit import Connection, pipeline
from tacit.binding import PolicyTerms
from tacit.compiled_batch import CompiledBatch
from tacit.engine.accounting.ledger import Ledger
from tacit.engine.mechanism import lattice, measure
from tacit.errors import BudgetError, LedgerError
from tacit.pricing import Purchase
from tacit.request import Ask
from tacit.session import Session
from tacit.sql import Catalog, Values
from tacit.sql.backends.duckdb import scan_sql, source, text
from tacit.sql.signature import Value
from tacit.sql.total import Prover

from .cases import LONG, Case, Pair, Row, ask_for, open_table, random_case
from .tester import audit

YOUNG: Row = (9, "NY", 30, 50.0)
SIMPLE = Case((YOUNG,), (), ("SELECT count(*) FROM v WHERE age < 40",), epsilon=1.0)
NESTED = replace(SIMPLE, batch=(*SIMPLE.batch, "SELECT count(*) FROM v"), strategy="results")


def flagged(case: Case, draws: int = 20_000) -> bool:
    """The whole statistical audit of one case; a right engine fails it once in half a million runs."""
    pair = Pair.of(case)
    claims = case.epsilon, case.delta
    return audit(*pair.one_by_one(200), *claims).flagged or audit(*pair.in_bulk(draws), *claims).flagged


class TestTester:
    """Of the tester itself, on numpy's Laplace noise, whose ε is known."""

    @staticmethod
    def verdict(true: float, claimed: float, seed: int, n: int = 20_000) -> bool:
        rng = np.random.default_rng(seed)
        here, there = rng.laplace(0, 1 / true, (n, 1)), rng.laplace(1, 1 / true, (n, 1))
        return audit(here, there, claimed, alarm=1e-2).flagged

    def test_never_flags_a_true_claim(self) -> None:
        assert sum(self.verdict(1.0, 1.0, seed) for seed in range(60)) <= 3

    def test_flags_a_claim_that_is_a_tenth_too_small(self) -> None:
        assert sum(self.verdict(1.15, 1.0, seed) for seed in range(20)) >= 12

    def test_delta_excuses_what_it_should_and_no_more(self) -> None:
        """A mechanism that tells everything with probability 1/20."""
        rng = np.random.default_rng(3)
        here, there = (np.where(rng.random(20_000) < 0.05, truth, 0.5)[:, None] for truth in (1.0, 0.0))
        assert audit(here, there, 0.1, 0.0).flagged
        assert audit(here, there, 0.1, 0.03).flagged
        assert not audit(here, there, 0.1, 0.05).flagged


@pytest.mark.parametrize("seed", range(40 if LONG else 4))
def test_random_neighbours_are_never_flagged(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng, delta=[0.0, 0.0, 1e-3][seed % 3])
    assert not flagged(case, 50_000 if LONG else 3_000)


@pytest.mark.parametrize("case", [SIMPLE, NESTED, replace(SIMPLE, rows_per_unit=1, here=(YOUNG,) * 5)])
def test_what_is_broken_below_is_not_flagged_when_whole(case: Case) -> None:
    assert not flagged(case, 5_000)


# The broken engines. Each is the real engine with one thing done wrong.


@pytest.mark.parametrize("delta", [0.0, 1e-2])
def test_flags_noise_of_seven_tenths(delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    laplace, gaussian = measure.add_laplace, measure.add_gaussian

    def weak_laplace(values: Any, scale: float, *, sensitivity: int, epsilon: Fraction) -> Any:
        return laplace(values, 0.7 * scale, sensitivity=sensitivity, epsilon=2 * epsilon)

    monkeypatch.setattr(measure, "add_laplace", weak_laplace)
    monkeypatch.setattr(measure, "add_gaussian", lambda values, scale: gaussian(values, 0.7 * scale))
    assert flagged(replace(SIMPLE, delta=delta), 40_000)


def test_flags_the_sensitivity_of_the_wrong_column(monkeypatch: pytest.MonkeyPatch) -> None:
    def smallest(matrix: Any, order: int) -> int:
        norms = np.linalg.norm(matrix.astype(np.float64), order, axis=0)
        return math.ceil(norms[norms > 0].min())

    monkeypatch.setattr(lattice, "largest_column_norm", smallest)
    assert flagged(NESTED)


def test_flags_floating_point_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng()

    def naive(values: Any, scale: float, **_: Any) -> Any:
        return values + rng.laplace(scale=scale, size=len(values))

    monkeypatch.setattr(measure, "add_laplace", naive)
    assert flagged(SIMPLE)
    verdict = audit(*(scores[:, 3:] for scores in Pair.of(SIMPLE).in_bulk(20_000)), 1.0)
    assert verdict.flagged, "the low bits alone must give it away: the scale is right"


def test_flags_a_seed_that_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def seeded(values: Any, scale: float, **_: Any) -> Any:
        return values + np.rint(np.random.default_rng(0).laplace(scale=scale, size=len(values))).astype(np.int64)

    monkeypatch.setattr(measure, "add_laplace", seeded)
    assert flagged(SIMPLE)


def test_flags_a_unit_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_sql, "_bounded", lambda table, salt, stored, wanted: stored(table, wanted))
    assert flagged(replace(SIMPLE, rows_per_unit=1, here=(YOUNG,) * 5))


# Five faults are not in the numbers of one release but in what surrounds them; each has a check of its own.


def shows_what_groups_there_are(here: tuple[Row, ...], there: tuple[Row, ...]) -> bool:
    """Whether the keys or the cells of a batch differ between neighbours."""
    batch = "SELECT state, count(*) FROM v GROUP BY state"
    seen = []
    for rows in (here, there):
        with open_table(rows) as con:
            compiled = con._session.compile(ask_for([batch], 1.0))
            seen.append((compiled.fingerprint, con.answer(batch, epsilon=1)[0].df["state"].tolist()))
    return repr(seen[0]) != repr(seen[1])


@pytest.mark.parametrize("broken", [False, True])
def test_flags_groups_listed_from_the_data(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Session.compile

    def looks(session: Session, ask: Ask) -> CompiledBatch:
        (table,) = session.schema.tables
        found = session.source._connection.cursor().execute("SELECT DISTINCT state FROM v").fetchall()  # type: ignore[attr-defined]
        values = Values(tuple(state for (state,) in found) or ("none",))
        columns = tuple(replace(c, domain=values) if c.name == "state" else c for c in table.columns)
        return real(replace(session, schema=Catalog((replace(table, columns=columns),))), ask)

    if broken:
        monkeypatch.setattr(Session, "compile", looks)
    assert shows_what_groups_there_are((YOUNG, (1, "NJ", 2, 2.0)), (YOUNG,)) == broken


def reads_before_it_is_paid(con: Connection, patch: pytest.MonkeyPatch) -> bool:
    """Whether a batch that cannot be paid for reaches a private row."""
    source, reads = con._session.source, []
    real = type(source).count
    patch.setattr(type(source), "count", lambda *args: (reads.append(1), real(*args))[1])
    with pytest.raises(BudgetError):
        con.answer("SELECT count(*) FROM v", epsilon=1001)
    return bool(reads)


@pytest.mark.parametrize("broken", [False, True])
def test_flags_a_charge_after_the_read(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Session.price

    def price_by_looking(session: Session, ask: Ask, compiled: CompiledBatch) -> Purchase:
        pipeline.count(session.source, compiled, bytes(32))
        return real(session, ask, compiled)

    if broken:
        monkeypatch.setattr(Session, "price", price_by_looking)
    with open_table([YOUNG]) as con:
        assert reads_before_it_is_paid(con, monkeypatch) == broken


def releases_beyond_charges(con: Connection, ask: Callable[[], tacit.Answers]) -> int:
    """How many different draws an impatient analyst sees beyond those that the ledger was paid for."""
    seen = {ask().df()["value"].tolist()[0] for _ in range(4)}
    ledger = con._session.ledger.open()
    return len(seen) - sum(entry.kind == "charge" for entry in ledger.entries())


@pytest.mark.parametrize("broken", [False, True])
def test_flags_fresh_noise_on_retry(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first try ends after the draw and before the store, as a crash would end it."""
    if broken:
        monkeypatch.setattr(Ledger, "store", lambda self, charge, payload, *_: payload)
    with open_table([YOUNG]) as con:
        real = pipeline.draw

        def crash(*args: Any) -> Any:
            real(*args)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(pipeline, "draw", crash)
            with pytest.raises(KeyboardInterrupt):
                con.answer("SELECT count(*) FROM v", epsilon=1)
        extra = releases_beyond_charges(con, lambda: con.answer("SELECT count(*) FROM v", epsilon=1))
        assert (extra > 0) == broken


def answers_under_another_policy(con: Connection) -> bool:
    """Whether an analyst who brings no policy is answered about rows, where the curator's protects persons."""
    con.answer("SELECT count(*) FROM v", epsilon=1)
    database = con._session.source._connection  # type: ignore[attr-defined]
    try:
        with tacit.connect(database, analyst="ana") as ana:
            ana.answer("SELECT count(*) FROM v WHERE age < 40", epsilon=1)
    except LedgerError:
        return False
    return True


@pytest.mark.parametrize("broken", [False, True])
def test_flags_a_ledger_that_any_policy_may_spend(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken:
        monkeypatch.setattr(Ledger, "_check_terms", lambda *_: None)
        monkeypatch.setattr(PolicyTerms, "differences", lambda *_: [])
    with open_table([YOUNG] * 5, rows_per_unit=1) as con:
        assert answers_under_another_policy(con) == broken


def counts_outlive_a_failure(con: Connection, patch: pytest.MonkeyPatch) -> bool:
    """Whether the error of a draw that fails, as long as somebody holds it, leads to the exact counts."""
    source, given = con._session.source, []
    real = type(source).count

    def count(*args: Any) -> Any:
        counts = real(*args)
        given.append(weakref.ref(counts))
        return counts

    def full(*_: Any) -> Any:
        raise MemoryError

    patch.setattr(type(source), "count", count)
    patch.setattr(pipeline, "measure", full)
    with pytest.raises(tacit.Error) as caught:
        con.answer("SELECT count(*) FROM v", epsilon=1)
    assert given and caught.value is not None
    return any(ref() is not None for ref in given)


@pytest.mark.parametrize("broken", [False, True])
def test_flags_counts_in_the_frames_of_an_error(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken:
        monkeypatch.setattr(pipeline, "sealed", lambda step: step())
    with open_table([YOUNG]) as con:
        assert counts_outlive_a_failure(con, monkeypatch) == broken


@pytest.mark.parametrize("broken", [True, False])
def test_flags_an_expression_that_fails_on_a_row(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails for one of two neighbours tells them apart, at a price of next to nothing."""
    if broken:
        monkeypatch.setattr(Prover, "_escape", lambda self, node: Value("truth", constant=False))
        monkeypatch.setattr(source.DuckDBSource, "rehearse", lambda self, scan: None)
    sql = (
        "SELECT count(*) FROM v WHERE CASE WHEN person = 9 AND age <= 30 THEN state LIKE '%' ESCAPE '%' ELSE FALSE END"
    )

    def outcome(*rows: Row) -> str:
        try:
            open_table(rows).answer(sql, epsilon=1e-9)
        except tacit.Error as error:
            return str(error)
        return "answered"

    assert (outcome(YOUNG) != outcome()) is broken


@pytest.mark.parametrize("broken", [True, False])
def test_flags_a_key_that_is_compared_by_its_collation(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen spellings of one name are sixteen units, and each is joined with its own rows alone."""
    if broken:
        monkeypatch.setattr(source, "read_column", lambda column, sql: f"{sql} AS {text.quote(column.name)}")
    database = duckdb.connect()
    for name in ("v", "w"):
        database.execute(f"CREATE TABLE {name} (person VARCHAR COLLATE NOCASE, x INTEGER)")
        spelled = "translate(lpad(bin(i), 4, '0'), '01', 'aA')"
        database.execute(f"INSERT INTO {name} SELECT {spelled}, 1 FROM range(16) r(i)")
    unit = {"privacy_unit": "person", "max_rows_per_unit": 16, "version": "1"}
    con = tacit.connect(database, policy={"budget": {"epsilon": 1}, "tables": {"v": unit, "w": unit}})
    batch = "SELECT count(*) FROM v JOIN w ON v.person = w.person"

    def rows() -> int:
        return int(tacit.testing.exact_answers(con, batch)[0].iloc[0, 0])

    before = rows()
    database.execute("DELETE FROM v WHERE person COLLATE C = 'aaaa'")
    assert (before - rows() > 1) is broken
