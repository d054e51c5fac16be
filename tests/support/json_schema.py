"""As much of JSON Schema as the server's description uses: values made at random by it, and values checked by it."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

_TEXTS = ("", "x", "ß", "\ud800", "a" * 70, "SELECT count(*) FROM visits", "'; DROP TABLE visits; --", "\0", "../../x")
_NUMBERS: tuple[Any, ...] = (0, 1, -1, 0.5, 1e-300, 1e300, 10**30, 3, 0.01, 60)
_ODD: tuple[Any, ...] = (
    None,
    True,
    [],
    {},
    [[]],
    {"decimal": "x"},
    {"date": "2024-13-99"},
    "NaN",
    -0.0,
    {"a": {"b": 1}},
)


def make(schema: Mapping[str, Any], rng: random.Random, wrong: float) -> Any:
    """A value of a schema; with some probability, in any place of it, another one."""
    if rng.random() < wrong:
        return rng.choice([*_ODD, *_TEXTS, *_NUMBERS])
    if "oneOf" in schema:
        return make(rng.choice(schema["oneOf"]), rng, wrong)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kinds = schema.get("type", ["null", "string"])
    kind = kinds if isinstance(kinds, str) else rng.choice(kinds)
    if kind == "object":
        return _make_object(schema, rng, wrong)
    if kind == "array":
        return [make(schema["items"], rng, wrong) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
    if kind == "string":
        return _make_text(schema, rng)
    if kind in ("number", "integer"):
        if "minimum" in schema:
            return rng.randint(int(schema["minimum"]), min(int(schema["maximum"]), 3))
        return rng.choice(_NUMBERS)
    return {"null": None, "boolean": rng.random() < 0.5}[kind]


def _make_object(schema: Mapping[str, Any], rng: random.Random, wrong: float) -> dict[str, Any]:
    known = schema.get("properties", {})
    names = [name for name in known if name in schema.get("required", ()) or rng.random() < 0.25]
    if schema.get("maxProperties") == 1:
        names = [rng.choice(list(known))]
    if wrong and rng.random() < wrong:
        names.append(rng.choice(["", "nope", "epsilom"]))
    return {name: make(known.get(name, {}), rng, wrong) for name in names}


def _make_text(schema: Mapping[str, Any], rng: random.Random) -> str:
    if schema.get("pattern", "").startswith("^[A-Za-z0-9_-]{8,64}"):
        return "".join(rng.choice("abcdef0123456789_-") for _ in range(rng.randint(8, 64)))
    if "pattern" in schema:
        return rng.choice(["0.5", "1", "0.001"])
    if schema.get("format") in ("date", "date-time"):
        return rng.choice(["2024-01-05", "2024-02-30", "0001-01-01"])
    return rng.choice(_TEXTS)


def fits(value: Any, schema: Mapping[str, Any], parts: Mapping[str, Any]) -> bool:
    """Whether a value is what a schema says; ``parts`` are those that it refers to."""
    if "$ref" in schema:
        return fits(value, parts[schema["$ref"].rpartition("/")[2]], parts)
    if "allOf" in schema:
        return all(fits(value, one, parts) for one in schema["allOf"])
    if "oneOf" in schema:
        return any(fits(value, one, parts) for one in schema["oneOf"])
    if "enum" in schema:
        return value in schema["enum"]
    kinds = schema.get("type")
    if kinds is not None and not any(_is(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        return False
    if isinstance(value, list):
        return all(fits(item, schema.get("items", {}), parts) for item in value)
    if isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties", {})
        return all(name in value for name in schema.get("required", ())) and all(
            fits(v, known[k], parts) if k in known else rest is not False and fits(v, rest, parts)
            for k, v in value.items()
        )
    return True


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "array": list, "object": dict}[kind])
