"""The generated scan against what DuckDB itself takes, in the same run, over rows that are made up.

    python benchmarks/scan.py [rows] [regions] [sums] [units] [text] [memory] [growth] [parquet]

A part is a set of cases; all but ``growth`` and ``parquet`` are run where none is named, over 20,000,000 rows. Every
case runs tacit's scan and a query of DuckDB's own in turn, and prints the medians and the median of the ratios, in
seconds of the clock and of the processors: on a machine that does other things too, read the second. tacit reads a
database file as ``tacit.connect`` opens it, DuckDB the same file with its own settings. ``growth`` counts parquet files
of more and more rows (up to ten times ``rows``), prints the exponent of the time and what it makes of 10 billion rows.
Sums are counted as their plan asks for them: up to five of them corner by corner under pure ε, and otherwise as totals.
``(ε, δ)`` forces Gaussian noise (``strategy="dual"``); by default Laplace noise is taken where it is the better one.
``memory`` runs tacit's scans of each other part in a process of its own, and prints its peak.
``parquet`` counts five times ``rows`` in a parquet file through ``tacit.connect``.
"""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from statistics import median

import duckdb
import tacit
from tacit.compiled_batch import compile_ask
from tacit.pricing import Pricer
from tacit.request import Ask
from tacit.sql import Catalog, Column, Range, Table, compile_batch, open_source
from tacit.sql.catalog import Values
from tacit.sql.parse import Limits
from tacit.sql.product_scan import ProductScan

RUNS = 5
WIDE = {"a": 10_000, "b": 10_000, "c": 10_000}
SUMMED = {f"m{i}": 1000.0 for i in range(1, 9)}
SMALL = ("p", "q", "r")


def made(rows: int, *, every: bool = True) -> str:
    """A query that makes rows: wide whole numbers, small ones, a DOUBLE, eight to be summed, a text and a unit."""
    wide = [f"CAST(hash(i + {n}) % {top} AS INTEGER) AS {name}" for n, (name, top) in enumerate(WIDE.items())]
    small = [f"CAST(hash(i + {n}) % 10 AS INTEGER) AS {name}" for n, name in enumerate(SMALL, 10)]
    summed = [f"CAST(hash(i + {n}) % 1000000 AS DOUBLE) / 1000 AS {name}" for n, name in enumerate(SUMMED, 20)]
    if not every:
        return f"SELECT {', '.join(wide)} FROM range({rows}) n(i)"
    rest = [
        "CAST(hash(i + 30) % 1000000 AS DOUBLE) / 1000 AS d",
        "'name' || hash(i + 31) % 50 AS s",
        f"CAST(hash(i + 32) % {max(1, rows // 10)} AS INTEGER) AS u",
    ]
    return f"SELECT {', '.join([*wide, *small, *summed, *rest])} FROM range({rows}) n(i)"


class Bench:
    """One file of rows, opened twice: by tacit, and by DuckDB with its own settings."""

    def __init__(self, folder: Path, rows: int = 0, *, alone: bool = False) -> None:
        """``alone``: tacit counts what is there, and nothing is compared."""
        file, other = folder / "rows.duckdb", folder / "other.duckdb"
        if not alone:
            command = f"import duckdb; duckdb.connect({str(file)!r}).execute({f'CREATE TABLE t AS {made(rows)}'!r})"
            subprocess.run([sys.executable, "-c", command], check=True, stdout=subprocess.DEVNULL)
            os.link(file, other)  # one process opens a path with one set of settings
            self.plain = duckdb.connect(str(other), read_only=True)
        self.alone, self.file = alone, file
        self.source = open_source(str(file))
        (schema,) = self.source.schema()
        self.columns = {c.name: Column(c.name, c.type, c.nullable, _domain(c.name)) for c in schema.columns}

    def catalog(self, columns: Sequence[str] = (), bound: int = 0) -> Catalog:
        """Some columns of the table; with ``bound``, so many rows of a unit."""
        table = Table("t", tuple(self.columns[name] for name in columns or self.columns))
        if bound:
            table = Table("t", table.columns, privacy_unit="u", max_rows_per_unit=bound)
        return Catalog((table,))

    def case(
        self, name: str, batch: list[str], queries: dict[str, str], catalog: Catalog | None = None, delta: str = ""
    ) -> None:
        """Print how long a batch's scan takes, and how long each of some queries does.

        With ``delta`` the scan is the one that a plan for it asks for.
        """
        catalog = catalog or self.catalog()
        (scan,) = compile_batch(batch, catalog).scans
        scans = [scan.marginal((i,)) for i in range(len(scan.axes))] if isinstance(scan, ProductScan) else [scan]
        if delta:
            ask = Ask(batch, epsilon=Decimal(1), delta=Decimal(delta), strategy="dual" if Decimal(delta) else None)
            scans = list(Pricer().price(ask, compile_ask(ask, catalog, self.source, Limits()), "sum").scans)
        if self.alone:
            self.source.count_all(scans, b"salt")
            return
        runs: dict[str, list[tuple[float, float]]] = {"": [], **{label: [] for label in queries}}
        for _ in range(RUNS):
            runs[""].append(_timed(lambda: self.source.count_all(scans, b"salt")))
            for label, query in queries.items():
                runs[label].append(_timed(lambda query=query: self.plain.execute(query).fetchnumpy()))  # type: ignore[misc]
        for label in queries:
            ratios = [
                median(mine[k] / plain[k] for mine, plain in zip(runs[""], runs[label], strict=True)) for k in (0, 1)
            ]
            tacits, plains = ([median(run[k] for run in runs[which]) for k in (0, 1)] for which in ("", label))
            print(
                f"{name:28} {label:22} {tacits[0]:7.2f} {plains[0]:7.2f} {ratios[0]:6.2f}  "
                f"{tacits[1]:7.2f} {plains[1]:7.2f} {ratios[1]:6.2f}",
                flush=True,
            )


def _domain(name: str) -> Values | Range | None:
    if name in SMALL:
        return Values(tuple(range(10)))
    top = {**WIDE, **SUMMED}.get(name)
    return None if top is None else Range(0, top)


def _timed(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock and of the processors."""
    start, used = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - start, time.process_time() - used


def below(columns: Sequence[str], cuts: int, top: int = 10_000) -> list[str]:
    """A count for every cut of every column."""
    return [f"SELECT count(*) FROM t WHERE {c} < {top * k // cuts}" for c in columns for k in range(1, cuts)]


def regions(bench: Bench) -> None:
    """Columns cut into regions."""
    for cuts in (10, 100, 1000):
        keys = ", ".join(f"{c} // {10_000 // cuts}" for c in WIDE)
        queries = {"GROUP BY 3 columns": f"SELECT {keys}, count(*) FROM t GROUP BY ALL"}
        if cuts == 1000:  # a billion groups are no fair measure
            each = " UNION ALL ".join(f"(SELECT {c} // 10 AS k, count(*) FROM t GROUP BY k)" for c in WIDE)
            queries = {"3 × GROUP BY 1 column": each}
        bench.case(f"3 columns, {cuts} regions each", below(tuple(WIDE), cuts), queries)
    small = {"GROUP BY 3 columns": "SELECT p, q, r, count(*) FROM t GROUP BY ALL"}
    bench.case("3 columns of 10 values", ["SELECT p, q, r, count(*) FROM t GROUP BY p, q, r"], small)
    one = {"GROUP BY 1 column": "SELECT a // 100, count(*) FROM t GROUP BY ALL"}
    bench.case("1 column, 100 regions", below("a", 100), one)
    double = {"GROUP BY 1 column": "SELECT d // 10, count(*) FROM t GROUP BY ALL"}
    bench.case("1 DOUBLE, 100 regions", below("d", 100, 1000), double)


def sums(bench: Bench) -> None:
    """One to eight summed columns."""
    for count in (1, 2, 3, 4, 6, 8):
        shown = ", ".join(f"sum({name})" for name in list(SUMMED)[:count])
        query = f"SELECT p, {shown}, count(*) FROM t GROUP BY p"
        for label, delta in (("pure", "0"), ("(ε, δ)", "1e-6")):
            bench.case(f"{count} sums by 10 values, {label}", [query], {"the same": query}, delta=delta)


def units(bench: Bench) -> None:
    """At most k rows of each of rows / 10 units."""
    names = (*SMALL, "u")
    row_hash = f"hash('salt', {', '.join(names)})"
    place = "(p * 100 + q * 10 + r)"
    for k in (1, 3):
        least = f"unnest(min(CAST((({row_hash} >> 11) << 10) | {place} AS BIGINT), {k}))"
        window = f"row_number() OVER (PARTITION BY u ORDER BY {row_hash}, p, q, r)"
        kept = f"SELECT p, q, r FROM t WHERE u IS NOT NULL QUALIFY {window} <= {k}"
        packed = f"SELECT {least} AS x FROM t WHERE u IS NOT NULL GROUP BY u"
        least_of_one = f"min((({row_hash} >> 11) << 10) | {place})"
        queries = {
            "window": f"SELECT p, q, r, count(*) FROM ({kept}) GROUP BY ALL",
            "min(hash and cell, k)": f"SELECT x & 1023, count(*) FROM ({packed}) GROUP BY ALL",
        }
        if k == 1:
            one = f"SELECT {least_of_one} AS x FROM t WHERE u IS NOT NULL GROUP BY u"
            queries["min(hash and cell)"] = f"SELECT x & 1023, count(*) FROM ({one}) GROUP BY ALL"
        batch = ["SELECT p, q, r, count(*) FROM t GROUP BY p, q, r"]
        bench.case(f"at most {k} rows of a unit", batch, queries, bench.catalog(names, k))


def text(bench: Bench) -> None:
    """A column of 50 texts, of which some are named."""
    for named in (10, 50):
        batch = [f"SELECT count(*) FROM t WHERE s = 'name{k}'" for k in range(named)]
        bench.case(f"text, {named} of 50 named", batch, {"GROUP BY text": "SELECT s, count(*) FROM t GROUP BY s"})


def memory(bench: Bench) -> None:
    """The peak of a process that runs tacit's scans of one of the other parts, DuckDB's cache of the file included."""
    for part in ("regions", "sums", "units", "text"):
        command = [sys.executable, __file__, "alone", str(bench.file.parent), part]
        found = subprocess.run(command, check=True, capture_output=True, text=True)
        print(f"{f'peak of tacit, {part}':28} {float(found.stdout):,.0f} MB", flush=True)


def growth(most: int) -> None:
    """The time of one scan, by the number of rows; each in a process of its own."""
    seconds: list[tuple[int, float]] = []
    for rows in sorted({min(most, million * 1_000_000) for million in (1, 10, 50, 200)}):
        found = subprocess.run([sys.executable, __file__, "one", str(rows)], check=True, capture_output=True, text=True)
        clock, used, memory = map(float, found.stdout.split())
        shown = f"{clock:8.2f} s, {used:8.2f} s of processors, {memory:7,.0f} MB more than before the scan"
        print(f"{rows:13,} rows {shown}", flush=True)
        seconds.append((rows, used))
    (first, least), (last, longest) = seconds[1], seconds[-1]  # the first is mostly planning
    exponent = math.log(longest / least) / math.log(last / first)
    more = longest * (1e10 / last) ** max(1.0, exponent)
    print(f"exponent {exponent:.2f}; 10 billion rows would take {more:,.0f} s of processors")


def one(rows: int) -> None:
    """Print the seconds of a scan of three columns, and the megabytes that the process grew by."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        command = f"import duckdb; duckdb.execute({f'COPY ({made(rows, every=False)}) TO {str(path)!r}'!r})"
        subprocess.run([sys.executable, "-c", command], check=True, stdout=subprocess.DEVNULL)
        with tacit.connect(str(path), policy={"budget": {"epsilon": 10}, "tables": {"rows": {}}}) as con:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            batch = [query.replace(" t ", " rows ") for query in below(tuple(WIDE), 10)]
            clock, used = _timed(lambda: tacit.testing.unit_counts(con, batch))
        print(clock, used, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def parquet(rows: int) -> None:
    """One scan of a large file, through ``tacit.connect``."""
    found = subprocess.run([sys.executable, __file__, "one", str(rows)], check=True, capture_output=True, text=True)
    clock, used, memory = map(float, found.stdout.split())
    shown = f"{clock:.2f} s, {used:.2f} s of processors, {memory:,.0f} MB"
    print(f"parquet, {rows:,} rows, 3 columns of 10 regions: {shown}")


PARTS = {"regions": regions, "sums": sums, "units": units, "text": text, "memory": memory}


def main(arguments: Sequence[str]) -> None:
    """Run the parts that are named."""
    if arguments[:1] == ["alone"]:
        bench = Bench(Path(arguments[1]), alone=True)
        PARTS[arguments[2]](bench)
        return print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    rows = int(next((a for a in arguments if a.isdigit()), "20000000"))
    named = [a for a in arguments if not a.isdigit()] or list(PARTS)
    if "one" in named:
        return one(rows)
    if set(named) & set(PARTS):
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(Path(folder), rows)
            print(f"{rows:,} rows, medians of {RUNS} runs in turn: seconds of the clock, then of the processors")
            print(f"{'':28} {'against':22}   tacit  DuckDB  ratio    tacit  DuckDB  ratio")
            for name in named:
                if name in PARTS:
                    PARTS[name](bench)
    if "growth" in named:
        growth(10 * rows)
    if "parquet" in named:
        parquet(5 * rows)


if __name__ == "__main__":
    main(sys.argv[1:])
