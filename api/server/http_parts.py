"""What endpoints share: bodies and addresses as they are read, results and entries as they are written."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import tacit
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from tacit import wire
from tacit.engine.accounting.entry import Entry
from tacit.errors import (
    AccessError,
    BudgetError,
    Error,
    InterfaceError,
    InternalError,
    OperationalError,
    ProgrammingError,
)
from tacit.wire_results import ARROW, FRAMES, JSON

from .downloads import CSV, PARQUET
from .jobs import BusyError, ConflictError
from .protection import HttpError, bad_request
from .shapes import is_request_id
from .tokens import Token

_MOST_ENTRIES = 1000
MEDIA = {"json": JSON, "frames": FRAMES, "long": ARROW, "csv": CSV, "parquet": PARQUET}
"""The forms of an answer, and their types."""
_STATUS: tuple[tuple[type[Error], int], ...] = (
    (BusyError, 429),
    (ConflictError, 409),
    (AccessError, 403),
    (BudgetError, 409),
    (InternalError, 500),
    (OperationalError, 503),
    (InterfaceError, 400),
    (Error, 422),
)


def status_of(error: Error) -> int:
    """The status that goes with an error of tacit's tree."""
    return next(status for kind, status in _STATUS if isinstance(error, kind))


async def disconnected(request: Request) -> None:
    """Wait until the client is gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def json_body(request: Request) -> Any:
    """The body of a request as JSON; a refusal for any other."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise bad_request("the body must be JSON\nhint: send the header Content-Type: application/json")
    data = await request.body()
    try:
        return await run_in_threadpool(wire.parse, data)
    except ValueError:
        raise bad_request("the body is not JSON, or has a key twice\nhint: see /api/openapi.json") from None


async def chunks(path: Path) -> AsyncIterator[bytes]:
    """A result piece by piece, so that a large one does not lie in memory; opened once, so that it stays whole."""
    with await run_in_threadpool(path.open, "rb") as file:
        while data := await run_in_threadpool(file.read, 1 << 18):
            yield data


def form_asked(request: Request) -> str:
    """The form of an answer that the client asks for: JSON, unless it names another."""
    accept = request.headers.get("accept", "")
    return next((part for part, media in MEDIA.items() if part != "json" and media in accept), "json")


def json_response(body: Any, status: int = 200) -> Response:
    """A body as JSON."""
    return Response(wire.dump(body), status, media_type=JSON)


def note(request: Request, **fields: Any) -> None:
    """Say more in the log line of this request."""
    request.state.log.update(fields)


def request_id(request: Request) -> str:
    """The request id of an address."""
    id: str = request.path_params["id"]
    if not is_request_id(id):
        raise unknown_request()
    return id


def unknown_request() -> HttpError:
    """404 for an id, whoever may have used it."""
    return HttpError(
        404, ProgrammingError("there is no request of this id\nhint: POST it again; ids belong to a token")
    )


def check_query(request: Request, *names: str) -> None:
    """Refuse what an address does not take."""
    if any(name not in names for name in request.query_params):
        raise bad_request(f"the address takes only {' and '.join(names)}")


def paging(request: Request) -> tuple[int, int]:
    """(after, limit) of a list of entries."""
    check_query(request, "after", "limit")
    after, limit = (request.query_params.get(name, text) for name, text in (("after", "0"), ("limit", "100")))
    if not all(re.fullmatch(r"[0-9]{1,12}", text) for text in (after, limit)) or not 1 <= int(limit) <= _MOST_ENTRIES:
        raise bad_request(f"after is the number of an entry, and limit a number from 1 to {_MOST_ENTRIES}")
    return int(after), int(limit)


def entry_body(entry: Entry) -> dict[str, Any]:
    """An entry of the ledger, without what was asked."""
    return {
        "id": entry.id,
        "at": entry.at,
        "kind": entry.kind,
        "analyst": entry.analyst,
        "epsilon": str(entry.amount.epsilon),
        "delta": str(entry.amount.delta),
        "refers": entry.refers,
    }


def limits_body(token: Token) -> dict[str, Any]:
    """What a token may do."""
    return {
        "epsilon": None if token.cap.epsilon is None else str(token.cap.epsilon),
        "delta": None if token.cap.delta is None else str(token.cap.delta),
        "tables": None if token.tables is None else sorted(token.tables),
        "expires": token.expires,
    }


def tacit_version() -> str:
    """The version of the installed package."""
    from importlib.metadata import version

    return version(tacit.__name__)
