"""What is written in a ledger: a log of entries, each chained to the one before.

Every entry carries the standing of the ledger after it: the sums of what was charged, of the whole and of the entry's
own analyst, and which entries state the cap, the policy and the last version. The digest of the entry covers them. So
a sum is read from one entry, however long the log is, and it is as well protected as the log itself. ``verify``
adds all of it up again.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tacit.engine.accounting.amounts import NOTHING, Amount
from tacit.engine.accounting.composition import Event, Total
from tacit.errors import LedgerError

APPLICATION = 0x7AC17001
FIRST_SCHEMA, SCHEMA = 2, 3
"""The schemas that this version reads: that of tacit 0.1.0, and its own."""
FIRST_TABLES = """
CREATE TABLE meta (
    identity TEXT NOT NULL,
    rule     TEXT NOT NULL,
    salt     BLOB NOT NULL
) STRICT;
CREATE TABLE entries (
    id          INTEGER PRIMARY KEY,
    kind        TEXT NOT NULL,
    analyst     TEXT,
    epsilon     TEXT NOT NULL,
    delta       TEXT NOT NULL,
    rho         TEXT,
    fingerprint TEXT NOT NULL,
    detail      TEXT NOT NULL,
    refers      INTEGER,
    at          TEXT NOT NULL,
    digest      TEXT NOT NULL
) STRICT;
CREATE INDEX entries_by_fingerprint ON entries (fingerprint);
CREATE INDEX entries_by_reference ON entries (refers) WHERE refers IS NOT NULL;
CREATE TABLE releases (
    charge  INTEGER PRIMARY KEY REFERENCES entries (id),
    payload BLOB NOT NULL
) STRICT;
CREATE TABLE subjects (
    subject TEXT NOT NULL,
    charge  INTEGER NOT NULL REFERENCES releases (charge),
    PRIMARY KEY (subject, charge)
) STRICT;
"""
# A new ledger is made in the same two steps as an old one is brought up to date, so that both have one schema. The new
# column also keeps a process of tacit 0.1.0 that still has the file open from adding entries without a standing.
TABLES_SINCE = """
ALTER TABLE entries ADD COLUMN standing TEXT NOT NULL DEFAULT '';
CREATE INDEX entries_by_analyst ON entries (analyst) WHERE analyst IS NOT NULL;
CREATE INDEX entries_of_readers ON entries (analyst, refers) WHERE kind = 'read';
CREATE INDEX entries_of_versions ON entries (id) WHERE kind = 'version';
CREATE TABLE analysts (
    analyst TEXT NOT NULL PRIMARY KEY,
    last    INTEGER NOT NULL REFERENCES entries (id)
) STRICT, WITHOUT ROWID;
"""
_NO_CHARGE = Total()
_COLUMNS = "id, kind, analyst, epsilon, delta, rho, fingerprint, detail, refers, at, digest"


@dataclass(frozen=True)
class Standing:
    """What a ledger has come to. The numbers are those of the entries that say it last; 0 for none."""

    cap: int = 0
    policy: int = 0
    version: int = 0
    charged: Total = _NO_CHARGE
    own: Total | None = None
    """What was charged to, and read by, the analyst of the entry that carries this."""

    def after(self, number: int, kind: str, event: Event, own: Total | None) -> Standing:
        """With one more entry; ``own`` is what its analyst had come to before it."""
        return Standing(
            cap=number if kind == "cap" else self.cap,
            policy=number if kind == "policy" else self.policy,
            version=number if kind == "version" else self.version,
            charged=self.charged.plus([event]) if kind == "charge" else self.charged,
            own=own.plus([event]) if own is not None and kind in ("charge", "read") else own,
        )

    def text(self) -> str:
        """As an entry keeps it."""
        return json.dumps([self.cap, self.policy, self.version, _listed(self.charged), _listed(self.own)])

    @classmethod
    def read(cls, text: str) -> Standing:
        """What ``text`` wrote."""
        cap, policy, version, charged, own = json.loads(text)
        return cls(cap, policy, version, _total(charged), None if own is None else _total(own))


@dataclass(frozen=True)
class Entry:
    """One line of the ledger. Entries are only ever added."""

    id: int
    kind: str
    """``cap``; ``policy``; ``charge``; ``release`` of a charge; ``read`` by an analyst of another's release; the
    curator's ``version`` of a table and ``backup``; ``balance``, the standing of a ledger that kept none before."""
    analyst: str | None
    amount: Amount
    rho: Decimal | None
    fingerprint: str
    detail: str
    """The mechanism of a charge, as JSON; the digest of a release's payload; the version of a table; the policy."""
    refers: int | None
    at: str
    digest: str
    standing: str = ""
    """The ``Standing`` after this entry, as text; empty in entries that tacit 0.1.0 wrote."""

    def follows(self, previous: str) -> str:
        """The digest that this entry must have after ``previous``."""
        content = [
            self.id,
            self.kind,
            self.analyst,
            str(self.amount.epsilon),
            str(self.amount.delta),
            None if self.rho is None else str(self.rho),
            self.fingerprint,
            self.detail,
            self.refers,
            self.at,
        ]
        if self.standing:
            content.append(self.standing)
        return hashlib.sha256((previous + json.dumps(content)).encode()).hexdigest()


@dataclass(frozen=True)
class Meta:
    """What is fixed at creation."""

    identity: str
    rule: str
    salt: bytes

    @property
    def root(self) -> str:
        """Where the chain of digests starts."""
        return hashlib.sha256(f"{self.identity} {self.rule} {self.salt.hex()}".encode()).hexdigest()


def fill(connection: sqlite3.Connection, cap: Amount, rule: str, policy: str | None, salt: bytes | None) -> None:
    """Make an empty database a new ledger, in one transaction."""
    connection.execute(f"PRAGMA application_id={APPLICATION}")
    connection.execute("BEGIN IMMEDIATE")
    run_script(connection, FIRST_TABLES + TABLES_SINCE)
    connection.execute(f"PRAGMA user_version={SCHEMA}")
    meta = Meta(secrets.token_hex(16), rule, secrets.token_bytes(32) if salt is None else salt)
    connection.execute("INSERT INTO meta VALUES (?, ?, ?)", (meta.identity, meta.rule, meta.salt))
    append(connection, None, "cap", cap)
    if policy is not None:
        append(connection, None, "policy", detail=policy)
    connection.execute("COMMIT")


def upgrade(connection: sqlite3.Connection, path: Path | None) -> None:
    """Inside a write transaction: give a ledger of tacit 0.1.0 today's schema, and its standing as first entries."""
    if number_of(connection, "PRAGMA user_version") != FIRST_SCHEMA:
        return
    log = entries(connection, path)
    run_script(connection, TABLES_SINCE)
    connection.execute(f"PRAGMA user_version={SCHEMA}")
    standing, analysts = _reckoned(log)
    for analyst in (None, *sorted(analysts)):
        own = None if analyst is None else analysts[analyst]
        _write(connection, path, "balance", replace(standing, own=own), analyst=analyst)


def read_meta(connection: sqlite3.Connection, path: Path | None) -> Meta:
    """The ledger's identity, rule and salt."""
    rows = connection.execute("SELECT identity, rule, salt FROM meta").fetchall()
    if len(rows) != 1 or [type(value) for value in rows[0]] != [str, str, bytes] or len(rows[0][2]) != 32:
        raise damaged(path)
    return Meta(*rows[0])


def entries(connection: sqlite3.Connection, path: Path | None, where: str = "", *values: Any) -> list[Entry]:
    """Entries in the order in which they were made; the clock plays no part. ``where`` is never user text.

    Each is checked against its own digest and the one before: what was damaged since it was written is not used.
    """
    standing = "''" if number_of(connection, "PRAGMA user_version") == FIRST_SCHEMA else "standing"
    before = "(SELECT p.digest FROM entries p WHERE p.id = entries.id - 1)"
    statement = f"SELECT {_COLUMNS}, {standing}, {before} FROM entries {where} ORDER BY id"  # noqa: S608
    return [_entry(connection, path, row) for row in connection.execute(statement, values).fetchall()]


def entry_at(connection: sqlite3.Connection, path: Path | None, number: int, kind: str = "") -> Entry:
    """One entry that must be there, and be of this kind if one is named."""
    found = entries(connection, path, "WHERE id = ?", number)
    if len(found) != 1 or (kind and found[0].kind != kind):
        raise damaged(path)
    return found[0]


def last_entry(connection: sqlite3.Connection, path: Path | None) -> Entry | None:
    """The end of the log."""
    number = connection.execute("SELECT max(id) FROM entries").fetchone()[0]
    return None if number is None else entry_at(connection, path, number)


def standing_now(connection: sqlite3.Connection, path: Path | None) -> Standing:
    """What the ledger has come to: read from its last entry, without the rest of the log."""
    last = last_entry(connection, path)
    if last is None:
        raise damaged(path)
    return standing_of(last, connection, path)


def standing_of(last: Entry, connection: sqlite3.Connection, path: Path | None) -> Standing:
    """The standing after the last entry; added up from the whole log in a ledger that keeps none yet."""
    if not last.standing:
        if number_of(connection, "PRAGMA user_version") != FIRST_SCHEMA:
            raise damaged(path)
        return _reckoned(entries(connection, path))[0]
    try:
        standing = Standing.read(last.standing)
    except (ValueError, TypeError, ArithmeticError):
        raise damaged(path) from None
    if not 0 < standing.cap <= last.id or not 0 <= standing.policy <= last.id or not 0 <= standing.version <= last.id:
        raise damaged(path)
    return standing


def own_total(connection: sqlite3.Connection, path: Path | None, analyst: str) -> Total:
    """What one analyst was charged and has read, from the last entry that names them.

    Which one that is, is told by a table and by an index. A page of one of the two may be damaged: they must agree.
    """
    if number_of(connection, "PRAGMA user_version") == FIRST_SCHEMA:
        return _reckoned(entries(connection, path))[1].get(analyst, Total())
    listed = connection.execute("SELECT last FROM analysts WHERE analyst = ?", (analyst,)).fetchall()
    (indexed,) = connection.execute("SELECT max(id) FROM entries WHERE analyst = ?", (analyst,)).fetchone()
    if not listed and indexed is None:
        return Total()
    if listed != [(indexed,)]:
        raise damaged(path)
    entry = entry_at(connection, path, indexed)
    own = standing_of(entry, connection, path).own
    if entry.analyst != analyst or own is None:
        raise damaged(path)
    return own


def analyst_names(connection: sqlite3.Connection) -> list[str]:
    """Everyone whom an entry names."""
    table = "entries WHERE analyst IS NOT NULL"
    if number_of(connection, "PRAGMA user_version") != FIRST_SCHEMA:
        table = "analysts"
    return sorted(name for (name,) in connection.execute(f"SELECT DISTINCT analyst FROM {table}"))  # noqa: S608


def append(
    connection: sqlite3.Connection,
    path: Path | None,
    kind: str,
    amount: Amount = NOTHING,
    *,
    rho: Decimal | None = None,
    analyst: str | None = None,
    fingerprint: str = "",
    detail: str = "",
    refers: int | None = None,
) -> Entry:
    """One more entry, chained to the last one, with the standing that follows from it."""
    last = last_entry(connection, path)
    standing = Standing() if last is None else standing_of(last, connection, path)
    own = None if analyst is None else own_total(connection, path, analyst)
    standing = standing.after(1 if last is None else last.id + 1, kind, Event(amount, rho), own)
    return _write(connection, path, kind, standing, amount, rho, analyst, fingerprint, detail, refers)


def _write(
    connection: sqlite3.Connection,
    path: Path | None,
    kind: str,
    standing: Standing,
    amount: Amount = NOTHING,
    rho: Decimal | None = None,
    analyst: str | None = None,
    fingerprint: str = "",
    detail: str = "",
    refers: int | None = None,
) -> Entry:
    last = connection.execute("SELECT id, digest FROM entries ORDER BY id DESC LIMIT 1").fetchone()
    number, previous = (last[0] + 1, last[1]) if last else (1, read_meta(connection, path).root)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    draft = Entry(number, kind, analyst, amount, rho, fingerprint, detail, refers, now, "", standing.text())
    entry = replace(draft, digest=draft.follows(previous))
    connection.execute(
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
        connection.execute("INSERT OR REPLACE INTO analysts VALUES (?, ?)", (analyst, entry.id))
    return entry


def payload_digest(payload: bytes) -> str:
    """What a release's entry says about its payload."""
    return hashlib.sha256(payload).hexdigest()


def damaged(path: Path | None) -> LedgerError:
    """The refusal of what is no longer as it was written."""
    return LedgerError(f"the ledger {path} is damaged; restore it from a backup (it is left as it is, never reset)")


def _entry(connection: sqlite3.Connection, path: Path | None, row: tuple[Any, ...]) -> Entry:
    number, kind, analyst, epsilon, delta, rho, fingerprint, detail, refers, at, digest, standing, previous = row
    texts = (kind, epsilon, delta, fingerprint, detail, at, digest, standing)
    maybe = (analyst, str), (rho, str), (refers, int), (previous, str)
    if not all(isinstance(text, str) for text in texts) or any(v is not None and type(v) is not t for v, t in maybe):
        raise damaged(path)
    try:
        amount = Amount(Decimal(epsilon), Decimal(delta))
        price = None if rho is None else Decimal(rho)
    except ArithmeticError:
        raise damaged(path) from None
    entry = Entry(number, kind, analyst, amount, price, fingerprint, detail, refers, at, digest, standing)
    if number == 1:
        previous = read_meta(connection, path).root
    if previous is None or entry.follows(previous) != digest:
        raise damaged(path)
    return entry


def running(log: Iterable[Entry]) -> Iterator[tuple[Entry, Standing]]:
    """Every entry with the standing after it, added up from the first."""
    standing, owns = Standing(), dict[str, Total]()
    for entry in log:
        own = None if entry.analyst is None else owns.get(entry.analyst, Total())
        standing = standing.after(entry.id, entry.kind, Event(entry.amount, entry.rho), own)
        if entry.analyst is not None and standing.own is not None:
            owns[entry.analyst] = standing.own
        yield entry, standing


def _reckoned(log: Iterable[Entry]) -> tuple[Standing, dict[str, Total]]:
    """The standing of a whole log, and of each analyst in it."""
    last, owns = Standing(), dict[str, Total]()
    for entry, last in running(log):
        if entry.analyst is not None and last.own is not None:
            owns[entry.analyst] = last.own
    return replace(last, own=None), owns


def _listed(total: Total | None) -> list[str | int] | None:
    return None if total is None else [*map(str, total[:3]), *total[3:]]


def _total(listed: list[Any]) -> Total:
    epsilon, delta, rho, events, without_rho = listed
    return Total(Decimal(epsilon), Decimal(delta), Decimal(rho), int(events), int(without_rho))


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Statement by statement: ``executescript`` would end the transaction."""
    for statement in script.split(";"):
        connection.execute(statement)


def number_of(connection: sqlite3.Connection, pragma: str) -> int:
    """What a pragma answers."""
    return int(connection.execute(pragma).fetchone()[0])
