"""A table with every awkward value, and the catalog that goes with it."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from support.awkward import AWKWARD, catalog_of
from tacit.sql import Catalog, Source, open_source


@pytest.fixture(scope="session")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(AWKWARD)
    yield connection
    connection.close()


@pytest.fixture(scope="session")
def source(database: duckdb.DuckDBPyConnection) -> Iterator[Source]:
    opened = open_source(database)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def catalog(source: Source) -> Catalog:
    return catalog_of(source)
