"""Random requests by the server's own description: it is true, nothing is a 5xx, and a bad request costs nothing.

``make fuzz-server`` asks 10,000 of them.
"""

from __future__ import annotations

import json
import os
import random
import time
from decimal import Decimal
from typing import Any

from support.json_schema import fits, make
from support.serving import Serving
from tacit.server.app import Api
from tacit.server.kept_requests import KeptRequests
from tacit.wire_results import JSON

REQUESTS = int(os.environ.get("TACIT_FUZZ_SERVER", "200"))
QUERIES = (
    "SELECT count(*) FROM visits WHERE age < 40",
    "SELECT state, count(*) AS n FROM visits GROUP BY state",
    "SELECT count(*) FROM hospitals",
    "SELECT sum(wage) FROM visits",
    "SELECT nights, count(*) FROM visits GROUP BY nights; SELECT count(*) FROM labs WHERE patient_id < ?",
)


def test_the_description_is_complete(server: Serving) -> None:
    status, described = server.json("GET", "/api/openapi.json")
    assert status == 200
    paths = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    api = Api.__new__(Api)
    api._page = {}
    routes = {(method, route.path) for route in api.routes() for method in (route.methods or ()) if method != "HEAD"}
    assert paths == {(m, p) for m, p in routes if p.startswith("/api/") and p != "/api/openapi.json"}


def test_random_requests(server: Serving) -> None:
    rng = random.Random(os.environ.get("TACIT_SEED", "7"))
    described = server.json("GET", "/api/openapi.json")[1]
    parts = described["components"]["schemas"]
    tokens = [server.token("fuzz"), server.token("chief", role="curator"), server.token("late", days=0)]
    operations = [
        (method.upper(), path, operation)
        for path, methods in sorted(described["paths"].items())
        for method, operation in sorted(methods.items())
    ]
    before = _spent(server, tokens[1])
    asking = [one for one in operations if "requestBody" in one[2]]
    ids: list[str] = ["no-such-request"]
    seen: dict[int, int] = {}
    for _ in range(REQUESTS):
        method, path, operation = rng.choice(operations if rng.random() < 0.4 else asking)
        token = rng.choice(tokens[:2]) if rng.random() < 0.9 else rng.choice([tokens[2], "", "x"])
        wrong = rng.choice((0.0, 0.05, 0.3))
        body = _body(operation, rng, wrong, parts)
        if isinstance(body, dict) and isinstance(body.get("id"), str):
            ids.append(body["id"])
        sent = path.replace("{id}", rng.choice(ids[-20:])) + _query(operation, rng, wrong)
        status, headers, data = server.request(method, _address(sent), token, body)
        seen[status] = seen.get(status, 0) + 1
        told = f"{method} {sent} {body!r}: {status} {data[:300]!r}"
        responses = operation["responses"]
        assert status < 500 or status == 503, told
        assert str(status) in responses or status in (400, 404), told
        assert b"Traceback" not in data, told
        assert b'File "' not in data, told
        if headers["content-type"].startswith(JSON):
            stated = responses.get(str(status), {}).get("content", {}).get(JSON, {}).get("schema", {})
            assert fits(json.loads(data), stated if status < 400 else parts["Error"], parts), told
    assert seen.get(200, 0) > REQUESTS / 20
    assert seen.get(400, 0) > REQUESTS / 20
    assert not any('"event": "defect"' in line for line in server.lines)
    requests = KeptRequests(server.place.store())
    while requests.unfinished():
        time.sleep(0.05)
    kept = [one for token in tokens[:2] for one in requests.of(server.tokens.holder(token), 10**6)]
    paid = [one for one in kept if one.state == "done"]
    assert not [one for one in kept if one.charge is not None and one.state != "done"]
    costs = [Decimal((one.head or {})["cost"]["epsilon"]) for one in paid]
    assert _spent(server, tokens[1]) - before == sum(costs)
    assert any(costs)


def _body(operation: dict[str, Any], rng: random.Random, wrong: float, parts: dict[str, Any]) -> Any:
    if "requestBody" not in operation:
        return None
    schema = operation["requestBody"]["content"][JSON]["schema"]
    if "$ref" not in schema:
        return {} if rng.random() > wrong else rng.choice([[], {"x": 1}, b"{"])
    body = make(parts[schema["$ref"].rpartition("/")[2]], rng, wrong)
    if isinstance(body, dict) and rng.random() < 0.8:
        for name, values in (("sql", QUERIES), ("epsilon", (0.001, 0.002)), ("column", ("labs.kind", "visits.age"))):
            if name in body:
                body[name] = rng.choice(values)
        body.pop("error", None)
        body.pop("discover", None)
        if rng.random() < 0.7:
            for name in ("params", "weights", "sizes", "objective", "strategy", "inference", "confidence"):
                body.pop(name, None)
    return body


def _query(operation: dict[str, Any], rng: random.Random, wrong: float) -> str:
    query = []
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query" and rng.random() < 0.5:
            query.append(f"{parameter['name']}={make(parameter['schema'], rng, wrong)}")
    return "?" + "&".join(query) if query else ""


def _address(text: str) -> str:
    return "".join(c if 0x21 <= ord(c) < 0x7F else "%3F" for c in text)


def _spent(server: Serving, token: str) -> Decimal:
    return Decimal(server.json("GET", "/api/budget", token)[1]["spent"]["epsilon"])
