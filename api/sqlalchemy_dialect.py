"""A SQLAlchemy dialect: ``create_engine("tacit:///clinic.duckdb?policy=clinic.toml&analyst=ana&spend=0.1")``.

The path is that of any source (four slashes before an absolute one), the keys after ``?`` are those of
``tacit.connect``. ``tacit+postgresql://reader@host/clinic?policy=…`` reads from a PostgreSQL server.
``tacit+https://:TOKEN@host:8321?spend=0.1`` asks a server of tacit's (``tacit+http://`` on the same machine); the token
stands where a password does, so SQLAlchemy hides it, or in the environment (``TACIT_TOKEN``). What a statement costs is
the connection's ``spend``, or what its execution options say:

    with engine.connect().execution_options(epsilon=0.2) as con:
        pandas.read_sql("SELECT count(*) FROM visits", con)

A connection that is open already is an engine too, and for pandas one that it does not warn about:

    create_engine("tacit://", creator=lambda: con, poolclass=StaticPool)

Connecting, pings, ``SELECT 1`` and reflection read the catalog and nothing else: they are free.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sqlalchemy import exc, pool, types
from sqlalchemy.engine import default, reflection

from .errors import InterfaceError, NotSupportedError
from .plain_values import decimal_size

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import ConnectArgsType
    from sqlalchemy.engine.url import URL
    from tacit import Connection
    from tacit.sql.catalog import Table

_NUMBERS = ("epsilon", "delta", "spend")
_OPTIONS = ("policy", "analyst", "ledger", *_NUMBERS)
_PER_STATEMENT = ("epsilon", "delta", "discover")
"""The execution options that a statement is asked with."""

_TYPES: dict[str, Callable[[], types.TypeEngine[Any]]] = {
    "BOOLEAN": types.BOOLEAN,
    **dict.fromkeys(("TINYINT", "SMALLINT", "UTINYINT"), types.SMALLINT),
    **dict.fromkeys(("INTEGER", "USMALLINT"), types.INTEGER),
    **dict.fromkeys(("BIGINT", "UINTEGER"), types.BIGINT),
    **dict.fromkeys(("HUGEINT", "UBIGINT", "UHUGEINT"), lambda: types.NUMERIC(38, 0)),
    "FLOAT": types.FLOAT,
    "DOUBLE": types.DOUBLE,
    "VARCHAR": types.VARCHAR,
    "BLOB": types.BLOB,
    "UUID": types.UUID,
    "DATE": types.DATE,
    "TIME": types.TIME,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), types.TIMESTAMP),
    "TIMESTAMP WITH TIME ZONE": lambda: types.TIMESTAMP(timezone=True),
    "INTERVAL": types.Interval,
}


class TacitDialect(default.DefaultDialect):
    """``tacit:///path``: a file that DuckDB reads."""

    name = "tacit"
    driver = "duckdb"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    supports_default_values = False
    supports_alter = False
    supports_comments = False
    postfetch_lastrowid = False
    preexecute_autoincrement_sequences = False
    max_identifier_length = 1_000_000
    default_schema_name = "main"
    default_isolation_level = "AUTOCOMMIT"

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        import tacit

        return tacit

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """One connection for each thread at a time; all of them share the ledger's file."""
        return pool.QueuePool

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        options = {name: _one(name, value) for name, value in url.query.items() if name in _OPTIONS}
        numbers = {name: _number(name, options[name]) for name in _NUMBERS if name in options}
        return self._database(url), options | numbers

    def connect(self, *cargs: Any, **cparams: Any) -> Any:
        if not cargs:  # create_engine("tacit://", creator=…) needs no path, and does not come here
            raise exc.ArgumentError("tacit:/// needs the path of a database, such as tacit:///clinic.duckdb")
        return super().connect(*cargs, **cparams)

    def _database(self, url: URL) -> list[str]:
        unknown = sorted(set(url.query) - set(_OPTIONS))
        if unknown:
            raise exc.ArgumentError(f"{url.drivername} knows no {unknown[0]}=; one of {', '.join(_OPTIONS)}")
        if url.host:
            raise exc.ArgumentError(f"three slashes come before a path: tacit:///{url.host}")
        return [url.database] if url.database else []

    def initialize(self, connection: Any) -> None:
        """Instead of asking the database for its settings: there are none to ask for."""
        self.default_schema_name = _catalog(connection).main

    def do_ping(self, dbapi_connection: Any) -> bool:
        dbapi_connection.commit()  # which only checks that the connection is open
        return True

    def is_disconnect(self, e: Exception, connection: Any, cursor: Any) -> bool:
        return isinstance(e, InterfaceError) and "the connection is closed" in str(e)

    def get_isolation_level_values(self, dbapi_conn: Any) -> list[Any]:
        return ["AUTOCOMMIT"]

    def get_default_isolation_level(self, dbapi_conn: Any) -> Any:
        return "AUTOCOMMIT"

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        return "AUTOCOMMIT"

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        """Nothing to set: a release is final when it is returned."""

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        options = {} if context is None else context.execution_options
        cursor.execute(statement, parameters, **{name: options[name] for name in _PER_STATEMENT if name in options})

    def do_execute_no_params(self, cursor: Any, statement: str, context: Any = None) -> None:
        self.do_execute(cursor, statement, None, context)

    def do_executemany(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        raise NotSupportedError(
            "several sets of parameters return no rows through SQLAlchemy; nothing was charged\n"
            "hint: execute them one by one, or take cursor().executemany of the tacit connection"
        )

    # Reflection: what the catalog says, which is public.

    @reflection.cache
    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        catalog = _catalog(connection)
        return sorted({catalog.main, *(_schema(table, catalog.main) for table in catalog.tables)})

    @reflection.cache
    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return [_name(table) for table in _tables(connection, schema) if not table.view]

    @reflection.cache
    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return [_name(table) for table in _tables(connection, schema) if table.view]

    @reflection.cache
    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        return [
            {
                "name": column.name,
                "type": column_type(column.type),
                "nullable": column.nullable,
                "default": None,
                "autoincrement": False,
            }
            for column in _table(connection, table_name, schema).columns
        ]

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        return _catalog(connection).at(schema or "", table_name) is not None

    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        _table(connection, table_name, schema)
        return {"constrained_columns": [], "name": None}

    def _no_constraints(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """None are shown: a tool that saw them would look rows up by them."""
        _table(connection, table_name, schema)
        return []

    get_foreign_keys = _no_constraints
    get_indexes = _no_constraints
    get_unique_constraints = _no_constraints
    get_check_constraints = _no_constraints

    def get_temp_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return []

    def get_temp_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return []

    def get_sequence_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[Any]:
        return []

    def get_table_comment(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        _table(connection, table_name, schema)
        return {"text": None}


class TacitPostgresDialect(TacitDialect):
    """``tacit+postgresql://user@host/name``: the same over a PostgreSQL server."""

    driver = "postgresql"
    supports_statement_cache = True

    def _database(self, url: URL) -> list[str]:
        server = url.set(drivername="postgresql").difference_update_query(_OPTIONS)
        return [server.render_as_string(hide_password=False)]


class TacitServerDialect(TacitDialect):
    """``tacit+https://:TOKEN@host:port``: the same over a server of tacit's."""

    driver = "https"
    supports_statement_cache = True

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        database, options = super().create_connect_args(url)
        return database, {**options, **({} if url.password is None else {"token": str(url.password)})}

    def _database(self, url: URL) -> list[str]:
        unknown = sorted(set(url.query) - {"spend"})
        if unknown:
            raise exc.ArgumentError(
                f"{url.drivername} knows no {unknown[0]}=: the server has its own policy; only spend="
            )
        if not url.host or url.username:
            raise exc.ArgumentError(f"{url.drivername}://:TOKEN@host:port is the address of a server")
        host = f"[{url.host}]" if ":" in url.host else url.host
        port = "" if url.port is None else f":{url.port}"
        return [f"{self.driver}://{host}{port}/{url.database or ''}"]


class TacitPlainServerDialect(TacitServerDialect):
    """``tacit+http://``: a server on the same machine."""

    driver = "http"
    supports_statement_cache = True


def column_type(type_: str) -> types.TypeEngine[Any]:
    """SQLAlchemy's type for one of DuckDB's; those that it has none for are ``NullType``."""
    size = decimal_size(type_)
    if size is not None:
        return types.NUMERIC(*size)
    if re.match(r"ENUM\(", type_):
        return types.VARCHAR()
    return _TYPES.get(type_, types.NullType)()


def _one(name: str, value: str | tuple[str, ...]) -> str:
    if not isinstance(value, str):
        raise exc.ArgumentError(f"{name}= stands in the URL more than once")
    return value


def _number(name: str, value: str) -> Any:
    try:
        return Decimal(value)
    except InvalidOperation:
        raise exc.ArgumentError(f"{name}= in the URL must be a number, such as {name}=0.1") from None


def _catalog(connection: Any) -> Any:
    opened: Connection = connection.connection.dbapi_connection
    return opened.catalog


def _schema(table: Table, main: str) -> str:
    schema = table.path[0] if table.path else "main"
    return main if schema == "main" else schema


def _name(table: Table) -> str:
    return table.path[-1] if table.path else table.name


def _tables(connection: Any, schema: str | None) -> list[Table]:
    catalog = _catalog(connection)
    return [table for table in catalog.tables if _schema(table, catalog.main) == (schema or catalog.main)]


def _table(connection: Any, name: str, schema: str | None) -> Table:
    found: Table | None = _catalog(connection).at(schema or "", name)
    if found is None:
        raise exc.NoSuchTableError(name)
    return found
