"""Plans beside the ledger: found by the next process, bounded, never trusted, silent where nothing can be written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
from support import seams
from tacit import Connection, plan_store
from tacit.engine.mechanism.stored_plan import PlanRecord
from tacit.plan_store import Plans, decode, encode, folder_for

BATCH = [f"SELECT count(*) FROM t WHERE a BETWEEN {low} AND {low + 7}" for low in range(0, 20, 5)]
RECORD = PlanRecord(
    {"name": "x", "shape": [2, 3]},
    {"entries": np.arange(6.0).reshape(2, 3), "where": np.arange(3), "position": np.arange(4, dtype="<u4")},
)
KEY = "ab" * 32


@pytest.fixture(autouse=True)
def no_cache_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(plan_store.PLACE, raising=False)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as raw:
        raw.execute("CREATE TABLE t AS SELECT (i % 40)::INTEGER AS a FROM range(1000) AS r(i)")
    return path


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of every search from now on."""
    seen: list[str] = []
    seams.watch(monkeypatch, "search", lambda *_, privacy, **__: seen.append(privacy))
    return seen


@pytest.fixture
def opened() -> Iterator[Callable[..., Connection]]:
    connections: list[Connection] = []

    def connect(*args: Any, **options: Any) -> Connection:
        connections.append(tacit.connect(*args, **{"epsilon": 50.0, "delta": 1e-6, **options}))
        return connections[-1]

    yield connect
    for connection in connections:
        connection.close()


def plan_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.plan"))


def test_only_the_workload_is_searched_for(
    database: Path, searches: list[str], opened: Callable[..., Connection]
) -> None:
    con = opened(database)
    con.explain(BATCH, epsilon=0.5)
    assert searches == ["pure"]
    con.explain(BATCH, epsilon=0.7)
    con.explain(BATCH, error=20)
    con.answer(BATCH, epsilon=0.3)
    con.answer(BATCH, epsilon=0.3, refresh=True)
    assert searches == ["pure"]
    con.explain(BATCH, epsilon=0.5, delta=1e-8)
    assert searches == ["pure", "approximate"]
    con.explain(BATCH, epsilon=0.5, objective="largest")
    con.explain(BATCH, epsilon=0.5, weights=range(1, 5))
    con.explain(BATCH, epsilon=0.5, strategy="identity")
    assert len(searches) == 5


def test_another_connection_reads_what_the_first_one_wrote(
    database: Path, searches: list[str], opened: Callable[..., Connection]
) -> None:
    first = opened(database).explain(BATCH, epsilon=0.5)
    folder = Path(f"{database}.plans")
    assert len(plan_files(folder)) == 1 and os.listdir(folder) == [plan_files(folder)[0].name]
    second = opened(database, analyst="ana").explain(BATCH, epsilon=0.9)
    assert searches == ["pure"]
    assert (second.strategy, second.gap) == (first.strategy, pytest.approx(first.gap))


def test_another_process_reads_it_too(database: Path, opened: Callable[..., Connection]) -> None:
    error = opened(database).explain(BATCH, epsilon=0.5).error
    program = (
        "import sys, json, tacit\n"
        "from tacit.engine.mechanism import stored_plan\n"
        "stored_plan.optimize = None\n"
        "con = tacit.connect(sys.argv[1], epsilon=50.0, delta=1e-6)\n"
        "print(con.explain(json.loads(sys.argv[2]), epsilon=0.5).error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(database), json.dumps(BATCH)], capture_output=True, text=True, check=True
    )
    assert float(run.stdout) == pytest.approx(error)
    assert run.stderr == ""


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:40],
        lambda data: data[:-8],
        lambda data: data + b"x",
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: b"\x80\x04" + data,
        lambda data: b"tacit plan 1\n" + b"[" * 10_000 + b"\n",
        lambda data: b"tacit plan 1\n{}\n",
        lambda data: b"tacit plan 1\nno\n",
    ],
)
def test_a_broken_file_is_searched_for_again_and_replaced(
    database: Path, searches: list[str], opened: Callable[..., Connection], damage: Callable[[bytes], bytes]
) -> None:
    first = opened(database).explain(BATCH, epsilon=0.5)
    (path,) = plan_files(Path(f"{database}.plans"))
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    second = opened(database).explain(BATCH, epsilon=0.5)
    assert searches == ["pure", "pure"] and second.error == first.error
    opened(database).explain(BATCH, epsilon=0.5)
    assert searches == ["pure", "pure"]


def test_the_environment_names_the_folder_and_each_ledger_has_its_own(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Callable[..., Connection]
) -> None:
    place = tmp_path / "cache" / "plans"
    monkeypatch.setenv(plan_store.PLACE, str(place))
    opened(database).explain(BATCH, epsilon=0.5)
    opened(database, ledger=tmp_path / "other.ledger").explain(BATCH, epsilon=0.5)
    assert len(plan_files(place)) == len(list(place.iterdir())) == 2
    assert not plan_files(tmp_path / "data.duckdb.plans")


def test_an_empty_name_keeps_nothing(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Callable[..., Connection]
) -> None:
    monkeypatch.setenv(plan_store.PLACE, "")
    opened(database).explain(BATCH, epsilon=0.5)
    assert not plan_files(tmp_path)


def test_a_database_in_memory_keeps_its_plans_there(
    searches: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with duckdb.connect() as raw:
        raw.execute("CREATE TABLE t (a INTEGER)")
        with tacit.connect(raw, epsilon=5.0) as con:
            for epsilon in (0.1, 0.2):
                con.explain(BATCH, epsilon=epsilon)
    assert searches == ["pure"] and not list(tmp_path.iterdir())


def test_where_nothing_can_be_written_nothing_is_said(
    database: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    opened: Callable[..., Connection],
) -> None:
    monkeypatch.setenv(plan_store.PLACE, str(database))  # a file: no folder can be made below it
    opened(database).answer(BATCH, epsilon=0.5)
    assert capfd.readouterr() == ("", "")


def test_a_record_survives_the_file() -> None:
    again = decode(KEY, encode(KEY, RECORD))
    assert again is not None and again.meta == RECORD.meta
    assert all(np.array_equal(again.arrays[name], array) for name, array in RECORD.arrays.items())
    assert decode("cd" * 32, encode(KEY, RECORD)) is None, "a file under another name is of another workload"


@pytest.mark.parametrize("array", [["entries", "|O", [2]], ["entries", "<f8", [-1]], ["entries", "<f8", [10**12]]])
def test_no_object_and_no_impossible_array_is_read(array: list[Any], tmp_path: Path) -> None:
    data = encode(KEY, RECORD)
    end = data.index(b"\n", 13)
    head = json.loads(data[13:end])
    head["arrays"] = [array]
    (tmp_path / f"{KEY}.plan").write_bytes(data[:13] + json.dumps(head).encode() + data[end:])
    assert Plans(tmp_path).read(KEY) is None


def test_the_folder_is_bounded_and_the_oldest_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(encode(KEY, RECORD))
    monkeypatch.setattr(plan_store, "MOST_BYTES", 3 * size)
    plans, keys = Plans(tmp_path), [f"{k:064d}" for k in range(4)]
    for age, key in enumerate(keys[:3]):
        plans.write(key, RECORD)
        os.utime(tmp_path / f"{key}.plan", (1000.0 + age, 1000.0 + age))
    assert plans.read(keys[0]) is not None, "and is the one used last from now on"
    plans.write(keys[3], RECORD)
    assert [plans.read(key) is not None for key in keys] == [True, False, True, True]


def test_what_nobody_finished_writing_is_removed_in_the_end(tmp_path: Path) -> None:
    new, old = tmp_path / "new.part", tmp_path / "old.part"
    for path in (new, old):
        path.write_bytes(b"")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    Plans(tmp_path).write(KEY, RECORD)
    assert new.exists() and not old.exists()


def test_a_large_record_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_store, "LARGEST_FILE", 100)
    Plans(tmp_path).write(KEY, RECORD)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_none_is_not_read(tmp_path: Path) -> None:
    (tmp_path / f"{KEY}.plan").mkdir()
    assert Plans(tmp_path).read(KEY) is None
    assert Plans(None).read(KEY) is None


def test_the_folder_lies_beside_the_ledger() -> None:
    assert folder_for(Path("/data/x.ledger")) == Path("/data/x.plans")
    assert folder_for(None) is None


def test_plan_seconds_bounds_the_search_and_a_longer_one_is_made_later(
    database: Path, searches: list[str], opened: Callable[..., Connection]
) -> None:
    con = opened(database)
    quick = con.explain(BATCH, epsilon=0.5, plan_seconds=0)
    con.explain(BATCH, epsilon=0.6, plan_seconds=0)
    assert searches == ["pure"]
    full = opened(database).explain(BATCH, epsilon=0.5)
    assert searches == ["pure", "pure"] and full.error <= quick.error
    again = opened(database).explain(BATCH, epsilon=0.5, plan_seconds=0)
    assert searches == ["pure", "pure"] and again.error == pytest.approx(full.error)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "2", b"2", True, [1], 10**400])
def test_plan_seconds_is_a_number_of_seconds(database: Path, opened: Callable[..., Connection], seconds: Any) -> None:
    with pytest.raises(tacit.ProgrammingError, match="plan_seconds=2"):
        opened(database).explain(BATCH, epsilon=0.5, plan_seconds=seconds)
