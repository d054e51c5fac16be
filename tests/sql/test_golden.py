"""What the compiler makes of named batches, in a file that a person can read.

``pytest tests/sql/test_golden.py -k name`` compares one.
Run ``python tests/sql/test_golden.py`` after a deliberate change and read the diff.
"""

from __future__ import annotations

import sys

import pytest
from support.golden import CASES, CATALOG, GOLDEN
from tacit.sql import Workload, compile_batch
from tacit.sql.workload import (
    Arrangement,
    Computed,
    Linear,
    Mode,
    OuterQuery,
    Output,
    PublicValues,
    Quantile,
    Query,
    Ratio,
    Stacked,
)


def shown(workload: Workload) -> str:
    lines = []
    for scan in workload.scans:
        for label, join in (*scan.private, *scan.joins):
            on = " and ".join(
                [f"{left} = {label}.{key}" for left, key in join.on] + (["the unit"] if join.unit else [])
            )
            lines.append(f"{scan.table.name}: joined with {join.table.name} as {label} on {on}")
        for regions in scan.regions:
            labels = "; ".join(regions.label(i) for i in range(regions.count))
            lines.append(f"{scan.table.name}: {labels}")
        lines += [f"{scan.table.name}: {m.column.name} clamped to [{m.low:g}, {m.high:g}]" for m in scan.summed]
    lines.append("")
    lines += [f"cell {i}: {cell.table}: {cell.label}" for i, cell in enumerate(workload.cells)]
    for q, query in enumerate(workload.queries):
        lines += ["", f"query {q}: {query.sql}"]
        if isinstance(query, OuterQuery):
            lines += outer(workload, query)
            continue
        lines += released(workload, query)
    return "\n".join(lines) + "\n"


def released(workload: Workload, query: Query) -> list[str]:
    lines = []
    for g, group in enumerate(query.groups):
        for column in query.columns:
            lines += output(workload, f"  {group or ''} {column.name} = ".replace("  ", " "), column.output, g)
    return lines + (arrangement(workload, query.arrangement) if query.arrangement is not None else [])


def outer(workload: Workload, query: OuterQuery) -> list[str]:
    lines = [f" {name}: {table.name}" for name, table in query.query.tables]
    lines += [f" {name}: {text}" for name, text in query.query.ctes]
    lines += [f" computes {query.query.text}"]
    for part in query.parts:
        lines += [f" {part.name}:", *released(workload, part.query)]
        if part.present is not None:
            lines += [f"  present {combination(workload, row)}" for row in part.present.rows]
    return lines


def output(workload: Workload, name: str, result: Output, g: int) -> list[str]:
    match result:
        case Linear(rows, offset):
            return [name + combination(workload, rows[g]) + (f" + {offset:g}" if offset else "")]
        case Ratio(above, below, low, high):
            return [
                f"{name}within [{low:g}, {high:g}]",
                f"     {combination(workload, above[g])}",
                f"   / {combination(workload, below[g])}",
            ]
        case Quantile():
            kind = "interpolated" if result.interpolated else "a value"
            lines = [f"{name}{result.name} at {result.share:g} of the rows, {kind}, {result.type}"]
            for value, rows in zip(result.grid, result.prefixes, strict=True):
                lines.append(f"     up to {value:g}: {combination(workload, rows[g])}")
            return lines
        case Mode(values, counts):
            lines = [f"{name}the most of"]
            for value, rows in zip(values, counts, strict=True):
                lines.append(f"     {value!r}: {combination(workload, rows[g])}")
            return lines
        case PublicValues(values):
            return [f"{name}{values[g]!r}"]
        case Computed(sql, leaves):
            parts = [line for i, leaf in enumerate(leaves) for line in output(workload, f"     a{i} = ", leaf, g)]
            return [name + sql, *parts]
        case Stacked(parts):
            for size, part in parts:
                if g < size:
                    return output(workload, name, part, g)
                g -= size
    return []


def arrangement(workload: Workload, clauses: Arrangement) -> list[str]:
    shown_clauses = [
        ("having", clauses.having), ("order by", clauses.order), ("limit", clauses.limit), ("offset", clauses.offset),
        ("distinct", clauses.distinct),
    ]  # fmt: skip
    lines = [f"  {name} {value}" for name, value in shown_clauses if value]
    groups = (
        range(len(clauses.leaves[0].rows)) if clauses.leaves and isinstance(clauses.leaves[0], Linear) else range(0)
    )
    for i, leaf in enumerate(clauses.leaves):
        for g in groups:
            lines += output(workload, f"     a{i} = ", leaf, g)
    return lines


def combination(workload: Workload, row: int) -> str:
    terms = [f"{w:g}·x{i}" if w != 1 else f"x{i}" for i, w in enumerate(workload.matrix[row]) if w]
    return " + ".join(terms) or "0"


def expected() -> dict[str, str]:
    """What the file says of every query: a line with the name, the lines of the result, an empty line."""
    parts = ((GOLDEN / "compiled.txt").read_text() + "\n").split("=== ")[1:]
    return {name: text.removesuffix("\n") for name, text in (part.split("\n", 1) for part in parts)}


def compiled(name: str) -> str:
    return shown(compile_batch(CASES[name], CATALOG))


def test_every_query_has_its_result_and_no_other() -> None:
    assert list(expected()) == list(CASES)
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    assert compiled(name) == expected()[name]


@pytest.mark.parametrize("name", CASES)
def test_compiling_is_deterministic(name: str) -> None:
    first, second = (compile_batch(CASES[name], CATALOG) for _ in range(2))
    assert first.fingerprint == second.fingerprint
    assert first.matrix.tobytes() == second.matrix.tobytes()


if __name__ == "__main__":
    (GOLDEN / "compiled.txt").write_text("\n".join(f"=== {name}\n{compiled(name)}" for name in CASES))
    sys.exit(0)
