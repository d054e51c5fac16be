"""The settings of DuckDB that change what SQL means: a batch is compiled for one set of values and runs with it."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

import duckdb
from tacit.errors import OperationalError

from ...catalog import Table
from ...scan import Scan
from .scratch import database
from .text import literal, quote

_MEANING = (
    "default_collation", "integer_division", "ieee_floating_point_ops", "error_on_division_by_zero", "default_order",
    "default_null_order", "null_order", "scalar_subquery_error_on_multiple_rows", "order_by_non_integer_literal",
    "regex_match_operator_semantics", "dialect_compatibility_mode", "disable_timestamptz_casts", "max_execution_time",
    "legacy_disable_null_type", "max_expression_depth", "preserve_identifier_case", "binary_as_string",
)  # fmt: skip
"""The settings of DuckDB that change what SQL means, or whether it fails."""


@lru_cache(maxsize=1)
def meaning() -> dict[str, str]:
    """The values of those settings that batches are compiled for: DuckDB's defaults, UTC, and no optimizer.

    The optimizer looks at statistics of the rows and computes what they make constant while it plans, outside every
    ``TRY``: ``(i IS NULL) BETWEEN 'a' AND 'b'`` failed exactly when no row had a NULL. It also takes parts that occur
    twice out of their ``TRY``. A scan that computes nothing that could fail runs with it: see ``compares_only``.
    """
    rows = database().execute("SELECT name, value FROM duckdb_settings()").fetchall()
    defaults = {name: value or "" for name, value in rows if name in _MEANING}
    return defaults | {"TimeZone": "UTC", "Calendar": "gregorian", "enable_optimizer": "false"}


def compares_only(scan: Scan) -> bool:
    """Whether a scan does no more than place stored columns of one table in regions and in clamps.

    Then it is planned with statistics: a join with a small table of regions, and a GROUP BY over their numbers, are
    read by position and not by hash, which is two to four times as fast (benchmarks/scan.py).

    Guarantee. Nothing that such a scan holds can fail, in whatever order its parts are computed and whichever of them
    are computed while it is planned: every part by itself has a value for every value of its type. They are comparisons
    with constants, IS NULL, CASE, casts to DOUBLE, casts with TRY, differences and products of DOUBLE, bits of whole
    numbers, differences of shares of a clamp, products of narrow whole numbers as BIGINT, count and sum; where rows of
    a unit are bounded, a hash of the row, the least of such, and the number of a row in a sorted window. So no row, and
    no statistic of rows, decides whether it fails. Units that are floating-point numbers, or are reached by keys, are
    bounded without the optimizer.

    That the statistics are true is for the source to say (``prepare``): DuckDB's own are, those of files are not.
    """
    return (
        scan.table.rows is None
        and _has_plain_unit(scan.table)
        and not scan.private
        and not scan.joins
        and not any(column.expression or column.inputs for column in scan.computed)
    )


def _has_plain_unit(table: Table) -> bool:
    """Whether every row is a unit, or a stored column that is no floating-point number says whose it is."""
    if table.privacy_unit is None:
        return True
    unit = table.column(table.unit_column) if table.unit_column is not None else None
    return unit is not None and unit.type not in ("FLOAT", "DOUBLE")


def _wanted(scan: Scan | None, *, statistics: bool) -> dict[str, str]:
    """The value that every setting should have for a statement."""
    if scan is None or not statistics or not compares_only(scan):
        return meaning()
    # Groups by position: 2^22 counts take 32 MB for each thread; of sums, 2^16 groups take no more.
    bits = {"perfect_ht_threshold": "16" if scan.summed else "22"}
    return meaning() | {"enable_optimizer": "true"} | bits


def needed(scan: Scan | None, *, statistics: bool = True) -> frozenset[str]:
    """The settings that a statement depends on; a scan that only compares stored columns depends on fewer."""
    needed = frozenset(meaning()) - {"TimeZone", "Calendar", "enable_optimizer"}
    inputs = [stored for column in scan.computed for stored in column.inputs] if scan is not None else []
    if scan is not None and _computes_rows(scan):
        return frozenset(meaning())
    if inputs or not statistics:
        needed |= {"enable_optimizer"}
    if any("TIME ZONE" in column.type for column in inputs):
        needed |= {"TimeZone", "Calendar"}
    return needed


def _computes_rows(scan: Scan) -> bool:
    """Whether more is computed than the scan's own columns: rows of a derived table, or the side of a join."""
    joins = (*scan.private, *scan.joins)
    stored = {quote(name) for _, join in joins for name in join.reads}
    return (
        any(table.rows is not None for table in (scan.table, *(join.table for _, join in joins)))
        or any(join.where for _, join in joins)
        or any(left not in stored for _, join in scan.joins for left, _ in join.on)
    )


def prepare(
    cursor: duckdb.DuckDBPyConnection, needed: Collection[str], scan: Scan | None = None, *, statistics: bool = True
) -> int:
    """Give SQL the meaning that it had when the batch was compiled; returns how many statements that took.

    Functions are looked up in DuckDB's built-in schema alone: a macro of the database could shadow any of them, signs
    included. Settings of an open connection that change what SQL means are set back for this cursor only. Where its
    configuration is locked, those in ``needed`` must have their value. Without ``statistics`` no scan is planned with
    those of its rows: what a file says of the least and the greatest value of a column is a claim of its writer, and
    leaves NaN out, so that one row would decide where all rows with NaN are counted.
    """
    settings = _wanted(scan, statistics=statistics)
    cursor.execute("SET search_path = 'system.main'")
    names = ", ".join(f"current_setting({literal(name)})" for name in settings)
    (values,) = cursor.execute(f"SELECT {names}").fetchall()
    ran = 2
    for (name, wanted), value in zip(settings.items(), values, strict=True):
        if str(value if value is not None else "").lower() == wanted.lower():
            continue
        try:
            ran += 1
            cursor.execute(f"SET SESSION {name} = {literal(wanted)}")
        except duckdb.Error:
            if name not in needed:
                continue
            raise OperationalError(
                f"this DuckDB has {name} set to a value that changes what SQL means, and locked\n"
                f"hint: RESET {name} before the configuration is locked"
            ) from None
    return ran
