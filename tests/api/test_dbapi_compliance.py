"""The published compliance suite of DB-API 2.0 (dbapi-compliance), as far as a source that is only read can pass it.

Where a test of the suite writes through the cursor, the owner of the database writes here, and the test's own
assertions about reading follow. Two tests are left out, each with its reason.
"""

from __future__ import annotations

from typing import Any

import dbapi20
import duckdb
import tacit


class TestCompliance(dbapi20.DatabaseAPI20Test):  # type: ignore[misc]
    driver = tacit

    test_non_idempotent_close = None
    """Closing twice is no error: PEP 249 does not ask for one, and ``with`` blocks would meet it."""
    test_setoutputsize = None
    """Left to each driver by the suite; here it has nothing to do (``test_setoutputsize_basic``)."""

    def setUp(self) -> None:
        self.owner = duckdb.connect()
        for statement in (self.ddl1, self.ddl2):
            self.owner.execute(statement)
        names = [f"{self.table_prefix}{table}" for table in ("booze", "barflys")]
        policy = {"budget": {"epsilon": 1.0}, "tables": {name: {"public": True} for name in names}}
        self.connect_args, self.connect_kw_args = (self.owner,), {"policy": policy}

    def tearDown(self) -> None:
        self.owner.close()

    def executeDDL1(self, cursor: Any) -> None:
        """The owner has made the tables; what is left of it is that a closed cursor refuses."""
        cursor.setinputsizes(())

    executeDDL2 = executeDDL1

    def _populate(self) -> list[str]:
        for statement in super()._populate():
            self.owner.execute(statement)
        return []

    def _paraminsert(self, cur: Any) -> None:
        """What the suite inserts by parameters is here compared with parameters."""
        self.owner.execute(f"insert into {self.table_prefix}booze values ('Victoria Bitter'), ('Cooper''s')")
        sql = f"select name from {self.table_prefix}booze where name = "
        cur.execute(sql + "?", ("Cooper's",))
        assert cur.fetchall() == [("Cooper's",)]
        cur.execute(sql + ":beer", {"beer": "Victoria Bitter"})
        assert cur.fetchall() == [("Victoria Bitter",)]
        assert cur.rowcount in (-1, 1)

    def test_executemany(self) -> None:
        self._populate()
        with self._connect() as con:
            cur = con.cursor()
            assert self._seen(cur.execute(self._select("name = 'none'"))) == []
            cur.executemany(self._select("name = ?"), [(self.samples[0],), (self.samples[1],)])
            assert [(self.samples[0],), (self.samples[1],)] == self._seen(cur)

    def test_cursor_isolation(self) -> None:
        with self._connect() as con:
            one, other = con.cursor(), con.cursor()
            self._populate()
            one.execute(self._select("true"))
            other.execute(self._select("false"))
            assert len(one.fetchall()) == len(self.samples)
            assert other.fetchall() == []

    def test_description(self) -> None:
        with self._connect() as con:
            cur = con.cursor()
            assert cur.description is None
            cur.execute(self._select("true"))
            assert len(cur.description) == 1
            assert len(cur.description[0]) == 7
            assert cur.description[0][0].lower() == "name"
            assert cur.description[0][1] == self.driver.STRING

    def test_rowcount(self) -> None:
        self._populate()
        with self._connect() as con:
            cur = con.cursor()
            assert cur.rowcount == -1
            cur.execute(self._select("true"))
            assert cur.rowcount in (-1, len(self.samples))

    def test_fetchone(self) -> None:
        with self._connect() as con:
            cur = con.cursor()
            self.assertRaises(self.driver.Error, cur.fetchone)
            cur.execute(self._select("true"))
            assert cur.fetchone() is None
            assert cur.rowcount in (-1, 0)
            self.owner.execute(f"insert into {self.table_prefix}booze values ('Victoria Bitter')")
            cur.execute(self._select("true"))
            assert cur.fetchone() == ("Victoria Bitter",)
            assert cur.fetchone() is None
            assert cur.rowcount in (-1, 1)

    def test_nextset(self) -> None:
        self._populate()
        with self._connect() as con:
            cur = con.cursor()
            cur.execute(f"select count(*) from {self.table_prefix}booze; {self._select('true')}")
            assert cur.fetchone()[0] == len(self.samples)
            assert cur.nextset()
            assert len(cur.fetchall()) == len(self.samples)
            assert cur.nextset() is None

    def test_None(self) -> None:
        self.owner.execute(f"insert into {self.table_prefix}barflys values ('a', NULL)")
        with self._connect() as con:
            cur = con.cursor()
            cur.execute(f"select drink from {self.table_prefix}barflys")
            assert cur.fetchall() == [(None,)]

    def _select(self, condition: str) -> str:
        return f"select name from {self.table_prefix}booze where {condition}"

    def _seen(self, cur: Any) -> list[Any]:
        rows = cur.fetchall()
        while cur.nextset():
            rows += cur.fetchall()
        return rows
