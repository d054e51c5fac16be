"""A PostgreSQL server for the tests of this folder (one for each worker), and databases in it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import psycopg
import pytest
from support.postgres_server import NoServer, server

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
