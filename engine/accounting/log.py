"""The log of a ledger, read and continued inside one transaction.

Each entry is checked against its digest and the one before whenever it is read: what was damaged since it was written
is not used.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tacit.engine.accounting.amounts import NOTHING, Amount
from tacit.engine.accounting.composition import Event, Total
from tacit.engine.accounting.entry import Entry, Meta, Standing, payload_digest, running
from tacit.engine.accounting.schema import APPLICATION, FIRST_SCHEMA, create_tables, damaged, schema_of, upgrade_tables
from tacit.errors import LedgerError

_COLUMNS = "id, kind, analyst, epsilon, delta, rho, fingerprint, detail, refers, at, digest"


class Log:
    """The tables of a ledger, as one transaction sees them."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self.connection = connection
        self.path = path

    @property
    def damaged(self) -> LedgerError:
        """The refusal to raise when an entry or a table is not as it was written."""
        return damaged(self.path)

    def meta(self) -> Meta:
        """The ledger's identity, rule and salt."""
        rows = self.connection.execute("SELECT identity, rule, salt FROM meta").fetchall()
        if len(rows) != 1 or [type(value) for value in rows[0]] != [str, str, bytes] or len(rows[0][2]) != 32:
            raise self.damaged
        return Meta(*rows[0])

    def entries(self, where: str = "", *values: Any) -> list[Entry]:
        """Entries in the order in which they were made; the clock plays no part. ``where`` is never user text."""
        standing = "''" if self._has_first_schema() else "standing"
        before = "(SELECT p.digest FROM entries p WHERE p.id = entries.id - 1)"
        statement = f"SELECT {_COLUMNS}, {standing}, {before} FROM entries {where} ORDER BY id"  # noqa: S608
        return [self._checked(row) for row in self.connection.execute(statement, values).fetchall()]

    def entry(self, number: int, kind: str = "") -> Entry:
        """One entry that must be there, and be of this kind if one is named."""
        entries = self.entries("WHERE id = ?", number)
        if len(entries) != 1 or (kind and entries[0].kind != kind):
            raise self.damaged
        return entries[0]

    def standing(self) -> Standing:
        """The state of the ledger now: read from its last entry, without the rest of the log."""
        last = self._last()
        if last is None:
            raise self.damaged
        return self.standing_after(last)

    def standing_after(self, last: Entry) -> Standing:
        """The standing after the last entry; added up from the whole log in a ledger that has none yet."""
        if not last.standing:
            if not self._has_first_schema():
                raise self.damaged
            return self._added_up()[0]
        try:
            standing = Standing.read(last.standing)
        except (ValueError, TypeError, ArithmeticError):
            raise self.damaged from None
        numbers = (standing.policy, standing.version)
        if not 0 < standing.cap <= last.id or not all(0 <= number <= last.id for number in numbers):
            raise self.damaged
        return standing

    def cap(self) -> Amount:
        """The most that may ever be spent."""
        return self.entry(self.standing().cap, "cap").amount

    def policy(self) -> Entry | None:
        """The entry of the policy that the ledger is bound to."""
        number = self.standing().policy
        return self.entry(number, "policy") if number else None

    def total(self, analyst: str | None) -> Total:
        """What was charged in all, or charged to and read by one analyst."""
        return self.standing().charged if analyst is None else self._analyst_total(analyst)

    def analysts(self) -> list[str]:
        """Everyone whom an entry names."""
        table = "entries WHERE analyst IS NOT NULL" if self._has_first_schema() else "analysts"
        return sorted(name for (name,) in self.connection.execute(f"SELECT DISTINCT analyst FROM {table}"))  # noqa: S608

    def payload(self, charge_id: int) -> bytes | None:
        """The release of a charge, if it has one. Payload and entry must both be there, and agree."""
        rows = self.connection.execute("SELECT payload FROM releases WHERE charge = ?", (charge_id,)).fetchall()
        entries = self.entries("WHERE refers = ? AND kind = 'release'", charge_id)
        if not rows and not entries:
            return None
        if len(rows) != 1 or len(entries) != 1 or not isinstance(rows[0][0], bytes):
            raise self.damaged
        if entries[0].refers != charge_id or payload_digest(rows[0][0]) != entries[0].detail:
            raise self.damaged
        return rows[0][0]

    def begin(self, cap: Amount, rule: str, policy: str | None, salt: bytes | None) -> None:
        """Make an empty database a new ledger, in one transaction."""
        connection = self.connection
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        connection.execute("BEGIN IMMEDIATE")
        create_tables(connection)
        meta = Meta(secrets.token_hex(16), rule, secrets.token_bytes(32) if salt is None else salt)
        connection.execute("INSERT INTO meta VALUES (?, ?, ?)", (meta.identity, meta.rule, meta.salt))
        self.append("cap", cap)
        if policy is not None:
            self.append("policy", detail=policy)
        connection.execute("COMMIT")

    def upgrade(self) -> None:
        """Give a ledger of tacit 0.1.0 the current schema, and its standing as first entries."""
        if not self._has_first_schema():
            return
        standing, analysts = self._added_up()
        upgrade_tables(self.connection)
        for analyst in (None, *sorted(analysts)):
            total = None if analyst is None else analysts[analyst]
            self.append("balance", analyst=analyst, standing=replace(standing, analyst=total))

    def append(
        self,
        kind: str,
        amount: Amount = NOTHING,
        *,
        rho: Decimal | None = None,
        analyst: str | None = None,
        fingerprint: str = "",
        detail: str = "",
        refers: int | None = None,
        standing: Standing | None = None,
    ) -> Entry:
        """One more entry, chained to the last one, with the standing that follows from it unless one is given."""
        last = self._last()
        number, previous = (1, self.meta().root) if last is None else (last.id + 1, last.digest)
        if standing is None:
            before = Standing() if last is None else self.standing_after(last)
            total = None if analyst is None else self._analyst_total(analyst)
            standing = before.after(number, kind, Event.of(amount, rho, fingerprint), total)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        draft = Entry(number, kind, analyst, amount, rho, fingerprint, detail, refers, now, "", standing.text)
        entry = replace(draft, digest=draft.follows(previous))
        self.connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                entry.id,
                entry.kind,
                entry.analyst,
                str(amount.epsilon),
                str(amount.delta),
                None if rho is None else str(rho),
                entry.fingerprint,
                entry.detail,
                entry.refers,
                entry.at,
                entry.digest,
                entry.standing,
            ),
        )
        if analyst is not None:
            self.connection.execute("INSERT OR REPLACE INTO analysts VALUES (?, ?)", (analyst, entry.id))
        return entry

    def append_release(self, charge: Entry, payload: bytes, subjects: Sequence[str]) -> None:
        """The release of a charge: its entry, its payload, and the names under which it is found again."""
        self.append(
            "release",
            analyst=charge.analyst,
            fingerprint=charge.fingerprint,
            detail=payload_digest(payload),
            refers=charge.id,
        )
        self.connection.execute("INSERT INTO releases VALUES (?, ?)", (charge.id, payload))
        names = [(subject, charge.id) for subject in dict.fromkeys(subjects)]
        self.connection.executemany("INSERT INTO subjects VALUES (?, ?)", names)

    def _has_first_schema(self) -> bool:
        return schema_of(self.connection) == FIRST_SCHEMA

    def _last(self) -> Entry | None:
        number = self.connection.execute("SELECT max(id) FROM entries").fetchone()[0]
        return None if number is None else self.entry(number)

    def _analyst_total(self, analyst: str) -> Total:
        """What one analyst was charged and has read, from the last entry that names them.

        A table and an index both say which entry that is. A page of one of the two may be damaged: they must agree.
        """
        if self._has_first_schema():
            return self._added_up()[1].get(analyst, Total())
        listed = self.connection.execute("SELECT last FROM analysts WHERE analyst = ?", (analyst,)).fetchall()
        (indexed,) = self.connection.execute("SELECT max(id) FROM entries WHERE analyst = ?", (analyst,)).fetchone()
        if not listed and indexed is None:
            return Total()
        if listed != [(indexed,)]:
            raise self.damaged
        entry = self.entry(indexed)
        total = self.standing_after(entry).analyst
        if entry.analyst != analyst or total is None:
            raise self.damaged
        return total

    def _added_up(self) -> tuple[Standing, dict[str, Total]]:
        """The standing of the whole log, and the total of each analyst in it."""
        last, analysts = Standing(), dict[str, Total]()
        for entry, last in running(self.entries()):
            if entry.analyst is not None and last.analyst is not None:
                analysts[entry.analyst] = last.analyst
        return replace(last, analyst=None), analysts

    def _checked(self, row: tuple[Any, ...]) -> Entry:
        number, kind, analyst, epsilon, delta, rho, fingerprint, detail, refers, at, digest, standing, previous = row
        texts = (kind, epsilon, delta, fingerprint, detail, at, digest, standing)
        optional = (analyst, str), (rho, str), (refers, int), (previous, str)
        if not all(isinstance(text, str) for text in texts):
            raise self.damaged
        if any(value is not None and type(value) is not expected for value, expected in optional):
            raise self.damaged
        try:
            amount = Amount(Decimal(epsilon), Decimal(delta))
            price = None if rho is None else Decimal(rho)
        except ArithmeticError:
            raise self.damaged from None
        entry = Entry(number, kind, analyst, amount, price, fingerprint, detail, refers, at, digest, standing)
        if number == 1:
            previous = self.meta().root
        if previous is None or entry.follows(previous) != digest:
            raise self.damaged
        return entry
