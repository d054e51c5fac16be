"""``objective=``, ``sizes=`` and ``inference=``: what they change, what they cost, and what is refused unpaid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tacit
from tacit import Connection
from tacit.engine.inference import likelihood
from tacit.request import ask

from .conftest import Connect

COUNTS = [f"SELECT count(*) FROM visits WHERE age < {age}" for age in (10, 20, 40, 60, 90)]
MIXED = [*COUNTS[:3], "SELECT sum(cost) FROM visits"]


def stderr(con: Connection, **asked: Any) -> np.ndarray:
    return con.explain(MIXED, epsilon=0.5, **asked).df()["stderr"].to_numpy()


def test_each_objective_is_best_in_its_own_measure(con: Connection) -> None:
    """After division by the most that one row can add: 1 for a count, 1000 for the sum."""
    scale = np.array([1, 1, 1, 1e-3])
    sizes = [1.0, 1000.0, 1000.0, 1e6]
    errors = {
        "total": stderr(con),
        "largest": stderr(con, objective="largest"),
        "absolute": stderr(con, objective="absolute"),
        "relative": stderr(con, objective="relative", sizes=sizes),
    }
    measures = {
        "total": lambda e: np.sum((e * scale) ** 2),
        "largest": lambda e: np.max((e * scale) ** 2),
        "absolute": lambda e: np.sum(e * scale),
        "relative": lambda e: np.sum((e / sizes) ** 2),
    }
    for objective, measure in measures.items():
        best = measure(errors[objective])
        assert all(best <= 1.01 * measure(other) for other in errors.values()), objective
        asked = {"sizes": sizes} if objective == "relative" else {}
        plan = con.explain(MIXED, epsilon=0.5, objective=objective, **asked)  # type: ignore[arg-type]
        if objective != "relative":  # whose weights are brought to a largest of one
            assert plan.error == pytest.approx(float(best), rel=1e-6)
        assert 0 < plan.lower_bound <= plan.error * (1 + 1e-9)
        assert all(plan.error <= other * 1.01 for other in plan.alternatives.values())
    assert errors["relative"][0] < 0.9 * errors["total"][0], "the query with the small answer is measured better"
    assert not np.allclose(errors["largest"], errors["total"])


def test_the_text_names_the_measure(con: Connection) -> None:
    for objective, words in (("total", "typical error"), ("largest", "largest error"), ("absolute", "average error")):
        plan = con.explain(COUNTS[:2], epsilon=0.5, objective=objective)  # type: ignore[arg-type]
        text = " ".join(plan.text(all=True).split())
        assert words in text


def test_relative_errors_of_equal_sizes_are_the_total_of_counts(con: Connection) -> None:
    total, relative = (
        con.explain(COUNTS, epsilon=0.5, **asked)  # type: ignore[arg-type]
        for asked in ({}, {"objective": "relative", "sizes": [50] * 5})
    )
    assert relative.stderr == pytest.approx(total.stderr)


def test_an_unused_charge_is_taken_up_by_the_same_objective_only(con: Connection) -> None:
    session = con._session
    prints = set()
    for asked in ({}, {"objective": "largest"}, {"objective": "absolute"}, {"objective": "relative", "sizes": [9] * 5}):
        request = ask(COUNTS, epsilon=0.5, **asked)  # type: ignore[arg-type]
        prints.add(session.price(request, session.compile(request)).fingerprint)
    assert len(prints) == 4


def test_what_was_released_is_enough_only_in_the_measure_that_is_asked_for(con: Connection) -> None:
    """Eight nested counts: the best sum has a largest error 1.2 times the least, and the other way a sum of 1.07."""
    batch = [f"SELECT count(*) FROM visits WHERE age < {age}" for age in range(10, 90, 10)]
    con.answer(batch, epsilon=0.5)
    assert con.explain(batch, epsilon=0.5).cost.epsilon == 0
    assert con.explain(batch, epsilon=0.45, objective="largest").cost.epsilon == 0
    least = con.explain(batch, epsilon=0.5, objective="largest", refresh=True)
    plan = con.explain(batch, epsilon=0.5, objective="largest")
    assert plan.cost.epsilon > 0
    assert plan.combined <= least.error * (1 + 1e-6)


def test_likelihood_uses_all_releases_better_and_explain_says_so_before(con: Connection) -> None:
    batch = COUNTS[:3]
    for _ in range(4):
        con.answer(batch, epsilon=0.2, refresh=True)
    plain = con.explain(batch, epsilon=0.2, refresh=True)
    better = con.explain(batch, epsilon=0.2, refresh=True, inference="likelihood")
    assert (better.stderr[:3] < 0.95 * plain.stderr[:3]).all()
    assert (better.half_width[:3] < plain.half_width[:3]).all()
    assert better.cost == plain.cost
    spent = con.budget.spent.epsilon
    answers = con.answer(batch, epsilon=0.2, refresh=True, inference="likelihood")
    assert float(con.budget.spent.epsilon - spent) == pytest.approx(0.2)
    frame = answers.df()
    assert frame["stderr"].to_numpy() == pytest.approx(better.df()["stderr"].to_numpy())
    assert (frame["high"] - frame["low"]).to_numpy() / 2 == pytest.approx(better.df()["half_width"].to_numpy())
    assert answers.cells()["count"].sum() == pytest.approx(frame["value"].max(), abs=1e-6)
    linear = con.answer(batch, epsilon=0.2)
    assert linear.cost.epsilon == 0, "the same releases, estimated otherwise, cost nothing"
    assert not np.allclose(linear.df()["value"], frame["value"])
    again = con.answer(batch, epsilon=0.2, inference="likelihood")
    assert again.cost.epsilon == 0
    assert again.df()["value"].to_numpy() == pytest.approx(frame["value"].to_numpy())


def test_likelihood_frames_averages_and_computed_figures(con: Connection) -> None:
    batch = "SELECT avg(cost), sum(cost) / 2, count(*) * 2 FROM visits"
    for _ in range(3):
        con.answer(batch, epsilon=0.5, refresh=True)
    frame = con.answer(batch, epsilon=0.5, inference="likelihood", integer=True).df()
    assert (frame["low"] <= frame["value"]).all() and (frame["value"] <= frame["high"]).all()
    assert np.isfinite(frame["stderr"]).all()


def test_without_redundancy_likelihood_is_least_squares(con: Connection) -> None:
    plain, same = (
        con.explain("SELECT state, count(*) FROM visits GROUP BY state", epsilon=0.5, **asked)  # type: ignore[arg-type]
        for asked in ({}, {"inference": "likelihood"})
    )
    assert same.stderr == pytest.approx(plain.stderr)
    assert same.half_width == pytest.approx(plain.half_width)


def test_too_much_for_likelihood_is_refused_before_the_charge(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    con = connect()
    con.answer(COUNTS, epsilon=0.1)
    spent = con.budget.spent.epsilon
    monkeypatch.setattr(likelihood, "QUESTIONS", 8)
    for call in (con.answer, con.explain):
        with pytest.raises(tacit.NotSupportedError, match="hint: leave inference= out"):
            call(COUNTS, epsilon=0.1, refresh=True, inference="likelihood")
    assert con.budget.spent.epsilon == spent


BAD: list[tuple[dict[str, Any], str]] = [
    ({"objective": "mean"}, "one of 'total', 'largest', 'absolute', 'relative'"),
    ({"objective": None}, "one of 'total'"),
    ({"objective": ["total"]}, "one of 'total'"),
    ({"inference": "maximum"}, "one of 'least squares', 'likelihood'"),
    ({"inference": True}, "one of 'least squares'"),
    ({"objective": "relative"}, "go together"),
    ({"sizes": [1] * 5}, "go together"),
    ({"objective": "relative", "sizes": [1e160, 1, 1, 1, 1]}, "sizes= are between"),
    ({"objective": "relative", "sizes": [1e-155] * 5}, "sizes= are between"),
    ({"objective": "relative", "sizes": ["1"] * 5}, "sizes= must hold"),
    ({"objective": "relative", "sizes": [1] * 4}, "sizes= has 4 entries for 5 queries"),
    ({"objective": "relative", "sizes": [1, 1, 1, 1, 0]}, "sizes= must hold one positive finite number"),
    ({"objective": "relative", "sizes": "12345"}, "sizes= must hold"),
    ({"objective": "relative", "sizes": [1, 1, 1, 1, 1e5]}, "sizes= makes one squared error count more than"),
    ({"inference": "likelihood", "nonnegative": True}, "does not go with nonnegative=True"),
]


@pytest.mark.parametrize(("asked", "message"), BAD, ids=lambda value: str(value)[:50])
def test_bad_arguments_are_refused_unpaid(asked: dict[str, Any], message: str, con: Connection) -> None:
    for call in (con.answer, con.explain):
        with pytest.raises(tacit.ProgrammingError) as caught:
            call(COUNTS, epsilon=0.5, **asked)
        assert message in str(caught.value)
        assert "hint: " in str(caught.value)
    assert con.budget.spent.epsilon == 0


def test_likelihood_does_not_promise_an_error(con: Connection) -> None:
    with pytest.raises(tacit.ProgrammingError, match="does not go with error="):
        con.answer(COUNTS, error=50, inference="likelihood")


def test_an_average_has_no_relative_objective(con: Connection) -> None:
    with pytest.raises(tacit.ProgrammingError, match="no meaning for query 1:"):
        con.explain([COUNTS[0], "SELECT avg(cost) FROM visits"], epsilon=0.5, objective="relative", sizes=[1, 1])
