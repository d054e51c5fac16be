"""The named batches of ``tests/sql/golden`` and the catalog that they are compiled for."""

from __future__ import annotations

from pathlib import Path

from tacit.sql import Catalog, Column, Range, Table, Values

GOLDEN = Path(__file__).parents[1] / "sql" / "golden"
CATALOG = Catalog(
    (
        Table(
            "visits",
            (
                Column("patient", "INTEGER", False),
                Column("state", "VARCHAR", True, Values(("NY", "NJ", "CA", "WA"), other="other")),
                Column("age", "INTEGER", True, Range(0, 120)),
                Column("income", "DOUBLE", True, Range(0.0, 250000.0)),
                Column("day", "DATE", True),
                Column("urgent", "BOOLEAN", True),
                Column("mood", "ENUM('ok', 'sad')", False, Values(("ok", "sad"), complete=True)),
            ),
        ),
        Table("wards", (Column("beds", "INTEGER", True, Range(1, 4)),)),
        Table(
            "hospitals",
            (
                Column("id", "INTEGER", False),
                Column("city", "VARCHAR", True, Values(("Utica", "Troy"))),
            ),
            public=True,
        ),
        Table(
            "stays",
            (Column("pid", "INTEGER"), Column("nights", "INTEGER", True, Range(0, 30))),
            privacy_unit="pid",
            max_rows_per_unit=3,
        ),
        Table(
            "patients",
            (Column("pid", "INTEGER"), Column("sex", "VARCHAR", True, Values(("f", "m")))),
            privacy_unit="pid",
        ),
        Table(
            "minors",
            (Column("state", "VARCHAR"), Column("age", "INTEGER")),
            view="SELECT state, age FROM visits WHERE age < 18",
        ),
    )
)


def cases() -> dict[str, str]:
    text = (GOLDEN / "queries.sql").read_text()
    parts = [part.split("\n", 1) for part in text.split("-- name: ")[1:]]
    assert len({name.strip() for name, _ in parts}) == len(parts), "two queries have one name"
    return {name.strip(): sql.strip() for name, sql in parts}


CASES = cases()
