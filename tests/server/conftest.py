"""One server for all tests of the folder; tests that end it start their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from support.serving import Serving

POLICY = """
trust_schema = true
[budget]
epsilon = 1000.0
delta = 1e-3
spend = 0.5
[tables.visits.columns]
state = { values = ["NY", "NJ", "CA"], other = true }
age = { min = 0, max = 120 }
cost = { min = 0.0, max = 1000.0 }
day = { min = 2024-01-01, max = 2024-01-09 }
nights = { min = 0, max = 7 }
[tables.hospitals]
public = true
[server]
quantum_ms = 10
workers = 2
body_kb = 64
body_seconds = 2
queue_per_analyst = 6
"""
_SCHEMA = """
CREATE TYPE ward_type AS ENUM ('surgery', 'maternity', 'other ward');
CREATE TABLE visits AS
SELECT i // 2 AS patient_id,
       CASE WHEN i % 11 = 0 THEN NULL ELSE ['NY', 'NY', 'NJ', 'CA', 'TX'][1 + i % 5] END AS state,
       CASE WHEN i % 7 = 0 THEN NULL ELSE (i * 37) % 97 END AS age,
       CASE WHEN i % 13 = 0 THEN NULL ELSE i % 2 = 0 END AS sex,
       CASE WHEN i % 19 = 0 THEN NULL ELSE ['surgery', 'maternity', 'other ward'][1 + i % 3]::ward_type END AS ward,
       CASE WHEN i % 17 = 0 THEN NULL ELSE (i * 7919 % 12000) / 10.0 END AS cost,
       DATE '2024-01-01' + (i % 9)::INTEGER AS day,
       i % 8 AS nights
FROM range(400) AS r(i);
CREATE TABLE labs AS SELECT i AS patient_id, ['blood', 'urine', 'secret-kind'][1 + i % 3] AS kind FROM range(90) r(i);
CREATE TABLE hospitals AS SELECT 1 AS id, 'General' AS name, DATE '1999-05-01' AS founded, 1.5::DECIMAL(5, 2) AS rate
"""
Serve = Callable[..., Serving]


@pytest.fixture(scope="session")
def clinic_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served") / "clinic.duckdb"
    with duckdb.connect(str(path)) as db:
        for statement in _SCHEMA.split(";\n"):
            db.execute(statement).fetchall()
    return path


@pytest.fixture(scope="session")
def policy_text() -> str:
    return POLICY


@pytest.fixture
def serve(clinic_file: Path, tmp_path: Path) -> Iterator[Serve]:
    """Starts servers over a copy of the clinic of one's own."""
    running: list[Serving] = []

    def start(policy: str = POLICY, *options: str) -> Serving:
        database, file = tmp_path / "clinic.duckdb", tmp_path / "clinic.toml"
        if not database.exists():
            database.write_bytes(clinic_file.read_bytes())
        file.write_text(policy)
        running.append(Serving(file, database, *options))
        return running[-1]

    yield start
    for server in running:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture(scope="session")
def server(clinic_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """The server that tests share: what one spends is spent for all of them."""
    folder = tmp_path_factory.mktemp("server")
    database, file = folder / "clinic.duckdb", folder / "clinic.toml"
    database.write_bytes(clinic_file.read_bytes())
    file.write_text(POLICY)
    serving = Serving(file, database)
    yield serving
    serving.stop()
