"""The OpenAPI description of the server. ``tests/server/test_openapi.py`` asks by it, and checks the replies by it."""

from __future__ import annotations

from functools import cache
from typing import Any

from tacit.wire_results import ARROW, JSON

from .downloads import CSV, PARQUET
from .shapes import MOST_WAIT, body_schema

_REF = "#/components/schemas/"
_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_FLOAT = {
    "oneOf": [{"type": ["number", "null"]}, {"enum": ["Infinity", "-Infinity"]}],
    "description": "null is NaN.",
}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _optional(schema: dict[str, Any]) -> dict[str, Any]:
    return {"oneOf": [schema, {"type": "null"}]}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"{_REF}{name}"}


_AMOUNT_TEXT = {"type": "string", "description": "An exact decimal."}
_SCHEMAS: dict[str, Any] = {
    "Explain": body_schema("explain"),
    "Answer": body_schema("answer"),
    "Discover": body_schema("discover"),
    "Error": _object(
        error={
            **_object(
                **{"class": _TEXT, "message": _TEXT, "sql": _TEXT, "start": _COUNT, "end": _COUNT, "hint": _TEXT}
            ),
            "description": "An exception of tacit's own tree; clients raise the same class with the same text.",
        }
    ),
    "Amount": _object(epsilon=_AMOUNT_TEXT, delta=_AMOUNT_TEXT),
    "Account": _object(cap=_ref("Amount"), spent=_ref("Amount"), left=_ref("Amount")),
    "Limits": _object(
        epsilon=_optional(_AMOUNT_TEXT),
        delta=_optional(_AMOUNT_TEXT),
        tables=_optional(_list(_TEXT)),
        expires=_optional(_TEXT),
    ),
    "Me": _object(
        analyst=_TEXT,
        role={"enum": ["analyst", "curator"]},
        token=_TEXT,
        limits=_ref("Limits"),
        spend=_optional(_AMOUNT_TEXT),
        version=_TEXT,
    ),
    "Catalog": _object(
        main={"type": "string", "description": "The schema whose tables go by their bare name."},
        database=_TEXT,
        tables=_list(
            _object(
                name=_TEXT,
                public={"type": "boolean"},
                privacy_unit=_optional(_TEXT),
                max_rows_per_unit=_COUNT,
                version=_TEXT,
                path=_list(_TEXT),
                view={"type": "string", "description": "The SELECT behind a view."},
                primary_key=_list(_TEXT),
                minimum_frequency=_COUNT,
                unit_key=_TEXT,
                left_out=_list(_list(_TEXT)),
                columns=_list(
                    _object(
                        name=_TEXT,
                        type={"type": "string", "description": "DuckDB's name of the type."},
                        nullable={"type": "boolean"},
                        domain={
                            "oneOf": [
                                {"type": "null"},
                                _object(values=_list({}), other=_optional(_TEXT), complete={"type": "boolean"}),
                                _object(min={}, max={}),
                            ]
                        },
                    )
                ),
            )
        ),
    ),
    "Budget": {
        "allOf": [
            _ref("Account"),
            _object(
                rule={"enum": ["sum", "zcdp"]},
                analysts={"type": "object", "additionalProperties": _ref("Account")},
            ),
        ]
    },
    "State": _object(
        id=_TEXT,
        kind=_TEXT,
        state={"enum": ["queued", "running", "paying", "done", "failed", "cancelled"]},
        position={"type": ["integer", "null"], "description": "How many are served up to this one; null once it runs."},
        waiting=_COUNT,
        running=_COUNT,
    ),
    "Plan": _object(
        epsilon=_AMOUNT_TEXT,
        delta=_AMOUNT_TEXT,
        cost=_ref("Amount"),
        bought=_ref("Amount"),
        why=_TEXT,
        confidence={"type": "number"},
        strategy=_TEXT,
        privacy=_TEXT,
        objective=_TEXT,
        cells=_COUNT,
        queries=_list(_TEXT),
        error=_FLOAT,
        combined=_FLOAT,
        lower_bound=_FLOAT,
        least_error=_FLOAT,
        gap=_FLOAT,
        alternatives={"type": "object", "additionalProperties": _FLOAT},
        stages=_list(_TEXT),
        discover=_list(_TEXT),
        text=_TEXT,
        account=_optional(_ref("Account")),
        units={"type": "object", "additionalProperties": _TEXT},
        other_groups={"type": "boolean"},
        predicts={"type": "boolean", "description": "Whether other budgets and sizes can be asked about."},
        figures={"type": "object", "additionalProperties": {"type": "array"}},
    ),
    "Answers": _object(
        epsilon=_AMOUNT_TEXT,
        delta=_AMOUNT_TEXT,
        cost=_ref("Amount"),
        strategy=_TEXT,
        confidence={"type": "number"},
        discovered=_list({"type": "object"}),
        answers=_list(
            _object(
                sql=_TEXT,
                groups=_list(_TEXT),
                columns=_list(
                    {
                        **_object(name=_TEXT, type=_TEXT, values={"type": "array"}),
                        "description": "A released figure has stderr, low, high and note beside its values.",
                    }
                ),
            )
        ),
    ),
    "Discovery": _object(table=_TEXT, column=_TEXT, what={"enum": ["keys", "range"]}, cost=_ref("Amount")),
    "Entry": _object(
        id=_COUNT,
        at=_TEXT,
        kind=_TEXT,
        analyst=_optional(_TEXT),
        epsilon=_AMOUNT_TEXT,
        delta=_AMOUNT_TEXT,
        refers={"type": ["integer", "null"]},
    ),
    "History": _object(
        entries=_list(_ref("Entry")),
        requests=_list(
            _object(id=_TEXT, kind=_TEXT, state=_TEXT, created=_TEXT, cost=_optional(_ref("Amount")), sql={})
        ),
    ),
    "Ledger": _object(entries=_list(_ref("Entry"))),
    "Analysts": _object(
        analysts={"type": "object", "additionalProperties": _ref("Account")},
        tokens=_list(
            _object(
                token=_TEXT,
                analyst=_TEXT,
                role=_TEXT,
                limits=_ref("Limits"),
                created=_TEXT,
                revoked=_optional(_TEXT),
                valid={"type": "boolean"},
            )
        ),
    ),
    "Verified": _object(entries=_COUNT),
}
_ERRORS = {
    "400": "The request is malformed: not JSON, a wrong key, a wrong type, another host.",
    "401": "The token is missing, unknown, revoked or expired.",
    "403": "Not for this token's role or tables, or a request of another page.",
    "404": "There is no such request, or nothing at this address.",
    "409": "The budget has not enough left; or the request id was used for something else, or was cancelled.",
    "413": "The body is too long.",
    "422": "The batch, or a number in the request, cannot be answered: the error says why and what to write instead.",
    "429": "Too many of your requests wait, or the queue is full.",
    "503": "The database or the ledger cannot be used now, or a worker was lost; nothing is paid twice.",
}
_ID_PARAMETER = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{8,64}$"},
}
_WAIT_PARAMETER = {
    "name": "wait",
    "in": "query",
    "schema": {"type": "integer", "minimum": 0, "maximum": MOST_WAIT},
    "description": "Seconds to wait for the result.",
}
_PAGING = [
    {"name": "after", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 10**9}},
    {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000}},
]


def _operation(
    summary: str,
    result: str | None,
    *,
    body: str | None = None,
    parameters: list[Any] | None = None,
    arrow: bool = False,
    files: bool = False,
    queued: bool = False,
    errors: str = "400 401",
) -> dict[str, Any]:
    content: dict[str, Any] = {} if result is None else {JSON: {"schema": _ref(result)}}
    for media in (ARROW, *((CSV, PARQUET) if files else ())) if arrow else ():
        content[media] = {"schema": {"type": "string", "format": "binary"}}
    responses: dict[str, Any] = {"200": {"description": "Done.", "content": content}}
    if queued:
        responses["202"] = {
            "description": "Not done yet: where the request stands.",
            "content": {JSON: {"schema": _ref("State")}},
        }
    for status in errors.split():
        responses[status] = {"description": _ERRORS[status], "content": {JSON: {"schema": _ref("Error")}}}
    operation: dict[str, Any] = {"summary": summary, "responses": responses, "security": [{"token": []}]}
    if parameters:
        operation["parameters"] = parameters
    if body is not None:
        schema = {"type": "object", "maxProperties": 0} if body == "Nothing" else _ref(body)
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": schema}}}
    return operation


_ASKING = "400 401 403 409 413 422 429 503"


@cache
def description() -> dict[str, Any]:
    """The whole description."""
    found = "400 401 403 404 409 422 429 503"
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tacit",
            "version": "1",
            "description": "Batches of SQL under differential privacy. docs/server.md has the whole story.",
        },
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "paths": {
            "/api/me": {"get": _operation("Who the token says that you are.", "Me")},
            "/api/catalog": {
                "get": _operation("The tables and their declared domains.", "Catalog", errors="400 401 503")
            },
            "/api/budget": {
                "get": _operation(
                    "What was spent and is left.",
                    "Budget",
                    parameters=[{"name": "realised", "in": "query", "schema": {"enum": ["true", "false"]}}],
                    errors="400 401 503",
                )
            },
            "/api/history": {"get": _operation("Your own charges, reads and requests.", "History", parameters=_PAGING)},
            "/api/explain": {
                "post": _operation(
                    "What answering would cost, and how exact it would be. Free.",
                    "Plan",
                    body="Explain",
                    queued=True,
                    errors=_ASKING,
                )
            },
            "/api/answer": {
                "post": _operation(
                    "Answer a batch: one joint release, charged once for one request id.",
                    "Answers",
                    body="Answer",
                    arrow=True,
                    files=True,
                    queued=True,
                    errors=_ASKING,
                )
            },
            "/api/discover": {
                "post": _operation(
                    "Buy the keys or the range of a column that nobody declared.",
                    "Discovery",
                    body="Discover",
                    queued=True,
                    errors=_ASKING,
                )
            },
            "/api/requests/{id}": {
                "get": {
                    **_operation(
                        "The result of a request, again and at no cost, or where it stands.",
                        None,
                        parameters=[_ID_PARAMETER, _WAIT_PARAMETER],
                        arrow=True,
                        files=True,
                        queued=True,
                        errors=found,
                    )
                },
                "delete": _operation(
                    "Cancel a request that has not begun to pay.",
                    "State",
                    parameters=[_ID_PARAMETER],
                    errors="400 401 404 409",
                ),
            },
            "/api/requests/{id}/frames": {
                "get": _operation(
                    "The frames of an answer: an Arrow stream for each query, one after the other.",
                    None,
                    parameters=[_ID_PARAMETER, _WAIT_PARAMETER],
                    arrow=True,
                    queued=True,
                    errors=found,
                )
            },
            "/api/requests/{id}/cells": {
                "get": _operation(
                    "The estimated counts of the batch's cells, as an Arrow stream.",
                    None,
                    parameters=[_ID_PARAMETER, _WAIT_PARAMETER],
                    arrow=True,
                    queued=True,
                    errors=found,
                )
            },
            "/api/ledger": {
                "get": _operation(
                    "Curator: the ledger's entries.", "Ledger", parameters=_PAGING, errors="400 401 403 503"
                )
            },
            "/api/analysts": {"get": _operation("Curator: accounts and tokens.", "Analysts", errors="400 401 403 503")},
            "/api/verify": {
                "post": _operation(
                    "Curator: check the whole ledger.", "Verified", body="Nothing", errors="400 401 403 413 503"
                )
            },
        },
    }
