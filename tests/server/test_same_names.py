"""Every public name of the embedded connection, and every keyword of it, gives the same over a server.

A name or a keyword that is added to the embedded side and not compared here fails the test.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tacit
from matplotlib import pyplot
from matplotlib.axes import Axes
from pandas.testing import assert_frame_equal
from support.serving import Serving
from tacit import Answer, Answers, Budget, Connection, Cursor, Discovery, Plan
from tacit.budget import Account
from tacit.engine import Amount
from tacit.sql import Catalog, Column, Table

pytest.importorskip("matplotlib").use("agg")

BATCH = [
    "SELECT state, count(*) AS n, avg(cost) AS mean FROM visits GROUP BY state",
    "SELECT sum(cost) AS total FROM visits WHERE nights >= $1",
    "SELECT state, n FROM (SELECT state, count(*) AS n FROM visits GROUP BY state) WHERE n > 3",
]
ASKED: dict[str, Any] = {"params": [3], "epsilon": 2}
WORDS: Sequence[Mapping[str, Any]] = (
    {"epsilon": 0.5, "delta": 1e-6, "confidence": 0.8},
    {"error": 40, "integer": True},
    {"error": "5%", "sizes": 2000, "epsilon": None},
    {"error": [30, None, "10%"], "sizes": [10, 20, 3000]},
    {"epsilon": 1, "weights": [1, 2, 3], "strategy": "identity", "plan_seconds": 5},
    {"epsilon": 1, "objective": "relative", "sizes": [100, 5000, 20]},
    {"epsilon": 1, "objective": "largest", "inference": "likelihood"},
    {"epsilon": 1, "nonnegative": True, "refresh": True},
    {"epsilon": 1, "delta": 1e-6, "discover": True},
)
"""Arguments of ``explain`` and ``answer``."""
CALLS: dict[tuple[type, str], Sequence[Mapping[str, Any]]] = {
    (Plan, "df"): ({}, {"size": 1000}, {"size": [10, 20, 30]}, {"size": "released"}, {"simultaneous": True}),
    (Plan, "figures"): ({"size": np.float64(77.5)}, {"size": -1}, {"size": "many"}, {"size": object()}),
    (Plan, "by_query"): ({}, {"size": 50, "alone": True}),
    (Plan, "cost_of_each_alone"): ({},),
    (Plan, "text"): ({}, {"all": True, "size": 1000}),
    (Plan, "to_dict"): ({},),
    (Plan, "to_json"): ({"indent": 2},),
    (Plan, "curve"): ({}, {"epsilons": [0.1, 1, 2.5], "query": 1}, {"query": 9}, {"epsilons": [-1]}, {"epsilons": []}),
    (Plan, "plot"): ({"ax": None},),
    (Plan, "plot_curve"): ({"epsilons": [0.5, 1], "query": 0, "ax": None},),
    (Plan, "plot_workload"): ({"ax": None},),
    (Plan, "plot_strategy"): ({"ax": None},),
    (Answers, "df"): ({}, {"simultaneous": True}),
    (Answers, "arrow"): ({},),
    (Answers, "pl"): ({},),
    (Answers, "plot"): ({"simultaneous": True, "ax": None},),
    (Answers, "cells"): ({},),
    (Answers, "histogram"): ({},),
    (Answers, "to_dict"): ({},),
    (Answers, "to_json"): ({"indent": 2},),
    (Answers, "count"): (),
    (Answers, "index"): (),
    (Answer, "with_errors"): ({"simultaneous": True},),
    (Answer, "joint_ends"): ({"position": 1},),
    (Answer, "joint"): (),
    (Answer, "plot"): ({"column": "n", "simultaneous": True, "ax": None}, {"column": "nope"}),
    (Answer, "to_dict"): ({},),
    (Answer, "to_json"): ({"indent": 2},),
    (Answer, "arrow"): ({},),
    (Answer, "pl"): ({},),
    (Answer, "rows"): ({},),
    (Budget, "to_dict"): (),
    (Budget, "compose"): ({},),
    (Account, "to_dict"): ({},),
    (Catalog, "table"): ({"name": "VISITS"}, {"name": "nope"}),
    (Catalog, "at"): ({"schema": "main", "name": "labs"},),
    (Table, "column"): ({"name": "AGE"},),
    (Table, "found_values"): (),
    (Column, "of"): ({"label": "p1"},),
    (Cursor, "fetchone"): ({},),
    (Cursor, "fetchmany"): ({"size": 2},),
    (Cursor, "fetchall"): ({},),
    (Cursor, "df"): ({},),
    (Cursor, "fetch_arrow_table"): ({},),
    (Cursor, "arrow"): ({},),
    (Cursor, "pl"): ({},),
    (Cursor, "nextset"): ({},),
    (Cursor, "next"): (),
    (Cursor, "setinputsizes"): ({"sizes": []},),
    (Cursor, "setoutputsize"): ({"size": 3, "column": 0},),
    (Cursor, "execute"): (),
    (Cursor, "executemany"): (),
    (Cursor, "close"): (),
    (Discovery, "to_dict"): ({},),
}
"""How each method is called on both sides. Without a call: by another name, below, or not a method of tacit's own."""
ASIDE = {
    (Plan, "queries"): "their texts are compared; what the compiler made of them stays at the server",
    (Plan, "what_if"): "its questions are asked through the plan",
    (Answer, "query"): "its text and its types are compared",
    (Answers, "answers"): "each is compared",
    (Budget, "analysts"): "over a server one's own",
    (Table, "rows"): "how computed tables are read",
    (Table, "unit_path"): "how the scan reaches the unit; privacy_unit says it in words",
    (Table, "found"): "what was found for expressions",
    (Column, "origin"): "for hints of the compiler",
    (Catalog, "read_public"): "reads the database",
    (Catalog, "tables"): "each is compared",
    (Cursor, "connection"): "its own",
}


@pytest.fixture(scope="module")
def con(server: Serving) -> Iterator[Connection]:
    with tacit.connect(server.address, token=server.token("ana")) as connection:
        yield connection


@pytest.fixture(scope="module")
def embedded(server: Serving) -> Iterator[Connection]:
    with tacit.connect(server.place.database, policy=server.place.policy, analyst="ana") as connection:
        yield connection


def same(here: Any, there: Any) -> None:
    """That two results are alike."""
    if isinstance(here, pd.DataFrame):
        assert_frame_equal(there, here)
    elif isinstance(here, pd.Series):
        pd.testing.assert_series_equal(there, here, check_names=False)
    elif isinstance(here, np.ndarray):
        np.testing.assert_array_equal(there, here)
    elif isinstance(here, Axes):
        assert drawn(there) == drawn(here)
        pyplot.close("all")
    elif isinstance(here, Sequence) and not isinstance(here, (str, Amount)):
        assert len(here) == len(there)
        for one, other in zip(here, there, strict=True):
            same(one, other)
    elif isinstance(here, Mapping):
        assert list(here) == list(there)
        same(list(here.values()), list(there.values()))
    elif hasattr(here, "equals"):  # a table of Arrow's or of polars
        assert here.equals(there)
    elif hasattr(here, "stderr") and hasattr(here, "low"):
        for name in ("value", "stderr", "low", "high"):
            np.testing.assert_array_equal(getattr(there, name), getattr(here, name))
    else:
        assert there == here or (here != here and there != there), (here, there)


def drawn(ax: Any) -> tuple[Any, ...]:
    """What a picture shows, in words and numbers."""
    words = [text.get_text() for text in (*ax.get_xticklabels(), *ax.get_yticklabels(), ax.title, ax.xaxis.label)]
    images = [np.nan_to_num(image.get_array()).tolist() for image in ax.images]
    return (
        words,
        images,
        [np.nan_to_num(line.get_xydata()).tolist() for line in ax.lines],
        [p.get_width() for p in ax.patches],
    )


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the class and the text of what it raises."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__, str(error).replace("wire_plans.Remote", "explain.")


def public(kind: type) -> list[str]:
    fields = getattr(kind, "__dataclass_fields__", {})
    return sorted({*(name for name in dir(kind) if not name.startswith("_")), *fields})


def compare(kind: type, here: Any, there: Any) -> None:
    """All public names of two objects; every keyword of a method must be among its calls."""
    for name in public(kind):
        if (kind, name) in ASIDE:
            continue
        member = inspect.getattr_static(kind, name, None)
        if not inspect.isfunction(member) and (kind, name) not in CALLS:
            same(getattr(here, name), getattr(there, name))
            continue
        assert (kind, name) in CALLS, f"{kind.__name__}.{name} is not compared with that of a server"
        calls = CALLS[kind, name]
        if calls and inspect.isfunction(member):
            known = {word for call in calls for word in call}
            keywords = list(inspect.signature(member).parameters)[1:]
            assert known >= set(keywords), f"{kind.__name__}.{name}: {set(keywords) - known} are not compared"
        for call in calls:
            expected = outcome(lambda name=name, call=call: getattr(here, name)(**call))  # type: ignore[misc]
            found = outcome(lambda name=name, call=call: getattr(there, name)(**call))  # type: ignore[misc]
            same(expected, found)


def test_answers(con: Connection, embedded: Connection) -> None:
    there, here = con.answer(BATCH, **ASKED), embedded.answer(BATCH, **ASKED)
    object.__setattr__(there, "cost", here.cost)  # the first of the two has paid
    compare(Answers, here, there)
    for one, other in zip(here, there, strict=True):
        compare(Answer, one, other)
        assert str(one) == str(other)


def test_plans(con: Connection, embedded: Connection) -> None:
    con.answer(BATCH, **ASKED)
    for batch, options in (
        (BATCH, {**ASKED, "epsilon": 5}),
        ("SELECT count(*) FROM hospitals", {"epsilon": 1}),
        ("SELECT nights, count(*) FROM visits GROUP BY nights", {"epsilon": 1, "strategy": "dawa"}),
    ):
        here, there = embedded.explain(batch, **options), con.explain(batch, **options)
        compare(Plan, here, there)
        assert (str(here), repr(here), here._repr_html_()) == (str(there), repr(there), there._repr_html_())
        assert [q.sql for q in here.queries] == [q.sql for q in there.queries]


def test_every_word_of_a_question(con: Connection, embedded: Connection) -> None:
    # A table of which little was released before: combining all of that takes longer than anything here.
    parts = (" WHERE patient_id < 30", " WHERE patient_id >= 30", "")
    sql = "; ".join(f"SELECT count(*) AS n FROM labs{part}" for part in parts)
    known = {word for words in WORDS for word in words} | {"batch", "params"}
    for method in (Connection.explain, Connection.answer):
        assert set(inspect.signature(method).parameters) - {"self"} == known
    for words in WORDS:
        call: Any = {"batch": sql, "params": None, **words}
        same(str(outcome(lambda c=call: embedded.explain(**c))), str(outcome(lambda c=call: con.explain(**c))))
        if not {"nonnegative", "integer", "delta", "inference"} & set(words):  # the same errors, and no other answers
            continue
        call.pop("refresh", None)
        there = outcome(lambda c=call: con.answer(**c))
        here = outcome(lambda c=call: embedded.answer(**c))
        same(here.df() if isinstance(here, Answers) else here, there.df() if isinstance(there, Answers) else there)


def test_connections(con: Connection, embedded: Connection) -> None:
    called = {"explain", "answer", "discover", "cursor", "curve", "commit", "rollback", "close"}
    values = {"analyst", "spend"}
    apart = {"budget", "catalog"}
    errors = {name for name in public(Connection) if inspect.isclass(getattr(Connection, name))}
    assert set(public(Connection)) == called | values | apart | errors
    assert set(public(type(con))) >= set(public(Connection))
    for name in errors | values:
        assert getattr(con, name) == getattr(embedded, name)
    for name in called:
        assert inspect.signature(getattr(con, name)) == inspect.signature(getattr(embedded, name))
    asked: Any = {"batch": BATCH, "params": [3], "epsilons": [0.5, 1], "confidence": 0.9}
    same(embedded.curve(**asked), con.curve(**asked))
    same(embedded.commit(), con.commit())
    same(embedded.rollback(), con.rollback())
    own = con.budget.analysts
    compare(Budget, embedded.budget, con.budget)
    compare(Account, embedded.budget.analysts["ana"], own["ana"])
    assert list(own) == ["ana"]
    there = con.discover("visits.nights", epsilon=1, delta=1e-6, what="range")
    here = embedded.discover("visits.nights", epsilon=1, delta=1e-6, what="range")
    object.__setattr__(there, "cost", here.cost)
    compare(Discovery, here, there)


def test_catalogs(con: Connection, embedded: Connection) -> None:
    here, there = embedded.catalog, con.catalog
    compare(Catalog, here, there)
    for table, other in zip(here.tables, there.tables, strict=True):
        compare(Table, table, other)
        for column, twin in zip(table.columns, other.columns, strict=True):
            compare(Column, column, twin)


def test_cursors(con: Connection, embedded: Connection) -> None:
    sql = "SELECT state, count(*) AS n FROM visits GROUP BY state; SELECT count(*) FROM visits WHERE nights < ?"
    there = con.cursor().execute(sql, [3], epsilon=1, delta=0, discover=False)
    here = embedded.cursor().execute(sql, [3], epsilon=1, delta=0, discover=False)
    assert type(there) is type(here) is Cursor
    compare(Cursor, here, there)


def test_what_needs_the_database_itself_says_so(con: Connection) -> None:
    for call in (
        lambda: tacit.ledger.log(con),
        lambda: tacit.ledger.verify(con),
        lambda: tacit.testing.exact_answers(con, BATCH, [3]),
        lambda: tacit.testing.unit_counts(con, BATCH, [3]),
        lambda: con._session,
    ):
        with pytest.raises(tacit.InterfaceError):
            call()
