"""Exact answers of a compiled batch, straight from its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from tacit.sql import Source, Workload
from tacit.sql.present import arranged, exact_values, key_frame, leaf_values
from tacit.sql.workload import Key


def exact_values_of(workload: Workload, source: Source) -> np.ndarray:
    """W @ x."""
    values = np.zeros(len(workload.matrix))
    for scan in workload.scans:
        values += workload.matrix[:, scan.columns] @ (source.count(scan, b"salt") / scan.one_row)
    return values


def exact_rows(workload: Workload, source: Source, number: int = 0) -> list[tuple[Any, ...]]:
    """The rows of one query's frame, with keys as plain Python values."""
    query, values = workload.queries[number], exact_values_of(workload, source)
    keys = key_frame(query)
    columns = [pd.Series(exact_values(query, column.output, keys, values)) for column in query.columns]
    rows = list(range(len(query.groups)))
    if query.arrangement is not None:
        rows = arranged(query, keys, columns, leaf_values(query.arrangement.leaves, values))
    shown = [
        [group[column.output.index] for group in query.groups] if isinstance(column.output, Key) else list(values)
        for column, values in zip(query.columns, columns, strict=True)
    ]
    return [tuple(column[i] for column in shown) for i in rows]
