"""Asks a Spark Connect server that it starts itself; the arguments are a folder of parquet tables and one for files."""

from __future__ import annotations

import sys
import warnings
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import tacit
import tacit.testing

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.spark_session import session

POLICY = {
    "budget": {"epsilon": 1.0},
    "tables": {
        "visits": {"privacy_unit": "pid", "max_rows_per_unit": 3},
        "tests": {"privacy_unit": "vid -> visits.pid", "max_rows_per_unit": 1},
    },
}


def main() -> None:
    warnings.simplefilter("ignore")
    tables, files = map(Path, sys.argv[1:])
    with session(files, remote=True) as spark:
        assert type(spark).__module__ == "pyspark.sql.connect.session"
        for name in ("visits", "tests"):
            spark.read.parquet(str(tables / name)).createOrReplaceTempView(name)
        spark.range(50).createOrReplaceTempView("numbers")
        frame = spark.createDataFrame(pa.table({"pid": [1, 1], "age": [2, 3]}))
        frame.createOrReplaceTempView("frame")
        frame.selectExpr("age AS years").createOrReplaceTempView("renamed")
        with tacit.connect(spark, policy=POLICY, ledger=files / "ledger") as con:
            con.answer("SELECT count(*) FROM visits WHERE age < 50", epsilon=0.5)
            with suppress(tacit.NotSupportedError):
                con.answer("SELECT count(*) FROM renamed", epsilon=0.1)
                raise AssertionError("one frame was two tables")
            for sql in (
                "SELECT count(*) FROM visits",
                "SELECT count(*) FROM numbers WHERE id < 9",
                "SELECT count(*) FROM tests",
            ):
                (frame,) = tacit.testing.exact_answers(con, sql)
                print(int(frame.iloc[0, 0]))  # noqa: T201


if __name__ == "__main__":
    main()
