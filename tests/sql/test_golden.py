"""What the compiler makes of named batches, in a file that a person can read.

Run ``python tests/sql/test_golden.py`` after a deliberate change and read the diff.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tacit.sql import Catalog, Column, Range, Table, Values, Workload, compile_batch
from tacit.sql.workload import Key, Linear, Ratio

HERE = Path(__file__).parent / "golden"
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
                Column("mood", "ENUM('ok', 'sad')", False, Values(("ok", "sad"))),
            ),
        ),
        Table("wards", (Column("beds", "INTEGER", True, Range(1, 4)),)),
    )
)


def shown(workload: Workload) -> str:
    lines = []
    for scan in workload.scans:
        for regions in scan.regions:
            labels = "; ".join(regions.label(i) for i in range(regions.count))
            lines.append(f"{scan.table.name}: {labels}")
        lines += [f"{scan.table.name}: {m.column.name} clamped to [{m.low:g}, {m.high:g}]" for m in scan.measures]
    lines.append("")
    lines += [f"cell {i}: {cell.table}: {cell.label}" for i, cell in enumerate(workload.cells)]
    for q, query in enumerate(workload.queries):
        lines += ["", f"query {q}: {query.sql}"]
        for g, group in enumerate(query.groups):
            for column in query.columns:
                match column.output:
                    case Key():
                        continue
                    case Linear(rows):
                        lines.append(
                            f"  {group or ''} {column.name} = {combination(workload, rows[g])}".replace("  ", " ")
                        )
                    case Ratio(above, below, low, high):
                        lines.append(f"  {group or ''} {column.name} = within [{low:g}, {high:g}]".replace("  ", " "))
                        lines.append(f"     {combination(workload, above[g])}")
                        lines.append(f"   / {combination(workload, below[g])}")
    return "\n".join(lines) + "\n"


def combination(workload: Workload, row: int) -> str:
    terms = [f"{w:g}·x{i}" if w != 1 else f"x{i}" for i, w in enumerate(workload.matrix[row]) if w]
    return " + ".join(terms) or "0"


def cases() -> list[tuple[str, str]]:
    text = (HERE / "queries.sql").read_text()
    parts = [part.split("\n", 1) for part in text.split("-- name: ")[1:]]
    return [(name.strip(), sql.strip()) for name, sql in parts]


def compiled() -> str:
    return "\n".join(f"=== {name}\n{shown(compile_batch(sql, CATALOG))}" for name, sql in cases())


def test_golden() -> None:
    assert compiled() == (HERE / "compiled.txt").read_text()


def test_compiling_is_deterministic() -> None:
    for _, sql in cases():
        first, second = compile_batch(sql, CATALOG), compile_batch(sql, CATALOG)
        assert first.fingerprint == second.fingerprint
        assert first.matrix.tobytes() == second.matrix.tobytes()


if __name__ == "__main__":
    (HERE / "compiled.txt").write_text(compiled())
    sys.exit(0)
