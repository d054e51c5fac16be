"""A small clinic in DuckDB with NULLs, skew and every type that a policy can speak of."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tacit
from support import seams
from tacit import Connection

POLICY: dict[str, Any] = {
    "trust_schema": True,
    "budget": {"epsilon": 10.0, "delta": 1e-6},
    "tables": {
        "visits": {
            "columns": {
                "state": {"values": ["NY", "NJ", "CA", "WA"], "other": True},
                "age": {"min": 0, "max": 120},
                "cost": {"min": 0.0, "max": 1000.0},
            }
        },
        "hospitals": {"public": True},
    },
}

_SCHEMA = """
CREATE TYPE ward_type AS ENUM ('surgery', 'maternity', 'other ward');
CREATE TABLE visits (
    patient_id INTEGER NOT NULL,
    state VARCHAR,
    age INTEGER CHECK (age >= 0 AND age <= 120),
    sex BOOLEAN,
    ward ward_type,
    cost DOUBLE,
    day DATE,
    bill DECIMAL(10, 2)
);
INSERT INTO visits
SELECT i // 2,
       CASE WHEN i % 11 = 0 THEN NULL ELSE ['NY', 'NY', 'NJ', 'CA', 'TX'][1 + i % 5] END,
       CASE WHEN i % 7 = 0 THEN NULL ELSE (i * 37) % 97 END,
       CASE WHEN i % 13 = 0 THEN NULL ELSE i % 2 = 0 END,
       CASE WHEN i % 19 = 0 THEN NULL ELSE ['surgery', 'maternity', 'other ward'][1 + i % 3]::ward_type END,
       CASE WHEN i % 17 = 0 THEN NULL ELSE (i * 7919 % 12000) / 10.0 END,
       DATE '2024-01-01' + (i % 366)::INTEGER,
       (i % 500)::DECIMAL(10, 2) / 4
FROM range(400) AS r(i);
CREATE TABLE labs (patient_id INTEGER, kind VARCHAR);
INSERT INTO labs SELECT i, ['blood', 'urine', 'secret-kind'][1 + i % 3] FROM range(90) AS r(i);
CREATE TABLE hospitals (id INTEGER, name VARCHAR);
INSERT INTO hospitals VALUES (1, 'General');
"""

Connect = Callable[..., Connection]


@pytest.fixture(scope="session")
def clinic_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written once; every test works on a copy, so that each has a ledger of its own."""
    path = tmp_path_factory.mktemp("clinic") / "clinic.duckdb"
    with duckdb.connect(str(path)) as con:
        for statement in _SCHEMA.split(";\n"):
            if statement.strip():
                con.execute(statement).fetchall()
    return path


@pytest.fixture
def policy() -> dict[str, Any]:
    """The test policy, free to be changed."""
    return copy.deepcopy(POLICY)


@pytest.fixture
def batch() -> list[str]:
    """Three counts of which the first is the sum of the others."""
    return [
        "SELECT count(*) FROM visits",
        "SELECT count(*) AS n FROM visits WHERE age < 40",
        "SELECT count(*) AS n FROM visits WHERE age >= 40 OR age IS NULL",
    ]


@pytest.fixture
def clinic(clinic_file: Path, tmp_path: Path) -> Path:
    """A fresh copy of the clinic."""
    path = tmp_path / "clinic.duckdb"
    path.write_bytes(clinic_file.read_bytes())
    return path


@pytest.fixture
def connect(clinic: Path) -> Iterator[Connect]:
    """``tacit.connect`` to the clinic under the test policy; closes what it opened."""
    opened: list[Connection] = []

    def open_connection(database: Any = None, **options: Any) -> Connection:
        options.setdefault("policy", POLICY)
        opened.append(tacit.connect(clinic if database is None else database, **options))
        return opened[-1]

    yield open_connection
    for con in opened:
        con.close()


@pytest.fixture
def con(connect: Connect) -> Connection:
    """The curator's connection."""
    return connect()


@pytest.fixture(scope="module")
def untouched(clinic_file: Path) -> Iterator[Connection]:
    """One connection for all tests of a module that must leave its budget as it is."""
    with tacit.connect(clinic_file, policy=POLICY) as con:
        yield con
        assert con.budget.spent.epsilon == 0


class Watch:
    """Counts the reads of private rows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads = 0
        seams.watch(monkeypatch, "count", self._read)

    def _read(self, *_: Any) -> None:
        self.reads += 1


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Watches every connection."""
    return Watch(monkeypatch)
