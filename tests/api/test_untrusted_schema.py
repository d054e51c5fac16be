"""With ``trust_schema = false``, an ENUM is a VARCHAR to everybody but the scan: its labels may come from the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tacit
import tacit.testing
from tacit import Connection

POLICY: dict[str, Any] = {
    "trust_schema": False,
    "budget": {"epsilon": 10.0, "delta": 1e-6},
    "tables": {"t": {"columns": {"ward": {"values": ["alpha", "nowhere"], "other": True}}}},
}
ROWS = 30

Make = Callable[[tuple[str, str, str]], Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A database whose schema holds three labels, in every place where a schema can hold one."""

    def made(labels: tuple[str, str, str]) -> Path:
        path = tmp_path / f"{labels[2]}.duckdb"
        listed = ", ".join("'" + label.replace("'", "''") + "'" for label in labels)
        with duckdb.connect(str(path)) as con:
            con.execute(f"CREATE TYPE kind AS ENUM ({listed})")
            con.execute(
                "CREATE TABLE t (id INTEGER, ward kind, plain kind, many kind[], pair kind[2], "
                "part STRUCT(a kind, b INTEGER), by_name MAP(kind, INTEGER), one UNION(n INTEGER, k kind), "
                f"age INTEGER DEFAULT {len(labels[2])} "
                f"CHECK (age BETWEEN 0 AND {len(labels[2])}), "
                f"twice VARCHAR GENERATED ALWAYS AS (ward || '{labels[2]}'))"
            )
            con.execute(f"COMMENT ON COLUMN t.ward IS '{labels[2]}'")
            for i in range(ROWS):
                label = labels[i % 3]
                con.execute(
                    "INSERT INTO t VALUES (?, ?, ?, [?], [?, ?], {'a': ?, 'b': 1}, MAP {?: 1}, ?::kind, ?)",
                    [i // 2, label, label, label, label, label, label, label, label, i % 6],
                )
        return path

    return made


@pytest.fixture
def con(make: Make) -> Iterator[Connection]:
    with tacit.connect(make(("zulu", "alpha", "secret")), policy=POLICY) as con:
        yield con


BATCHES = [
    "SELECT ward, count(*) FROM t GROUP BY ward",
    "SELECT plain, count(*) FROM t GROUP BY plain",
    "SELECT count(*) FROM t WHERE plain = 5",
    "SELECT count(*) FROM t WHERE plain < DATE '2024-01-01'",
    "SELECT sum(plain) FROM t",
    "SELECT avg(part) FROM t",
    "SELECT count(*) FROM t WHERE plain = 'secre'",
    "SELECT count(*) FROM t WHERE plain + 1 = 2",
    "SELECT count(*) FROM t WHERE plain",
    "SELECT count(*) FROM t WHERE many = 'x'",
    "SELECT count(*) FROM t WHERE many < 3",
    "SELECT count(*) FROM t WHERE part",
    "SELECT count(*) FROM t WHERE by_name",
    "SELECT count(*) FROM t WHERE one",
    "SELECT by_name, count(*) FROM t GROUP BY by_name",
    "SELECT pair, count(*) FROM t GROUP BY 1",
    "SELECT sum(age) FROM t",
    "SELECT age, count(*) FROM t GROUP BY age",
    "SELECT count(twice) FROM t",
    "SELECT count(*) FROM t JOIN t AS u ON t.id = u.ward",
    "SELECT upper(plain), count(*) FROM t GROUP BY 1",
    "SELECT count(*) FROM t WHERE upper(plain) = 3 OR plain || 'x' LIKE 'a%'",
    "SELECT max(plain) FROM t",
]


def everything_said(con: Connection, batch: str) -> str:
    """Whatever an analyst gets to see of a batch without spending."""
    try:
        plan = con.explain(batch, epsilon=1.0)
    except tacit.Error as error:
        return f"{error!r} {error} {vars(error)}"
    cells = [cell.label for cell in plan.cells]
    return f"{plan!r} {plan} {plan.df().to_dict()} {cells} {plan.queries}"


@pytest.mark.parametrize("batch", BATCHES)
def test_no_label_of_an_untrusted_enum_is_shown(con: Connection, batch: str) -> None:
    assert "secret" not in everything_said(con, batch)
    assert "zulu" not in everything_said(con, batch)


def test_the_catalog_is_the_same_whatever_the_labels_are(make: Make) -> None:
    catalogs = []
    for labels in (("zulu", "alpha", "secret"), ("b')] ENUM(", "a, ", "private thing")):
        with tacit.connect(make(labels), policy=POLICY) as con:
            tables = con.catalog.tables
            catalogs.append([(t.name, t.columns, t.privacy_unit, t.view) for t in tables])
    assert catalogs[0] == catalogs[1]
    types = {column.name: column.type for column in catalogs[0][0][1]}
    assert types["ward"] == "VARCHAR" and types["many"] == "VARCHAR[]"
    assert types["part"] == "STRUCT(a VARCHAR, b INTEGER)"


def test_values_that_the_enum_lacks_are_declared_without_a_word(make: Make) -> None:
    policy = {**POLICY, "tables": {"t": {"columns": {"plain": {"values": ["alpha", "unheard of"]}}}}}
    with tacit.connect(make(("zulu", "alpha", "secret")), policy=policy) as con:
        (frame,) = tacit.testing.exact_answers(con, "SELECT plain, count(*) AS n FROM t GROUP BY plain")
    assert frame["plain"].tolist()[:2] == ["alpha", "unheard of"]
    assert frame["n"].tolist() == [10, 0, 0]


def test_frames_and_descriptions_say_varchar(con: Connection) -> None:
    cur = con.cursor().execute("SELECT ward, count(*) FROM t GROUP BY ward", epsilon=1.0)
    assert cur.description is not None and cur.description[0][1] == "VARCHAR"
    assert str(cur.df()["ward"].dtype) != "category"
    (exact,) = tacit.testing.exact_answers(con, "SELECT ward, count(*) FROM t GROUP BY ward")
    assert str(exact["ward"].dtype) != "category"
    assert exact["ward"].tolist()[:3] == ["alpha", "nowhere", "other"]


@pytest.mark.parametrize("unit", [None, "id", "ward"])
@pytest.mark.parametrize(
    "condition",
    [
        "plain = 'alpha'",
        "plain < 'm'",
        "plain BETWEEN 'b' AND 'z'",
        "plain IN ('secret', 'nowhere')",
        "plain IS NULL",
        "upper(plain) = 'ZULU'",
        "plain || age > 'b'",
    ],
)
def test_the_scan_counts_labels_as_text(make: Make, condition: str, unit: str | None) -> None:
    """The labels stand in the ENUM in another order than in the alphabet."""
    path = make(("zulu", "alpha", "secret"))
    bound = {} if unit is None else {"privacy_unit": unit, "max_rows_per_unit": ROWS}
    with tacit.connect(path, policy={**POLICY, "tables": {"t": bound}}) as con:
        (frame,) = tacit.testing.exact_answers(con, f"SELECT count(*) AS n FROM t WHERE {condition}")
    with duckdb.connect(str(path), read_only=True) as database:
        text = condition.replace("plain", "CAST(plain AS VARCHAR)")
        (expected,) = database.execute(f"SELECT count(*) FROM t WHERE {text}").fetchone() or ()
    assert frame["n"].tolist() == [expected]


def test_a_trusted_enum_stays_an_enum(make: Make) -> None:
    policy = {**POLICY, "trust_schema": True, "tables": {}}
    with tacit.connect(make(("zulu", "alpha", "secret")), policy=policy) as con:
        (frame,) = tacit.testing.exact_answers(con, "SELECT plain, count(*) AS n FROM t GROUP BY plain")
        assert frame["plain"].tolist()[:3] == ["zulu", "alpha", "secret"]
        assert str(frame["plain"].dtype) == "category"
    policy["tables"] = {"t": {"columns": {"plain": {"values": ["alfa"]}}}}
    with pytest.raises(tacit.PolicyError, match="did you mean alpha"):
        tacit.connect(make(("zulu", "alpha", "secreter")), policy=policy)
