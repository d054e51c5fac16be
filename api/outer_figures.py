"""Statements over released frames: computed from them, with errors that are simulated.

Everything here is post-processing. What a statement makes of the released numbers can be anything that SQL can say, so
its error is found by trying: the released numbers are moved as their noise could have moved them, many times, and the
statement is computed from each. The draws are of a generator with a fixed seed, which hides nothing and nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.engine import Estimate
from tacit.engine.mechanism.widths import longest_reach
from tacit.sql.derived import PublicQuery
from tacit.sql.dialect import is_numeric
from tacit.sql.group_list import GroupList
from tacit.sql.names import numbered
from tacit.sql.outer import frame_columns
from tacit.sql.present import exact_columns, linear_values, rows_used
from tacit.sql.workload import OuterQuery

from .errors import NotSupportedError, OperationalError
from .figures import Figures

Floats = NDArray[np.float64]
Columns = Sequence[tuple[str, str]]
Compute = Callable[[PublicQuery, Mapping[str, tuple[pd.DataFrame, Columns]]], pd.DataFrame]
"""Runs a query over frames that go by names of their own."""
KeyFrames = Mapping[int, pd.DataFrame]
"""The key columns of every released query, by its identity."""

_DRAWS = 40
_MOST_ROWS = 800
"""Of the workload: more have no joint covariance here, and then errors are not simulated."""
_SIMULATED = "computed from released values: its error is simulated"
_UNKNOWN = "computed from released values: its error is not known"
_CHANGING = "the noise may decide whether this row is here"


@dataclass(frozen=True, repr=False, eq=False)
class Noise:
    """How far each row of the workload may be off."""

    stderr: Floats
    half_width: Floats


@dataclass(frozen=True, repr=False, eq=False)
class OuterFigures:
    """The columns of a statement over released frames."""

    columns: tuple[pd.Series, ...]
    figures: dict[int, Figures]
    labels: tuple[str, ...]
    notes: dict[int, tuple[str, ...]]


def outer_frame(
    query: OuterQuery, keys: KeyFrames, rows: Floats, compute: Compute, noise: Noise | None = None
) -> pd.DataFrame:
    """The frame of a statement, from the values of the workload's rows.

    A group without rows is no group to SQL, and an average over groups would count it. So those are left out whose
    released count is below one half, or below its standard error.
    """
    frames: dict[str, tuple[pd.DataFrame, Columns]] = {}
    for part in query.parts:
        described = frame_columns(part.query)
        present = None
        if part.present is not None:
            least = 0.5 if noise is None else np.maximum(0.5, noise.stderr[list(part.present.rows)])
            present = linear_values(part.present, rows) >= least
            if isinstance(part.query.groups, GroupList):
                present |= part.query.groups.of_all
        half_width = None if noise is None else noise.half_width
        columns = exact_columns(part.query, keys[id(part.query)], rows, present, half_width)
        named = {f"{i} {name}": column for i, ((name, _), column) in enumerate(zip(described, columns, strict=True))}
        frames[part.name] = pd.DataFrame(named), described
    frame = compute(query.query, frames)
    frame.columns = pd.Index(numbered([column.column for column in query.columns]), dtype="str")
    return frame


def rehearse_outer(query: OuterQuery, keys: KeyFrames, compute: Compute) -> None:
    """Compute a statement from stand-in values: what cannot be computed fails before the charge."""
    used = rows_used(query)
    rows = np.resize(np.array([3.0, 1.0, 7.0, 2.0, 5.0]), max(used, default=0) + 1)
    try:
        outer_frame(query, keys, rows, compute)
    except OperationalError as error:
        raise NotSupportedError(f"{error}; nothing was charged\nhint: check the names and the types") from None


def outer_figures(
    query: OuterQuery, keys: KeyFrames, estimate: Estimate, confidence: float, compute: Compute
) -> OuterFigures:
    """The columns of a statement, its numbers with error bars."""
    noise = Noise(estimate.stderr, estimate.half_width(confidence))
    frame = outer_frame(query, keys, estimate.values, compute, noise)
    columns = tuple(frame.iloc[:, i] for i in range(frame.shape[1]))
    numbers = [i for i, column in enumerate(query.columns) if is_numeric(column.type) and not query.keys[i]]
    names = [i for i in range(len(columns)) if i not in numbers]
    labels = tuple(
        ", ".join(f"{query.columns[i].column}={value}" for i, value in zip(names, row, strict=True))
        for row in zip(*(columns[i].astype(object) for i in names), strict=True)
    ) or ("",) * len(frame)
    values = {i: _floats(columns[i]) for i in numbers}
    if not query.parts:
        zero = np.zeros(len(frame))
        figures = {i: Figures(value, zero, value, value) for i, value in values.items()}
        return OuterFigures(columns, figures, labels, {i: ("",) * len(frame) for i in numbers})
    spread, present = _simulated(query, keys, estimate, noise, compute, frame, names, numbers)
    reach = 1.1 * longest_reach(confidence)  # the spread itself is known to a tenth
    figures, notes = {}, {}
    for i in numbers:
        half = reach * spread[i]
        figures[i] = Figures(values[i], spread[i], values[i] - half, values[i] + half)
        notes[i] = tuple(
            _UNKNOWN if np.isnan(s) and p else _CHANGING if not p else _SIMULATED
            for s, p in zip(spread[i], present, strict=True)
        )
    return OuterFigures(columns, figures, labels, notes)


def _simulated(
    query: OuterQuery,
    keys: KeyFrames,
    estimate: Estimate,
    noise: Noise,
    compute: Compute,
    frame: pd.DataFrame,
    names: Sequence[int],
    numbers: Sequence[int],
) -> tuple[dict[int, Floats], NDArray[np.bool_]]:
    """(the standard error of each figure, whether its row is there whatever the noise), by simulation."""
    places = {key: row for row, key in enumerate(_row_keys(frame, names))}
    seen: dict[int, list[list[float]]] = {i: [[] for _ in range(len(frame))] for i in numbers}
    found = np.zeros(len(frame))
    draws = _draws(query, estimate)
    for moved in draws:
        try:
            other = outer_frame(query, keys, estimate.values + moved, compute, noise)
        except OperationalError:
            continue
        values = {i: _floats(other.iloc[:, i]) for i in numbers}
        for row, key in enumerate(_row_keys(other, names)):
            place = places.get(key)
            if place is not None:
                found[place] += 1
                for i in numbers:
                    seen[i][place].append(values[i][row])
    spread = {i: np.array([_spread(drawn) for drawn in seen[i]]) for i in numbers}
    return spread, found >= 0.9 * len(draws)


def _spread(drawn: Sequence[float]) -> float:
    known = [value for value in drawn if np.isfinite(value)]
    return float(np.std(known, ddof=1)) if len(known) > _DRAWS // 4 else np.nan


def _draws(query: OuterQuery, estimate: Estimate) -> list[Floats]:
    """What the noise of the released rows could have been."""
    rows = np.array(sorted(set(rows_used(query))), dtype=np.int64)
    if not len(rows) or len(rows) > _MOST_ROWS or np.isnan(estimate.stderr[rows]).any():
        return []
    covariance = estimate.covariance(rows[:, None], rows[None, :])
    size, directions = np.linalg.eigh(covariance)
    factor = directions * np.sqrt(np.maximum(size, 0.0))
    # How released figures may be off, not noise: nothing private depends on it.
    draws = np.random.default_rng(0).standard_normal((_DRAWS, len(rows))) @ factor.T
    noise = np.zeros((_DRAWS, len(estimate.values)))
    noise[:, rows] = draws
    return list(noise)


def _row_keys(frame: pd.DataFrame, names: Sequence[int]) -> list[tuple[Any, ...]]:
    """What tells the rows apart; rows with the same names are told apart by their order."""
    times: dict[tuple[Any, ...], int] = defaultdict(int)
    keys = []
    for row in zip(
        *(frame.iloc[:, i].astype(object).where(frame.iloc[:, i].notna(), None) for i in names), strict=True
    ):
        times[row] += 1
        keys.append((*row, times[row]))
    return keys or [(row,) for row in range(1, len(frame) + 1)]


def _floats(column: pd.Series) -> Floats:
    return pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
