"""PEP 249: module, connection and cursor behave as its text says; pandas reads through them."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable

import pandas as pd
import pytest
import tacit
from tacit import Connection

Connect = Callable[..., Connection]
COUNT = "SELECT count(*) AS n FROM visits WHERE age < ?"
GROUPS = "SELECT state, count(*) AS n FROM visits GROUP BY state"


def test_module_globals() -> None:
    assert (tacit.apilevel, tacit.threadsafety, tacit.paramstyle) == ("2.0", 2, "qmark")
    assert callable(tacit.connect)


def test_exception_tree() -> None:
    assert issubclass(tacit.Warning, Exception)
    assert issubclass(tacit.Error, Exception)
    assert issubclass(tacit.InterfaceError, tacit.Error)
    assert issubclass(tacit.DatabaseError, tacit.Error)
    for name in ("DataError", "OperationalError", "IntegrityError", "InternalError", "ProgrammingError"):
        assert issubclass(getattr(tacit, name), tacit.DatabaseError)


def test_exceptions_are_attributes_of_the_connection(con: Connection) -> None:
    for name in ["Warning", "Error", "InterfaceError", "DatabaseError", "DataError", "OperationalError"]:
        assert getattr(con, name) is getattr(tacit, name)
    for name in ["IntegrityError", "InternalError", "ProgrammingError", "NotSupportedError"]:
        assert getattr(con, name) is getattr(tacit, name)


def test_type_objects_and_constructors() -> None:
    assert tacit.Date(2024, 1, 2) == dt.date(2024, 1, 2)
    assert tacit.Time(1, 2, 3) == dt.time(1, 2, 3)
    assert tacit.Timestamp(2024, 1, 2, 3, 4, 5) == dt.datetime(2024, 1, 2, 3, 4, 5)
    assert tacit.DateFromTicks(0) == dt.date.fromtimestamp(0)
    assert tacit.TimeFromTicks(0) == dt.datetime.fromtimestamp(0).time()
    assert tacit.TimestampFromTicks(0) == dt.datetime.fromtimestamp(0)
    assert tacit.Binary(b"x") == b"x"
    assert tacit.NUMBER == "DOUBLE"
    assert tacit.NUMBER != "VARCHAR"
    assert tacit.DATETIME == "DATE"
    assert len({tacit.STRING, tacit.BINARY, tacit.NUMBER, tacit.DATETIME, tacit.ROWID}) == 5


def test_before_execute(con: Connection) -> None:
    cur = con.cursor()
    assert cur.description is None
    assert cur.rowcount == -1
    assert cur.arraysize == 1
    for fetch in (cur.fetchone, cur.fetchmany, cur.fetchall, cur.nextset, cur.df):
        with pytest.raises(tacit.Error):
            fetch()


def test_description_and_fetch(con: Connection) -> None:
    cur = con.cursor()
    assert cur.execute(GROUPS, epsilon=0.5) is cur
    assert cur.description is not None
    assert [d[0] for d in cur.description] == ["state", "n"]
    assert all(len(d) == 7 for d in cur.description)
    assert cur.description[0][1] == tacit.STRING
    assert cur.description[1][1] == tacit.NUMBER
    assert cur.rowcount == 6
    first = cur.fetchone()
    assert first is not None
    assert first[0] == "NY"
    assert type(first[1]) is float
    assert len(cur.fetchmany()) == 1
    assert len(cur.fetchmany(2)) == 2
    rest = cur.fetchall()
    assert [row[0] for row in rest] == ["other", None]
    assert cur.fetchone() is None
    assert cur.fetchmany(5) == []
    with pytest.raises(tacit.ProgrammingError, match="number of rows"):
        cur.fetchmany("all")  # type: ignore[arg-type]
    assert cur.fetchall() == []


def test_iteration_and_arraysize(con: Connection) -> None:
    cur = con.cursor()
    cur.execute(GROUPS, epsilon=0.5)
    cur.arraysize = 4
    assert len(cur.fetchmany()) == 4
    assert [row[0] for row in cur] == ["other", None]


def test_nextset_walks_the_script(con: Connection) -> None:
    cur = con.cursor()
    cur.execute(f"SELECT count(*) FROM visits; {GROUPS};", epsilon=0.5)
    assert cur.rowcount == 1
    assert cur.nextset() is True
    assert cur.rowcount == 6
    assert list(cur.df().columns) == ["state", "n"]
    assert cur.nextset() is None
    assert float(con.budget.spent.epsilon) == 0.5


def test_executemany_is_one_release(con: Connection) -> None:
    cur = con.cursor()
    cur.executemany(COUNT, [(18,), (40,), (65,)], epsilon=0.5)
    seen = [cur.fetchall()]
    while cur.nextset():
        seen.append(cur.fetchall())
    assert len(seen) == 3
    assert float(con.budget.spent.epsilon) == 0.5


def test_executemany_numbered(con: Connection) -> None:
    sql = "SELECT count(*) FROM visits WHERE age < $2 AND age >= $1"
    con.cursor().executemany(sql, [(0, 18), (18, 40)], epsilon=0.5)
    plain = [sql.replace("$1", young).replace("$2", old) for young, old in (("0", "18"), ("18", "40"))]
    assert not any(con.answer(plain, epsilon=0.5).cost), "the same batch, written out, is the same release"


def test_executemany_named(con: Connection) -> None:
    cur = con.cursor()
    sql = "SELECT count(*) FROM visits WHERE age < :old AND age >= $young"
    cur.executemany(sql, [{"young": 0, "old": 18}, {"young": 18, "old": 40}], epsilon=0.5)
    plain = con.answer(
        ["SELECT count(*) FROM visits WHERE age < 18 AND age >= 0", sql.replace(":old", "40").replace("$young", "18")],
        epsilon=0.5,
    )
    assert not any(plain.cost), "the same batch, written out, is the same release"
    with pytest.raises(tacit.ProgrammingError, match="young"):
        cur.executemany("SELECT count(*) FROM visits WHERE age < :old", [{"young": 0, "old": 18}], epsilon=0.5)


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        ("SELECT count(*) FROM visits WHERE age < ? AND state = ?", (40, "NY")),
        ("SELECT count(*) FROM visits WHERE age < :a AND state = :s", {"a": 40, "s": "NY"}),
        ("SELECT count(*) FROM visits WHERE age < $a AND state = $s", {"a": 40, "s": "NY"}),
    ],
)
def test_parameters(con: Connection, sql: str, params: object) -> None:
    literal = "SELECT count(*) FROM visits WHERE age < 40 AND state = 'NY'"
    con.cursor().execute(sql, params, epsilon=0.5)  # type: ignore[arg-type]
    assert not any(con.answer(literal, epsilon=0.5).cost)


def test_closed_cursor(con: Connection) -> None:
    with con.cursor() as cur:
        cur.execute("SELECT count(*) FROM visits", epsilon=0.5)
    cur.close()
    for use in (cur.fetchall, lambda: cur.execute("SELECT count(*) FROM visits", epsilon=0.1), lambda: iter(cur)):
        with pytest.raises(tacit.InterfaceError, match="closed"):
            use()


def test_closed_connection(connect: Connect) -> None:
    with connect() as con:
        cur = con.cursor()
        cur.execute("SELECT count(*) FROM visits", epsilon=0.5)
        con.commit()
        con.rollback()
        assert float(con.budget.spent.epsilon) == 0.5, "what was released is not taken back"
    con.close()
    for use in (con.cursor, con.commit, con.rollback, cur.fetchall, lambda: con.budget):
        with pytest.raises(tacit.InterfaceError, match="closed"):
            use()
    with pytest.raises(tacit.InterfaceError, match="closed"):
        con.answer("SELECT count(*) FROM visits", epsilon=0.1)
    assert "closed" in repr(con)


def test_setsizes_do_nothing(con: Connection) -> None:
    cur = con.cursor()
    cur.setinputsizes([1])
    cur.setoutputsize(10)
    cur.setoutputsize(10, 0)


def test_a_failed_execute_leaves_no_result(con: Connection) -> None:
    cur = con.cursor()
    cur.execute("SELECT count(*) FROM visits", epsilon=0.5)
    with pytest.raises(tacit.ProgrammingError):
        cur.execute("SELECT nonsense FROM nowhere", epsilon=0.5)
    with pytest.raises(tacit.Error):
        cur.fetchall()
    assert cur.description is None


def test_pandas_read_sql(con: Connection) -> None:
    con.spend = 0.25
    # pandas warns for every DB-API connection that is neither sqlite3's nor SQLAlchemy's, and then reads it.
    with pytest.warns(UserWarning, match="pandas only supports SQLAlchemy"):
        frame = pd.read_sql(GROUPS, con)
    assert list(frame.columns) == ["state", "n"]
    assert frame["n"].dtype == "float64"
    assert len(frame) == 6
    assert float(con.budget.spent.epsilon) == 0.25
    with pytest.warns(UserWarning, match="pandas only supports SQLAlchemy"):
        frame = pd.read_sql(COUNT, con, params=(40,))
    assert len(frame) == 1


def test_no_spend_is_an_error_that_says_so(con: Connection) -> None:
    with pytest.raises(tacit.PrivacyParameterError, match=r"con\.spend = 0\.1"):
        con.cursor().execute("SELECT count(*) FROM visits")


def test_threads_share_a_connection(con: Connection) -> None:
    errors: list[BaseException] = []

    def ask(limit: int) -> None:
        try:
            con.cursor().execute(COUNT, (limit,), epsilon=0.1).fetchall()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=ask, args=(limit,)) for limit in range(10, 18)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert float(con.budget.spent.epsilon) == pytest.approx(0.8)
