"""``error=`` for the batch or for each query, absolute or in percent of a size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tacit
from tacit import Connection

BATCH = [
    "SELECT count(*) FROM visits",
    "SELECT state, count(*) FROM visits GROUP BY state",
    "SELECT sum(cost) FROM visits WHERE age < 50",
]


@pytest.mark.parametrize(
    ("asked", "widths"),
    [
        ({"error": [40, 20, 9000]}, [40, 20, 9000]),
        ({"error": {1: 15, 0: "10%"}, "sizes": 400}, [40, 15, np.inf]),
        ({"error": "10%", "sizes": [400, 100, 100_000]}, [40, 10, 10_000]),
        ({"error": "200%", "sizes": 2000}, [4000, 4000, 4000]),
        ({"error": [40, 20, 9000], "integer": True, "objective": "largest"}, [40, 20, 9000]),
    ],
)
def test_every_query_is_within_what_was_asked_and_no_more_is_spent(
    con: Connection, asked: dict[str, Any], widths: list[float]
) -> None:
    plan = con.explain(BATCH, **asked)
    largest = plan.by_query()["largest"].to_numpy()
    assert (largest <= np.array(widths) * (1 + 1e-6)).all()
    assert (largest / np.array(widths)).max() > 0.97, "the smallest ε that does it"
    assert con.answer(BATCH, **asked).cost == plan.cost


def test_errors_of_their_own_cost_less_than_the_strictest_for_all(con: Connection) -> None:
    own = con.explain(BATCH, error=[40, 20, 9000]).epsilon
    assert own < con.explain(BATCH, error=20).epsilon / 10


def test_what_is_promised_nothing_may_be_computed(con: Connection) -> None:
    batch = [*BATCH[:2], "SELECT avg(cost) FROM visits"]
    assert con.explain(batch, error={0: 30}).half_width[0] <= 30
    with pytest.raises(tacit.PrivacyParameterError, match="cannot be promised for query 2"):
        con.explain(batch, error=30)


def test_stored_releases_count_towards_the_error_of_each(con: Connection) -> None:
    con.answer(BATCH[:2], error=[40, 20])
    assert not any(con.answer(BATCH[:2], error=[45, 25]).cost)
    more = con.explain(BATCH, error=[40, 20, 9000])
    assert any(more.cost) and more.by_query()["largest"].le([40.001, 20.001, 9000.1]).all()
    assert not any(con.explain(BATCH[:2], error={1: 20}).cost)
    unmeasured = con.explain(
        ["SELECT count(*) FROM visits", "SELECT count(*) FROM visits WHERE cost < 9"], error={0: 40}
    )
    assert unmeasured.half_width[1] < 1000, "bought as if all were new, not at next to no ε"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"error": "5%"}, "sizes="),
        ({"error": "5"}, "is a percentage"),
        ({"error": "x%", "sizes": 10}, "no percentage"),
        ({"error": ["5%", 3, 3], "sizes": []}, "sizes="),
        ({"error": [1, 2]}, "2 entries for 3 queries"),
        ({"error": {3: 1}}, "names query 3"),
        ({"error": {}}, "by their number"),
        ({"error": [None, None, None]}, "promises nothing"),
        ({"error": [1, -1, 1]}, "greater than 0"),
        ({"error": [5, 0.25, 5], "integer": True}, "one half"),
        ({"error": 5, "sizes": 10}, "go together"),
    ],
)
def test_what_is_no_error(con: Connection, asked: dict[str, Any], words: str) -> None:
    with pytest.raises(tacit.ProgrammingError, match=words):
        con.explain(BATCH, **asked)
