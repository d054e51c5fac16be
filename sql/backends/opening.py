"""Which engine holds the rows: told by what ``tacit.connect`` is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.errors import OperationalError

from ..source import ColumnTypes
from .duckdb import database as duckdb_database

if TYPE_CHECKING:
    from ..source import Source

_POSTGRES = ("postgresql://", "postgres://")


def open_source(database: Any, types: ColumnTypes | None = None) -> Source:
    """Open a database. Raises OperationalError when it is not one, or cannot be reached."""
    if isinstance(database, str) and database.lower().startswith(_POSTGRES):
        return _open_postgres(database)
    if type(database).__module__.startswith("pyspark.sql") and type(database).__name__ == "SparkSession":
        return _open_spark(database)
    return duckdb_database.open_source(database, types)


def _open_postgres(url: str) -> Source:
    try:
        from .postgres.server import open_postgres
    except ImportError:
        raise OperationalError("the drivers for PostgreSQL are missing\nhint: pip install 'tacit[postgres]'") from None
    return open_postgres(url)


def _open_spark(session: Any) -> Source:
    try:
        from .spark.cluster import open_spark
    except ImportError:
        raise OperationalError("a package that Spark needs is missing\nhint: pip install 'tacit[spark]'") from None
    return open_spark(session)
