"""Pictures: the right kind for the groups, labels that say what is drawn, the caller's axes."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest
import tacit
from tacit import Connection
from tacit.engine import optimize

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


def test_answers_are_drawn_by_the_kind_of_their_groups(con: Connection) -> None:
    bars, heat, line, single = con.answer(
        [
            "SELECT state, count(*) AS n, avg(cost) AS mean FROM visits GROUP BY ROLLUP (state)",
            "SELECT state, sex, count(*) AS n FROM visits GROUP BY CUBE (state, sex)",
            "SELECT age, count(*) AS n FROM visits GROUP BY age",
            "SELECT count(*) AS n, count(cost) AS m FROM visits",
        ],
        epsilon=2,
        confidence=0.9,
    )
    ax = bars.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["NY", "NJ", "CA", "WA", "other", "NULL"]
    assert [patch.get_width() for patch in ax.patches] == bars.df["n"].tolist()[:6]
    assert "n" in ax.get_xlabel() and "9 times out of 10" in ax.get_xlabel()
    assert "every exact answer" in bars.plot(column="mean", simultaneous=True).get_xlabel()
    field = heat.plot().images[0].get_array()
    assert field is not None and field.shape == (6, 3)
    drawn = line.plot().lines[0]
    assert list(drawn.get_xdata()) == list(range(121)), "NULL has no place on a line"
    _, own = pyplot.subplots()
    assert single.plot(ax=own) is own and len(own.patches) == 2
    with pytest.raises(tacit.ProgrammingError, match="one of n, mean"):
        bars.plot(column="nn")


def test_bars_of_one_group_are_told_apart(con: Connection) -> None:
    answers = con.answer("SELECT sex, count(*) AS n, avg(cost) AS mean FROM visits GROUP BY sex", epsilon=2)
    labels = [label.get_text() for label in answers.plot().get_yticklabels()]
    assert labels[0].endswith(" · n") and len(set(labels)) == len(labels)


def test_plans_searches_and_ledgers_are_drawn(con: Connection) -> None:
    batch = [f"SELECT count(*) AS under FROM visits WHERE age < {i}" for i in range(10, 90, 10)]
    plan = con.explain(batch, epsilon=0.5)
    ax = plan.plot()
    assert len(ax.lines) == 4 and ax.lines[0].get_xdata().tolist() == plan.stderr.tolist()  # type: ignore[union-attr]
    assert len(ax.get_yticklabels()) == 8 and "ε = 0.5" in ax.get_xlabel()
    assert plan.plot_curve([0.5, 1]).get_xscale() == "log"
    W = plan.plot_workload()
    drawn = W.images[0].get_array()
    assert drawn is not None and drawn.shape[0] == 8 and drawn.sum() == 36
    assert plan.plot_strategy().get_ylabel().startswith("question")
    s = optimize(np.tril(np.ones((6, 6))), privacy="pure")
    error, bound = tacit.plot.trace(s).lines
    assert np.asarray(error.get_ydata())[-1] == s.error and np.asarray(bound.get_ydata())[-1] == s.lower_bound
    with pytest.raises(tacit.ProgrammingError, match="nothing was charged"):
        tacit.plot.ledger(con)
    answers = con.answer(batch, epsilon=0.5)
    assert len(answers.plot().patches) == 8
    con.answer("SELECT count(*) FROM visits WHERE sex", epsilon=1)
    assert np.asarray(tacit.plot.ledger(con).lines[0].get_ydata()).tolist() == [0.5, 1.5]


def test_without_matplotlib_the_error_says_what_to_install(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = con.answer("SELECT count(*) FROM visits", epsilon=1)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(tacit.InterfaceError, match=r"tacit\[plot\]"):
        answers[0].plot()
