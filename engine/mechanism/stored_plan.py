"""What a search found, written down: plans depend on the workload, and neither on ε nor on a row.

A record is data from a file that anybody may have changed. Of a strategy only L is taken from it; B, the sensitivity
and the error are computed anew from L and the workload, by the code that a fresh plan goes through. What does not fit
the workload is as if it were not there, and the search runs.

To keep another kind of plan: give it a key by ``plan_key``, write what was found as a ``PlanRecord``, and check
everything that is read back.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from tacit.engine.linalg import columns as columns_of
from tacit.engine.linalg import reconstruct, row_norms
from tacit.engine.measures import Measure, measured
from tacit.engine.mechanism.exact import entries
from tacit.engine.search.named import strategies
from tacit.engine.search.optimize import optimize
from tacit.engine.search.reduce import merge_columns
from tacit.engine.search.watch import Progress
from tacit.engine.strategy import Matrix, Privacy, Questions, Strategy, fits, sensitivity
from tacit.process import one_blas_thread

if TYPE_CHECKING:
    from tacit.engine.mechanism.plan import JointPlan

SEARCH_VERSION = 2
"""Of what the default search finds: a higher one makes all stored plans stale."""
_MOST_ROWS = 4
"""A strategy has fewer questions than so many times the queries and cells together."""
_SPARSE = 0.25
"""Share of entries that are not zero, below which only those are written."""
_ROUNDING = 1e-9
_ABOUT = 1.1
"""How much longer a search must be allowed to take before it is worth running again."""


@dataclass(frozen=True, eq=False)
class PlanRecord:
    """What is written of a plan: values that JSON knows, and arrays."""

    meta: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    """Of float64, int64 or uint32."""


@dataclass(frozen=True, eq=False)
class FoundPlan:
    """A joint plan in memory, and the time that its search was given; None for all that it wanted."""

    plan: JointPlan
    seconds: float | None


class PlanStore(Protocol):
    """Where plans are kept. Records outlive the process where there is a place for them; plans do not."""

    def read(self, key: str) -> PlanRecord | None: ...

    def write(self, key: str, record: PlanRecord) -> None: ...

    def recall(self, key: str) -> FoundPlan | None: ...

    def remember(self, key: str, found: FoundPlan) -> None: ...


@dataclass(frozen=True, eq=False)
class SearchTerms:
    """How a search may run. None of it changes what is searched for."""

    seconds: float | None = None
    """The time after which it ends with the best so far."""
    store: PlanStore | None = None
    progress: Callable[[Progress], None] | None = None
    """Called at every improvement."""
    cancel: Callable[[], bool] | None = None
    """Called often; ends the search when it says so."""


def plan_key(kind: str, *parts: Any) -> str:
    """A name for what is searched for, by its content: arrays, and values that JSON knows."""
    digest = hashlib.sha256(f"{kind} {SEARCH_VERSION}".encode())
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str} {part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(json.dumps(part, sort_keys=True).encode())
    return digest.hexdigest()


def is_enough(given: float | None, asked: float | None) -> bool:
    """Whether a search that was given so many seconds (None: all that it wanted) serves one who allows ``asked``."""
    return given is None or (asked is not None and asked <= _ABOUT * given)


def find_strategy(
    workload: Matrix, privacy: Privacy, strategy: str | None, measure: Measure, terms: SearchTerms
) -> tuple[Strategy, float | None]:
    """The strategy for a workload, stored or searched for, and the seconds that cut its search short, if any did."""
    key = "" if terms.store is None else plan_key("strategy", workload, privacy, strategy, measure)
    record = None if terms.store is None else terms.store.read(key)
    if record is not None:
        stored = read_strategy(record, workload, privacy, strategy, measure)
        if stored is not None and is_enough(stored[1], terms.seconds):
            return stored
    found = optimize(
        workload,
        privacy=privacy,
        strategy=strategy,
        objective=measure,
        deadline=terms.seconds,
        progress=terms.progress,
        cancel=terms.cancel,
    )
    cut = terms.seconds if terms.seconds is not None and found.seconds >= terms.seconds else None
    if terms.store is not None:
        terms.store.write(key, write_strategy(found, cut))
    return found, cut


class Allowance:
    """Seconds for several searches, one after the other: each may take its even share of what is left."""

    def __init__(self, seconds: float | None, searches: int) -> None:
        self._end = None if seconds is None else time.perf_counter() + seconds
        self._searches = searches

    def next(self) -> float | None:
        share = None if self._end is None else max(0.0, self._end - time.perf_counter()) / max(1, self._searches)
        self._searches -= 1
        return share


def write_strategy(found: Strategy, seconds: float | None) -> PlanRecord:
    """A strategy as a record: equal columns of L once, and only its entries that are not zero where they are few."""
    meta = {
        "name": found.name,
        "error": found.error,
        "lower_bound": found.lower_bound,
        "seconds": found.seconds,
        "given": seconds,
    }
    if not isinstance(found.L, np.ndarray):
        sparse = coo_array(found.L)
        where = sparse.row.astype("<i8") * found.L.shape[1] + sparse.col
        return PlanRecord({**meta, "shape": list(found.L.shape)}, {"where": where, "entries": sparse.data})
    columns, position = merge_columns(found.L)
    meta["shape"] = list(columns.shape)
    arrays: dict[str, NDArray[Any]] = {}
    if columns.shape[1] < found.L.shape[1]:
        arrays["position"] = position.astype("<u4")
    where = np.flatnonzero(columns)
    if where.size < _SPARSE * columns.size:
        arrays |= {"where": where.astype("<i8"), "entries": columns.ravel()[where]}
    else:
        arrays["entries"] = np.ascontiguousarray(columns)
    return PlanRecord(meta, arrays)


def read_strategy(
    record: PlanRecord, workload: Matrix, privacy: Privacy, strategy: str | None, measure: Measure
) -> tuple[Strategy, float | None] | None:
    """The strategy of a record with the seconds that its search was given; None where anything in it is wrong.

    Guarantee: as ``optimize``. ``sensitivity`` is computed from the L that is returned, W = B·L holds to 1e-9 in every
    row, and ``error`` follows from the two. Of the rest only the name and ``lower_bound`` are as stored: no noise
    depends on them.
    """
    try:
        L = _questions(record, workload)
        name, error, bound = record.meta["name"], float(record.meta["error"]), float(record.meta["lower_bound"])
        seconds = float(record.meta["seconds"])
        given = None if record.meta["given"] is None else float(record.meta["given"])
    except (KeyError, TypeError, ValueError, OverflowError, IndexError):
        return None
    if name not in strategies() or strategy not in (None, name) or not np.isfinite(entries(L)).all():
        return None
    if not (math.isfinite(seconds) and seconds >= 0.0 and (given is None or given >= 0.0)):
        return None
    with one_blas_thread():
        B = reconstruct(workload, L)
    if B is None:
        return None
    delta = sensitivity(L, privacy)
    reached = measured(delta * row_norms(B), measure)
    if not (0.0 <= bound <= reached * (1.0 + _ROUNDING) and reached <= error * (1.0 + _ROUNDING) < math.inf):
        return None
    bound = min(bound, reached)
    return Strategy(name, privacy, L, B, delta, reached, bound, seconds, ((seconds, reached, bound),)), given


def _questions(record: PlanRecord, workload: Matrix) -> Questions:
    """L, if the record holds a matrix that can be one of this workload's; else an error of Python's own."""
    m, n = workload.shape
    rows, columns = (int(side) for side in record.meta["shape"])
    if not (0 < rows <= _MOST_ROWS * (m + n) and 0 < columns <= n):
        raise ValueError("no strategy has this shape")
    values: Matrix = np.asarray(record.arrays["entries"], dtype=np.float64)
    L: Questions
    if "where" in record.arrays:
        where = record.arrays["where"]
        if values.shape != where.shape or where.ndim != 1 or ((where < 0) | (where >= rows * columns)).any():
            raise ValueError("the entries have no place")
        L = csr_array((values, np.divmod(where, columns)), shape=(rows, columns))
        L = L.toarray() if fits(rows, columns, where.size) else L
    else:
        L = values.reshape(rows, columns)
    if "position" not in record.arrays:
        if columns != n:
            raise ValueError("columns are missing")
        return L
    position = record.arrays["position"]
    if position.shape != (n,) or position.dtype.kind not in "iu":
        raise ValueError("columns are missing")
    return columns_of(L, position)  # an IndexError for a column that is not there
