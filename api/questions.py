"""What a purchase asks, as the ledger's log tells it: tables, columns and a digest of the SQL, or the SQL itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from tacit.engine.accounting.description import QuestionRecord
from tacit.sql.catalog import Column, Table
from tacit.sql.product_scan import ProductScan
from tacit.sql.scan import Scan, SummedColumn, join_reads


def question(scans: Iterable[Scan | ProductScan], sql: Sequence[str], salt: bytes, *, log_sql: bool) -> QuestionRecord:
    """The record of queries over some scans; ``log_sql`` keeps their text."""
    scans = list(scans)
    return QuestionRecord(
        tables=tuple(sorted({table.name for scan in scans for table in scan.tables})),
        columns=tuple(sorted({name for scan in scans for name in _columns(scan)})),
        queries=len(sql),
        digest=digest(sql, salt),
        text=tuple(sql) if log_sql else None,
    )


def digest(sql: Sequence[str], salt: bytes) -> str:
    """Of the texts of queries. The salt keeps who sees only the digest from trying texts."""
    hashed = hashlib.blake2b(key=salt, digest_size=16)
    for text in sql:
        content = text.encode("utf-8", "surrogatepass")
        hashed.update(len(content).to_bytes(8, "big") + content)
    return hashed.hexdigest()


def _columns(scan: Scan | ProductScan) -> set[str]:
    """The stored columns that decide where a row is counted, and those that join, as ``table.column``."""
    labels = {label: join.table for label, join in (*scan.private, *scan.joins)}
    names = {_named(labels.get(c.label, scan.table), c) for column in _computed(scan) for c in column.stored}
    for label, join in (*scan.private, *scan.joins):
        for read in join_reads(label, join):
            joined, dot, name = read.partition(".")
            known = joined in labels and bool(dot)
            names.add(_of(labels[joined], name) if known else _of(scan.table, read))
    return names - {""}


def _computed(scan: Scan | ProductScan) -> list[Column]:
    if isinstance(scan, Scan):
        return list(scan.computed)
    kinds = [axis.columns for axis in scan.axes]
    return [
        c for kind in kinds for c in ([kind.column] if isinstance(kind, SummedColumn) else [r.column for r in kind])
    ]


def _named(table: Table, column: Column) -> str:
    if column.origin is not None:
        return _of(column.origin[0], column.origin[1].own_name)
    return _of(table, column.own_name)


def _of(table: Table, name: str) -> str:
    """Empty for what no table stores: columns of computed tables, and the mark that a join has found a row."""
    return "" if table.rows is not None or table.column(name) is None else f"{table.name}.{name}"
