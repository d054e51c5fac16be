"""EXACT figures, for the curator's own tests ONLY. Nothing here is private; nothing here is charged.

What these functions return must never leave the curator's hands: one look at them is worth more than any
budget. They refuse on a connection that was opened for an analyst. (Code in the same process can always reach
around that refusal; a process boundary is what stops it.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.sql.names import numbered
from tacit.sql.present import exact_columns
from tacit.sql.scan import Scan
from tacit.sql.workload import OuterQuery, TablePart, Workload

from .answers import assemble, key_frames
from .compiled_batch import exact_rows
from .connection import Connection, guarded
from .discover import exact_missing
from .discovery import Discovery
from .errors import InterfaceError, OperationalError
from .outer_figures import outer_frame
from .request import Ask, Batch, Params

_NO_SALT = bytes(32)


def unit_counts(con: Connection, batch: Batch, params: Params = None) -> NDArray[Any]:
    """EXACT unit counts x of the batch's cells: NOT PRIVATE, for the curator's tests only.

    ``Workload.matrix @ x`` are the exact answers. int64 where rows are counted whole; float64 where a batch
    sums a column, because a row then is split between the two ends of its clamp. Where the cells are too many to list,
    x has those of ``Workload.cells``: of every set of columns that a query names, one set after the other.
    """
    return _counts(con, _compile(con, batch, params))


def exact_answers(
    con: Connection, batch: Batch, params: Params = None, *, discover: bool = False
) -> list[pd.DataFrame]:
    """EXACT answers, as frames shaped like the released ones: NOT PRIVATE, for the curator's tests only.

    Sums and averages are those of the clamped values of the rows that the policy keeps of each unit. The
    average of no rows is NaN. With ``discover``, the keys and ranges that nobody declared are those of the rows.
    """
    workload = _compile(con, batch, params, _found(con, batch, params) if discover else ())
    exact = np.zeros(workload.row_count)
    with _salt(con) as salt:
        for part in workload.tables:
            exact[part.rows] = exact_rows(con._session.source, workload, part, salt)
    keys = key_frames(workload.released)
    frames = []
    for query in workload.queries:
        if isinstance(query, OuterQuery):
            frames.append(outer_frame(query, keys, exact, con._session.source.compute))
        else:
            columns = exact_columns(query, keys[id(query)], exact)
            frames.append(assemble(numbered([c.name for c in query.columns]), columns))
    return frames


def _found(con: Connection, batch: Batch, params: Params) -> tuple[Discovery, ...]:
    """The keys and ranges that a batch lacks, as the rows have them."""
    _refuse_analysts(con)
    with _salt(con) as salt:
        pass
    with con._open(), guarded():
        return exact_missing(con._session, Ask(batch, params), salt)


def _refuse_analysts(con: Connection) -> None:
    if con.analyst is not None:
        raise InterfaceError(
            "exact figures are for the curator; this connection was opened for an analyst\n"
            "hint: connect without analyst="
        )


def _compile(con: Connection, batch: Batch, params: Params, found: Sequence[Discovery] = ()) -> Workload:
    _refuse_analysts(con)
    with con._open(), guarded():
        return replace(con._session, stand_ins=tuple(found)).compile(Ask(batch, params)).workload


def _counts(con: Connection, workload: Workload) -> NDArray[Any]:
    parts = []
    with _salt(con) as salt:
        source = con._session.source
        for part in workload.tables:
            scans = [part.scan] if isinstance(part.scan, Scan) else _column_sets(part)
            parts += [(x, scan.one_row) for x, scan in zip(source.count_all(scans, salt), scans, strict=True)]
    if all(one_row == 1 for _, one_row in parts):
        return np.concatenate([x for x, _ in parts] or [np.zeros(0, dtype=np.int64)])
    return np.concatenate([x / one_row for x, one_row in parts])


def _column_sets(part: TablePart) -> list[Scan]:
    assert part.product is not None
    return [part.product.scan.marginal(axes) for axes in part.product.column_sets]


@contextmanager
def _salt(con: Connection) -> Iterator[bytes]:
    """The salt that chooses a unit's rows, as releases will use it; whatever fails meanwhile says
    nothing of the rows."""
    session = con._session
    with con._open():
        ledger = session.access.peek()
        if ledger is None and session.access.cap is not None:
            ledger = session.access.open()
        try:
            yield _NO_SALT if ledger is None else ledger.salt
        except Exception:
            raise OperationalError("the tables could not be read") from None
