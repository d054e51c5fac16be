"""The SQLAlchemy dialect: what tools do before the first query is free, and pandas reads without warnings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
import sqlalchemy as sa
import tacit
from sqlalchemy import exc
from sqlalchemy.engine.url import make_url
from tacit import Connection
from tacit.sqlalchemy_dialect import TacitPostgresDialect, column_type

COUNT = "SELECT count(*) AS n FROM visits WHERE age < 40"


@pytest.fixture
def url(clinic: Path, policy: dict[str, Any]) -> str:
    """The clinic with a second schema and a view, and its policy as a file."""
    with duckdb.connect(str(clinic)) as db:
        db.execute("CREATE SCHEMA annex; CREATE TABLE annex.beds (ward VARCHAR NOT NULL, free INTEGER)")
        db.execute("CREATE VIEW young AS SELECT state FROM visits WHERE age < 18")
    file = clinic.with_name("clinic.toml")
    file.write_text(_toml(policy))
    return f"tacit:///{clinic}?policy={file}&spend=0.1"


@pytest.fixture
def engine(url: str) -> Iterator[sa.Engine]:
    engine = sa.create_engine(url, pool_pre_ping=True)
    yield engine
    engine.dispose()


def spent(engine: sa.Engine) -> Decimal:
    with engine.connect() as con:
        opened: Any = con.connection.dbapi_connection
        return Decimal(opened.budget.spent.epsilon)


def test_what_tools_ask_first_is_free(engine: sa.Engine, watch: Any) -> None:
    with engine.connect() as con:
        assert con.execute(sa.text("SELECT 1")).scalar() == 1
        assert con.execute(sa.select(1)).all() == [(1,)]
        con.commit()
        assert con.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("SELECT 1").all() == [(1,)]
    inspector = sa.inspect(engine)
    assert inspector.default_schema_name == "main"
    assert inspector.get_schema_names() == ["annex", "main"]
    assert inspector.get_table_names() == ["hospitals", "labs", "visits"]
    assert inspector.get_table_names("annex") == ["beds"]
    assert inspector.get_view_names() == ["young"]
    assert inspector.has_table("visits") and inspector.has_table("beds", "annex") and not inspector.has_table("beds")
    assert [(c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns("beds", "annex")] == [
        ("ward", "VARCHAR", False),
        ("free", "INTEGER", True),
    ]
    assert inspector.get_pk_constraint("visits")["constrained_columns"] == []
    for constraints in ("foreign_keys", "indexes", "unique_constraints", "check_constraints"):
        assert getattr(inspector, f"get_{constraints}")("visits") == []
    assert inspector.get_table_comment("visits") == {"text": None}
    with pytest.raises(exc.NoSuchTableError):
        inspector.get_columns("nothing")
    with engine.connect() as con:
        for probe in (
            "SELECT * FROM visits WHERE 1=0",
            'SELECT * FROM "visits" LIMIT 0',
            "SELECT * FROM young WHERE 1=0",
        ):
            result = con.exec_driver_sql(probe)
            assert "state" in list(result.keys()) and result.all() == []
    everything = sa.MetaData()
    everything.reflect(engine, views=True)
    assert set(everything.tables) == {"visits", "labs", "hospitals", "young"}
    assert (watch.reads, spent(engine)) == (0, 0)


def test_pandas_reads_without_a_warning(engine: sa.Engine) -> None:
    frame = pd.read_sql("SELECT state, count(*) AS n FROM visits GROUP BY state", engine)
    assert list(frame.columns) == ["state", "n"]
    assert len(frame) == 6
    assert spent(engine) == Decimal("0.1")
    assert pd.read_sql_table("hospitals", engine).to_dict("records") == [{"id": 1, "name": "General"}]
    assert pd.read_sql_query(sa.text("SELECT count(*) FROM visits WHERE age < :a"), engine, params={"a": 40}).size == 1


def test_an_open_connection_is_an_engine(con: Connection) -> None:
    con.spend = 0.25
    engine = sa.create_engine("tacit://", creator=lambda: con, poolclass=sa.StaticPool)
    assert pd.read_sql(COUNT, engine).columns.to_list() == ["n"]
    assert con.budget.spent.epsilon == Decimal("0.25")


def test_statements_of_core(engine: sa.Engine) -> None:
    visits = sa.Table("visits", sa.MetaData(), autoload_with=engine)
    by_state = (
        sa.select(visits.c.state, sa.func.count().label("n"))
        .where(visits.c.age < 40, visits.c.state.in_(["NY", "NJ"]), visits.c.sex.is_(True))
        .group_by(visits.c.state)
        .order_by(sa.desc("n"))
        .limit(2)
    )
    with engine.connect() as con:
        rows = con.execute(by_state).all()
    assert len(rows) == 2
    assert rows[0].n >= rows[1].n


def test_a_statement_says_what_it_costs(engine: sa.Engine) -> None:
    with engine.connect().execution_options(epsilon=0.5, delta=1e-9) as con:
        con.execute(sa.text(COUNT)).all()
        con.execute(sa.text("SELECT count(*) FROM labs"), execution_options={"epsilon": 0.25}).all()
    assert spent(engine) == Decimal("0.75")


def test_what_fails_is_of_the_dbapi_and_unpaid(engine: sa.Engine, watch: Any) -> None:
    with engine.connect() as con:
        for sql in ("SELECT * FROM visits", "DELETE FROM visits", "SELECT count(*) FROM nothing"):
            with pytest.raises(exc.ProgrammingError) as caught:
                con.execute(sa.text(sql))
            assert isinstance(caught.value.orig, tacit.ProgrammingError)
        with pytest.raises(exc.DBAPIError, match="one by one"):
            con.execute(sa.text("SELECT count(*) FROM visits WHERE age < :a"), [{"a": 1}, {"a": 2}])
        with pytest.raises(exc.DBAPIError, match="budget has"):
            con.execution_options(epsilon=11).execute(sa.text(COUNT))
    assert (watch.reads, spent(engine)) == (0, 0)


def test_threads_share_the_budget(engine: sa.Engine) -> None:
    def ask(age: int) -> float:
        return float(pd.read_sql(f"SELECT count(*) AS n FROM visits WHERE patient_id < {age}", engine)["n"][0])

    with ThreadPoolExecutor(4) as threads:
        assert len(list(threads.map(ask, range(10, 90, 10)))) == 8
    assert spent(engine) <= Decimal("0.8")


def test_a_closed_connection_is_replaced(engine: sa.Engine) -> None:
    with engine.connect() as con:
        opened: Any = con.connection.dbapi_connection
    opened.close()
    with engine.connect() as con:
        assert con.execute(sa.text("SELECT 1")).scalar() == 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda url: url + "&polcy=x", "knows no polcy="),
        (lambda url: url.replace("0.1", "much"), "spend= in the URL must be a number"),
        (lambda url: url + "&spend=2", "more than once"),
        (lambda url: "tacit://", "needs the path"),
        (lambda url: "tacit://clinic.duckdb", "tacit:///clinic.duckdb"),
    ],
)
def test_what_is_wrong_in_the_url_is_said(url: str, change: Callable[[str], str], problem: str) -> None:
    with pytest.raises(exc.ArgumentError, match=problem):
        sa.create_engine(change(url)).connect()


def test_a_server_of_postgresql_is_named_as_its_own_url() -> None:
    url = make_url("tacit+postgresql://reader:s3cret@host:5433/clinic?policy=c.toml&spend=0.5&sslmode=require")
    assert TacitPostgresDialect().create_connect_args(url) == (
        ["postgresql://reader:s3cret@host:5433/clinic?sslmode=require"],
        {"policy": "c.toml", "spend": Decimal("0.5")},
    )
    assert isinstance(sa.create_engine(url).dialect, TacitPostgresDialect), "found by its entry point"


def test_types() -> None:
    named = ["DECIMAL(10,2)", "ENUM('a', 'b')", "TIMESTAMP WITH TIME ZONE", "HUGEINT", "INTEGER[]"]
    assert [repr(column_type(name)) for name in named] == [
        "NUMERIC(precision=10, scale=2)",
        "VARCHAR()",
        "TIMESTAMP(timezone=True)",
        "NUMERIC(precision=38, scale=0)",
        "NullType()",
    ]


def _toml(policy: dict[str, Any]) -> str:
    """Enough of TOML for the policy of the tests."""
    lines = [f"trust_schema = {json.dumps(policy['trust_schema'])}", "[budget]"]
    lines += [f"{key} = {value}" for key, value in policy["budget"].items()]
    for name, table in policy["tables"].items():
        lines += [f"[tables.{name}]", *(["public = true"] if "public" in table else [])]
        for column, declared in table.get("columns", {}).items():
            keys = ", ".join(f"{key} = {json.dumps(value)}" for key, value in declared.items())
            lines.append(f"columns.{column} = {{ {keys} }}")
    return "\n".join(lines)
