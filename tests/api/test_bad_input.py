"""Bad input: one exception of the tree each, a hint that can be pasted, nothing charged, no foreign text."""

from __future__ import annotations

import inspect
import math
import traceback
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
import tacit
from support import seams
from tacit import Connection

Connect = Callable[..., Connection]
COUNT = "SELECT count(*) FROM visits"

BAD_SQL = [
    ("SELEC count(*) FROM visits", "SqlSyntaxError"),
    ("SELECT count(* FROM visits", "SqlSyntaxError"),
    ("SELECT count(*) FROM visits WHERE state = 'NY", "SqlSyntaxError"),
    ("SELECT count(*) FROM visit", "UnknownNameError"),
    ("SELECT count(agee) FROM visits", "UnknownNameError"),
    ("SELECT sum(bill) FROM visits", "DomainError"),
    ("SELECT bill, count(*) FROM visits GROUP BY bill", "DomainError"),
    ("SELECT string_agg(state) FROM visits", "UnsupportedSqlError"),
    ("DROP TABLE visits", "UnsupportedSqlError"),
    ("SELECT count(*) FROM visits WHERE age < ?", "ParameterError"),
    ("SELECT * FROM visits", "UnsupportedSqlError"),
]


@pytest.fixture
def con(untouched: Connection) -> Connection:
    """Shared by the tests here: none of them may move the budget."""
    return untouched


def check(error: tacit.Error) -> None:
    """Nothing of Python or DuckDB shows."""
    shown = "".join(traceback.format_exception(error))
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    assert "During handling" not in shown
    for foreign in ("Binder Error", "Parser Error", "Conversion Error", "sqlglot.errors", "duckdb.", "KeyError"):
        assert foreign not in str(error)


@pytest.mark.parametrize(("sql", "kind"), BAD_SQL)
@pytest.mark.parametrize("ask", ["answer", "explain", "execute"])
def test_bad_sql(sql: str, kind: str, ask: str, con: Connection, watch: Any) -> None:
    call = con.cursor().execute if ask == "execute" else getattr(con, ask)
    with pytest.raises(tacit.SqlError) as caught:
        call(sql, epsilon=0.5)
    assert type(caught.value).__name__ == kind
    assert caught.value.hint
    assert "^" in str(caught.value)
    check(caught.value)
    assert watch.reads == 0
    assert con.budget.spent.epsilon == 0


@pytest.mark.parametrize("batch", ["", " ; ", [], [""], "-- nothing"])
def test_empty_batch(batch: Any, con: Connection) -> None:
    with pytest.raises(tacit.SqlError, match="empty"):
        con.answer(batch, epsilon=0.5)


@pytest.mark.parametrize("batch", [None, 3, b"SELECT 1", {"a": 1}, [3], [None]])
def test_not_a_batch(batch: Any, con: Connection) -> None:
    with pytest.raises(tacit.ProgrammingError, match="batch is one SQL string"):
        con.answer(batch, epsilon=0.5)


@pytest.mark.parametrize("params", [(), (1, 2), {"a": 1}, "x", 3])
def test_wrong_parameters(params: Any, con: Connection) -> None:
    with pytest.raises(tacit.ProgrammingError) as caught:
        con.answer("SELECT count(*) FROM visits WHERE age < ?", params, epsilon=0.5)
    check(caught.value)
    assert con.budget.spent.epsilon == 0


def test_half_a_surrogate_pair_is_no_text(con: Connection) -> None:
    for sql, params in (("state = '\ud800'", None), ("state = ?", ["\ud800"]), ("state = :s", {"s": "\ud800"})):
        with pytest.raises(tacit.ProgrammingError, match="surrogate") as caught:
            con.answer(f"{COUNT} WHERE {sql}", params, epsilon=0.5)
        check(caught.value)


BAD_EPSILON = [0, -1, -0.0, math.nan, math.inf, "0.5", "", True, b"1", [1], 1j, Decimal("NaN"), Decimal(0), np.nan]


@pytest.mark.parametrize("epsilon", BAD_EPSILON, ids=repr)
def test_bad_epsilon(epsilon: Any, con: Connection) -> None:
    for call in (con.answer, con.explain, con.cursor().execute):
        with pytest.raises(tacit.PrivacyParameterError) as caught:
            call(COUNT, epsilon=epsilon)
        check(caught.value)
    assert con.budget.spent.epsilon == 0


def test_missing_epsilon(con: Connection) -> None:
    for call in (con.answer, con.explain, con.cursor().execute):
        with pytest.raises(tacit.PrivacyParameterError, match=r"epsilon=0\.5"):
            call(COUNT)


@pytest.mark.parametrize("epsilon", [1, 0.5, Decimal("0.5"), np.float64(0.5), np.int64(1)])
def test_numbers_of_all_kinds(epsilon: Any, connect: Connect) -> None:
    assert float(connect().answer(COUNT, epsilon=epsilon).epsilon) == float(epsilon)


@pytest.mark.parametrize("epsilon", BAD_EPSILON, ids=repr)
def test_bad_epsilon_of_a_connection(epsilon: Any, connect: Connect) -> None:
    with pytest.raises(tacit.PrivacyParameterError):
        connect(epsilon=epsilon)
    with pytest.raises(tacit.PrivacyParameterError):
        connect(spend=epsilon)


@pytest.mark.parametrize("sets", [3, None, [3], [None], ["ab"], [{"x": 1}], [(1, 2)], [(1, 2), ()], []], ids=repr)
def test_bad_sets_of_parameters(sets: Any, con: Connection) -> None:
    with pytest.raises(tacit.ProgrammingError) as caught:
        con.cursor().executemany("SELECT count(*) FROM visits WHERE age < ?", sets, epsilon=1)
    check(caught.value)
    assert con.budget.spent.epsilon == 0


def test_a_defect_below_is_an_error_of_the_tree(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    seams.replace(monkeypatch, "compile", lambda *_, **__: [][0])
    with pytest.raises(tacit.InternalError, match="IndexError") as caught:
        con.answer(COUNT, epsilon=1)
    check(caught.value)
    assert con.budget.spent.epsilon == 0


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 1, "delta": -1e-9},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": "0"},
        {"epsilon": 1, "delta": math.nan},
        {"epsilon": 1, "confidence": 1},
        {"epsilon": 1, "confidence": 0},
        {"epsilon": 1, "confidence": "95%"},
        {"epsilon": 1, "error": 10},
        {"error": 0},
        {"error": -1},
        {"error": math.inf},
        {"error": "10"},
    ],
    ids=repr,
)
def test_bad_numbers(options: dict[str, Any], con: Connection) -> None:
    with pytest.raises(tacit.PrivacyParameterError) as caught:
        con.answer(COUNT, **options)
    check(caught.value)
    assert con.budget.spent.epsilon == 0


@pytest.mark.parametrize(
    "options",
    [
        {"weights": [1, 2]},
        {"weights": [0]},
        {"weights": [-1]},
        {"weights": [math.nan]},
        {"weights": []},
        {"weights": "1"},
        {"weights": 1},
        {"weights": ["a"]},
        {"strategy": "magic"},
        {"strategy": 3},
        {"strategy": ["lrm"]},
    ],
    ids=repr,
)
def test_bad_weights_and_strategies(options: dict[str, Any], con: Connection) -> None:
    with pytest.raises(tacit.ProgrammingError) as caught:
        con.answer(COUNT, epsilon=1, **options)
    check(caught.value)
    assert con.budget.spent.epsilon == 0


def test_error_of_an_average_is_refused_with_a_hint(con: Connection) -> None:
    with pytest.raises(tacit.PrivacyParameterError, match="SUM and COUNT"):
        con.explain("SELECT avg(cost) FROM visits", error=10)


def test_not_a_database(tmp_path: Path) -> None:
    text = tmp_path / "notes.duckdb"
    text.write_text("these are notes, secret ones")
    for database in (text, str(text), tmp_path, tmp_path / "missing.duckdb", "x" * 5000, 3, None, b"x"):
        with pytest.raises(tacit.OperationalError) as caught:
            tacit.connect(database)
        assert "secret" not in str(caught.value)
        check(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.duckdb"]


def test_csv_needs_declared_types(tmp_path: Path, connect: Connect) -> None:
    path = tmp_path / "people.csv"
    path.write_text("name,age\nann,31\nbob,x\n")
    with pytest.raises(tacit.PolicyError, match="type"):
        connect(path, policy=None, epsilon=1)
    types = {"name": {"type": "VARCHAR"}, "age": {"type": "INTEGER"}}
    con = connect(path, policy={"tables": {"people": {"columns": types}}}, epsilon=100)
    assert tacit.testing.exact_answers(con, "SELECT count(age) FROM people")[0].iloc[0, 0] == 1
    types["age"] = {"type": "INTEGER); DROP TABLE x; --"}
    with pytest.raises(tacit.PolicyError, match="type"):
        connect(path, policy={"tables": {"people": {"columns": types}}}, epsilon=100)


def test_limits_of_the_policy(connect: Connect, policy: dict[str, Any]) -> None:
    con = connect(policy=policy | {"limits": {"statements": 2}})
    with pytest.raises(tacit.SqlError, match="2 statements"):
        con.answer([COUNT] * 3, epsilon=1)


def test_ledger_is_a_path(connect: Connect) -> None:
    with pytest.raises(tacit.InterfaceError, match="path"):
        connect(ledger=3)


def test_execute_takes_text(con: Connection) -> None:
    with pytest.raises(tacit.ProgrammingError, match=r"con\.answer"):
        con.cursor().execute([COUNT], epsilon=1)  # type: ignore[arg-type]


WEIGHED = (
    ["SELECT count(*) FROM visits WHERE age < 40", "SELECT count(*) FROM visits WHERE age < 60"],
    ["SELECT ward, count(*) FROM visits GROUP BY ward", "SELECT sex, count(*) FROM visits GROUP BY sex"],
    ["SELECT sum(cost) FROM visits", "SELECT count(*) FROM visits WHERE age < 50"],
)


@pytest.mark.parametrize("weights", [[1e10, 1], [1e100, 1], [1, 1e150], [1e300, 1], [1, 1e-300], [10**400, 1]])
def test_weights_too_far_apart_are_refused(weights: list[float], untouched: Connection) -> None:
    for batch in WEIGHED:
        with pytest.raises(tacit.ProgrammingError, match=r"hint: (bring them closer|weights=)"):
            untouched.explain(batch, epsilon=1, weights=weights)


@pytest.mark.parametrize("weights", [[1e9, 1], [1, 1e9], [1e300, 1e299], [1e-300, 1e-292]])
@pytest.mark.parametrize("batch", WEIGHED)
def test_weights_of_any_size_are_fine_within_the_widest_ratio(
    batch: list[str], weights: list[float], connect: Connect
) -> None:
    con = connect()
    plan = con.explain(batch, epsilon=0.5, weights=weights)
    assert con.answer(batch, epsilon=0.5, weights=weights).cost == plan.cost


def test_only_the_ratio_of_weights_counts(untouched: Connection) -> None:
    plans = [untouched.explain(WEIGHED[0], epsilon=1, weights=[unit, 10 * unit]) for unit in (1, 1e-200, 2.0**60)]
    assert all((plan.stderr == plans[0].stderr).all() for plan in plans)


@pytest.mark.parametrize("name", ["explain", "answer"])
def test_arguments_that_do_not_exist_are_named(name: str, con: Connection) -> None:
    call = getattr(con, name)
    with pytest.raises(TypeError, match=rf"Connection\.{name}\(\) got an unexpected keyword argument 'foo'"):
        call(COUNT, epsilon=1, foo=1)
    with pytest.raises(TypeError, match=rf"Connection\.{name}\(\) missing a required argument: 'batch'"):
        call()
    assert list(inspect.signature(call).parameters)[:3] == ["batch", "params", "epsilon"]
    assert set(get_type_hints(getattr(Connection, name))) >= {"batch", "epsilon", "refresh", "return"}


def test_an_error_comes_without_the_frames_behind_the_door(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says itself what to write; a defect of tacit keeps its frames, for whoever mends it."""

    def frames() -> list[str]:
        with pytest.raises(tacit.Error) as caught:
            con.explain("SELECT count(*) FROM visits WHERE agee < 3", epsilon=1)
        error = caught.value
        assert error._render_traceback_() == [f"UnknownNameError: {error}"]
        return [Path(frame.filename).name for frame in traceback.extract_tb(error.__traceback__)]

    assert frames() == ["test_bad_input.py"]
    monkeypatch.setenv("TACIT_TRACEBACK", "1")
    assert "compile.py" in frames()
    monkeypatch.setattr("tacit.pipeline.explain", lambda *_: 1 // 0)
    with pytest.raises(tacit.InternalError, match="ZeroDivisionError") as caught:
        con.explain(COUNT, epsilon=1)
    assert "1 // 0" in "".join(caught.value._render_traceback_())
