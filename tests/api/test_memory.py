"""Databases in memory: one ledger however they are reached, and a new version whenever somebody else was there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import pytest
import tacit
import tacit.ledger
from tacit.sql.backends.duckdb import instance

SQL = "SELECT count(*) FROM t"


@pytest.fixture
def db() -> duckdb.DuckDBPyConnection:
    return filled(duckdb.connect())


def filled(db: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    db.execute("CREATE TABLE t AS SELECT i::INTEGER AS a, i::VARCHAR AS s FROM range(1000) r(i)")
    return db


class TestIdentity:
    def test_every_cursor_has_the_same_ledger(self, db: duckdb.DuckDBPyConnection) -> None:
        tacit.connect(db, epsilon=1).answer(SQL, epsilon=0.75)
        for other in (db, db.cursor(), db.cursor().cursor(), db.duplicate()):
            with tacit.connect(other, epsilon=1) as con:
                assert con.budget.spent.epsilon == Decimal("0.75")
                with pytest.raises(tacit.BudgetError):
                    con.answer("SELECT count(*) FROM t WHERE a < 10", epsilon=0.5)

    def test_a_named_database_is_one(self) -> None:
        one, two = duckdb.connect(":memory:shared"), duckdb.connect(":memory:shared")
        filled(one)
        tacit.connect(one, epsilon=1).answer(SQL, epsilon=0.75)
        assert tacit.connect(two, epsilon=1).budget.spent.epsilon == Decimal("0.75")
        assert tacit.connect(filled(duckdb.connect(":memory:other")), epsilon=1).budget.spent.epsilon == 0

    def test_two_databases_are_two(self, db: duckdb.DuckDBPyConnection) -> None:
        tacit.connect(db, epsilon=1).answer(SQL, epsilon=1)
        assert tacit.connect(filled(duckdb.connect()), epsilon=1).budget.spent.epsilon == 0

    def test_the_ledger_outlives_the_connection_object(self) -> None:
        db, rest = filled(duckdb.connect(":memory:lasting")), duckdb.connect(":memory:lasting")
        tacit.connect(db, epsilon=1).answer(SQL, epsilon=1)
        db.close()
        del db
        assert tacit.connect(rest, epsilon=1).budget.left.epsilon == 0

    @pytest.mark.parametrize(
        "config",
        [{"enable_external_access": "false"}, {"enable_external_access": "false", "lock_configuration": "true"}],
    )
    def test_a_locked_database(self, config: dict[str, Any]) -> None:
        db = filled(duckdb.connect(config=config))
        tacit.connect(db, epsilon=1).answer(SQL, epsilon=0.5)
        assert tacit.connect(db.cursor(), epsilon=1).budget.spent.epsilon == Decimal("0.5")

    def test_the_users_database_is_left_alone(self, db: duckdb.DuckDBPyConnection) -> None:
        db.execute("BEGIN")
        db.execute("INSERT INTO t VALUES (5, 'x')")
        before = db.execute("SELECT current_database(), current_schema()").fetchall()
        con = tacit.connect(db, epsilon=1)
        assert [table.name for table in con.catalog.tables] == ["t"]
        db.execute("ROLLBACK")
        assert db.execute("SELECT current_database(), current_schema()").fetchall() == before
        assert db.execute("SELECT count(*) FROM t").fetchone() == (1000,)

    def test_connecting_at_once(self, db: duckdb.DuckDBPyConnection) -> None:
        barrier, opened = threading.Barrier(6), list[tacit.Connection]()

        def run(cursor: duckdb.DuckDBPyConnection) -> None:
            barrier.wait()
            opened.append(tacit.connect(cursor, epsilon=1))

        threads = [threading.Thread(target=run, args=(db.cursor(),)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        opened[0].answer(SQL, epsilon=0.75)
        assert [con.budget.spent.epsilon for con in opened] == [Decimal("0.75")] * 6

    def test_where_nothing_can_be_attached_it_is_refused(
        self, db: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(instance, "_PREFIX", 'no " name ')
        with pytest.raises(tacit.OperationalError, match="ATTACH"):
            tacit.connect(db, epsilon=1)


Write = Callable[[duckdb.DuckDBPyConnection], object]
WRITES: dict[str, str] = {
    "insert": "INSERT INTO t VALUES (5, 'x')",
    "delete": "DELETE FROM t WHERE a < 500",
    "update": "UPDATE t SET a = a + 1 WHERE a = 7",
    "another update": "UPDATE t SET a = a + 1 WHERE a = 90",
    "several": "BEGIN; INSERT INTO t VALUES (5, 'x'); DELETE FROM t WHERE a = 6; COMMIT",
    "other table": "CREATE OR REPLACE TABLE u AS SELECT 1 AS a",
    "truncate": "TRUNCATE t",
}


def elsewhere(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


class TestVersion:
    @pytest.mark.parametrize("where", ["same", "cursor", "thread"])
    @pytest.mark.parametrize("write", WRITES)
    def test_a_write_is_a_new_version(self, write: str, where: str, db: duckdb.DuckDBPyConnection) -> None:
        db.execute("UPDATE t SET a = a + 1 WHERE a = 3")  # a column that was updated before shows no later update
        con = tacit.connect(db, epsilon=100)
        con.answer(SQL, epsilon=1)
        assert not any(con.answer(SQL, epsilon=1).cost)
        version = con.catalog.tables[0].version
        cursor = db if where == "same" else db.cursor()
        if where == "thread":
            elsewhere(lambda: cursor.execute(WRITES[write]))
        else:
            cursor.execute(WRITES[write])
        assert con.catalog.tables[0].version != version
        assert con.answer(SQL, epsilon=1).cost.epsilon == 1
        assert not any(con.answer(SQL, epsilon=1).cost)

    def test_rows_that_came_between_are_counted_and_not_averaged(self, db: duckdb.DuckDBPyConnection) -> None:
        con = tacit.connect(db, epsilon=1000)
        assert abs(con.answer(SQL, epsilon=20)[0].df.iloc[0, 0] - 1000) < 10
        db.execute("INSERT INTO t SELECT i, '' FROM range(9000) r(i)")
        assert abs(con.answer(SQL, epsilon=20)[0].df.iloc[0, 0] - 10_000) < 10
        db.execute("DELETE FROM t")
        assert abs(con.answer(SQL, epsilon=20, refresh=True)[0].df.iloc[0, 0]) < 10

    def test_a_transaction_that_was_open_all_the_while(self, db: duckdb.DuckDBPyConnection) -> None:
        con, late = tacit.connect(db, epsilon=100), db.cursor()
        late.begin()
        late.execute("INSERT INTO t VALUES (5, 'x')")
        con.answer(SQL, epsilon=1)
        late.commit()
        assert any(con.answer(SQL, epsilon=1).cost)

    def test_what_tacit_itself_reads_is_no_change(self, db: duckdb.DuckDBPyConnection) -> None:
        db.execute("CREATE TABLE p AS SELECT range::INTEGER AS a FROM range(10)")
        policy = {"budget": {"epsilon": 10.0}, "tables": {"p": {"public": True}}}
        one, two = tacit.connect(db, policy=policy), tacit.connect(db.cursor(), policy=policy)
        join = "SELECT count(*) FROM t JOIN p ON t.a = p.a"
        for con in (one, two, one):
            con.answer([SQL, join], epsilon=1)
            con.explain("SELECT count(*) FROM t WHERE a < 7", epsilon=1)
            tacit.testing.exact_answers(con, join)
            with pytest.raises(tacit.ProgrammingError):
                con.answer("SELECT count(nothing) FROM t", epsilon=1)
            tacit.connect(db.cursor(), policy=policy)
        assert one.budget.spent.epsilon == 1

    def test_threads_of_tacits_own_are_no_change(self, db: duckdb.DuckDBPyConnection) -> None:
        cons = [tacit.connect(db, epsilon=100) for _ in range(4)]
        cons[0].answer(SQL, epsilon=1)
        threads = [threading.Thread(target=lambda c=con: [c.answer(SQL, epsilon=1) for _ in range(5)]) for con in cons]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cons[0].budget.spent.epsilon == 1

    def test_a_declared_version_stands_before_it(self, db: duckdb.DuckDBPyConnection) -> None:
        """A mere read looks like a write; whoever reads beside tacit declares a version."""
        con = tacit.connect(db, epsilon=100)
        con.answer(SQL, epsilon=1)
        db.execute(SQL).fetchall()
        assert any(con.answer(SQL, epsilon=1).cost)
        tacit.ledger.declare_version(con, "t", "1")
        con.answer(SQL, epsilon=1)
        db.execute(SQL).fetchall()
        assert not any(con.answer(SQL, epsilon=1).cost)

    def test_tables_of_another_process_are_another_state(self, tmp_path: Any) -> None:
        for spent in (1, 2):
            con = tacit.connect(filled(duckdb.connect()), epsilon=10, ledger=tmp_path / "x.ledger")
            con.answer(SQL, epsilon=1)
            assert con.budget.spent.epsilon == spent
