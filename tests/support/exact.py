"""Exact answers of a compiled batch, straight from its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from tacit.outer_figures import outer_frame
from tacit.sql import Source, Workload
from tacit.sql.present import arranged, exact_values, key_frame, leaf_values
from tacit.sql.workload import Key, OuterQuery, TablePart


def exact_values_of(workload: Workload, source: Source) -> np.ndarray:
    """W @ x, from the matrix of each table where there is one."""
    values = np.zeros(workload.row_count)
    for part in workload.tables:
        values[part.rows] = (
            product_values(workload, part, source)
            if part.matrix is None
            else part.matrix @ (source.count(part.scan, b"salt") / part.scan.one_row)  # type: ignore[arg-type]
        )
    return values


def product_values(workload: Workload, part: TablePart, source: Source) -> np.ndarray:
    """The rows of one table from its product form: the counts of every column set, combined."""
    product = part.product
    assert product is not None
    scans = [product.scan.marginal(axes) for axes in product.column_sets]
    counts = [x / scan.one_row for x, scan in zip(source.count_all(scans, b"salt"), scans, strict=True)]
    aggregates = np.full(workload.combine.shape[1], np.nan)
    product.aggregate_rows(dict(zip(product.column_sets, counts, strict=True)), aggregates)
    own = workload.combine[part.rows]
    used = np.unique(own.indices)
    assert np.all(np.isfinite(aggregates[used])), "an aggregate has no value"
    return own[:, used] @ aggregates[used]


def exact_rows(workload: Workload, source: Source, number: int = 0) -> list[tuple[Any, ...]]:
    """The rows of one query's frame, with keys as plain Python values."""
    query, values = workload.queries[number], exact_values_of(workload, source)
    if isinstance(query, OuterQuery):
        frames = {id(part.query): key_frame(part.query) for part in query.parts}
        frame = outer_frame(query, frames, values, source.compute)
        return [tuple(None if pd.isna(value) else value for value in row) for row in frame.itertuples(index=False)]
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
