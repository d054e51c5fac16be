"""Scans that Spark's workers count part by part: which those are, and the statements that each of them runs.

A scan whose units are single rows is counted wherever its rows happen to lie. With bounded units, private joins and
tables of one row for each unit, the rows of all tables are first brought together by the unit.

Guarantee. Which part a row is in never changes what is counted of it. A scan is split only where each thing that it
computes needs a row alone, or the rows of one unit alone: bounds are on the unit, private tables are joined on the
unit, and derived tables are grouped by it. All rows of a unit, of every table, are in one part, because equal units
have equal hashes: a scan whose units have types of which that is not certain is not split. So no unit is bounded twice,
and the sensitivity is that of ``Scan``. What a worker returns are sums of cells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from ...catalog import KeyStep, Table
from ...derived import PublicQuery, UnitRows
from ...scan import Join, Scan
from ...scan_sets import ScanSets
from ..duckdb.keys_sql import lookups
from ..duckdb.scan_sql import Stored, corner_sql, read_column, render_rows
from ..duckdb.text import quote
from .relations import Relation

OWNER = "tacit owner"
"""What a row that was brought to its unit calls it."""
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_HASHED = (*_INTEGERS, "VARCHAR", "DATE", "BOOLEAN")
"""Types of which equal values have equal hashes; DOUBLE has two zeros."""


class NotSplit(Exception):
    """Internal: the scan has to see all rows at once."""


@dataclass
class Reads:
    """What a scan reads: the columns of stored private tables, and public ones."""

    private: dict[tuple[str, ...], tuple[Table, set[str]]] = field(default_factory=dict)
    public: dict[tuple[str, ...], tuple[Table, set[str]]] = field(default_factory=dict)

    def note(self, table: Table, columns: Collection[str]) -> str:
        """Stands for the rows while the statements are written to see what they read."""
        if not isinstance(table.rows, PublicQuery):
            held = self.public if table.public else self.private
            held.setdefault(table.key, (table, set()))[1].update(columns)
        return "(SELECT 1)"


@dataclass(frozen=True)
class Split:
    """A group of scans of the same rows, as workers count it."""

    joint: ScanSets
    """The scans, with every table that reaches its unit by keys holding it instead."""
    numbers: tuple[int, ...]
    """Which of the batch's scans these are."""
    reads: Reads
    by_unit: bool
    """Whether rows are brought together by their unit first."""
    paths: dict[tuple[str, ...], tuple[KeyStep, ...]]
    """The ways of the tables that reach their units by keys."""

    @property
    def tables(self) -> list[tuple[Table, list[str]]]:
        """The private tables and the columns that are read of each, in the order of the table."""
        return [(t, [c.name for c in t.columns if c.name in names]) for t, names in self.reads.private.values()]


def split(joint: ScanSets, numbers: Sequence[int]) -> Split:
    """How some scans are counted part by part; raises NotSplit."""
    owned = replace(joint, rows=_owned_scan(joint.rows), scans=tuple(map(_owned_scan, joint.scans)))
    scan, reads = owned.rows, Reads()
    render_rows(scan, bytes(32), reads.note)
    by_unit = scan.table.privacy_unit is not None or isinstance(scan.table.rows, UnitRows)
    if not by_unit:
        if scan.private or len(reads.private) > 1 or any(join.unit for _, join in scan.joins):
            raise NotSplit
        return Split(owned, tuple(numbers), reads, False, {})
    _check(scan.table, scan.private, scan.joins)
    paths = {table.key: table.unit_path for table in joint.rows.tables if table.unit_path is not None}
    return Split(owned, tuple(numbers), reads, True, paths)


def _check(table: Table, private: Iterable[tuple[str, Join]], joins: Iterable[tuple[str, Join]]) -> None:
    """Every part of the scan needs the rows of one unit alone; or raise NotSplit."""
    units = {_check_table(table)}
    for label, join in private:
        unit = _check_table(join.table)
        if OWNER in (*units, unit) or not any(left in units and key == unit for left, key in join.on):
            raise NotSplit  # joined on the key that leads to the unit: others may have it too
        units.add(f"{label}.{unit}")
    for _, join in joins:
        if join.unit:
            _check_table(join.table)
        elif not join.table.public and not isinstance(join.table.rows, PublicQuery):
            raise NotSplit


def _check_table(table: Table) -> str:
    """The column that holds a private table's unit; raises NotSplit where its rows are not all of one unit."""
    if isinstance(table.rows, UnitRows):
        if not table.rows.whole:
            raise NotSplit
        _check(table.rows.table, table.rows.private, table.rows.joins)
        return table.rows.keys[0][0]
    if table.rows is not None or table.privacy_unit is None:
        raise NotSplit
    return table.privacy_unit


def _owned_scan(scan: Scan) -> Scan:
    return replace(scan, table=_owned(scan.table), private=_owned_joins(scan.private), joins=_owned_joins(scan.joins))


def _owned_joins(joins: tuple[tuple[str, Join], ...]) -> tuple[tuple[str, Join], ...]:
    return tuple((label, replace(join, table=_owned(join.table))) for label, join in joins)


def _owned(table: Table) -> Table:
    """The table with its unit in every row: Spark follows the keys before the rows are brought together."""
    rows = table.rows
    if isinstance(rows, UnitRows):
        inner = replace(
            rows, table=_owned(rows.table), private=_owned_joins(rows.private), joins=_owned_joins(rows.joins)
        )
        return replace(table, rows=inner)
    if table.unit_path is None:
        return table
    return replace(table, unit_path=None, privacy_unit=OWNER)


def unit_type(types: Iterable[str]) -> str:
    """What units of some types are compared as; raises NotSplit where equal ones may have different hashes."""
    distinct = {"BIGINT" if type_ in _INTEGERS else type_ for type_ in types}
    if len(distinct) != 1 or not distinct <= set(_HASHED):
        raise NotSplit
    return distinct.pop()


def arriving(table: Table, relation: Relation, columns: Sequence[str], number: int) -> list[tuple[str, str]]:
    """(name, SQL) of each column of a table, from what arrives of it."""
    return [(name, relation.column(name).passage.received.format(f"t{number}c{i}")) for i, name in enumerate(columns)]


def stored_rows(table: Table, columns: Collection[str], rows: str, owner: str = "") -> str:
    """What stands in FROM for a table that lies in a table of the worker's."""
    shown = [read_column(c, quote(c.name)) for c in table.columns if c.name in columns]
    if owner:
        shown.append(f"{quote(OWNER)}{' COLLATE C' if owner == 'VARCHAR' else ''} AS {quote(OWNER)}")
    return f"(SELECT {', '.join(shown) or '1 AS one'} FROM {rows})"  # noqa: S608


def region_statements(joint: ScanSets, numbers: Sequence[int], salt: bytes, stored: Stored) -> tuple[list[str], ...]:
    """(what makes the tables of regions, what makes the rows' regions, what adds them up for each scan)."""
    made = [table.create for table in lookups(joint.rows).values()]
    rows = render_rows(joint.rows, salt, stored)
    if len(joint.scans) == 1 and _in_order(joint, joint.scans[0]):
        return made, [], [_sums(numbers[0], joint.scans[0], rows)]
    regions = [f"CREATE OR REPLACE TEMP TABLE regions AS {rows}"]
    sums = [
        _sums(number, scan, f"SELECT {_own_columns(joint, scan) or '1 AS one'} FROM temp.main.regions")  # noqa: S608
        for number, scan in zip(numbers, joint.scans, strict=True)
    ]
    return made, regions, sums


def _in_order(joint: ScanSets, scan: Scan) -> bool:
    return scan.regions == joint.rows.regions and scan.summed == joint.rows.summed


def _own_columns(joint: ScanSets, scan: Scan) -> str:
    """The columns of a scan among those of all, under its own names."""
    cuts = [(r.column.reference, r.column.type, r.cuts, r.region_of_piece, r.count) for r in joint.rows.regions]
    own = [(r.column.reference, r.column.type, r.cuts, r.region_of_piece, r.count) for r in scan.regions]
    keys = [f"k{cuts.index(cut)} AS k{i}" for i, cut in enumerate(own)]
    shares = [f"f{joint.rows.summed.index(summed)} AS f{i}" for i, summed in enumerate(scan.summed)]
    return ", ".join([*keys, *shares])


def _sums(number: int, scan: Scan, rows: str) -> str:
    """What the rows of a scan add up to at every point of its grid that has any."""
    place = "0"
    for i, regions in enumerate(scan.regions):
        place = f"({place}) * {regions.count} + CAST(k{i} AS BIGINT)" if i else "CAST(k0 AS BIGINT)"
    count = len(scan.summed)
    sums = [corner_sql(corner, count) for corner in range(1 << count)] if count else ["count(*)"]
    shares = "".join(f", f{i}" for i in range(count))
    amounts = ", ".join(f"CAST(s{i} AS HUGEINT)" for i in range(len(sums)))
    grouped = ", ".join(f"{total} AS s{i}" for i, total in enumerate(sums))
    return (
        f"SELECT {number}, place, unnest(range({len(sums)})), unnest([{amounts}]) FROM ("  # noqa: S608
        f"SELECT place, {grouped} FROM (SELECT {place} AS place{shares} FROM ({rows})) GROUP BY place)"
    )
