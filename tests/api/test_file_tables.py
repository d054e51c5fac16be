"""Many files as one table: folders and patterns of csv and parquet files, whatever they are called and hold."""

from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tacit
from tacit import testing

HURTING_ROWS = [
    b"1,\xff\n", b"\xff,x\n", b"1,\xe2\x82", b"1,a\x00b\n\x00\n", b"1,\xed\xa0\x80\n", "1,x\n".encode("utf-16"),
    b"\xef\xbb\xbf1,x\n", b"1," + b"x" * 3_000_000 + b"\n", b'1,"' + b"x\n" * 1_500_000 + b'"\n', b'1,"abc\n2,y\n',
    b'1,"a"b\n', b"1,x,3,4,5\n", b"1\n", b"1,x", b"1,x\r2,y\r\n3,z\n", b"\n\n1,x\n\n", b"", b'"\n', b"bad,7\n",
]  # fmt: skip


def policy(table: str, **more: str) -> dict[str, Any]:
    columns = {"age": {"type": "INTEGER"}, "name": {"type": "VARCHAR"}}
    return {
        "budget": {"epsilon": 9},
        "tables": {table: {"columns": columns | {name: {"type": type_} for name, type_ in more.items()}}},
    }


def exact(con: tacit.Connection, sql: str) -> Any:
    return testing.exact_answers(con, sql)[0].iloc[0, 0]


def logs(folder: Path, *names: str, rows: str = "30,b\n91,c\nbad,d\n") -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        text = ("age,name\n" if "tsv" not in name else "age\tname\n") + rows
        (folder / name).write_bytes(gzip.compress(text.encode()) if name.lower().endswith(".gz") else text.encode())
    return folder


def test_a_folder_of_csv_files_is_one_table(tmp_path: Path) -> None:
    folder = logs(tmp_path / "logs", "y=2020/a.csv", "y=2021/b.csv", "y=2021/it's [x]*é.csv")
    with tacit.connect(folder, policy=policy("logs", y="INTEGER")) as con:
        assert exact(con, "SELECT count(*) FROM logs") == 9
        assert exact(con, "SELECT count(*) FROM logs WHERE age >= 90 AND y = 2021") == 2
        con.answer("SELECT count(*) FROM logs", epsilon=1)
        assert (tmp_path / "logs.ledger").exists()
    with tacit.connect(folder, policy=policy("logs")) as con:
        assert exact(con, "SELECT count(*) FROM logs WHERE y = '2021'") == 6, "a key without a type is a text"


@pytest.mark.parametrize(
    ("names", "pattern", "rows"),
    [
        (["a.csv", "b.csv", "notes.txt"], "*.csv", 6), (["a.csv.gz", "b.CSV.GZ"], "", 6), (["a.tsv"], "", 3),
        (["a.tsv.gz", "a.csv"], "*.tsv.gz", 3), (["x/a.csv", "y/z/b.csv", "c.csv"], "**/*.csv", 9),
        (["x/a.csv", "y/z/b.csv"], "?/a.csv", 3), ([".a.csv", "_b.csv", "_tmp/c.csv", "d.csv"], "", 3),
        (["_b.csv", "d.csv"], "_*.csv", 3), (["_year=1/b.csv", "_year=2/b.csv"], "", 6),
        (["a.csv", "b.parquet"], "[a-c].csv", 3), (["_SUCCESS", "README.md", "a.csv"], "", 3),
    ],
)  # fmt: skip
def test_what_a_path_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], pattern: str, rows: int
) -> None:
    logs(tmp_path / "logs", *names, rows="30\tb\n" * 3 if "tsv" in (pattern or names[0]) else "30,b\n" * 3)
    monkeypatch.chdir(tmp_path)
    with tacit.connect(f"logs/{pattern}", policy=policy("logs")) as con:
        monkeypatch.chdir("/")
        assert exact(con, "SELECT count(*) FROM logs WHERE age = 30") == rows


def parquet(sql: str) -> Callable[[Path], None]:
    return lambda folder: duckdb.sql(sql).write_parquet(str(folder / "p.parquet"))


@pytest.mark.parametrize(
    ("names", "more", "refusal"),
    [
        ([], lambda folder: folder.mkdir(), "no parquet, csv or tsv file"),
        (["a.csv", "b.tsv"], None, "several kinds: csv, tsv"),
        (["a.csv", "b.csv.gz"], None, "several kinds"),
        (["a.csv"], parquet("SELECT 1 AS age"), "several kinds"),
        (["a.csv"], lambda folder: os.symlink(folder / "a.csv", folder / "b.csv"), "count twice"),
        (["a.csv"], lambda folder: os.link(folder / "a.csv", folder / "b.csv"), "count twice"),
        (["y=1/a.csv", "b.csv"], None, "key=value"),
        (["name=1/a.csv"], None, "key in their paths too"),
        (["a.csv"], lambda folder: (folder / "b.csv").write_text("name,age\n"), "different columns"),
        (["a.csv"], lambda folder: (folder / "b.csv").write_text(""), "different columns"),
        (["a.csv"], lambda folder: (folder / "b.csv").write_text("age,age\n"), "every column once"),
        (["a.csv.gz"], lambda folder: (folder / "b.csv.gz").write_bytes(b"no gzip"), "cannot be read"),
    ],
)
def test_files_that_make_no_table(
    tmp_path: Path, names: list[str], more: Callable[[Path], None] | None, refusal: str
) -> None:
    folder = logs(tmp_path / "logs", *names)
    if more is not None:
        more(folder)
    with pytest.raises(tacit.OperationalError, match=refusal):
        tacit.connect(folder, policy=policy("logs"))


def test_csv_files_need_types(tmp_path: Path) -> None:
    logs(tmp_path / "logs", "a.csv")
    with pytest.raises(tacit.PolicyError, match=r"\[tables.logs.columns\]"):
        tacit.connect(tmp_path / "logs" / "*.csv", epsilon=1)


@pytest.mark.parametrize("packed", [False, True])
def test_no_row_of_any_file_decides_whether_a_scan_fails(tmp_path: Path, packed: bool) -> None:
    """Nor what is read of the other files: a quote that is never closed ends with its file."""
    folder, ending, alone = tmp_path / "logs", "csv.gz" if packed else "csv", 0
    folder.mkdir()
    for number, rows in enumerate(HURTING_ROWS):
        text = b"age,name\n" + b"30,b\n" * 2_000 + rows
        path = folder / f"v{number:02}.{ending}"
        path.write_bytes(gzip.compress(text, 1) if packed else text)
        if not packed:
            with tacit.connect(path, policy=policy(path.stem)) as con:
                alone += exact(con, f"SELECT count(*) FROM {path.stem}")
            Path(f"{path}.ledger").unlink()
    with tacit.connect(folder, policy=policy("logs")) as con:
        assert exact(con, "SELECT count(*) FROM logs WHERE age = 30 AND name = 'b'") == 2_000 * len(HURTING_ROWS)
        assert packed or exact(con, "SELECT count(*) FROM logs") == alone


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "a.csv").unlink(),
        lambda folder: logs(folder, "new.csv"),
        lambda folder: (folder / "a.csv").write_text("name,age\nb,30\n"),
        lambda folder: (folder / "a.csv").write_text("age,other\n30,b\n"),
    ],
    ids=["vanished", "appeared", "other order", "other names"],
)
def test_other_files_are_refused_unpaid(tmp_path: Path, change: Callable[[Path], Any]) -> None:
    folder = logs(tmp_path / "logs", "a.csv", "b.csv")
    for path, table in ((folder, "logs"), (folder / "a.csv", "a")):
        with tacit.connect(path, policy=policy(table)) as con:
            con.answer(f"SELECT count(*) FROM {table} WHERE age < 50", epsilon=1)
            change(folder)
            if path == folder or "new.csv" not in os.listdir(folder):
                with pytest.raises(tacit.OperationalError, match=r"connect again|is gone"):
                    con.answer(f"SELECT count(*) FROM {table} WHERE age < 50", epsilon=1, refresh=True)
            assert con.budget.spent.epsilon == 1
        (tmp_path / "logs.ledger").unlink(missing_ok=True)
        logs(folder, "a.csv", "b.csv")
        (folder / "new.csv").unlink(missing_ok=True)


def test_a_file_and_its_folder_are_not_two_budgets(tmp_path: Path) -> None:
    folder = logs(tmp_path / "logs", "y/a.csv", "b.csv")
    with tacit.connect(folder / "b.csv", policy=policy("b")) as con:
        con.answer("SELECT count(*) FROM b", epsilon=1)
    with pytest.raises(tacit.PolicyError, match=r"that of '.*b.csv'.*second budget[\s\S]*hint: write ledger = "):
        tacit.connect(folder, policy=policy("logs"))
    with tacit.connect(folder, policy=policy("logs"), ledger=folder / "b.csv.ledger") as con:
        assert con.budget.spent.epsilon == 1
    (folder / "b.csv.ledger").rename(tmp_path / "logs.ledger")
    for inner, table in ((folder / "y" / "a.csv", "a"), (folder / "y", "y"), (folder / "b.csv", "b")):
        with pytest.raises(tacit.PolicyError, match="second budget"):
            tacit.connect(inner, policy=policy(table))


def test_other_rows_are_another_version(tmp_path: Path) -> None:
    folder = logs(tmp_path / "logs", "a.csv", "b.csv")
    with tacit.connect(folder, policy=policy("logs")) as con:
        con.answer("SELECT count(*) FROM logs", epsilon=1)
        (folder / "a.csv").write_text("age,name\n30,b\n")
        con.answer("SELECT count(*) FROM logs", epsilon=1)
        assert con.budget.spent.epsilon == 2


def test_parquet_files_that_differ_in_the_scale_of_a_number(tmp_path: Path) -> None:
    """DuckDB would convert, and fail on a value that does not fit."""
    for name, type_ in (("a", "DECIMAL(9,2)"), ("b", "DECIMAL(9,5)")):
        duckdb.sql(f"SELECT 1::{type_} AS x").write_parquet(str(tmp_path / f"{name}.parquet"))
    with pytest.raises(tacit.OperationalError, match="different columns"):
        tacit.connect(tmp_path / "*.parquet", epsilon=1)


@pytest.mark.parametrize("how", ["file", "catalog", "connection"])
def test_one_row_of_a_parquet_file_does_not_move_those_with_nan(tmp_path: Path, how: str) -> None:
    """Writers leave NaN out of the greatest value that a file states; DuckDB would plan with what is stated."""
    batch = ["SELECT count(*) FROM rows WHERE v >= 10", "SELECT sum(v) FROM rows"]
    batch += [f"SELECT count(*) FROM rows WHERE v >= {cut}" for cut in range(11, 19)]
    counts = []
    for values in ([1.0], [1.0, 20.0]):
        path = tmp_path / str(len(values)) / "rows.parquet"
        path.parent.mkdir()
        pq.write_table(pa.table({"v": [float("nan")] * 50 + values}), path)
        database: Any = path
        if how != "file":
            database = path.with_name("rows.duckdb")
            with duckdb.connect(str(database)) as writer:
                writer.execute(f"CREATE VIEW rows AS SELECT * FROM read_parquet('{path}')")
        if how == "connection":
            database = duckdb.connect(str(database))
        declared = {"budget": {"epsilon": 1}, "tables": {"rows": {"columns": {"v": {"min": 0, "max": 50}}}}}
        with tacit.connect(database, policy=declared) as con:
            counts.append([frame.iloc[0, 0] for frame in testing.exact_answers(con, batch)])
    assert counts[0] == pytest.approx([50, 50 * 50 + 1, *[50] * 8], abs=1e-3)
    assert counts[1] == pytest.approx([51, 50 * 50 + 21, *[51] * 8], abs=1e-3)


def test_what_a_parquet_file_states_of_its_values_is_not_relied_on(tmp_path: Path) -> None:
    """Groups that are read by position lie between the ends that are stated: a value beyond them failed the scan."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"v": range(1000)}), path, use_dictionary=False, compression="none")
    content = path.read_bytes()
    footer = len(content) - 8 - struct.unpack("<i", content[-8:-4])[0]
    ends = content[footer:].replace(struct.pack("<q", 999), struct.pack("<q", 50))
    path.write_bytes(content[:footer] + ends)
    assert ends != content[footer:]
    with tacit.connect(path, epsilon=1) as con:
        frames = testing.exact_answers(
            con, [f"SELECT count(*) FROM rows WHERE v >= {cut}" for cut in range(10, 100, 10)]
        )
    assert [frame.iloc[0, 0] for frame in frames] == [1000 - cut for cut in range(10, 100, 10)]


@pytest.mark.parametrize("dictionary", [False, True])
def test_a_parquet_text_that_is_no_utf8_fails_nothing(tmp_path: Path, dictionary: bool) -> None:
    texts = pa.StringArray.from_buffers(3, pa.py_buffer(struct.pack("<4i", 0, 1, 3, 4)), pa.py_buffer(b"a\xff\xfeb"))
    pq.write_table(pa.table({"s": texts, "u": [1, 2, 3]}), tmp_path / "rows.parquet", use_dictionary=dictionary)
    units = {"budget": {"epsilon": 9}, "tables": {"rows": {"privacy_unit": "u", "max_rows_per_unit": 1}}}
    for declared in ({"budget": {"epsilon": 9}}, units):
        ledger = tmp_path / f"{len(declared)}.ledger"
        with tacit.connect(tmp_path / "rows.parquet", policy=declared, ledger=ledger) as con:
            assert exact(con, "SELECT count(*) FROM rows WHERE s = 'a'") == 1
            assert exact(con, "SELECT count(*) FROM rows WHERE length(s) = 1 OR s < 'b'") == 3
            con.answer("SELECT count(*) FROM rows WHERE s >= 'b'", epsilon=1)


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_times_of_a_day_in_parquet_files_are_refused_unpaid(tmp_path: Path, unit: str) -> None:
    """DuckDB checks them when it reads them: a file can hold others."""
    times = pa.array([0, -1], pa.int64()).cast(pa.time64(unit))
    pq.write_table(pa.table({"t": times, "a": [1, 2]}), tmp_path / "rows.parquet")
    with tacit.connect(tmp_path / "rows.parquet", epsilon=1) as con:
        assert exact(con, "SELECT count(*) FROM rows WHERE a < 2") == 1
        with pytest.raises(tacit.NotSupportedError, match="times of a day"):
            con.answer("SELECT count(*) FROM rows WHERE t IS NULL", epsilon=0.5)
        assert con.budget.spent.epsilon == 0


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("other", ["rows.parquet", "link.parquet", "r*.parquet"])
def test_two_views_of_the_same_files_are_not_charged(tmp_path: Path, other: str, opened: bool) -> None:
    """The policy may speak of units under one of the names only; a view of the view has those of the files."""
    duckdb.sql("SELECT range % 4 AS u FROM range(40)").write_parquet(str(tmp_path / "rows.parquet"))
    (tmp_path / "link.parquet").symlink_to(tmp_path / "rows.parquet")
    policy = {"budget": {"epsilon": 9.0}, "tables": {"first": {"privacy_unit": "u", "max_rows_per_unit": 1}}}
    path, read = tmp_path / "views.duckdb", "CREATE VIEW {} AS SELECT * FROM read_parquet('{}')"

    def connect() -> tacit.Connection:
        database = duckdb.connect(str(path)) if opened else path
        return tacit.connect(database, policy=policy, ledger=tmp_path / "ledger")

    with duckdb.connect(str(path)) as writer:
        writer.execute(read.format("first", tmp_path / "rows.parquet"))
        writer.execute("CREATE VIEW through AS SELECT * FROM first")
    with connect() as con:
        assert testing.exact_answers(con, "SELECT count(*) FROM through")[0].iloc[0, 0] == 4
    with duckdb.connect(str(path)) as writer:
        writer.execute(read.format("second", tmp_path / other))
    with connect() as con:
        for name in ("first", "second", "through"):
            with pytest.raises(tacit.NotSupportedError, match="two tables of the same rows"):
                con.answer(f"SELECT count(*) FROM {name}", epsilon=1)
        assert not con.budget.spent.epsilon
