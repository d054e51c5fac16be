"""The tester never flags tacit, and it flags engines that are broken on purpose."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
import tacit.ledger
from support import seams
from tacit import Connection
from tacit.errors import BudgetError, LedgerError
from tacit.sql import Catalog, Values
from tacit.sql.backends.duckdb.text import quote
from tacit.sql.scan import Scan
from tacit.sql.signature import Value

from .cases import LONG, Case, Pair, Row, open_table, policy, random_case, table_of
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


# The broken engines. Each is the real engine with one thing done wrong, and the real engine beside it is not flagged.
BROKEN = pytest.mark.parametrize("broken", [False, True])


@BROKEN
@pytest.mark.parametrize("delta", [0.0, 1e-2])
def test_flags_noise_of_seven_tenths(delta: float, broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    laplace, gaussian = seams.real("laplace"), seams.real("gaussian")

    def weak_laplace(values: Any, scale: float, *, sensitivity: int, epsilon: Fraction) -> Any:
        return laplace(values, 0.7 * scale, sensitivity=sensitivity, epsilon=2 * epsilon)

    if broken:
        seams.replace(monkeypatch, "laplace", weak_laplace)
        seams.replace(monkeypatch, "gaussian", lambda values, scale: gaussian(values, 0.7 * scale))
    assert flagged(replace(SIMPLE, delta=delta), 40_000) == broken


@BROKEN
def test_flags_the_sensitivity_of_the_wrong_column(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def smallest(matrix: Any, order: int) -> int:
        norms = np.linalg.norm(matrix.astype(np.float64), order, axis=0)
        return math.ceil(norms[norms > 0].min())

    if broken:
        seams.replace(monkeypatch, "norm", smallest)
    assert flagged(NESTED) == broken


@BROKEN
def test_flags_floating_point_noise(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng()

    def naive(values: Any, scale: float, **_: Any) -> Any:
        return values + rng.laplace(scale=scale, size=len(values))

    if broken:
        seams.replace(monkeypatch, "laplace", naive)
    assert flagged(SIMPLE) == broken
    verdict = audit(*(scores[:, 3:] for scores in Pair.of(SIMPLE).in_bulk(20_000)), 1.0)
    assert verdict.flagged == broken, "the low bits alone must give it away: the scale is right"


@BROKEN
def test_flags_a_seed_that_is_used_again(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def seeded(values: Any, scale: float, **_: Any) -> Any:
        return values + np.rint(np.random.default_rng(0).laplace(scale=scale, size=len(values))).astype(np.int64)

    if broken:
        seams.replace(monkeypatch, "laplace", seeded)
    assert flagged(SIMPLE) == broken


@BROKEN
def test_flags_a_unit_without_bound(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken:

        def keep_all(scan: Scan, columns: Sequence[tuple[str, str]], size: Any, salt: bytes, stored: Any) -> str:
            rows = stored(scan.table, [column.name for column in scan.table.columns])
            return f"SELECT {', '.join(f'{sql} AS {name}' for sql, name in columns)} FROM {rows}"

        seams.replace(monkeypatch, "kept keys", keep_all)
    assert flagged(replace(SIMPLE, rows_per_unit=1, here=(YOUNG,) * 5)) == broken


# Five faults are not in the numbers of one release but in what surrounds them; each has a check of its own.


def shows_what_groups_there_are(here: tuple[Row, ...], there: tuple[Row, ...]) -> bool:
    """Whether the keys or the cells of a batch differ between neighbours."""
    batch = "SELECT state, count(*) FROM v GROUP BY state"
    seen = []
    for rows in (here, there):
        with open_table(rows) as con:
            cells = [cell.label for cell in con.explain(batch, epsilon=1).cells]
            seen.append((cells, con.answer(batch, epsilon=1)[0].df["state"].tolist()))
    return repr(seen[0]) != repr(seen[1])


@BROKEN
def test_flags_groups_listed_from_the_data(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, schema, sources = seams.real("compile"), seams.real("schema"), list[Any]()

    def looks(batch: Any, catalog: Catalog, *how: Any) -> Any:
        (table,) = catalog.tables
        found = sources[-1]._run(f"SELECT DISTINCT state FROM {sources[-1]._database}.main.v")
        values = Values(tuple(state for (state,) in found) or ("none",))
        columns = tuple(replace(c, domain=values) if c.name == "state" else c for c in table.columns)
        return compiled(batch, Catalog((replace(table, columns=columns),)), *how)

    if broken:
        seams.replace(monkeypatch, "schema", lambda source: (sources.append(source), schema(source))[1])
        seams.replace(monkeypatch, "compile", looks)
    assert shows_what_groups_there_are((YOUNG, (1, "NJ", 2, 2.0)), (YOUNG,)) == broken


def reads_before_it_is_paid(con: Connection, patch: pytest.MonkeyPatch) -> bool:
    """Whether a batch that cannot be paid for reaches a private row."""
    reads: list[int] = []
    seams.watch(patch, "count", lambda *_: reads.append(1))
    with pytest.raises(BudgetError):
        con.answer("SELECT count(*) FROM v", epsilon=1001)
    return bool(reads)


@BROKEN
def test_flags_a_charge_after_the_read(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken:
        seams.replace(monkeypatch, "rehearse", lambda source, scan: source.count(scan, bytes(32)))
    with open_table([YOUNG]) as con:
        assert reads_before_it_is_paid(con, monkeypatch) == broken


LITTLE = 1e-6
"""So much noise that two draws are not the same integer."""


def releases_beyond_charges(con: Connection, ask: Callable[[], tacit.Answers]) -> int:
    """How many different draws an impatient analyst sees beyond those that the ledger was paid for."""
    seen = {ask().df()["value"].tolist()[0] for _ in range(4)}
    return len(seen) - tacit.ledger.log(con)["kind"].tolist().count("charge")


@BROKEN
def test_flags_fresh_noise_on_retry(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first try ends after the draw and before the store, as a crash would end it."""
    if broken:
        seams.replace(monkeypatch, "store", lambda self, charge, payload, *_: payload)
    with open_table([YOUNG]) as con:
        real = seams.real("measure")

        def crash(*args: Any) -> Any:
            real(*args)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            seams.replace(patch, "measure", crash)
            with pytest.raises(KeyboardInterrupt):
                con.answer("SELECT count(*) FROM v", epsilon=LITTLE)
        extra = releases_beyond_charges(con, lambda: con.answer("SELECT count(*) FROM v", epsilon=LITTLE))
        assert (extra > 0) == broken


def answers_under_another_policy(database: duckdb.DuckDBPyConnection) -> bool:
    """Whether an analyst who brings no policy is answered about rows, where the curator's protects persons."""
    with tacit.connect(database, policy=policy(rows_per_unit=1)) as con:
        con.answer("SELECT count(*) FROM v", epsilon=1)
    try:
        with tacit.connect(database, analyst="ana") as ana:
            ana.answer("SELECT count(*) FROM v WHERE age < 40", epsilon=1)
    except LedgerError:
        return False
    return True


@BROKEN
def test_flags_a_ledger_that_any_policy_may_spend(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken:
        seams.replace(monkeypatch, "check terms", lambda *_: None)
        seams.replace(monkeypatch, "differences", lambda *_: [])
    assert answers_under_another_policy(table_of([YOUNG] * 5)) == broken


def counts_outlive_a_failure(con: Connection, patch: pytest.MonkeyPatch) -> bool:
    """Whether the error of a draw that fails, as long as somebody holds it, leads to the exact counts."""
    given: list[weakref.ref[Any]] = []
    real = seams.real("count")

    def count(*args: Any) -> Any:
        counts = real(*args)
        given.append(weakref.ref(counts))
        return counts

    def full(*_: Any) -> Any:
        raise MemoryError

    seams.replace(patch, "count", count)
    seams.replace(patch, "measure", full)
    with pytest.raises(tacit.Error) as caught:
        con.answer("SELECT count(*) FROM v", epsilon=1)
    assert given and caught.value is not None
    return any(ref() is not None for ref in given)


@BROKEN
def test_flags_counts_in_the_frames_of_an_error(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken:
        seams.replace(monkeypatch, "sealed", lambda step, source: step())
    with open_table([YOUNG]) as con:
        assert counts_outlive_a_failure(con, monkeypatch) == broken


@BROKEN
def test_flags_an_expression_that_fails_on_a_row(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails for one of two neighbours tells them apart, at a price of next to nothing."""
    if broken:
        seams.replace(monkeypatch, "escape", lambda self, node: Value("truth", constant=False))
        seams.replace(monkeypatch, "rehearse", lambda self, scan: None)
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


@BROKEN
def test_flags_a_key_that_is_compared_by_its_collation(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen spellings of one name are sixteen units, and each is joined with its own rows alone."""
    if broken:
        seams.replace(monkeypatch, "read column", lambda column, sql: f"{sql} AS {quote(column.name)}")
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
