"""The connection to a server: the embedded one's methods, classes and errors, answered over HTTP."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from html import escape
from typing import Any, NoReturn

import pandas as pd
from tacit import wire, wire_results
from tacit.answers import Answers
from tacit.budget import Budget
from tacit.connection import Connection, guarded, takes
from tacit.discovery import Discovery
from tacit.engine import to_epsilon
from tacit.engine.accounting.amounts import to_delta
from tacit.errors import InterfaceError, OperationalError
from tacit.explain import Plan
from tacit.request import Ask, Number, ask
from tacit.sql import Catalog
from tacit.sql.wanted import What
from tacit.wire_numbers import read_number
from tacit.wire_plans import read_plan

from .transport import Reply, Transport

_WAIT = 50.0
"""Seconds that the server is asked to hold a request before it says where it stands."""
TOKEN = "TACIT_TOKEN"
"""The environment variable that holds the token where ``token=`` is left out."""


class RemoteConnection(Connection):
    """A server that holds database, policy and ledger. Threads may share it: its calls take turns."""

    def __init__(self, transport: Transport, spend: Decimal | None) -> None:
        self._transport = transport
        self._lock = threading.RLock()
        self._closed = False
        me = transport.get("/api/me").json()
        self._analyst = str(me["analyst"])
        self.role = str(me["role"])
        """``analyst`` or ``curator``."""
        stated = me["spend"]
        self._spend = spend if spend is not None or stated is None else Decimal(stated)

    @takes(ask)
    def explain(self, ask: Ask) -> Plan:
        """What ``answer`` would do with the same arguments, and how exact it would be; free."""
        request = wire.request_of(ask)
        return read_plan(self._explained(request, {"rows": True}), partial(self._explained, request))

    @takes(ask)
    def answer(self, ask: Ask) -> Answers:
        """Answer all queries of the batch in one joint release: see ``tacit.Connection.answer``."""
        id = secrets.token_hex(16)
        body = {"id": id, **wire.request_of(ask), "wait": _WAIT}
        reply = self._asked(id, "/api/answer", body, wire_results.FRAMES)
        return wire_results.read_answers(reply.body, partial(self._cells, id))

    def discover(
        self,
        column: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        what: What | None = None,
    ) -> Discovery:
        """Find the values of a column, or its range: see ``tacit.Connection.discover``."""
        with self._open(), guarded():
            if not isinstance(column, str):
                raise InterfaceError('discover takes the name of a column\nhint: con.discover("visits.city")')
            spend = self._spend if epsilon is None else to_epsilon(epsilon)
            stated = {"epsilon": spend, "delta": None if delta is None else to_delta(delta), "what": what}
            id = secrets.token_hex(16)
            body = {key: wire.written(value) for key, value in stated.items() if value is not None}
            reply = self._asked(id, "/api/discover", {"id": id, "column": column, **body, "wait": _WAIT})
            return wire_results.read_discovery(reply.json())

    @property
    def budget(self) -> Budget:
        """What was spent and what is left, now; of the analysts' parts, one's own."""
        with self._open(), guarded():
            return wire.read_budget(self._transport.get("/api/budget").json(), self._realised)

    @property
    def _session(self) -> NoReturn:  # type: ignore[override]
        raise InterfaceError("this needs the database itself, and a server holds it\nhint: connect beside the database")

    @property
    def analyst(self) -> str | None:
        """Whom the ledger charges."""
        return self._analyst

    @property
    def catalog(self) -> Catalog:
        """The tables, columns and declared domains that a batch may use."""
        with self._open(), guarded():
            return wire.read_catalog(self._transport.get("/api/catalog").json())

    def close(self) -> None:
        """Let the server go. Closing twice is fine; any other use afterwards is an ``InterfaceError``."""
        with self._lock:
            self._closed = True
            self._transport.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else self._transport.address
        return f"<tacit.Connection: {state}, {self.role} {self._analyst}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """IPython's prompt."""
        printer.text(repr(self) + ("" if self._closed else f"\n  {self.budget}"))

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>" + ("" if self._closed else self.budget._repr_html_())

    def _asked(self, id: str, path: str, body: dict[str, Any], accept: str = wire_results.JSON) -> Reply:
        """The result of a request; one that nobody waits for any more is cancelled, unless it is paid already."""
        try:
            reply = self._transport.post(path, body, wait=_WAIT, accept=accept)
            return self._result(id, reply, accept, batch=body.get("sql", ()))
        except KeyboardInterrupt:
            self._transport.delete(f"/api/requests/{id}")
            raise

    def _result(
        self, id: str, reply: Reply, accept: str = wire_results.JSON, *, batch: str | Sequence[str] = ()
    ) -> Reply:
        while reply.status == 202:
            path = f"/api/requests/{id}?wait={_WAIT:g}"
            reply = self._transport.get(path, wait=_WAIT, accept=accept, batch=batch)
        return reply

    def _cells(self, id: str) -> pd.DataFrame:
        with self._open(), guarded():
            path, reply = f"/api/requests/{id}/cells?wait={_WAIT:g}", None
            while reply is None or reply.status == 202:
                reply = self._transport.get(path, wait=_WAIT)
            return wire_results.read_cells(reply.body)

    def _explained(self, request: dict[str, Any], asked: Mapping[str, Any]) -> Any:
        """The plan of a request, with what is asked about it; free, so a new id each time."""
        id = secrets.token_hex(16)
        with self._open(), guarded():
            body = {"id": id, **request, **asked, "wait": _WAIT}
            reply = self._transport.post("/api/explain", body, wait=_WAIT)
            return self._result(id, reply, batch=request["sql"]).json()

    def _realised(self) -> float:
        with self._open(), guarded():
            body = self._transport.get("/api/budget?realised=true", wait=_WAIT).json()
            return read_number(body["realised"])


def open_connection(url: str, token: str | None, spend: Any, others: list[str]) -> RemoteConnection:
    """A connection to the server at ``url``."""
    if others:
        raise InterfaceError(
            f"{others[0]}= is for a database of one's own: the server has its own policy and ledger\n"
            f"hint: leave {others[0]}= out"
        )
    token = os.environ.get(TOKEN) if token is None else token
    if not isinstance(token, str) or not token:
        raise InterfaceError(
            f"a server wants a token\nhint: tacit.connect(…, token=…), or the environment variable {TOKEN}"
        )
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise OperationalError("a client needs pyarrow\nhint: pip install 'tacit[client]'") from None
    each = None if spend is None else to_epsilon(spend)
    with guarded():
        transport = Transport(url, token)
        try:
            return RemoteConnection(transport, each)
        except BaseException:
            transport.close()
            raise
