"""Answers as files that people take away: the long frame as CSV or Parquet, made from the Arrow stream that is kept."""

from __future__ import annotations

import io
from pathlib import Path

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"


def download(stream: Path, kind: str) -> bytes:
    """The frame of a kept Arrow stream as a ``csv`` or ``parquet`` file; OSError if the stream is gone."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    with pa.OSFile(str(stream)) as source, pa.ipc.open_stream(source) as reader:
        table = reader.read_all()
    target = io.BytesIO()
    if kind == "csv":
        csv.write_csv(table, target)
    else:
        parquet.write_table(table, target)
    return target.getvalue()
