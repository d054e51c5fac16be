"""From the options of a command to a connection: which database, which policy, which SQL."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import tacit

from .exits import UsageProblem
from .terminal import Notes

if TYPE_CHECKING:
    from tacit import Connection

_MOST_TEXT = 64 << 20
"""Bytes of SQL that are read at all; the policy's limits are far below."""


def database_named(db: str | None) -> str:
    """The database that was named; there is no other."""
    if not db:
        raise UsageProblem("no database was named\nhint: --db clinic.duckdb, or set TACIT_DB")
    return db


def is_url(db: str) -> bool:
    return "://" in db


def is_server(db: str) -> bool:
    """Whether a server of tacit is meant: the token is in the environment."""
    return db.lower().startswith(("https://", "http://"))


def policy_place(db: str) -> Path:
    """Where the policy of a database is looked for, and where ``tacit init`` writes it.

    >>> policy_place("data/clinic.duckdb").as_posix(), policy_place("postgresql://ana@host/clinic?x=1").as_posix()
    ('data/clinic.toml', 'clinic.toml')
    """
    if is_url(db):
        name = db.partition("://")[2].partition("?")[0].rstrip("/").rpartition("/")[2]
        return Path(f"{name or 'policy'}.toml")
    path = Path(db)
    while not path.exists() and set("*?[") & set(str(path)):  # a pattern of files: the folder that it begins with
        path = path.parent
    if path.is_dir():
        return path.with_name(f"{path.resolve().name}.toml")
    return (path.with_suffix("") if path.suffix == ".gz" else path).with_suffix(".toml")


def policy_for(db: str, policy: str | None, say: Notes) -> str | None:
    """The policy that was named, or the one beside the database. Without one every row would be a unit of its own."""
    if policy:
        if not Path(policy).is_file():
            raise UsageProblem(f"there is no policy at {policy!r}\nhint: tacit init DB writes one")
        return policy
    beside = policy_place(db)
    if beside.is_file():
        say(f"policy: {beside}")
        return str(beside)
    return None


def connected(db: str | None, policy: str | None, analyst: str | None, say: Notes) -> Connection:
    """A connection to the database under its policy."""
    database = database_named(db)
    if is_server(database):  # it has its own policy, and the token says who asks
        return tacit.connect(database, policy=policy, analyst=analyst)
    rules = policy_for(database, policy, say)
    con = tacit.connect(database, policy=rules, analyst=analyst)
    if rules is None:
        say("no policy: every row counts as one person, and the schema is public", style="yellow")
    return con


def read_sql(source: str) -> str:
    """The text of the queries: a file's, or stdin's for ``-``."""
    try:
        if source == "-":
            data = sys.stdin.buffer.read(_MOST_TEXT + 1)
        else:
            with open(source, "rb") as file:
                data = file.read(_MOST_TEXT + 1)
    except OSError as error:
        hint = "hint: SQL itself is given on stdin: echo 'SELECT …' | tacit answer -" if " " in source else (
            "hint: name a file of SQL, or - for stdin"
        )  # fmt: skip
        raise UsageProblem(f"{source!r} cannot be read: {(error.strerror or 'no file').lower()}\n{hint}") from None
    if len(data) > _MOST_TEXT:
        raise UsageProblem(f"more than {_MOST_TEXT >> 20} MB of SQL")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageProblem("the SQL is not UTF-8 text") from None
