"""A version says whether a table has the same state, and nothing else: not how large a file is, nor when it changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
import tacit
import tacit.ledger
from support import seams
from tacit import Connection
from tacit.engine.accounting.ledger import Ledger
from tacit.engine.mechanism.measurement import unpack_with_cells

Connect = Callable[..., Connection]
SQL = "SELECT count(*) FROM visits WHERE age < 40"


def stamps(path: Path) -> list[str]:
    """What a version must not show of a file."""
    stat = path.stat()
    return [str(stat.st_size), str(stat.st_mtime_ns), str(stat.st_mtime_ns // 10**9), hex(stat.st_size)[2:]]


def test_nothing_shows_the_size_or_the_stamp_of_the_file(con: Connection, clinic: Path) -> None:
    shown = [repr(con.catalog), str(con.explain(SQL, epsilon=1)), repr(con.explain(SQL, epsilon=1))]
    answers = con.answer(SQL, epsilon=1)
    shown += [repr(answers), repr(con.catalog), tacit.ledger.log(con).to_string()]
    ledger = Ledger.open(f"{clinic}.ledger")
    for entry in ledger.entries():
        shown.append(repr(entry))
    (stored,) = ledger.releases(next(e.fingerprint for e in ledger.entries() if e.kind == "charge"))
    shown.append(repr(unpack_with_cells(stored.payload)[1]))
    size, *others = stamps(clinic)
    assert not [text for text in shown for word in others if word in text]
    assert not [text for text in shown if re.search(rf"\b{size}\b", text)]
    assert all(re.fullmatch("[0-9a-f]{32}", table.version) for table in con.catalog.tables)


def test_one_key_for_all_who_share_a_ledger_and_another_for_others(
    connect: Connect, clinic: Path, tmp_path: Path
) -> None:
    one = connect()
    before = one.catalog.table("visits")
    one.answer(SQL, epsilon=1)
    two, other = connect(), connect(ledger=tmp_path / "other.ledger")
    other.answer(SQL, epsilon=1)
    versions = [con.catalog.table("visits") for con in (one, two, other)]
    assert before == versions[0] == versions[1] != versions[2], "and the first answer is found by the second"
    assert not any(two.answer(SQL, epsilon=1).cost)


def test_a_key_cannot_be_chosen_to_find_the_stamp(connect: Connect, tmp_path: Path) -> None:
    """Each connection without a ledger has a key of its own."""
    versions = {connect().catalog.tables[0].version for _ in range(3)}
    assert len(versions) == 3


def test_a_ledger_begun_by_another_meanwhile(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loser of the race names its tables anew, so that what it buys is found again."""
    slow, fast = connect(), connect()
    begin = seams.real("begin")

    def overtaken(*args: object, **options: object) -> object:
        monkeypatch.undo()
        fast.answer("SELECT count(*) FROM labs", epsilon=1)
        return begin(*args, **options)

    seams.replace(monkeypatch, "begin", staticmethod(overtaken))
    assert slow.answer(SQL, epsilon=1).cost.epsilon == 1
    assert not any(fast.answer(SQL, epsilon=1).cost)
    assert slow.budget.spent.epsilon == 2


def test_a_changed_file_has_another_version(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    duckdb.sql("SELECT range AS a FROM range(100)").write_parquet(str(path))
    with tacit.connect(path, epsilon=5) as con:
        version = con.catalog.tables[0].version
        assert con.catalog.tables[0].version == version
        duckdb.sql("SELECT range AS a FROM range(101)").write_parquet(str(path))
        assert con.catalog.tables[0].version != version
