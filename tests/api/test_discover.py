"""Keys and ranges that nobody declared: what is found, what it costs, who sees it, and what is refused unpaid."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tacit
from support import seams
from tacit import BudgetError, Connection, NotSupportedError, PolicyError, PrivacyParameterError, ProgrammingError
from tacit.discovery import read
from tacit.errors import DomainError, LedgerError, UnknownNameError
from tacit.sql import Range, Values
from tacit.sql.backends.duckdb.extremes import extremes

Connect = Callable[..., Connection]

POLICY: dict[str, Any] = {
    "budget": {"epsilon": 1000.0, "delta": 0.1},
    "tables": {
        "visits": {"privacy_unit": "pid", "max_rows_per_unit": 2, "version": "1"},
        "plain": {"version": "1"},
        "cities": {"public": True},
    },
}
SCHEMA = """
CREATE TABLE visits AS
    SELECT i // 2 AS pid, ['Paris', 'Rome', 'Oslo'][1 + (i // 2) % 3] AS city, (20 + i % 60)::INTEGER AS age,
           100.0 + i % 1000 AS cost, DATE '2024-03-01' + (i % 4)::INTEGER AS day,
           TIMESTAMP '2024-03-01' + INTERVAL (i % 72) HOUR AS ts, [i] AS nested, i % 2 = 0 AS even
    FROM range(3000) AS r(i);
INSERT INTO visits (pid, city) VALUES (9999, 'a canary of one');
CREATE TABLE plain AS SELECT ['x', 'y'][1 + i % 2] AS kind, -(i % 7)::DECIMAL(6, 2) AS loss FROM range(2000) AS r(i);
CREATE TABLE cities AS SELECT 'Paris' AS name, 'FR' AS country UNION ALL SELECT 'Rome', 'IT';
CREATE VIEW grown AS SELECT pid, upper(city) AS town, age AS years FROM visits WHERE age >= 30;
"""
STRONG = {"epsilon": 50, "delta": 1e-6}
"""So much that noise decides nothing here."""


@pytest.fixture(scope="module")
def town_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("town") / "town.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(SCHEMA)
    return path


@pytest.fixture
def town(town_file: Path, tmp_path: Path) -> Path:
    path = tmp_path / "town.duckdb"
    path.write_bytes(town_file.read_bytes())
    return path


@pytest.fixture
def connect(town: Path) -> Iterator[Connect]:
    opened: list[Connection] = []

    def open_connection(**options: Any) -> Connection:
        options.setdefault("policy", POLICY)
        opened.append(tacit.connect(town, **options))
        return opened[-1]

    yield open_connection
    for con in opened:
        con.close()


@pytest.fixture
def con(connect: Connect) -> Connection:
    return connect()


def changed(**table: Any) -> dict[str, Any]:
    """The policy with other keys for visits."""
    return {**POLICY, "tables": {**POLICY["tables"], "visits": {**POLICY["tables"]["visits"], **table}}}


def domain(con: Connection, column: str, table: str = "visits") -> Values | Range | None:
    declared = con.catalog.table(table)
    assert declared is not None
    found = declared.column(column)
    assert found is not None
    return found.domain


def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The reads of private rows from now on."""
    reads: list[str] = []
    for seam in ("values", "count"):
        seams.watch(monkeypatch, seam, lambda *_, seam=seam: reads.append(seam))
    return reads


class TestKeys:
    def test_values_that_enough_units_hold(self, con: Connection) -> None:
        found = con.discover("visits.city", **STRONG)
        assert found.values == ("Oslo", "Paris", "Rome")
        assert (found.table, found.column, found.what) == ("visits", "city", "keys")
        assert (found.epsilon, found.delta) == (Decimal(50), Decimal("0.000001"))
        assert con.budget.spent == found.cost == (Decimal(50), Decimal("0.000001"))
        assert "3 keys of visits.city" in repr(found) and "'Oslo', 'Paris', 'Rome'" in repr(found)

    @pytest.mark.parametrize(
        ("column", "values"),
        [
            ("visits.day", tuple(dt.date(2024, 3, d) for d in range(1, 5))),
            ("date_trunc('day', visits.ts)", tuple(dt.datetime(2024, 3, d) for d in range(1, 4))),
            ("visits.age", tuple(range(20, 80))),
            ("plain.kind", ("x", "y")),
            ("plain.loss", tuple(Decimal(-n).quantize(Decimal("0.01")) for n in range(6, -1, -1))),
            ("substr(visits.city, 1, 1)", ("O", "P", "R")),
            ("grown.town", ("OSLO", "PARIS", "ROME")),
            ("main.visits.city", ("Oslo", "Paris", "Rome")),
        ],
    )
    def test_every_kind_of_value(self, con: Connection, connect: Connect, column: str, values: Any) -> None:
        assert con.discover(column, what="keys", **STRONG).values == values
        assert connect().discover(column, what="keys", **STRONG).values == values

    def test_a_value_of_one_unit_is_not_found_and_null_never(self, con: Connection) -> None:
        assert "a canary of one" not in (con.discover("visits.city", epsilon=1, delta=1e-6).values or ())
        assert None not in (con.discover("visits.day", epsilon=50, delta=1e-6).values or ())

    def test_nothing_found_is_a_list_too(self, con: Connection) -> None:
        found = con.discover("visits.city", epsilon=0.001, delta=1e-6)
        assert found.values == () and found.warning
        frame = con.answer("SELECT city, count(*) FROM visits GROUP BY city", epsilon=1)[0].df
        assert frame["city"].isna().all() and len(frame) == 1

    def test_no_group_at_all_is_an_error_that_says_so(self) -> None:
        database = duckdb.connect()
        database.execute("CREATE TABLE t (a VARCHAR NOT NULL); INSERT INTO t VALUES ('x')")
        with tacit.connect(database, epsilon=10, delta=1e-3) as con:
            with pytest.raises(DomainError, match="no value of a was found"):
                con.answer("SELECT a, count(*) FROM t GROUP BY a", epsilon=1, delta=1e-6, discover=True)
            assert con.budget.spent.epsilon == Decimal("0.25"), "the list was bought, and is empty"

    def test_the_same_again_is_free_and_another_version_is_not(self, con: Connection, connect: Connect) -> None:
        first = con.discover("visits.city", epsilon=2, delta=1e-6)
        again = con.discover("visits.city", epsilon=1, delta=1e-7)
        assert again.values == first.values and again.epsilon == 2 and not any(again.cost)
        assert con.budget.spent.epsilon == 2
        con.discover("visits.city", epsilon=3, delta=1e-6)
        assert con.budget.spent.epsilon == 5
        new = connect(policy=changed(version="2"))
        assert domain(new, "city") == Values(("Oslo", "Paris", "Rome")), "a public list holds for any version"
        assert new.discover("visits.city", epsilon=1, delta=1e-6).cost.epsilon == 1

    def test_a_minimum_frequency(self, connect: Connect) -> None:
        plain = connect().discover("visits.city", **STRONG)
        assert plain.threshold < 30
        found = connect(policy=changed(minimum_frequency=600)).discover("visits.city", **STRONG)
        assert (found.threshold, found.values) == (600, ())

    def test_lists_of_one_column_are_taken_together(self, connect: Connect) -> None:
        con = connect(policy=changed(minimum_frequency=600))
        con.discover("visits.city", **STRONG)
        assert domain(con, "city") == Values(())
        other = connect()
        other.discover("visits.city", **STRONG)
        assert domain(con, "city") == Values(("Oslo", "Paris", "Rome"))


class TestRange:
    @pytest.mark.parametrize(
        ("column", "ends"),
        [
            ("visits.age", (16, 127)),
            ("visits.cost", (64, 2048)),
            ("plain.loss", (-8, 1)),
            ("visits.day", (dt.date(2024, 1, 1), dt.date(2024, 12, 31))),
            ("visits.ts", (dt.datetime(2024, 1, 1), dt.datetime(2025, 1, 1))),
            ("grown.years", (16, 127)),
        ],
    )
    def test_from_the_first_bin_to_the_last(self, con: Connection, column: str, ends: Any) -> None:
        found = con.discover(column, what="range", epsilon=20, delta=1e-3)
        assert found.range == ends and not found.warning
        assert con.budget.spent == (Decimal(20), Decimal(0)), "a range needs no delta"

    def test_numbers_have_a_range_unless_keys_are_asked_for(self, con: Connection) -> None:
        assert con.discover("visits.age", epsilon=20).what == "range"
        assert con.discover("visits.age", what="keys", **STRONG).what == "keys"
        assert isinstance(domain(con, "age"), Values), "a list tells a range too"

    def test_a_range_that_nothing_was_found_of_says_so(self, con: Connection) -> None:
        found = con.discover("visits.cost", epsilon=0.001)
        assert found.range == (0, 1) and "default" in found.warning
        con.discover("visits.cost", epsilon=20)
        con.discover("visits.cost", epsilon=30)
        assert domain(con, "cost") == Range(64, 2048)

    def test_it_clamps(self, con: Connection) -> None:
        con.discover("visits.age", epsilon=20)
        total = con.answer("SELECT sum(age) FROM visits", epsilon=50)[0].df.iloc[0, 0]
        assert total == pytest.approx(3000 * 49.5, rel=0.02)

    @pytest.mark.parametrize("type_", ["TINYINT", "UTINYINT", "BIGINT", "HUGEINT", "DECIMAL(5,0)", "DECIMAL(38,2)"])
    def test_ends_of_types(self, type_: str) -> None:
        database = duckdb.connect()
        ends = {"TINYINT": (-128, 127), "UTINYINT": (0, 255)}.get(type_, (-99, 99))
        database.execute(
            f"CREATE TABLE t AS SELECT CAST([{ends[0]}, {ends[1]}][1 + i % 2] AS {type_}) AS c FROM range(2000) AS r(i)"
        )
        con = tacit.connect(database, epsilon=1000)
        found = con.discover("t.c", epsilon=20).range
        assert found is not None
        assert found[0] <= ends[0] and ends[1] <= found[1] and (found[0] >= 2 * ends[0] or found[0] == 0)
        assert con.answer("SELECT sum(c) FROM t", epsilon=5)


class TestSeenByAll:
    def test_it_survives_and_every_connection_sees_it(self, con: Connection, connect: Connect) -> None:
        con.discover("visits.city", **STRONG)
        con.discover("lower(visits.city)", **STRONG)
        con.discover("visits.age", epsilon=20)
        con.close()
        other = connect()
        assert domain(other, "city") == Values(("Oslo", "Paris", "Rome"))
        assert domain(other, "age") == Range(16, 127)
        table = other.catalog.table("visits")
        assert table is not None and [v.values for _, v in table.found] == [("oslo", "paris", "rome")]
        frame = other.answer("SELECT city, avg(age) FROM visits GROUP BY city", epsilon=5)[0].df
        assert frame["city"].tolist()[:3] == ["Oslo", "Paris", "Rome"]
        assert len(other.answer("SELECT lower(city) AS c, count(*) FROM visits GROUP BY 1", epsilon=5)[0].df) == 4

    def test_the_policy_comes_first(self, con: Connection, connect: Connect) -> None:
        con.discover("visits.city", **STRONG)
        con.close()
        other = connect(policy=changed(columns={"city": {"values": ["Rome"]}}))
        assert domain(other, "city") == Values(("Rome",))
        spent = other.budget.spent
        declared = other.discover("visits.city", **STRONG)
        assert declared.values == ("Rome",) and not any(declared.cost) and other.budget.spent == spent

    def test_the_caps_of_the_whole_and_of_the_buyer(self, connect: Connect) -> None:
        policy = {**POLICY, "analysts": {"ana": {"epsilon": 2.0}, "bob": {"epsilon": 2.0}}}
        ana = connect(policy=policy, analyst="ana")
        with pytest.raises(BudgetError):
            ana.discover("visits.city", **STRONG)
        ana.discover("visits.age", epsilon=2)
        with pytest.raises(BudgetError):
            ana.discover("visits.cost", epsilon=2)
        bob = connect(policy=policy, analyst="bob")
        assert isinstance(domain(bob, "age"), Range), "what was found is public"
        assert bob.budget.analysts["bob"].spent.epsilon == 0 and bob.budget.spent.epsilon == 2

    def test_releases_of_discoveries_are_no_releases_of_batches(self, con: Connection) -> None:
        con.discover("visits.age", epsilon=20)
        before = con.answer("SELECT count(*) FROM visits", epsilon=1)
        assert before.epsilon == 1 and con.budget.spent.epsilon == 21

    def test_a_damaged_discovery_is_refused(self) -> None:
        for payload in (b"{}", b"nonsense", b'{"format": "tacit discovery 2"}'):
            with pytest.raises(LedgerError):
                read(payload, Decimal(1), Decimal(0))


class TestPublicTables:
    def test_they_are_read_for_nothing(self, con: Connection) -> None:
        found = con.discover("cities.country")
        assert found.values == ("FR", "IT") and not any(con.budget.spent)
        frame = con.answer("SELECT country, count(*) AS n FROM cities GROUP BY country")[0].df
        assert frame["n"].tolist() == [1, 1]  # DuckDB's own answer
        answers = con.answer("SELECT name, count(*) AS n FROM cities GROUP BY name ORDER BY name", discover=True)
        assert answers[0].df["name"].tolist() == ["Paris", "Rome"] and not any(con.budget.spent)


class TestRefused:
    @pytest.mark.parametrize(
        ("column", "options", "error", "hint"),
        [
            ("visits.city", {"epsilon": 1}, PrivacyParameterError, "delta=1e-6"),
            ("visits.city", {"epsilon": 1, "delta": 0}, PrivacyParameterError, "delta=1e-6"),
            ("visits.city", {"delta": 1e-6}, PrivacyParameterError, "epsilon=0.1"),
            ("visits.city", {"epsilon": -1, "delta": 1e-6}, PrivacyParameterError, "greater than 0"),
            ("visits.city", {"epsilon": 1, "what": "range"}, NotSupportedError, "stored columns of numbers"),
            ("visits.city", {"epsilon": 1, "what": "all"}, ProgrammingError, "leave it out"),
            ("visits.nested", {"epsilon": 1, "delta": 1e-6}, NotSupportedError, "cannot be listed"),
            ("visits.town", {"epsilon": 1, "delta": 1e-6}, UnknownNameError, "no such column"),
            ("nowhere.city", {"epsilon": 1, "delta": 1e-6}, UnknownNameError, "no such table"),
            ("city", {"epsilon": 1, "delta": 1e-6}, ProgrammingError, "write table.column"),
            ("visits.city, visits.age", {"epsilon": 1, "delta": 1e-6}, ProgrammingError, "not one column"),
            ("visits.city FROM visits", {"epsilon": 1, "delta": 1e-6}, ProgrammingError, "write table.column"),
            ("visits.city; SELECT 1", {"epsilon": 1, "delta": 1e-6}, ProgrammingError, "write table.column"),
            ("count(visits.city)", {"epsilon": 1, "delta": 1e-6}, ProgrammingError, "hint: "),
            (7, {"epsilon": 1}, ProgrammingError, "as text"),
        ],
    )
    def test_unpaid_and_unread(
        self, con: Connection, monkeypatch: pytest.MonkeyPatch, column: Any, options: Any, error: Any, hint: str
    ) -> None:
        reads = watched(monkeypatch)
        with pytest.raises(error, match=hint):
            con.discover(column, **options)
        assert not any(con.budget.spent) and not reads

    def test_what_is_declared_in_another_way(self, connect: Connect) -> None:
        con = connect(policy=changed(columns={"age": {"min": 0, "max": 9}}))
        with pytest.raises(ProgrammingError, match=r"declared for visits\.age already"):
            con.discover("visits.age", what="keys", **STRONG)
        assert con.discover("visits.age").range == (0, 9)
        assert con.discover("visits.even").values == (False, True)

    def test_a_minimum_that_is_none(self, connect: Connect) -> None:
        with pytest.raises(PolicyError, match="write minimum_frequency = 20"):
            connect(policy=changed(minimum_frequency=0))

    def test_the_refusal_of_a_batch_names_both_ways(self, con: Connection) -> None:
        with pytest.raises(DomainError, match=r"city = \{ values = .* discover=True"):
            con.answer("SELECT city, count(*) FROM visits GROUP BY city", epsilon=1)
        with pytest.raises(DomainError, match=r"age = \{ min = .* discover=True"):
            con.answer("SELECT sum(age) FROM visits", epsilon=1)


BATCH = [
    "SELECT city, count(*) AS n, sum(cost) AS s FROM visits GROUP BY city",
    "SELECT lower(city) AS c, count(*) AS n FROM visits GROUP BY 1",
    "SELECT date_trunc('day', ts) AS d, count(*) AS n FROM visits GROUP BY 1",
]


class TestInABatch:
    def test_explain_reads_and_spends_nothing(self, con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        reads = watched(monkeypatch)
        plan = con.explain(BATCH, epsilon=8, delta=1e-5, discover=True)
        assert not any(con.budget.spent) and not reads
        text = str(plan)
        for name in ("keys of visits.city", "range of visits.cost", "keys of DATE_TRUNC('DAY', \"ts\")"):
            assert f"first finds the {name}" in text
        assert "LOWER" not in "".join(plan.discover), "its values follow from those of city"
        assert "stand-in" in text and plan.cost.epsilon == 8
        assert len(plan.discover) == 5

    def test_answer_finds_and_answers_within_what_was_named(self, con: Connection) -> None:
        plan = con.explain(BATCH, epsilon=80, delta=1e-5, discover=True)
        answers = con.answer(BATCH, epsilon=80, delta=1e-5, discover=True)
        assert answers.cost == con.budget.spent == plan.cost
        assert con.budget.spent.epsilon <= 80 and con.budget.spent.delta <= Decimal("1e-5")
        assert {(d.what, d.column) for d in answers.discovered} == {
            ("keys", "city"), ("range", "cost"), ("keys", "DATE_TRUNC('DAY', \"ts\")"),
        }  # fmt: skip
        assert 19.9 < sum(d.epsilon for d in answers.discovered) <= 20
        frame = answers[0].df
        assert frame["city"].tolist()[:3] == ["Oslo", "Paris", "Rome"]
        assert frame["n"][:3].tolist() == pytest.approx([1000] * 3, abs=20)
        assert len(answers[1].df) == 4 and len(answers[2].df) == 4

    def test_the_same_call_again_costs_nothing(self, con: Connection, connect: Connect) -> None:
        first = con.answer(BATCH, epsilon=80, delta=1e-5, discover=True)
        spent = con.budget.spent
        again = con.answer(BATCH, epsilon=80, delta=1e-5, discover=True)
        assert con.budget.spent == spent and not any(again.cost) and again.discovered == ()
        assert again[0].df.equals(first[0].df)
        assert not any(con.explain(BATCH, epsilon=80, delta=1e-5, discover=True).cost)
        cursor = connect().cursor()
        cursor.execute("; ".join(BATCH), epsilon=80, delta=1e-5, discover=True)
        assert cursor.rowcount == 4 and con.budget.spent == spent

    def test_a_batch_that_lacks_nothing_is_answered_as_ever(self, con: Connection) -> None:
        assert con.answer("SELECT count(*) FROM visits", epsilon=3, discover=True).epsilon == 3
        assert con.explain("SELECT count(*) FROM plain", epsilon=3, discover=True).discover == ()

    def test_columns_of_joined_tables(self, con: Connection) -> None:
        batch = "SELECT country, city, count(*) FROM visits LEFT JOIN cities ON city = cities.name GROUP BY ALL"
        answers = con.answer(batch, epsilon=80, delta=1e-5, discover=True)
        assert len(answers[0].df) == 12
        assert [d.table for d in answers.discovered] == ["visits"]  # what a public table holds is known
        assert con.budget.spent.epsilon == 80

    @pytest.mark.parametrize(
        ("batch", "options", "error"),
        [
            ("SELECT city, count(*) FROM visits GROUP BY city", {"epsilon": 1}, PrivacyParameterError),
            ("SELECT city, count(*) FROM visits GROUP BY city", {"error": 10, "delta": 1e-6}, PrivacyParameterError),
            ("SELECT city, count(*) FROM visits GROUP BY city", {"epsilon": 2000, "delta": 1e-6}, BudgetError),
            ("SELECT nested, count(*) FROM visits GROUP BY 1", {"epsilon": 1, "delta": 1e-6}, tacit.SqlError),
            ("SELECT city, count(*) FROM visits GROUP BY 1; SELECT no", {"epsilon": 1, "delta": 1e-6}, tacit.SqlError),
        ],
    )
    def test_refused_unpaid(self, con: Connection, batch: str, options: Any, error: Any) -> None:
        with pytest.raises(error):
            con.answer(batch, discover=True, **options)
        assert not any(con.budget.spent)


class TestNothingIsReadUnpaid:
    @pytest.mark.parametrize(("column", "seam"), [("visits.city", "values"), ("visits.age", "count")])
    def test_charged_before_it_is_read(
        self, con: Connection, monkeypatch: pytest.MonkeyPatch, column: str, seam: str
    ) -> None:
        steps: list[str] = []
        for name in (seam, "charge", "laplace", "store"):
            seams.watch(monkeypatch, name, lambda *_, name=name, **__: steps.append(name))
        con.discover(column, epsilon=1, delta=1e-6 if seam == "values" else 0, what=None)
        assert [step for step in steps if step != "laplace"] == ["charge", seam, "store"]

    def test_errors_are_constant(self, con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        def failing(*_: Any) -> Any:
            raise ValueError("a canary of one")

        seams.replace(monkeypatch, "values", failing)
        with pytest.raises(tacit.Error) as caught:
            con.discover("visits.city", epsilon=1, delta=1e-6)
        assert "canary" not in str(caught.value) and caught.value.__cause__ is None
        assert con.budget.spent.epsilon == 1
        monkeypatch.undo()
        con.discover("visits.city", epsilon=1, delta=1e-6)
        assert con.budget.spent.epsilon == 1, "a charge that was never released is taken up"

    @pytest.mark.parametrize(
        "type_", ["VARCHAR", "DOUBLE", "FLOAT", "DATE", "TIMESTAMP", "HUGEINT", "UHUGEINT", "DECIMAL(38,5)"]
    )
    def test_no_row_makes_it_fail(self, type_: str) -> None:
        """Values that no list can hold are left out, whatever they are."""
        database = duckdb.connect()
        database.execute(f"CREATE TABLE t (c {type_})")
        for value in extremes(type_):
            with contextlib.suppress(duckdb.Error):
                database.execute(f"INSERT INTO t SELECT CAST({value} AS {type_}) FROM range(500)")
        with tacit.connect(database, epsilon=1000, delta=0.1) as con:
            if type_ != "UHUGEINT":  # no frame can hold one
                assert con.discover("t.c", what="keys", **STRONG).values
                assert len(con.answer("SELECT c, count(*) FROM t GROUP BY c", epsilon=1)[0].df) > 1
            if type_ != "VARCHAR":
                assert con.discover("t.c", what="range", epsilon=50).range


class TestUnderZcdp:
    def test_the_delta_of_keys_comes_off_the_caps(self, connect: Connect) -> None:
        policy = {**POLICY, "accounting": "zcdp", "budget": {"epsilon": 100.0, "delta": 1e-5}}
        con = connect(policy=policy)
        con.answer("SELECT count(*) FROM visits", epsilon=1, delta=1e-6)
        before = con.budget.spent
        con.discover("visits.city", epsilon=1, delta=9.9e-6)
        after = con.budget.spent
        assert after.delta == before.delta == Decimal("1e-5")
        assert after.epsilon > before.epsilon
        with pytest.raises(BudgetError, match="delta"):
            con.discover("visits.day", epsilon=1, delta=1e-6)
        assert con.budget.spent == after
        con.close()
        assert connect(policy=policy).budget.spent == after

    def test_ranges_cost_no_delta(self, connect: Connect) -> None:
        con = connect(policy={**POLICY, "accounting": "zcdp", "budget": {"epsilon": 100.0, "delta": 1e-5}})
        con.discover("visits.age", epsilon=1)
        con.discover("visits.cost", epsilon=1)
        assert con.budget.spent.epsilon < 12
