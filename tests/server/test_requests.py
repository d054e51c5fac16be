"""A request id is paid once, whatever is lost, repeated, cancelled or revoked; the result can be fetched again."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
import tacit
from support.serving import Serving
from tacit.budget import Rights
from tacit.engine import Ledger
from tacit.errors import AccessError, BudgetError, OperationalError
from tacit.policy import Cap
from tacit.server.jobs import BusyError, Job, JobQueue
from tacit.server.kept_requests import KeptRequests
from tacit.server.service import Place, Service
from tacit.server.store_file import StoreFile
from tacit.server.tokens import Token, Tokens
from tacit.server.worker import Worker

COUNT = "SELECT count(*) AS n FROM visits WHERE age < {}"


def spent(server: Serving, token: str) -> Decimal:
    return Decimal(server.json("GET", "/api/budget", token)[1]["spent"]["epsilon"])


def test_the_same_id_is_the_same_request(server: Serving) -> None:
    token, other = server.token(), server.token()
    before = spent(server, token)
    body = {"id": "same-request", "sql": COUNT.format(11), "epsilon": 0.25, "refresh": True}
    results: list[tuple[int, bytes]] = []

    def ask() -> None:
        status, _, data = server.request("POST", "/api/answer", token, body)
        results.append((status, data))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ask()
    results.append((200, server.request("GET", "/api/requests/same-request", token)[2]))
    assert {status for status, _ in results} == {200}
    assert len({data for _, data in results}) == 1
    assert spent(server, token) - before == Decimal("0.25")
    status, error = server.json("POST", "/api/answer", token, {**body, "epsilon": 0.5})
    assert (status, error["error"]["class"]) == (409, "ProgrammingError")
    assert server.request("GET", "/api/requests/same-request", other)[0] == 404
    status, headers, data = server.request(
        "GET", "/api/requests/same-request", token, Accept="application/vnd.apache.arrow.stream"
    )
    assert headers["content-type"].startswith("application/vnd.apache.arrow")
    import pyarrow as pa

    table = pa.ipc.open_stream(data).read_all()
    assert table.column("value").to_pylist() == json.loads(results[0][1])["answers"][0]["columns"][0]["values"]


def test_a_lost_result_is_made_again_from_the_ledger_at_no_cost(server: Serving) -> None:
    token = server.token()
    body = {"id": "lost-result", "sql": COUNT.format(12), "epsilon": 0.25, "refresh": True}
    first = server.json("POST", "/api/answer", token, body)[1]
    before = spent(server, token)
    results = server.place.store().results
    for file in results.iterdir():
        file.unlink()
    status, second = server.json("GET", "/api/requests/lost-result?wait=30", token)
    assert status == 200
    assert second["answers"][0]["columns"] == first["answers"][0]["columns"]
    assert second["cost"]["epsilon"] == "0"
    assert spent(server, token) == before


def test_a_paid_request_is_never_paid_again(serve: Callable[..., Serving]) -> None:
    server = serve()
    token = server.token()
    body = {"id": "paid-once", "sql": COUNT.format(13), "epsilon": 0.25}
    assert server.json("POST", "/api/answer", token, body)[0] == 200
    for file in server.place.store().results.iterdir():
        file.unlink()
    os.utime(server.place.database)  # another version of the tables: the release is not about them
    for _ in range(2):
        status, refusal = server.json("POST", "/api/answer", token, body)
        assert (status, "no longer kept" in refusal["error"]["message"]) == (422, True)
    server.kill()
    with server.place.store().transaction(write=True) as db:  # as if killed while it was being made again
        db.execute("UPDATE requests SET state = 'queued'")
    server.start()
    assert server.json("GET", "/api/requests/paid-once?wait=60", token)[0] == 422
    assert spent(server, token) == Decimal("0.25")
    assert server.json("GET", "/api/history", token)[1]["requests"][0]["cost"]["epsilon"] == "0.25"


def test_a_full_queue_leaves_a_request_as_it_was(clinic_file: Path, tmp_path: Path) -> None:
    policy = tmp_path / "clinic.toml"
    policy.write_text("[budget]\nepsilon = 1.0\n[server]\nqueue_per_analyst = 1\n")
    database = tmp_path / "clinic.duckdb"
    database.write_bytes(clinic_file.read_bytes())
    service = Service(Place.of(policy, str(database)))  # not started: what is queued waits
    try:
        _, token = service.tokens.create("ana")
        done, _ = service.requests.add(token, "done-before", "answer", "digest", {"sql": COUNT.format(1)})
        service.requests.finish(done.number, "done", head={"cost": None})
        waiting = service.submit(token, "answer", "in-the-queue", {"sql": COUNT.format(2)})
        with pytest.raises(BusyError):
            service.find(token, "done-before")
        kept = service.requests.get(done.number)
        assert kept is not None
        assert (kept.state, kept.head) == ("done", {"cost": None})
        assert service.pool.cancel(waiting)
        again = service.find(token, "done-before")
        assert again is not None
        assert (again.free, service.pool.queue.position(again)) == (True, 1)
    finally:
        service._curator.close()
        os.close(service._lock)


def test_a_plan_and_an_answer_have_ids_of_their_own(server: Serving) -> None:
    token = server.token()
    for first, second in (("explain", "answer"), ("answer", "explain")):
        body = {"id": f"{first}-first", "sql": COUNT.format(14), "epsilon": 0.1}
        assert server.json("POST", f"/api/{first}", token, body)[0] == 200
        status, error = server.json("POST", f"/api/{second}", token, body)
        assert (status, error["error"]["class"]) == (409, "ProgrammingError")


def test_waiting_cancelling_and_history(server: Serving) -> None:
    token = server.token("waiting")
    slow = [f"SELECT count(*) FROM visits WHERE cost BETWEEN {i} AND {i * 7 % 800 + 100}" for i in range(120)]
    states = []
    for number in range(3):
        sql = [*slow, COUNT.format(number)]
        body = {"id": f"slow-request-{number}", "sql": sql, "epsilon": 0.1, "wait": 0}
        status, state = server.json("POST", "/api/answer", token, body)
        assert status == 202
        states.append(state)
    assert states[2]["state"] == "queued"
    assert states[2]["position"] == 1
    assert server.json("DELETE", "/api/requests/slow-request-2", token)[1]["state"] == "cancelled"
    for number in (0, 1):  # running: its worker is ended, and another one takes its place
        assert server.json("DELETE", f"/api/requests/slow-request-{number}", token)[1]["state"] == "cancelled"
    status, error = server.json("GET", "/api/requests/slow-request-0", token)
    assert (status, error["error"]["message"]) == (409, "the request was cancelled; nothing was charged")
    server.json("POST", "/api/answer", token, {"id": "done-request", "sql": COUNT.format(5), "epsilon": 0.01})
    history = server.json("GET", "/api/history", token)[1]
    assert [entry["kind"] for entry in history["entries"]] == ["charge", "release"]
    assert [one["state"] for one in history["requests"]] == ["done", "cancelled", "cancelled", "cancelled"]
    assert Decimal(history["requests"][0]["cost"]["epsilon"]) == Decimal("0.01")


def test_limits_of_a_token(server: Serving) -> None:
    token = server.token("limited", epsilon="0.3", tables=["visits"], days=1)
    con = tacit.connect(server.address, token=token)
    with con:
        assert [table.name for table in con.catalog.tables if not table.public] == ["visits"]
        with pytest.raises(tacit.ProgrammingError, match="labs"):
            con.answer("SELECT count(*) FROM labs", epsilon=0.1)
        con.answer(COUNT.format(31), epsilon=0.2)
        assert con.budget.analysts["limited"].left.epsilon == Decimal("0.1")
        with pytest.raises(tacit.BudgetError, match="budget of 'limited'"):
            con.answer(COUNT.format(32), epsilon=0.2)
        id = server.json("GET", "/api/me", token)[1]["token"]
        server.tokens.limit(id, epsilon=Decimal("0.5"))
        con.answer(COUNT.format(32), epsilon=0.2)
        server.tokens.revoke(id)
        with pytest.raises(tacit.AccessError):
            con.answer(COUNT.format(31), epsilon=0.2)
    expired = server.token("late", days=0)
    assert server.request("GET", "/api/me", expired)[0] == 401


def test_a_token_that_is_revoked_in_mid_batch_pays_and_gets_nothing(server: Serving) -> None:
    token = server.token("revoked")
    slow = [f"SELECT count(*) FROM visits WHERE cost BETWEEN {i} AND {i * 11 % 700 + 150}" for i in range(60)]
    results: list[int] = []

    def ask() -> None:
        body = {"id": "revoked-request", "sql": slow, "epsilon": 0.1, "wait": 60}
        results.append(server.request("POST", "/api/answer", token, body)[0])

    thread = threading.Thread(target=ask)
    thread.start()
    requests = KeptRequests(server.place.store())
    holder = server.tokens.holder(token)
    while requests.find(holder, "revoked-request") is None:
        pass
    server.tokens.revoke(holder.id)
    thread.join()
    assert results == [401]
    assert "revoked" not in Ledger.open(server.place.ledger).analysts()


def test_the_curators_part(server: Serving) -> None:
    curator, analyst = server.token("chief", role="curator"), server.token()
    server.json("POST", "/api/answer", analyst, {"id": "for-the-books", "sql": COUNT.format(77), "epsilon": 0.01})
    for path in ("/api/ledger", "/api/analysts", "/metrics"):
        assert server.request("GET", path, analyst)[0] == 403
        assert server.request("GET", path)[0] == 401
    assert server.request("POST", "/api/verify", analyst, {})[0] == 403
    entries = server.json("GET", "/api/ledger?after=1&limit=2", curator)[1]["entries"]
    assert [entry["id"] for entry in entries] == [2, 3]
    assert server.json("POST", "/api/verify", curator, {})[1]["entries"] >= 4
    analysts = server.json("GET", "/api/analysts", curator)[1]
    assert "ana" in analysts["analysts"]
    assert not any("digest" in token or "secret" in token for token in analysts["tokens"])
    text = server.request("GET", "/metrics", curator)[2].decode()
    assert "tacit_spent_epsilon " in text
    assert "tacit_plan_seconds_total " in text


def test_the_ledger_is_backed_up_while_serving(server: Serving, tmp_path: Path) -> None:
    token = server.token()
    server.json("POST", "/api/answer", token, {"id": "before-backup", "sql": COUNT.format(71), "epsilon": 0.01})
    tacit.ledger.backup(server.place.ledger, tmp_path / "copy.ledger")
    assert tacit.ledger.verify(tmp_path / "copy.ledger") > 0
    assert server.request("GET", "/ready")[0] == 200


def test_only_hashes_are_kept_and_only_the_owner_reads_them(tmp_path: Path) -> None:
    file = StoreFile(tmp_path / "x.server")
    text, token = Tokens(file).create("ana")
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert token.id.encode() in content
    assert text.rpartition("_")[2].encode() not in content
    assert Tokens(file).holder(text) == token
    for wrong in ("", "tacit_", text[:-2], text + "x", text.replace(token.id, "0" * 16), None):
        with pytest.raises(AccessError):
            Tokens(file).holder(wrong)


def test_rights_are_checked_inside_the_ledgers_transaction(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as db:
        db.execute("CREATE TABLE t AS SELECT i FROM range(50) r(i)")
    file = StoreFile(tmp_path / "t.server")
    requests, tokens = KeptRequests(file), Tokens(file)
    _, token = tokens.create("ana")
    kept, _ = requests.add(token, "request-1", "answer", "x", {})
    with tacit.connect(tmp_path / "t.duckdb", policy={"budget": {"epsilon": 1}}, analyst="ana") as con:
        access = con._session.access

        def ask(check: object, sql: str = "SELECT count(*) FROM t") -> tacit.Answers:
            access.rights = Rights(check)  # type: ignore[arg-type]
            return con.answer(sql, epsilon=0.5)

        def pay() -> Cap:
            return requests.pay(kept.number).cap

        assert requests.cancel(kept.number)
        with pytest.raises(OperationalError, match="cancelled"):
            ask(pay)
        requests.again(kept.number)
        tokens.revoke(token.id)
        with pytest.raises(AccessError):
            ask(pay)
        with pytest.raises(BudgetError, match=r"'ana' has 0\.4 left"):
            ask(lambda: Cap(Decimal("0.4")))
        assert con.budget.spent.epsilon == 0
        ask(lambda: Cap())
        requests.add(token, "request-2", "answer", "x", {})
        assert not requests.cancel(99)
        _, other = tokens.create("bob")
        paying, _ = requests.add(other, "request-3", "answer", "x", {})
        requests.pay(paying.number)
        assert not requests.cancel(paying.number)
    with tacit.connect(tmp_path / "t.duckdb", policy={"budget": {"epsilon": 1}}, analyst="bob") as con:
        con._session.access.rights = Rights(lambda: Cap(Decimal("0.1")))
        before = con.budget
        with pytest.raises(BudgetError):  # neither reading what ana paid for nor paying fits
            con.answer("SELECT count(*) FROM t", epsilon=0.5)
        assert con.budget.analysts["bob"] == before.analysts["bob"]


class Killed(BaseException):
    """As if the process had ended here."""


def test_a_charge_that_fits_no_more_is_not_paid_again(tmp_path: Path) -> None:
    import duckdb

    database = tmp_path / "t.duckdb"
    with duckdb.connect(str(database)) as db:
        db.execute("CREATE TABLE t AS SELECT i FROM range(50) r(i)")
    requests = KeptRequests(StoreFile(tmp_path / "t.server"))
    _, token = Tokens(StoreFile(tmp_path / "t.server")).create("ana")
    kept, _ = requests.add(token, "request-1", "answer", "x", {})

    def killed(charge: int) -> None:
        requests.charged(kept.number, charge)
        raise Killed

    worker = object.__new__(Worker)
    worker._requests = requests
    job = {"number": kept.number, "tables": None, "cap": [None, None], "free": False}
    with tacit.connect(database, policy={"budget": {"epsilon": 1}}, analyst="ana") as con:
        con._session.access.rights = Rights(lambda: Cap(), charged=killed)
        with pytest.raises(Killed):
            con.answer("SELECT count(*) FROM t", epsilon=0.25)
        with worker._rights(con, job):  # what the next worker that takes it up may do
            rights = con._session.access.rights
        assert rights.pending is not None
        con._session.access.rights = Rights(lambda: Cap(), pending=rights.pending)
        os.utime(database)  # another version of the tables, of which the charge does not speak
        with pytest.raises(tacit.ProgrammingError, match="charged before and never released"):
            con.answer("SELECT count(*) FROM t", epsilon=0.25)
        assert con.budget.spent.epsilon == Decimal("0.25")


def job(analyst: str) -> Job:
    return Job("explain", Token("", analyst, "analyst", Cap(), None, None, "", None), {})


def test_analysts_take_turns_and_know_where_they_stand() -> None:
    queue = JobQueue(most=6, most_each=4, running_each=1)
    many = [job("ana") for _ in range(4)]
    for one in many:
        queue.put(one)
    with pytest.raises(BusyError, match="too many requests waiting"):
        queue.put(job("ana"))
    bob, eve = job("bob"), job("eve")
    queue.put(bob)
    queue.put(eve)
    with pytest.raises(BusyError, match="busy"):
        queue.put(job("zoe"))
    assert [queue.position(one) for one in (*many, bob, eve)] == [1, 4, 5, 6, 2, 3]
    assert [queue.take() for _ in range(3)] == [many[0], bob, eve]
    assert queue.position(many[0]) is None
    queue.leave(many[0])
    assert queue.take() is many[1]
    assert queue.remove(many[3])
    assert not queue.remove(many[1])
    assert queue.counts() == (1, 3)
