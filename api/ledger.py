"""The curator's side of the books. Everything here is an entry in the ledger itself, except looking.

    import tacit.ledger

    tacit.ledger.verify("clinic.duckdb.ledger")                    # 17 entries, or LedgerError
    tacit.ledger.raise_cap("clinic.duckdb.ledger", epsilon=5)      # never lower
    tacit.ledger.declare_version(con, "visits", "2026-02")         # old releases no longer mix
    tacit.ledger.change_policy("clinic.duckdb.ledger", "clinic.toml")   # on record, for everyone
    tacit.ledger.backup(con, "/safe/place/clinic.ledger")

A ledger is named by its path, or by a connection that was opened for the curator; one that was opened for an analyst is
refused. That stops misuse, not malice: who can write the file can change it, and only a process boundary prevents that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pandas as pd
from tacit.engine.accounting import curator
from tacit.engine.accounting.amounts import Amount, to_delta, to_epsilon
from tacit.engine.accounting.description import recorded_question
from tacit.engine.accounting.ledger import Ledger
from tacit.engine.accounting.ledger import verify as _verify

from .binding import terms_of
from .connection import Connection
from .errors import InterfaceError, LedgerError, PolicyError
from .policy import check_analyst_deltas, load_policy
from .policy_catalog import tables_meant
from .policy_section import suggestion
from .questions import digest as _digest
from .request import Number

Books = Connection | str | os.PathLike[str]

__all__ = ["backup", "change_policy", "declare_version", "digest", "log", "raise_cap", "verify"]


def verify(books: Books) -> int:
    """The number of entries of a sound ledger; ``LedgerError`` if schema, pages, chain or releases are not.

    The chain of digests shows accidents and clumsy edits. It has no secret key: who can write the file can
    write a new chain.
    """
    if isinstance(books, Connection):
        path = _opened(books).path
        if path is None:
            raise InterfaceError("a ledger in memory has no file to verify\nhint: it lives and ends with its process")
        return _verify(path)
    return _verify(_path(books))


def raise_cap(books: Books, epsilon: Number, delta: Number = 0) -> Amount:
    """A larger cap from now on, for everyone; a cap is never lowered. Returns the new one.

    A policy's own ``[budget]`` still binds the connections that use it: raise it there as well.
    """
    return curator.raise_cap(_opened(books), to_epsilon(epsilon), to_delta(delta))


def declare_version(books: Books, table: str, version: str) -> None:
    """Say that a table has changed: from now on it has this version, and older releases no longer mix with it.

    A declared version stands before the policy's and before the file's own stamp. Declaring a new one every time
    the rows change is then the curator's duty: answers from two states under one name would be wrong ones.
    """
    for name, value in (("table", table), ("version", version)):
        if not isinstance(value, str) or not value:
            raise InterfaceError(f'{name} must be a name\nhint: declare_version(con, "visits", "2026-02")')
    if isinstance(books, Connection):
        tables = books.catalog.tables
        meant = tables_meant(table, tables)
        if len(meant) != 1:
            problem = f"{' and '.join(meant)} can both be meant by" if meant else "there is no table"
            hint = "quote the name as in SQL" if meant else suggestion(table, [t.name for t in tables])
            raise PolicyError(f"{problem} {table!r}\nhint: {hint}")
        (table,) = meant
    curator.declare_version(_opened(books), table, version)


def change_policy(books: Books, policy: str | os.PathLike[str] | Mapping[str, Any] | None) -> None:
    """Bind the ledger to another policy from now on, on record; connections with the old one are refused.

    What a ledger is bound to are units, bounds on their rows, public tables, the analysts and their caps, and whether
    the schema is trusted; domains, versions and limits may differ at any time without this. Connect again afterwards.

    Guarantee: what was released before keeps the promise that it was made under, and everything together keeps the
    ledger's (``engine.accounting.curator.change_policy``). That is why the unit of a table that has charges cannot be
    changed: one sum cannot speak of two kinds of neighbours. Begin a new ledger for that.
    """
    ledger, rules = _opened(books), load_policy(policy)
    check_analyst_deltas(rules.analysts or {}, ledger.rule, rules.origin)
    curator.change_policy(ledger, terms_of(rules))


def backup(books: Books, path: str | os.PathLike[str]) -> None:
    """A copy of the ledger, sound even while others spend; never overwrites.

    It is for reading and for disasters. Spending from it beside the original would spend the budget twice.
    """
    curator.backup(_opened(books), _path(path))


def log(books: Books) -> pd.DataFrame:
    """Every entry, oldest first: what was charged, released, read by whom, declared. No data, and no answers.

    Of a charge, ``tables``, ``columns`` and ``queries`` say what was asked, and ``digest`` is that of the SQL
    (``digest`` computes it for a text at hand). ``sql`` is the text, where the policy says ``sql = true`` under
    ``[log]``: what analysts write into their conditions can be sensitive itself, so it is not kept by default.
    """
    entries = _opened(books).entries()
    questions = [recorded_question(e.detail) if e.kind == "charge" else None for e in entries]
    return pd.DataFrame(
        {
            "id": [e.id for e in entries],
            "at": pd.Series([e.at for e in entries], dtype="str"),
            "kind": pd.Series([e.kind for e in entries], dtype="str"),
            "analyst": pd.Series([e.analyst for e in entries], dtype="object"),
            "epsilon": pd.Series([Decimal(e.amount.epsilon) for e in entries], dtype="object"),
            "delta": pd.Series([Decimal(e.amount.delta) for e in entries], dtype="object"),
            "refers": pd.array([e.refers for e in entries], dtype="Int64"),
            "tables": _words(", ".join(q.tables) if q else None for q in questions),
            "columns": _words(", ".join(q.columns) if q else None for q in questions),
            "queries": pd.array([q.queries if q else None for q in questions], dtype="Int64"),
            "digest": _words(q.digest if q else None for q in questions),
            "sql": _words("; ".join(q.text) if q and q.text is not None else None for q in questions),
        }
    )


def digest(books: Books, sql: str | Sequence[str]) -> str:
    """What the log's ``digest`` is for queries of exactly this text, parameters as they stand in it."""
    return _digest([sql] if isinstance(sql, str) else list(sql), _opened(books).salt)


def _words(values: Iterable[str | None]) -> pd.Series:
    return pd.Series(list(values), dtype="object")


def _opened(books: Books) -> Ledger:
    if not isinstance(books, Connection):
        return Ledger.open(_path(books))
    if books.analyst is not None:
        raise InterfaceError(
            "the books are the curator's; this connection was opened for an analyst\nhint: connect without analyst="
        )
    with books._open():
        return books._session.access.open()


def _path(path: object) -> str | os.PathLike[str]:
    if not isinstance(path, (str, os.PathLike)):
        raise InterfaceError("a ledger is named by a path or by the curator's connection")
    if "\0" in os.fspath(path):
        raise LedgerError("there is no ledger of that name")
    return path
