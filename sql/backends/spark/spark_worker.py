"""What runs beside the rows: DuckDB on a worker of Spark's, which hands over sums of cells and nothing else.

The function is pickled with its text, so that a worker needs duckdb and pyarrow, and not tacit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from typing import Any

Batches = Iterator[Any]
Task = Callable[[Batches], Batches]

SUMS = "scan int, place bigint, corner int, amount bigint"
"""What a task of ``counting`` returns, in Spark's words."""
CHUNKS = "chunk binary"
"""What a task of ``packing`` returns."""


@dataclass(frozen=True)
class Work:
    """The statements of one task."""

    version: str
    """DuckDB's version: another one may hash rows in another way."""
    settings: tuple[str, ...]
    tables: tuple[tuple[str, bytes], ...]
    """Public rows as Arrow files, by the name that the statements call them."""
    before: tuple[str, ...]
    """Run once, before any row is seen."""
    chunk: tuple[str, ...]
    """Run for some rows at a time, which are then in ``arriving``."""
    regions: tuple[str, ...]
    """Run before the sums."""
    sums: tuple[str, ...]
    """Statements that give sums, of the rows of a chunk or of all that were loaded."""
    by_chunk: bool
    """Whether the sums are those of a chunk."""
    rows: int = 1 << 19
    """So many rows are a chunk."""
    memory: str = "1GB"


def counting(work: Work) -> Task:
    """A function for ``mapInArrow``: some rows of a table, and the sums of their cells."""
    version, settings, tables, before, chunk, regions, sums, by_chunk, most, memory = astuple(work)

    def count(batches: Any) -> Any:
        import shutil
        import tempfile

        import duckdb
        import pyarrow as pa

        names = ("scan", "place", "corner", "amount")
        schema = pa.schema(list(zip(names, (pa.int32(), pa.int64(), pa.int32(), pa.int64()), strict=True)))
        columns = ", ".join(names)

        def chunks() -> Any:
            held: list[Any] = []
            rows = 0
            size = 0
            for batch in batches:
                held.append(batch)
                rows += batch.num_rows
                size += batch.nbytes
                if rows >= most or size >= 1 << 27:
                    yield pa.Table.from_batches(held)
                    held, rows, size = [], 0, 0
            if held:
                yield pa.Table.from_batches(held)

        def run(folder: str) -> Any:
            if duckdb.__version__ != version:
                raise RuntimeError
            config = {
                "enable_external_access": "false",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "threads": "1",
                "memory_limit": memory,
                "temp_directory": folder,
                "preserve_insertion_order": "false",
            }
            with duckdb.connect(":memory:", config=config) as database:
                for statement in settings:
                    database.execute(statement)
                for name, content in tables:
                    database.register(name, pa.ipc.open_file(pa.py_buffer(content)).read_all())
                database.execute("CREATE TEMP TABLE sums (scan INTEGER, place BIGINT, corner INTEGER, amount HUGEINT)")
                for statement in before:
                    database.execute(statement)

                def add_up() -> None:
                    for statement in regions:
                        database.execute(statement)
                    for statement in sums:
                        database.execute(f"INSERT INTO temp.main.sums {statement}")

                def together() -> None:
                    database.execute(
                        "CREATE OR REPLACE TEMP TABLE sums AS SELECT scan, place, corner, "
                        "sum(amount) AS amount FROM temp.main.sums GROUP BY scan, place, corner"
                    )

                for number, rows in enumerate(chunks()):
                    database.register("arriving", rows)
                    for statement in chunk:
                        database.execute(statement)
                    if by_chunk:
                        add_up()
                        if number % 16 == 15:
                            together()
                    database.unregister("arriving")
                if not by_chunk:
                    add_up()
                together()
                found = database.execute(
                    f"SELECT {columns.replace('amount', 'CAST(least(amount, 9223372036854775807) AS BIGINT)')} "  # noqa: S608
                    "FROM temp.main.sums WHERE amount > 0"
                ).fetchnumpy()
                arrays = [
                    pa.array(values).cast(field.type) for values, field in zip(found.values(), schema, strict=True)
                ]
                return pa.RecordBatch.from_arrays(arrays, schema=schema)

        folder = tempfile.mkdtemp(prefix="tacit-")
        try:
            result = run(folder)
        except BaseException:  # its text could quote a value, and Spark would write it into logs
            result = None
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if result is None:
            raise RuntimeError("the scan failed on a worker; its reason is not told, because it could quote a row")
        yield result

    return count


def packing() -> Task:
    """A function for ``mapInArrow``: some rows of a table as files of Arrow's, which are fetched one by one."""

    def pack(batches: Any) -> Any:
        import pyarrow as pa

        for batch in batches:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["chunk"])

    return pack


def reporting() -> Task:
    """A function for ``mapInArrow``: the version of DuckDB on a worker; empty where it has none."""

    def report(batches: Any) -> Any:
        import pyarrow as pa

        try:
            import duckdb

            version = str(duckdb.__version__)
        except ImportError:
            version = ""
        for _ in batches:
            yield pa.RecordBatch.from_arrays([pa.array([version])], ["version"])

    return report
