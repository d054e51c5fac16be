"""What travels between a server and its clients as JSON: values, requests, budgets, catalogs.

Written and read here, in one place, so that both sides agree. Amounts of ε and δ travel as texts of exact decimals.
JSON has no infinities and no dates: what it lacks is an object of one entry, such as ``{"date": "2024-01-01"}``.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NoReturn

from tacit.engine import Amount
from tacit.sql import Catalog, Column, Range, Table, Values

from .budget import Account, Budget
from .errors import ProgrammingError
from .request import Ask

MOST_DEPTH = 40
OPTIONS = (
    "epsilon",
    "delta",
    "error",
    "confidence",
    "weights",
    "strategy",
    "objective",
    "sizes",
    "inference",
    "nonnegative",
    "integer",
    "refresh",
    "plan_seconds",
    "discover",
)
"""The arguments of ``explain`` and ``answer`` beside the batch and its parameters."""

_READ: Mapping[str, Any] = {
    "decimal": lambda text: _finite(Decimal(text)),
    "float": lambda text: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text],
    "date": dt.date.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
    "time": dt.time.fromisoformat,
    "seconds": lambda number: dt.timedelta(seconds=float(number)),
    "bytes": lambda text: base64.b64decode(text, validate=True),
}


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite():
        raise ValueError
    return value


def written(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, dt.datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, dt.date):
        return {"date": value.isoformat()}
    if isinstance(value, dt.time):
        return {"time": value.isoformat()}
    if isinstance(value, dt.timedelta):
        return {"seconds": value.total_seconds()}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, (list, tuple)):
        return [written(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if hasattr(value, "item"):  # a number of numpy's
        return written(value.item())
    raise ProgrammingError(
        f"a parameter of type {type(value).__name__} cannot be sent to a server\n"
        "hint: give a number, a text, a date, a timestamp, true, false or None"
    )


def read(value: Any) -> Any:
    """What ``written`` wrote; ValueError, TypeError or KeyError for anything else."""
    if isinstance(value, Decimal):  # a number with a point, as ``parse`` reads it
        return float(value)
    if isinstance(value, list):
        return [read(item) for item in value]
    if isinstance(value, Mapping):
        if len(value) != 1:
            raise ValueError
        ((kind, text),) = value.items()
        if not isinstance(text, (str, Decimal, int)):
            raise ValueError
        try:
            return _READ[kind](text)
        except (ArithmeticError, OverflowError):
            raise ValueError from None
    return value


def parse(data: bytes | str) -> Any:
    """JSON, read strictly: numbers as they were written, no key twice, no NaN. ValueError for anything else."""
    try:
        return json.loads(data, parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_once)
    except (RecursionError, UnicodeDecodeError, ArithmeticError):
        raise ValueError("it is nested too deeply, or is not UTF-8") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in it")
    return found


def dump(value: Any, *, in_order: bool = False) -> bytes:
    """JSON in ASCII, without spaces; ``in_order`` sorts keys, so that equal values are the same bytes."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=in_order, allow_nan=False, default=_number)
    return text.encode("ascii")


def _number(value: Any) -> Any:
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    raise TypeError(type(value).__name__)


def request_of(ask: Ask) -> dict[str, Any]:
    """A request as a client sends it; what is left at its default is left out."""
    plain = Ask(ask.batch)
    body: dict[str, Any] = {"sql": ask.batch if isinstance(ask.batch, str) else list(ask.batch)}
    if ask.params is not None:
        params = ask.params
        body["params"] = (
            {str(name): written(value) for name, value in params.items()}
            if isinstance(params, Mapping)
            else [written(value) for value in params]
        )
    for name in OPTIONS:
        value = getattr(ask, name)
        if value != getattr(plain, name):
            body[name] = {str(i): one for i, one in value.items()} if isinstance(value, dict) else written(value)
    if ask.objective != "relative":  # what was relative to sizes= is worked out
        body.pop("sizes", None)
    return body


def read_error_target(value: Any) -> Any:
    """``error=`` as a request writes it: a number, a percentage, one for each query, or for some by their number."""
    if isinstance(value, Mapping):
        return {int(i): read_error_target(one) for i, one in value.items()}
    if isinstance(value, list):
        return [read_error_target(one) for one in value]
    return float(value) if isinstance(value, Decimal) else value


def amount(value: Amount) -> dict[str, str]:
    """An (ε, δ) pair."""
    return {"epsilon": str(value.epsilon), "delta": str(value.delta)}


def read_amount(value: Mapping[str, str]) -> Amount:
    """What ``amount`` wrote."""
    return Amount(Decimal(value["epsilon"]), Decimal(value["delta"]))


def account(value: Account) -> dict[str, Any]:
    """A cap, what was spent of it, and what is left."""
    return {"cap": amount(value.cap), "spent": amount(value.spent), "left": amount(value.left)}


def read_account(value: Mapping[str, Any]) -> Account:
    """What ``account`` wrote."""
    return Account(*(read_amount(value[name]) for name in ("cap", "spent", "left")))


def read_budget(value: Mapping[str, Any], compose: Any) -> Budget:
    """The budget that a server sends; ``compose`` asks it for the realised ε."""
    whole = read_account(value)
    analysts = {name: read_account(own) for name, own in value["analysts"].items()}
    return Budget(whole.cap, whole.spent, whole.left, analysts, value["rule"], compose)


def catalog(of: Catalog) -> dict[str, Any]:
    """The tables that a batch may name, with what is declared of them."""
    tables = [
        {
            "name": table.name,
            "public": table.public,
            "privacy_unit": table.privacy_unit,
            "max_rows_per_unit": table.max_rows_per_unit,
            "version": table.version,
            "path": list(table.path),
            "view": table.view,
            "primary_key": list(table.primary_key),
            "minimum_frequency": table.minimum_frequency,
            "unit_key": table.unit_key,
            "left_out": [list(pair) for pair in table.left_out],
            "columns": [
                {"name": c.name, "type": c.type, "nullable": c.nullable, "domain": _domain(c.domain)}
                for c in table.columns
            ],
        }
        for table in of.tables
    ]
    return {"tables": tables, "main": of.main, "database": of.database}


def _domain(domain: Values | Range | None) -> dict[str, Any] | None:
    if isinstance(domain, Values):
        values: Sequence[Any] = domain.values
        return {"values": [written(v) for v in values], "other": domain.other, "complete": domain.complete}
    return None if domain is None else {"min": written(domain.min), "max": written(domain.max)}


def read_catalog(body: Mapping[str, Any]) -> Catalog:
    """The catalog that a server sends: names, types and domains, without what only its scans need."""
    return Catalog(
        main=body["main"],
        database=body["database"],
        tables=tuple(
            Table(
                t["name"],
                tuple(Column(c["name"], c["type"], c["nullable"], _read_domain(c["domain"])) for c in t["columns"]),
                privacy_unit=t["privacy_unit"],
                max_rows_per_unit=t["max_rows_per_unit"],
                public=t["public"],
                version=t["version"],
                path=tuple(t["path"]),
                view=t["view"],
                primary_key=tuple(t["primary_key"]),
                minimum_frequency=t["minimum_frequency"],
                unit_key=t["unit_key"],
                left_out=tuple((name, reason) for name, reason in t["left_out"]),
            )
            for t in body["tables"]
        ),
    )


def _read_domain(domain: Mapping[str, Any] | None) -> Values | Range | None:
    if domain is None:
        return None
    if "values" in domain:
        return Values(tuple(read(v) for v in domain["values"]), domain["other"], domain["complete"])
    return Range(read(domain["min"]), read(domain["max"]))
