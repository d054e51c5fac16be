"""Somebody with a token who wants more than it is for, and somebody who wants the others to wait."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any

import pytest
from support.serving import Serving
from tacit.policy import Cap
from tacit.server.jobs import Job
from tacit.server.pool import Ended, Pool
from tacit.server.sql_shape import shape
from tacit.server.tokens import Token

COUNT = "SELECT count(*) AS n FROM visits WHERE age < {}"


def budget(server: Serving, token: str) -> Any:
    return server.json("GET", "/api/budget", token)[1]


def test_what_others_paid_for_counts_against_ones_own_cap(server: Serving) -> None:
    payer, reader = server.token("payer"), server.token("reader", epsilon="0.3")
    batch = {"sql": [COUNT.format(91), COUNT.format(92)], "epsilon": 0.25}
    status, paid = server.json("POST", "/api/answer", payer, {"id": "replayed-id", **batch})
    assert status == 200
    before = Decimal(budget(server, reader)["spent"]["epsilon"])
    assert server.request("GET", "/api/requests/replayed-id", reader)[0] == 404
    assert server.request("DELETE", "/api/requests/replayed-id", reader)[0] == 404
    assert server.request("GET", "/api/requests/replayed-id/cells", reader)[0] == 404
    assert server.json("POST", "/api/explain", reader, {**batch, "size": "released"})[0] == 422  # told of nothing yet
    status, told = server.json("POST", "/api/answer", reader, {"id": "replayed-id", **batch})
    assert (status, told["answers"], told["cost"]["epsilon"]) == (200, paid["answers"], "0")
    own = budget(server, reader)
    assert Decimal(own["spent"]["epsilon"]) == before
    assert own["analysts"]["reader"]["spent"]["epsilon"] == "0.25"
    more = {"id": "second-helping", "sql": COUNT.format(93), "epsilon": 0.1}
    assert server.json("POST", "/api/answer", payer, more)[0] == 200
    status, refusal = server.json("POST", "/api/answer", reader, {**more, "id": "second-reading"})
    assert (status, refusal["error"]["class"], refusal["error"]["left"]["epsilon"]) == (409, "BudgetError", "0.05")


def test_a_table_that_a_token_may_not_name_is_not_there(server: Serving) -> None:
    token, whole = server.token("narrow", tables=["visits"]), server.token("wide")
    before = budget(server, whole)["spent"]
    asked: list[tuple[str, dict[str, Any]]] = [
        ("answer", {"sql": "SELECT count(*) FROM labs", "epsilon": 0.1}),
        ("explain", {"sql": "SELECT count(*) FROM labs", "epsilon": 0.1, "listed": True, "matrices": True}),
        ("answer", {"sql": "SELECT count(*) FROM visits v JOIN labs USING (patient_id)", "epsilon": 0.1}),
        ("answer", {"sql": "SELECT count(*) FROM main.labs", "epsilon": 0.1}),
        ("discover", {"column": "labs.kind", "epsilon": 0.1, "delta": 0.00001}),
    ]
    for number, (path, body) in enumerate(asked):
        status, refusal = server.json("POST", f"/api/{path}", token, {"id": f"hidden-table-{number}", **body})
        assert status == 422
        assert "secret-kind" not in str(refusal)
        assert refusal["error"]["hint"].count("labs") == 0
    assert budget(server, whole)["spent"] == before
    assert all(table["name"] != "labs" for table in server.json("GET", "/api/catalog", token)[1]["tables"])


@pytest.mark.parametrize(
    "text",
    [
        '"epsilon": 1e999999999',
        '"epsilon": 1e-999999999',
        '"epsilon": 0.' + "1" * 5000,
        '"epsilon": 1' + "0" * 4000,
        '"epsilon": 1, "params": [1e999999999, 1' + "0" * 4000 + "]",
        '"epsilon": 1, "params": [{"seconds": 1e999999999}]',
        '"epsilon": 1, "weights": [1e-999999999]',
        '"error": 1e-999999999',
        '"epsilon": 1, "size": 1e999999999',
        '"epsilon": 1, "curve": {"epsilons": [1e-999999999, 1e999999999]}',
        '"epsilon": 1, "curve": {"query": 10000000000000000000000}',
        '"epsilon": 1, "plan_seconds": 1e-999999999, "confidence": 1e-999999999',
    ],
)
def test_numbers_that_would_fill_a_memory(server: Serving, text: str) -> None:
    token, started = server.token("counting"), time.monotonic()
    body = f'{{"id": "large-number", "sql": "SELECT count(*) FROM visits", {text}}}'.encode()
    status, _, data = server.request("POST", "/api/explain", token, body)
    assert (status in (400, 422), len(data) < 5000) == (True, True), data
    assert time.monotonic() - started < 5


def test_a_constant_without_its_quotes_is_in_no_log(server: Serving) -> None:
    names = {"visits", "state"}
    shown = shape('SELECT count(*) FROM visits WHERE state = Miller OR state = "Miller" OR Miller = 3', names)
    assert shown == "SELECT count ( * ) FROM visits WHERE state = ? OR state = ? OR ? = ?"
    for sql in ("SELECT /*+ Miller */ 1 -- Miller", "SELECT $Miller, $$Miller$$, Miller(2), E'Miller', @Miller"):
        assert "Miller" not in shape(sql, names)
    sql = "SELECT count(*) FROM visits WHERE state = Mueller"
    server.request("POST", "/api/explain", server.token(), {"sql": sql, "epsilon": 1})
    assert not any("Mueller" in line for line in server.lines)


def test_whoever_ends_a_worker_waits_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """An analyst's place among the running is given back when the process that was ended for it is there again."""
    order: list[str] = []
    pool = object.__new__(Pool)
    pool._stopping = False
    job = Job("explain", Token("", "ana", "analyst", Cap(), None, None, "", None), {"sql": "SELECT 1"})

    def run(process: object, job: Job, started: float) -> bool:
        job.cancelled = True
        raise Ended

    monkeypatch.setattr(pool, "_process", lambda place: order.append("process"), raising=False)
    monkeypatch.setattr(pool, "_run", run, raising=False)
    monkeypatch.setattr(pool, "_drop", lambda place: order.append("drop"), raising=False)
    monkeypatch.setattr(
        pool, "queue", type("Queue", (), {"leave": lambda _, job: order.append(job.state)})(), raising=False
    )
    monkeypatch.setattr(pool, "counts", type("Counts", (), {"ended": lambda _, job: None})(), raising=False)
    pool._serve(0, job)
    assert order == ["process", "drop", "process", "cancelled"]
    assert job.body == {}, "a request that is over keeps no text in memory"


def test_a_process_that_cannot_be_started_ends_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = object.__new__(Pool)
    pool.processes, pool._first, pool._lock, pool._stopping = {}, {}, 0, False

    def refuse(*arguments: object, **options: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("subprocess.Popen", refuse)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(Ended):
        pool._process(0)
    assert pool.processes == {}
    pool._replace(0)
