"""The order of things: charge, read, draw, store, return; and what a crash or a race at any point can show."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
from support import seams
from tacit import Connection

Connect = Callable[..., Connection]
SQL = "SELECT count(*) FROM visits WHERE age < 40"


def value(answers: tacit.Answers) -> float:
    return float(answers[0].df.iloc[0, 0])


class TestReuse:
    def test_the_same_batch_again(self, con: Connection, watch: Any) -> None:
        first, second = con.answer(SQL, epsilon=0.5), con.answer(SQL, epsilon=0.5)
        assert value(first) == value(second)
        assert (second.cost.epsilon, second.epsilon) == (0, Decimal("0.5"))
        assert con.budget.spent.epsilon == Decimal("0.5")
        assert watch.reads == 1

    def test_the_same_meaning_in_other_words(self, con: Connection, watch: Any) -> None:
        con.answer(SQL, epsilon=0.5)
        con.answer("select COUNT(*) as n from Visits where not (AGE >= 40)", epsilon=0.25)
        assert watch.reads == 1

    def test_a_finer_answer_is_bought_and_combined(self, con: Connection, watch: Any) -> None:
        little = Decimal("0.000001")  # so much noise that two draws are not the same integer
        coarse, fine = con.answer(SQL, epsilon=little), con.answer(SQL, epsilon=2 * little)
        assert con.budget.spent.epsilon == 3 * little
        assert fine.cost.epsilon == 2 * little
        assert fine.epsilon == 3 * little
        alone = con.explain(SQL, epsilon=2 * little).alternative_stderr["results"][0]
        assert fine.df()["stderr"][0] < alone
        assert value(coarse) != value(fine)
        again = con.answer(SQL, epsilon=2 * little)
        assert value(again) == value(fine)
        assert watch.reads == 2

    def test_across_connections(self, connect: Connect) -> None:
        assert value(connect().answer(SQL, epsilon=0.5)) == value(connect().answer(SQL, epsilon=0.5))

    def test_more_cells_than_other_releases_may_have(self, tmp_path: Path) -> None:
        """A batch's own release answers it, whatever its size: 2,100 questions over 2,100 cells."""
        path = tmp_path / "wide.duckdb"
        with duckdb.connect(str(path)) as database:
            database.execute("CREATE TABLE t AS SELECT i AS a FROM range(2100) r(i)")
        columns = {"a": {"min": 0, "max": 2099, "not_null": True}}
        policy = {"budget": {"epsilon": 100}, "tables": {"t": {"columns": columns}}}
        con = tacit.connect(str(path), policy=policy)
        answers = con.answer("SELECT a, count(*) AS c FROM t GROUP BY a", epsilon=50)
        assert answers[0].df["c"].tolist() == pytest.approx([1.0] * 2100, abs=1e-6)

    def test_weights_are_part_of_the_batch(self, con: Connection) -> None:
        batch = [f"SELECT count(*) FROM visits WHERE age < {i}" for i in range(10, 90, 10)]
        con.answer(batch, epsilon=0.5)
        weighed = con.answer(batch, epsilon=0.5, weights=[1] * 7 + [500])
        assert any(weighed.cost), "what is known errs more where it matters now"

    def test_a_new_version_is_a_new_batch(self, connect: Connect, policy: dict[str, Any]) -> None:
        policy["tables"]["visits"]["version"] = "1"
        connect(policy=policy).answer(SQL, epsilon=0.5)
        assert not any(connect(policy=policy).answer(SQL, epsilon=0.5).cost)
        policy["tables"]["visits"]["version"] = "2"
        assert any(connect(policy=policy).answer(SQL, epsilon=0.5).cost)

    def test_a_changed_file_is_a_new_version(self, tmp_path: Path, connect: Connect) -> None:
        path = tmp_path / "t.parquet"
        with duckdb.connect() as raw:
            raw.execute("CREATE TABLE t AS SELECT i AS a FROM range(1000) AS r(i)")
            raw.execute(f"COPY t TO '{path}' (FORMAT parquet)")
            con = connect(path, policy=None, epsilon=100)
            con.answer("SELECT count(*) FROM t WHERE a < 500", epsilon=50)
            raw.execute("DELETE FROM t WHERE a >= 10")
            raw.execute(f"COPY t TO '{path}' (FORMAT parquet)")
            answers = con.answer("SELECT count(*) FROM t WHERE a < 500", epsilon=50)
        assert any(answers.cost)
        assert abs(value(answers) - 10) < 5


class TestNothingIsReadUnpaid:
    def test_explain_reads_nothing(self, con: Connection, watch: Any, batch: list[str]) -> None:
        con.explain(batch, epsilon=0.5)
        con.explain(batch, error=5)
        con.explain("SELECT ward, avg(cost) FROM visits GROUP BY ward", epsilon=0.5, delta=1e-7)
        assert watch.reads == 0
        assert con.budget.spent.epsilon == 0

    def test_refusals_read_nothing(self, con: Connection, watch: Any) -> None:
        for sql, options in [
            (SQL, {"epsilon": 11}),
            (SQL, {"epsilon": -1}),
            (SQL, {}),
            ("SELECT count(*) FROM visit", {"epsilon": 1}),
            ("SELECT string_agg(state) FROM visits", {"epsilon": 1}),
            ("SELECT avg(age) FROM visits", {"error": 1}),
            (SQL, {"epsilon": 1, "strategy": "magic"}),
            (SQL, {"epsilon": 1, "weights": [1, 2]}),
        ]:
            with pytest.raises(tacit.Error):
                con.answer(sql, **options)
        assert watch.reads == 0
        assert con.budget.spent.epsilon == 0

    def test_only_the_generated_scan_is_executed(self, clinic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Watch the SQL itself that reaches the database, from the opening of the file on."""
        ran: list[str] = []
        real = duckdb.connect

        class Spy:
            def __init__(self, inner: Any) -> None:
                self._inner = inner

            def cursor(self) -> Spy:
                return Spy(self._inner.cursor())

            def execute(self, sql: str, *args: Any) -> Any:
                ran.append(sql)
                return self._inner.execute(sql, *args)

            def close(self) -> None:
                self._inner.close()

            def interrupt(self) -> None:
                self._inner.interrupt()

            def query_progress(self) -> float:
                return float(self._inner.query_progress())

            def __enter__(self) -> Spy:
                return self

            def __exit__(self, *_: Any) -> None:
                self.close()

        def spied(database: str = ":memory:", *args: Any, **options: Any) -> Any:
            inner = real(database, *args, **options)
            return Spy(inner) if database == str(clinic) else inner

        monkeypatch.setattr(duckdb, "connect", spied)
        with tacit.connect(clinic, epsilon=1) as con:
            con.explain(SQL, epsilon=0.5)
            for refused in ({"epsilon": 2}, {"epsilon": 0}, {"error": -1}):
                with pytest.raises(tacit.Error):
                    con.answer(SQL, **refused)
            assert ran, "the spy is in place"
            assert not [sql for sql in ran if '"visits"' in sql], "the schema only, and rows of our own"
            con.answer(SQL, epsilon=0.5)
            assert len([sql for sql in ran if '"visits"' in sql]) == 1
            con.answer(SQL, epsilon=0.5)
            assert len([sql for sql in ran if '"visits"' in sql]) == 1

    def test_order_of_steps(self, con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[str] = []
        for name in ("charge", "count", "laplace", "store"):
            seams.watch(monkeypatch, name, lambda *_, _name=name, **__: seen.append(_name))
        con.answer(SQL, epsilon=0.5)
        assert seen == ["charge", "count", "laplace", "store"]


class TestCrash:
    @pytest.mark.parametrize("step", ["count", "laplace", "store"])
    def test_charged_and_never_released(
        self, step: str, con: Connection, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def crash(*_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            seams.replace(patch, step, crash)
            with pytest.raises(KeyboardInterrupt):
                con.answer(SQL, epsilon=0.5)
        assert con.budget.spent.epsilon == Decimal("0.5"), "the charge stands"
        answers = connect().answer(SQL, epsilon=0.5)
        assert not any(answers.cost), "and the repetition is free"
        assert con.budget.spent.epsilon == Decimal("0.5")
        assert value(con.answer(SQL, epsilon=0.5)) == value(answers)

    def test_what_was_paid_is_used_in_full(self, con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            seams.replace(patch, "laplace", lambda *_, **__: 1 / 0)
            with pytest.raises(tacit.OperationalError, match="was charged"):
                con.answer(SQL, epsilon=2)
        answers = con.answer(SQL, epsilon=0.5)
        assert (answers.cost.epsilon, answers.epsilon) == (0, 2)
        assert answers.df()["stderr"][0] == pytest.approx(con.explain(SQL, epsilon=2).stderr[0], rel=1e-6)

    def test_killed_between_charge_and_store(self, clinic: Path, connect: Connect) -> None:
        code = (
            "import os, pytest, signal, sys, tacit\n"
            "from support import seams\n"
            "kill = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
            "seams.replace(pytest.MonkeyPatch(), 'laplace', kill)\n"
            f"tacit.connect(sys.argv[1], epsilon=10).answer({SQL!r}, epsilon=0.5)\n"
        )
        command = [sys.executable, "-c", code, str(clinic)]
        done = subprocess.run(command, check=False, capture_output=True, cwd=Path(__file__).parents[1])
        assert done.returncode == -signal.SIGKILL, done.stderr
        con = connect(policy=None, epsilon=10)
        assert con.budget.spent.epsilon == Decimal("0.5")
        assert not any(con.answer(SQL, epsilon=0.5).cost)

    def test_a_race_shows_one_release(self, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
        """Two processes that charge the same batch at once share the charge, so they must share the noise."""
        slow, fast = connect(), connect()
        real = seams.real("laplace")
        won: list[tacit.Answers] = []

        def overtaken(*args: Any, **options: Any) -> Any:
            monkeypatch.undo()
            won.append(fast.answer(SQL, epsilon=0.5))
            return real(*args, **options)

        seams.replace(monkeypatch, "laplace", overtaken)
        lost = slow.answer(SQL, epsilon=0.5)
        assert value(lost) == value(won[0])
        assert slow.budget.spent.epsilon == Decimal("0.5")


class TestSealed:
    """After the charge, an error says nothing: not in its text, not in what it was raised from."""

    def test_errors_are_constant(self, con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        def leak(*_: Any) -> Any:
            raise ValueError("Could not convert string 'secret-row' to INT32")

        seams.replace(monkeypatch, "count", leak)
        with pytest.raises(tacit.OperationalError) as caught:
            con.answer(SQL, epsilon=0.5)
        error: BaseException | None = caught.value
        while error is not None:
            assert "secret" not in str(error)
            error = error.__cause__ or error.__context__

    def test_noise_errors_too(self, con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        def leak(*_: Any, **__: Any) -> Any:
            raise OverflowError("123456 is too large")

        seams.replace(monkeypatch, "laplace", leak)
        with pytest.raises(tacit.OperationalError, match="nothing was released") as caught:
            con.answer(SQL, epsilon=0.5)
        assert "123456" not in str(caught.value)
        assert caught.value.__context__ is None


def test_keys_that_make_no_frame_are_not_charged(con: Connection, watch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seams.replace(monkeypatch, "key frame", lambda *_: 1 / 0)
    with pytest.raises(tacit.InternalError, match="ZeroDivisionError"):
        con.answer("SELECT sex, count(*) FROM visits GROUP BY sex", epsilon=1)
    assert con.budget.spent.epsilon == watch.reads == 0


def test_several_tables_in_one_release(con: Connection, watch: Any) -> None:
    batch = ["SELECT count(*) FROM visits", "SELECT count(*) FROM labs", "SELECT count(*) FROM visits WHERE sex"]
    plan = con.explain(batch, epsilon=2)
    answers = con.answer(batch, epsilon=2)
    assert watch.reads == 2
    assert con.budget.spent.epsilon == 2
    np.testing.assert_allclose(answers.df()["stderr"], plan.stderr, rtol=1e-6)
    alone = con.explain(batch[1], epsilon=2).stderr[0]
    assert plan.stderr[1] > alone, "one patient may be in both tables, so the tables share the budget"
    exact = np.array([f.iloc[0, 0] for f in tacit.testing.exact_answers(con, batch)])
    assert exact.tolist()[:2] == [400, 90]
    assert (np.abs(answers.df()["value"] - exact) < 30 * plan.stderr).all()


def test_no_row_shows_anywhere(con: Connection, clinic: Path) -> None:
    """Values that only the rows hold are in no error, repr, plan or ledger."""
    batch = ["SELECT count(*) FROM labs WHERE kind = 'blood'", "SELECT count(kind) FROM labs"]
    shown = [repr(con), str(con.explain(batch, epsilon=1)), repr(vars(con)), str(con.budget)]
    answers = con.answer(batch, epsilon=1)
    shown += [repr(answers), str(answers), repr(answers[0]), repr(answers.__dict__)]
    for sql in (
        "SELECT kind, count(*) FROM labs GROUP BY kind",
        "SELECT kind FROM labs",
        "SELECT sum(kind) FROM labs",
        "SELECT count(*) FROM labs WHERE kind = 3",
        "SELECT count(*) FROM labs WHERE CAST(kind AS INTEGER) = 3",
        "SELECT count(*) FROM labs WHERE error(kind) IS NULL",
    ):
        for call in (con.explain, con.answer):
            try:
                shown.append(str(call(sql, epsilon=0.1)))
            except tacit.Error as error:
                shown += [str(error), repr(error), repr(error.__context__)]
    for file in clinic.parent.glob("*.ledger*"):
        shown.append(file.read_bytes().decode("latin-1"))
    plans = [*clinic.parent.rglob("*.plan")]
    shown += [file.read_bytes().decode("latin-1") for file in plans]
    assert plans
    assert len(shown) > 12
    assert not any("secret" in text for text in shown)


@pytest.mark.parametrize("accounting", ["sum", "zcdp"])
def test_spread_agrees_with_the_predicted_error(connect: Connect, policy: dict[str, Any], accounting: str) -> None:
    """Both kinds of noise, Laplace and Gauss. A release of many cells is many draws: 25 answers hold 1,800 errors of
    one cell, and 450 of a sum of four.

    The variance estimate of n errors has a relative standard error of √((κ−1)/n), with κ = 6 for one Laplace variable
    and 3.75 for a sum of four; five of them are allowed. Two thirds and one and a half of the scale are far outside.
    """
    batch = [
        "SELECT state, sex, ward, count(*) AS n FROM visits GROUP BY ALL",
        "SELECT state, sex, count(*) AS n FROM visits GROUP BY ALL",
    ]
    how: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-7 if accounting == "zcdp" else 0, "strategy": "identity"}
    policy |= {"accounting": accounting, "budget": {"epsilon": 100.0, "delta": 1e-6}}
    errors = []
    for version in range(25):
        policy["tables"]["visits"]["version"] = f"{version}"  # so that no answer is combined from two releases
        con = connect(policy=policy)
        answers = con.answer(batch, **how)
        assert answers.cost.epsilon > 0
        errors.append(answers.df()["value"].to_numpy())
    exact = np.concatenate([f["n"].to_numpy() for f in tacit.testing.exact_answers(con, batch)])
    policy["tables"]["visits"]["version"] = "another"
    normal = (np.array(errors) - exact) / connect(policy=policy).explain(batch, **how).df()["stderr"].to_numpy()
    for z, kurtosis in ((normal[:, :72], 6.0), (normal[:, 72:], 3.75)):
        assert z.size == (1800 if kurtosis == 6.0 else 450)
        seen, allowed = np.sqrt(np.mean(z**2)), 5 * np.sqrt((kurtosis - 1) / z.size) / 2
        assert abs(seen - 1) < allowed
        for wrong in (2 / 3, 3 / 2):
            assert abs(seen / wrong - 1) > allowed
        assert abs(z.mean()) < 6 / np.sqrt(z.size), "no bias"
