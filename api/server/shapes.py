"""What a request may say: the one table that bodies are checked by and that the OpenAPI description is made of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, get_args

from tacit import wire
from tacit.engine import strategies
from tacit.engine.inference.estimate import Inference
from tacit.engine.measures import Objective
from tacit.errors import InterfaceError
from tacit.policy_section import suggestion
from tacit.request import ask
from tacit.wire_plans import QUESTIONS

_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
MOST_WAIT = 60
_DECIMAL = {
    "type": "object",
    "properties": {"decimal": {"type": "string", "pattern": "^[0-9]{1,20}(\\.[0-9]{1,40})?$"}},
    "required": ["decimal"],
    "additionalProperties": False,
}
_TAGGED = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "properties": {
        "date": {"type": "string", "format": "date"},
        "timestamp": {"type": "string", "format": "date-time"},
        "time": {"type": "string"},
        "decimal": {"type": "string", "pattern": "^-?[0-9]{1,20}(\\.[0-9]{1,40})?$"},
        "seconds": {"type": "number"},
        "bytes": {"type": "string", "contentEncoding": "base64"},
        "float": {"enum": ["nan", "inf", "-inf"]},
    },
    "additionalProperties": False,
}
_NUMBER = {"oneOf": [{"type": "number"}, _DECIMAL]}
_VALUE = {"oneOf": [{"type": ["null", "boolean", "number", "string"]}, _TAGGED]}
_ID = {
    "type": "string",
    "pattern": f"^{_REQUEST_ID.pattern}$",
    "description": "Chosen by the client, a new one for every new request: the same id again is the same request.",
}
_WAIT = {
    "type": "number",
    "minimum": 0,
    "maximum": MOST_WAIT,
    "description": "Seconds to wait for the result before 202 says where the request stands. Default 30.",
}
_WIDTH = {"oneOf": [{"type": ["number", "null"]}, {"type": "string", "pattern": "^[0-9.]{1,12}%$"}]}
_ASK: dict[str, dict[str, Any]] = {
    "sql": {
        "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
        "description": "A batch: statements separated by semicolons, or a list of them.",
    },
    "params": {
        "oneOf": [
            {"type": "null"},
            {"type": "array", "items": _VALUE},
            {"type": "object", "additionalProperties": _VALUE},
        ],
        "description": "Values of ? and $1, or of :name and $name.",
    },
    "epsilon": {**_NUMBER, "description": "What the whole batch costs; the policy's spend where it is left out."},
    "delta": _NUMBER,
    "error": {
        "oneOf": [_WIDTH, {"type": "array", "items": _WIDTH}, {"type": "object", "additionalProperties": _WIDTH}],
        "description": 'In place of epsilon: every figure within ±error at confidence; "5%" of sizes; for each query.',
    },
    "confidence": {"type": "number"},
    "weights": {"type": "array", "items": {"type": "number"}},
    "strategy": {"type": "string", "enum": list(strategies())},
    "objective": {"type": "string", "enum": list(get_args(Objective))},
    "sizes": {"oneOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]},
    "inference": {"type": "string", "enum": list(get_args(Inference))},
    "nonnegative": {"type": "boolean"},
    "integer": {"type": "boolean"},
    "refresh": {"type": "boolean", "description": "Buy new noise, whatever was released before."},
    "plan_seconds": {"type": "number"},
    "discover": {"type": "boolean"},
    "wait": _WAIT,
}
_CURVE = {
    "type": "object",
    "properties": {"epsilons": {"type": "array", "items": _NUMBER}, "query": {"type": "integer"}},
    "required": [],
    "additionalProperties": False,
}
BODIES: dict[str, tuple[dict[str, dict[str, Any]], tuple[str, ...]]] = {
    "explain": (
        {
            **_ASK,
            "id": _ID,
            "rows": {"type": "boolean", "description": "Also the errors of each row of the workload."},
            "curve": {"oneOf": [{"type": "boolean"}, _CURVE], "description": "Also what other budgets would buy."},
            "size": {
                "oneOf": [
                    {"type": "number"},
                    {"type": "array", "items": {"type": "number"}},
                    {"type": "string", "enum": ["released"]},
                ],
                "description": "How large the figures are taken to be: adds relative errors, and predicts averages.",
            },
            "alone": {"type": "boolean", "description": "Also what each query would cost by itself."},
            "listed": {"type": "boolean", "description": "Also the cells, each as a table and a label."},
            "matrices": {"type": "boolean", "description": "Also W and L, where cells are listed."},
        },
        ("sql",),
    ),
    "answer": ({**_ASK, "id": _ID}, ("id", "sql")),
    "discover": (
        {
            "id": _ID,
            "column": {"type": "string", "description": "Such as visits.city, or an expression over one table."},
            "what": {"type": "string", "enum": ["keys", "range"]},
            "epsilon": _NUMBER,
            "delta": _NUMBER,
            "wait": _WAIT,
        },
        ("id", "column"),
    ),
}
"""The properties of each kind of request, and which of them it needs."""


def body_schema(kind: str) -> dict[str, Any]:
    """A body as JSON Schema."""
    properties, required = BODIES[kind]
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def checked(kind: str, body: Any) -> dict[str, Any]:
    """A body with the right keys of the right types; InterfaceError for any other."""
    properties, required = BODIES[kind]
    if not isinstance(body, Mapping):
        raise InterfaceError(f"the body of {kind} must be a JSON object")
    for key, value in body.items():
        if key not in properties:
            name = key[:40].encode("ascii", "backslashreplace").decode()
            raise InterfaceError(f"{name!r} is no key of {kind}\nhint: {suggestion(key, properties)}")
        if not _fits(value, properties[key]):
            raise InterfaceError(f"{key} of {kind} has the wrong type or form\nhint: see /api/openapi.json")
    for key in required:
        if key not in body:
            raise InterfaceError(f"{key} is missing from the body of {kind}\nhint: see /api/openapi.json")
    return dict(body)


def is_request_id(text: str) -> bool:
    """Whether a text can name a request."""
    return _REQUEST_ID.fullmatch(text) is not None


def canonical(kind: str, body: dict[str, Any], spend: Decimal | None) -> dict[str, Any]:
    """A request in the one form in which it is kept, queued and compared; errors of tacit's tree if it is none."""
    if kind == "discover":
        found = {key: value for key, value in body.items() if key not in ("id", "wait")}
        if "epsilon" not in found and spend is not None:
            found["epsilon"] = spend
        return {key: wire.written(_read(value)) if key != "column" else value for key, value in found.items()}
    options = {key: _read(body[key]) for key in wire.OPTIONS if key in body and key != "error"}
    if "error" in body:
        try:
            options["error"] = wire.read_error_target(body["error"])
        except (ValueError, OverflowError):
            raise InterfaceError("error names queries by their number\nhint: see /api/openapi.json") from None
    params = body.get("params")
    if isinstance(params, Mapping):
        params = {name: _read_float(value) for name, value in params.items()}
    elif params is not None:
        params = [_read_float(value) for value in params]
    asked = ask(body["sql"], params, **options)
    request = wire.request_of(asked)
    if not asked.names_budget and spend is not None:
        request["epsilon"] = wire.written(spend)
    return request | {name: _exact(body[name]) for name in QUESTIONS if body.get(name)}


def _exact(value: Any) -> Any:
    """A question about a plan as it is kept: numbers as they were written."""
    if isinstance(value, Mapping):
        return {key: _exact(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_exact(one) for one in value]
    return wire.written(value)


def _read(value: Any) -> Any:
    """An argument: numbers stay exactly as they were written."""
    try:
        return value if isinstance(value, (Decimal, list)) else wire.read(value)
    except (ValueError, TypeError, KeyError):
        raise InterfaceError("a number of the request cannot be read\nhint: see /api/openapi.json") from None


def _read_float(value: Any) -> Any:
    try:
        return wire.read(value)
    except (ValueError, TypeError, KeyError):
        raise InterfaceError(
            'a parameter cannot be read\nhint: a number, a text, true, false, null, or {"date": "2024-01-31"}'
        ) from None


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """As much of JSON Schema as the table above uses."""
    if "oneOf" in schema:
        return any(_fits(value, one) for one in schema["oneOf"])
    if "enum" in schema:
        return isinstance(value, str) and value in schema["enum"]
    kinds = schema["type"]
    if not any(_is(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    if isinstance(value, str) and "pattern" in schema:
        return re.fullmatch(schema["pattern"], value) is not None
    if isinstance(value, (int, Decimal)) and "minimum" in schema:
        return bool(schema["minimum"] <= value <= schema["maximum"])
    if isinstance(value, list):
        return all(_fits(item, schema["items"]) for item in value)
    if isinstance(value, Mapping):
        return _fits_object(value, schema)
    return True


def _fits_object(value: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    known, rest = schema.get("properties", {}), schema["additionalProperties"]
    if not schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", 10**9):
        return False
    if any(name not in value for name in schema.get("required", ())):
        return False
    return all(_fits(v, known[k]) if k in known else rest is not False and _fits(v, rest) for k, v in value.items())


def _is(value: Any, kind: str) -> bool:
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, (int, Decimal)) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "array": list, "object": Mapping}[kind])
