"""A PostgreSQL server for the tests of this folder (one for each worker), databases in it, and a Spark session."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from support.postgres_server import NoServer, server
from support.spark_session import NoSpark, forget, session

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of the server."""
    running = server()
    try:
        url = running.__enter__()
    except NoServer as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no PostgreSQL server: {error}")
        pytest.skip(f"no PostgreSQL server: {error}")
    try:
        yield url
    finally:
        running.__exit__(None, None, None)


@pytest.fixture(scope="session")
def new_database(postgres: str) -> Callable[..., str]:
    """Makes an empty database, and returns its URL."""

    def make(options: str = "") -> str:
        name = f"db{next(_NUMBERS)}"
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} {options}")  # type: ignore[arg-type]
        return postgres.replace("/postgres?", f"/{name}?")

    return make


@pytest.fixture(scope="session")
def spark_started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark session; the tests that use it are one group of ``tests/conftest.py``, so that it is started once."""
    running = session(tmp_path_factory.mktemp("spark"))
    try:
        made = running.__enter__()
    except NoSpark as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no Spark: {error}")
        pytest.skip(f"no Spark: {error}")
    try:
        yield made
    finally:
        running.__exit__(None, None, None)


@pytest.fixture(scope="module")
def spark(spark_started: Any) -> Iterator[Any]:
    """The Spark session, without tables."""
    forget(spark_started)
    yield spark_started
    forget(spark_started)
