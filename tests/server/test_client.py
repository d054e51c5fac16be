"""The same Python: a connection to a server gives what the embedded one gives, frames, plans and errors alike."""

from __future__ import annotations

import datetime as dt
import pickle
import warnings
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest
import tacit
from pandas.testing import assert_frame_equal
from support.serving import Serving
from tacit import Connection, wire_errors
from tacit.cli.program import app
from tacit.errors import SqlError
from typer.testing import CliRunner

BATCH = [
    "SELECT state, count(*) AS n, avg(cost) AS cost FROM visits GROUP BY state",
    "SELECT ward, sex, count(*) AS n FROM visits WHERE nights >= $1 GROUP BY ward, sex ORDER BY n DESC LIMIT 4",
    "SELECT count(*) FROM visits WHERE day < $2",
    "SELECT median(nights) AS half, max(day) AS latest, mode(sex) AS usual FROM visits",
    "SELECT state, n, rank() OVER (ORDER BY n DESC) AS r FROM (SELECT state, count(*) AS n FROM visits GROUP BY state)",
    "SELECT id, name, founded, rate FROM hospitals",
]
PARAMS = [3, dt.date(2024, 1, 5)]


@pytest.fixture(scope="module")
def con(server: Serving) -> Iterator[Connection]:
    with tacit.connect(server.address, token=server.token("ana")) as connection:
        yield connection


@pytest.fixture(scope="module")
def embedded(server: Serving) -> Iterator[Connection]:
    """The same analyst beside the database: what the server has released is free for them."""
    with tacit.connect(server.place.database, policy=server.place.policy, analyst="ana") as connection:
        yield connection


def test_answers_and_plans_are_those_of_the_embedded_connection(con: Connection, embedded: Connection) -> None:
    here, there = embedded.explain(BATCH, PARAMS, epsilon=2), con.explain(BATCH, PARAMS, epsilon=2)
    assert str(there) == str(here)
    assert repr(there) == repr(here)
    assert_frame_equal(there.df(), here.df())
    assert (there.cost, there.alternatives, there.gap, len(there.cells)) == (
        here.cost,
        here.alternatives,
        here.gap,
        len(here.cells),
    )
    before = con.budget
    remote = con.answer(BATCH, PARAMS, epsilon=2)
    assert con.budget.spent.epsilon - before.spent.epsilon == remote.cost.epsilon == 2
    local = embedded.answer(BATCH, PARAMS, epsilon=2)
    assert local.cost.epsilon == 0
    for one, other in zip(remote, local, strict=True):
        assert_frame_equal(one.df, other.df)
        assert (one.rows(), one.types, one.sql, one.labels, one.notes) == (
            other.rows(),
            other.types,
            other.sql,
            other.labels,
            other.notes,
        )
    assert_frame_equal(remote.df(), local.df())
    assert_frame_equal(remote.cells(), local.cells())
    assert (remote.epsilon, remote.strategy) == (local.epsilon, local.strategy)
    assert str(con.answer(BATCH, PARAMS, epsilon=2)) == str(local)


def test_integers_of_any_size_arrive(con: Connection, embedded: Connection) -> None:
    sql = "SELECT 12345678901234567890123456789::HUGEINT AS k, 18446744073709551615::UBIGINT AS u, count(*) FROM visits"
    assert_frame_equal(con.answer(sql, epsilon=1)[0].df, embedded.answer(sql, epsilon=1)[0].df)


def test_dbapi_and_pandas(con: Connection, embedded: Connection) -> None:
    sql = "SELECT sex, count(*) AS n FROM visits GROUP BY sex; SELECT count(*) FROM labs WHERE kind = :kind"
    cur, own = con.cursor(), embedded.cursor()
    cur.execute(sql, {"kind": "blood"}, epsilon=1)
    own.execute(sql, {"kind": "blood"}, epsilon=1)
    assert (cur.description, cur.rowcount, cur.fetchall()) == (own.description, own.rowcount, own.fetchall())
    assert (cur.nextset(), own.nextset()) == (True, True)
    assert_frame_equal(cur.df(), own.df())
    cur.executemany("SELECT count(*) FROM visits WHERE age < ?", [(10,), (20,)], epsilon=1)
    assert cur.nextset()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "pandas only supports SQLAlchemy")
        frame = pd.read_sql("SELECT state, count(*) AS n FROM visits GROUP BY state", con)
    assert con.spend == Decimal("0.5")
    assert list(frame.columns) == ["state", "n"]


def _token(con: Any) -> str:
    return str(con._transport._headers["Authorization"].removeprefix("Bearer "))


def test_what_a_server_answered_is_pickled_without_the_token(con: Connection) -> None:
    sql = "SELECT state, count(*) AS n FROM visits GROUP BY state"
    plan, answers = con.explain(sql, epsilon=0.5), con.answer(sql, epsilon=0.5)
    pickles = [pickle.dumps(value) for value in (plan, answers, con.budget)]
    assert not any(_token(con).encode() in data for data in pickles)
    planned, answered, _ = map(pickle.loads, pickles)
    assert_frame_equal(planned.df(), plan.df())
    assert_frame_equal(answered.df(), answers.df())
    for ask in (planned.curve, answered.cells):
        with pytest.raises(tacit.NotSupportedError, match="was pickled without it\nhint: "):
            ask()
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(con)


def test_catalog_budget_and_repr(con: Connection, embedded: Connection) -> None:
    ours, theirs = con.catalog.tables, embedded.catalog.tables
    for one, other in zip(ours, theirs, strict=True):
        assert (one.name, one.public, one.version) == (other.name, other.public, other.version)
        assert [(c.name, c.type, c.domain) for c in one.columns] == [(c.name, c.type, c.domain) for c in other.columns]
    assert str(con.budget).splitlines()[0] == str(embedded.budget).splitlines()[0]
    assert con.budget.analysts["ana"] == embedded.budget.analysts["ana"]
    assert con.budget.realised == pytest.approx(embedded.budget.realised)
    assert con.analyst == "ana"
    assert _token(con) not in repr(con)


@pytest.mark.parametrize(
    ("batch", "options"),
    [
        ("SELECT sum(wage) FROM visits; SELECT count(*) FROM visits WHERE agee < 3", {"epsilon": 1}),
        ("SELECT count(* FROM visits", {"epsilon": 1}),
        ("SELECT kind, count(*) FROM labs GROUP BY kind", {"epsilon": 1}),
        ("SELECT count(*) FROM visits WHERE age < ?", {"epsilon": 1, "params": []}),
        ("SELECT count(*) FROM visits", {"epsilon": 5000}),
        ("SELECT count(*) FROM visits", {"epsilon": -1}),
        ("", {"epsilon": 1}),
        ("SELECT count(*) FROM visits", {"epsilon": 1, "weights": [1, 2]}),
        ("SELECT count(*) FROM visits", {"error": 3, "nonnegative": True}),
        ("SELECT * FROM visits", {"epsilon": 1}),
    ],
)
def test_errors_are_the_same_exceptions(
    con: Connection, embedded: Connection, batch: str, options: dict[str, Any]
) -> None:
    before = con.budget.spent
    with pytest.raises(tacit.Error) as here:
        embedded.answer(batch, **options)
    with pytest.raises(tacit.Error) as there:
        con.answer(batch, **options)
    assert type(there.value) is type(here.value)
    assert str(there.value) == str(here.value)
    for name in ("sql", "start", "end", "hint", "query", "asked", "left"):
        assert getattr(there.value, name, None) == getattr(here.value, name, None)
    assert con.budget.spent == before


def test_an_error_of_a_server_underlines_no_more_than_its_text() -> None:
    content = {"class": "SqlError", "message": "no", "sql": "SELECT 1", "start": 10**12, "end": 2 * 10**12}
    error = wire_errors.read_error({"error": content})
    assert isinstance(error, SqlError)
    assert len(str(error)) < 100


def test_discover(con: Connection) -> None:
    found = con.discover("labs.kind", epsilon=5, delta=1e-6)
    assert found.values is not None
    assert "blood" in found.values
    assert found.cost.epsilon == 5
    assert con.discover("labs.kind", epsilon=5, delta=1e-6).cost.epsilon == 0
    answers = con.answer("SELECT kind, count(*) FROM labs GROUP BY kind", epsilon=4, delta=1e-6, discover=True)
    assert len(answers[0].df) == len(found.values) + 1


def test_what_is_refused_before_anything_is_sent(server: Serving) -> None:
    token = server.token()
    with pytest.raises(tacit.InterfaceError, match="in the clear"):
        tacit.connect("http://example.org:8321", token=token)
    with pytest.raises(tacit.InterfaceError, match="no address"):
        tacit.connect(f"{server.address}?token={token}", token=token)
    with pytest.raises(tacit.InterfaceError, match="wants a token"):
        tacit.connect(server.address)
    with pytest.raises(tacit.InterfaceError, match="analyst="):
        tacit.connect(server.address, token=token, analyst="bob")
    with pytest.raises(tacit.InterfaceError, match="no token"):
        tacit.connect(server.address, token="a\nX-Header: b")
    with pytest.raises(tacit.InterfaceError, match="for a server"):
        tacit.connect(server.place.database, token=token)
    with pytest.raises(tacit.AccessError):
        tacit.connect(server.address, token=token[:-1] + ("A" if token[-1] != "A" else "B"))
    with tacit.connect(server.address, token=token) as con:
        pass
    with pytest.raises(tacit.InterfaceError, match="closed"):
        con.explain("SELECT count(*) FROM visits", epsilon=1)


def test_the_command_line_over_a_server(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_TOKEN", server.token("shell"))
    sql = "SELECT count(*) AS n FROM visits WHERE nights < 3"
    for command, said in (("explain", "within"), ("answer", "n"), ("budget", "left")):
        words = [command, *(() if command == "budget" else ("-", "--epsilon", "0.5")), "--db", server.address]
        done = CliRunner().invoke(app, words, input=sql)
        assert (done.exit_code, said in done.stdout) == (0, True), (words, done.output)
        assert "no policy" not in done.output
    done = CliRunner().invoke(app, ["answer", "-", "--db", server.address, "--policy", "x.toml"], input=sql)
    assert (done.exit_code != 0, "policy" in done.output) == (True, True)
