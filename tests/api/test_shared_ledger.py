"""A folder with the set-group-ID bit makes its ledger a group's: two users spend from one budget."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
import tacit

ANA, BEN, EVE, GROUP, OTHERS = 40001, 40002, 40003, 40100, 40200

ANSWER = """
import os, sqlite3, sys
import duckdb, tacit
warm = duckdb.connect()  # loads whatever tacit loads, while its files can still be read
warm.execute("CREATE TABLE t AS SELECT 1 AS x")
tacit.connect(warm, epsilon=1).answer("SELECT count(*) FROM t WHERE x < 2", epsilon=1)
os.umask(0o077)
os.setgroups([int(sys.argv[3])]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
con = tacit.connect(sys.argv[1], epsilon=3.0)
con.answer(f"SELECT count(*) FROM t WHERE x < {sys.argv[4]}", epsilon=1)
held = sqlite3.connect(f"{sys.argv[1]}.ledger")  # its companions stay until this is closed
held.execute("BEGIN"); held.execute("SELECT count(*) FROM entries").fetchone()
print(con.budget.left.epsilon, flush=True)
sys.stdin.read()
held.close()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not below ``tmp_path``, which other users cannot enter."""
    path = Path(tempfile.mkdtemp(prefix="tacit-shared-"))
    with duckdb.connect(str(path / "t.duckdb")) as db:
        db.execute("CREATE TABLE t AS SELECT range % 9 AS x FROM range(900)")
    (path / "t.duckdb").chmod(0o644)
    yield path
    shutil.rmtree(path)


def start(folder: Path, user: int, group: int, x: int) -> subprocess.Popen[str]:
    arguments = [str(folder / "t.duckdb"), str(user), str(group), str(x)]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", ANSWER, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd="/"
    )


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be several users")
def test_two_users_share_a_budget_and_a_third_does_not(folder: Path) -> None:
    os.chown(folder, 0, GROUP)
    folder.chmod(0o2775)
    with start(folder, ANA, GROUP, 3) as ana:
        assert ana.stdout is not None
        assert ana.stdout.readline() == "2.0\n"
        files = {file.name: file.stat() for file in [*folder.glob("t.duckdb.*"), *folder.glob("t.duckdb.plans/*")]}
        assert {"t.duckdb.ledger", "t.duckdb.ledger-wal", "t.duckdb.ledger-shm"} <= set(files)
        assert any(name.endswith(".plan") for name in files)
        for name, state in files.items():
            assert (state.st_uid, state.st_gid) == (ANA, GROUP), name
            assert state.st_mode & 0o070 >= 0o060 and not state.st_mode & 0o007, name
        ben, eve = start(folder, BEN, GROUP, 3), start(folder, EVE, OTHERS, 5)
        out, errors = ben.communicate(timeout=60)
        assert (out, errors) == ("2.0\n", ""), "what Ana paid for costs Ben nothing"
        out, errors = eve.communicate(timeout=60)
        assert out == "" and "LedgerError" in errors
        out, errors = start(folder, BEN, GROUP, 5).communicate(timeout=60)
        assert (out, errors) == ("1.0\n", "")
        ana.communicate(timeout=60)
    assert tacit.ledger.verify(folder / "t.duckdb.ledger") >= 4


def test_a_folder_without_the_bit_keeps_the_ledger_to_its_owner(folder: Path) -> None:
    folder.chmod(0o775)
    with tacit.connect(folder / "t.duckdb", epsilon=1) as con:
        con.answer("SELECT count(*) FROM t WHERE x < 3", epsilon=0.5)
    assert stat.S_IMODE((folder / "t.duckdb.ledger").stat().st_mode) == 0o600
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.glob("t.duckdb.plans/*")} <= {0o600}
