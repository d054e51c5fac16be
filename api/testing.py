"""EXACT figures, for the curator's own tests ONLY. Nothing here is private; nothing here is charged.

What these functions return must never leave the curator's hands: one look at them is worth more than any
budget. They refuse on a connection that was opened for an analyst. (Code in the same process can always reach
around that refusal; a process boundary is what stops it.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.sql import compile_batch
from tacit.sql.present import arranged, exact_values, key_frame, leaf_values
from tacit.sql.scan import Scan
from tacit.sql.workload import Workload

from .answers import assemble, frame_names
from .compiled_batch import with_matrix
from .connection import Connection, guarded
from .errors import InterfaceError, OperationalError
from .request import Batch, Params

_NO_SALT = bytes(32)


def unit_counts(con: Connection, batch: Batch, params: Params = None) -> NDArray[Any]:
    """EXACT unit counts x of the batch's cells: NOT PRIVATE, for the curator's tests only.

    ``Workload.matrix @ x`` are the exact answers. int64 where rows are counted whole; float64 where a batch
    sums a column, because a row then is split between the two ends of its clamp.
    """
    return _counts(con, _compile(con, batch, params))


def exact_answers(con: Connection, batch: Batch, params: Params = None) -> list[pd.DataFrame]:
    """EXACT answers, as frames shaped like the released ones: NOT PRIVATE, for the curator's tests only.

    Sums and averages are those of the clamped values of the rows that the policy keeps of each unit. The
    average of no rows is NaN.
    """
    workload = _compile(con, batch, params)
    exact = workload.matrix @ _counts(con, workload).astype(np.float64)
    frames = []
    for query in workload.queries:
        keys = key_frame(query)
        columns = [pd.Series(exact_values(query, c.output, keys, exact)) for c in query.columns]
        if query.arrangement is not None:
            order = arranged(query, keys, columns, leaf_values(query.arrangement.leaves, exact))
            columns = [column.iloc[order].reset_index(drop=True) for column in columns]
        frames.append(assemble(frame_names([c.name for c in query.columns]), columns))
    return frames


def _compile(con: Connection, batch: Batch, params: Params) -> Workload:
    if con.analyst is not None:
        raise InterfaceError(
            "exact figures are for the curator; this connection was opened for an analyst\n"
            "hint: connect without analyst="
        )
    with con._open(), guarded():
        return compile_batch(batch, con._session.catalog, params, with_matrix(con._session.limits))


def _counts(con: Connection, workload: Workload) -> NDArray[Any]:
    session = con._session
    with con._open():
        ledger = session.access.peek()
        if ledger is None and session.access.cap is not None:
            ledger = session.access.open()  # the salt that chooses a unit's rows must be the one releases will use
        salt = _NO_SALT if ledger is None else ledger.salt
        whole = all(scan.one_row == 1 for scan in workload.scans)
        x = np.zeros(workload.matrix.shape[1], dtype=np.int64 if whole else np.float64)
        try:
            for scan in workload.scans:
                assert isinstance(scan, Scan)  # there is a matrix
                numerators = session.source.count(scan, salt)
                x[scan.columns] = numerators if whole else numerators / scan.one_row
        except Exception:
            raise OperationalError("the tables could not be read") from None
        return x
