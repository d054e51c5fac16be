"""What one token can make the server keep, what an error can weigh, and what it tells of the server's own files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import tacit
from support.serving import Serving
from tacit import wire_errors
from tacit.errors import LedgerError, OperationalError, SqlError, UnknownNameError, all_of
from tacit.remote import transport
from tacit.remote.transport import Transport
from tacit.server import kept_requests
from tacit.server.kept_requests import KINDS, KeptRequests
from tacit.server.store_file import StoreFile
from tacit.server.telling import Telling
from tacit.server.tokens import Token, Tokens


class Kept:
    """Requests of two tokens in a file of their own."""

    def __init__(self, folder: Path) -> None:
        file = StoreFile(folder / "x.server")
        file.results.mkdir()
        self.requests = KeptRequests(file, keep_mb=1)
        self.ana: Token = Tokens(file).create("ana")[1]
        self.bob: Token = Tokens(file).create("bob")[1]

    def end(self, token: Token, id: str, state: str, *, length: int = 10, charge: int | None = None) -> int:
        kept, _ = self.requests.add(token, id, "answer", "digest", {"sql": "x" * length})
        if charge is not None:
            self.requests.charged(kept.number, charge)
        for kind in KINDS:
            self.requests.result(kept.number, kind).write_bytes(b"")
        if state == "cancelled":
            assert self.requests.cancel(kept.number)
        else:
            self.requests.finish(kept.number, state, size=1000)
        return kept.number

    def ids(self, token: Token) -> list[str]:
        return [one.id for one in reversed(self.requests.of(token, 10**6))]


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def test_the_oldest_of_what_cost_nothing_is_forgotten_beyond_a_size(kept: Kept) -> None:
    paid = kept.end(kept.ana, "paid", "done", length=300_000, charge=7)
    first = kept.end(kept.ana, "first", "failed", length=300_000)
    kept.end(kept.bob, "other", "failed", length=900_000)
    kept.end(kept.ana, "second", "done", length=300_000)
    assert kept.ids(kept.ana) == ["paid", "first", "second"]
    kept.end(kept.ana, "third", "cancelled", length=600_000)
    assert kept.ids(kept.ana) == ["paid", "second", "third"]
    assert kept.ids(kept.bob) == ["other"]
    for number in (paid, first):  # what was paid is remembered, and made again from the ledger
        assert not any(kept.requests.result(number, kind).exists() for kind in KINDS)
    assert kept.requests.find(kept.ana, "paid") is not None


def test_the_oldest_of_what_cost_nothing_is_forgotten_beyond_a_number(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_requests, "_MOST_ENDED", 3)
    for number in range(3):
        kept.end(kept.ana, f"paid-{number}", "done", charge=number)
        kept.end(kept.ana, f"free-{number}", "failed")
    waiting, _ = kept.requests.add(kept.ana, "waiting", "answer", "digest", {})
    kept.end(kept.ana, "free-3", "failed")
    assert kept.ids(kept.ana) == ["paid-0", "paid-1", "free-1", "paid-2", "free-2", "waiting", "free-3"]
    assert kept.requests.get(waiting.number) is not None


def test_an_error_of_a_long_text_is_short_and_whole_at_the_client() -> None:
    text = "SELECT count(*) FROM t WHERE " + " AND ".join(f"column{i} > {i}" for i in range(60_000))
    assert len(text) > 10**6
    for start in (0, 29, 500_000, len(text) - 5):
        end = min(start + 700, len(text))
        found = [UnknownNameError("no", sql=text, start=start, end=end, hint="yes") for _ in range(20)]
        error = all_of(found, complete=False)
        body = json.loads(json.dumps(wire_errors.error_body(error)))
        assert len(json.dumps(body)) < 20_000
        there = wire_errors.read_error(body, text)
        assert isinstance(there, UnknownNameError)
        assert (there.sql, there.start, there.end) == (text, start, end)
        assert str(there) == str(error)
        elsewhere = wire_errors.read_error(body, "SELECT 1")  # not the batch of this client
        assert str(elsewhere).splitlines()[1:] == str(error).splitlines()[1:]
    names = SqlError("x" * 10**6, sql="x" * 10**6, start=0, end=10**6, hint="x" * 10**6)
    assert len(json.dumps(wire_errors.error_body(names))) < 10_000
    assert len(json.dumps(wire_errors.error_body(OperationalError("x" * 10**6)))) < 10_000


def test_long_errors_over_a_server(server: Serving) -> None:
    batch = "\n".join(f"SELECT count(*) FROM visits WHERE agee < {i} AND cost > {i} AND sex;" for i in range(800))
    with (
        tacit.connect(server.address, token=server.token()) as con,
        tacit.connect(server.place.database, policy=server.place.policy, analyst="ana") as embedded,
    ):
        for asked in (batch, batch.split("\n")):
            with pytest.raises(tacit.SqlError) as here:
                embedded.answer(asked, epsilon=1)
            with pytest.raises(tacit.SqlError) as there:
                con.answer(asked, epsilon=1)
            assert str(there.value) == str(here.value)
            assert [(e.sql, e.start, e.end) for e in there.value.errors] == [
                (e.sql, e.start, e.end) for e in here.value.errors
            ]
    status, _, data = server.request("POST", "/api/explain", server.token(), {"sql": batch, "epsilon": 1})
    assert (status, len(data) < 30_000) == (422, True)


def test_only_the_curator_is_told_where_files_are(serve: Callable[..., Serving]) -> None:
    server = serve()
    folder = str(server.place.ledger.parent)
    analyst, curator = server.token(), server.token("chief", role="curator")
    body = {"id": "before-damage", "sql": "SELECT count(*) FROM visits", "epsilon": 0.1}
    assert server.json("POST", "/api/answer", analyst, body)[0] == 200
    server.place.ledger.write_bytes(b"no ledger " * 1000)
    asked = [("GET", "/api/budget", None), ("POST", "/api/answer", {**body, "id": "after-damage"})]
    for method, path, sent in asked:
        status, _, data = server.request(method, path, analyst, sent)
        assert (status, json.loads(data)["error"]["class"]) == (503, "LedgerError")
        assert b"/" not in data
        assert folder in server.request(method, path, curator, sent)[2].decode()
    store = server.place.store().path
    store.rename(store.with_name("away"))
    status, _, data = server.request("GET", "/api/me", analyst)
    assert (status, folder.encode() in data) == (503, False)


def test_a_request_keeps_its_own_slashes(server: Serving) -> None:
    telling = Telling(server.place)
    own = wire_errors.error_body(SqlError("no such function: a/b/c", sql="SELECT /a/b", start=0, end=3))
    assert telling.without_places(own) == own
    spaced = LedgerError(f"the ledger {server.place.ledger} and /srv/a b.ledger cannot be read, at ~/x/y.toml")
    said = telling.without_places(wire_errors.error_body(spaced))["error"]["message"]
    assert (str(server.place.ledger) in said, "srv" in said, "y.toml" in said) == (False, False, False)


def test_a_reply_that_is_too_long_is_not_read(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_MOST_BYTES", 1000)
    line = Transport(server.address, server.token())
    with pytest.raises(tacit.OperationalError, match="longer than"):
        line.get("/api/openapi.json")
    assert line.get("/health").status == 200
    line.close()
