"""Quantiles and modes from the counts that were released for them: post-processing, of released or exact numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .dialect import frame
from .workload import Mode, Quantile

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ROUNDING = 1e-9
"""Of a share times a count: DuckDB computes it in decimals where the share is one."""
_HALF = 0.5
"""A count that is off by less than this still tells whole ranks apart."""
_DAY = np.timedelta64(1, "D")
_MICROSECOND = np.timedelta64(1, "us")


def total(output: Quantile, rows: Floats) -> Floats:
    """How many rows each group's quantile is over, as released."""
    return rows[np.array(output.prefixes[-1], dtype=np.int64)]


def margin(output: Quantile, rows: Floats, half_width: Floats | None) -> Floats:
    """Of each group, how many rows the noise hides: a rank that is nearer to an end cannot be told from the end."""
    count = np.maximum(total(output, rows), 0.0)
    if half_width is None or len(output.grid) == 1:
        return np.zeros_like(count)
    widths = np.median(half_width[np.array(output.prefixes[:-1], dtype=np.int64)], axis=0)
    return np.minimum(np.nan_to_num(widths), count / 2)


def hidden(output: Quantile, rows: Floats, half_width: Floats | None) -> Floats:
    """How many rows lie at or beyond a quantile whose own rank the noise hides; 0 where it is where it should be."""
    count, hides = np.maximum(total(output, rows), 0.0), margin(output, rows, half_width)
    outside = (output.share * count < hides) | ((1 - output.share) * count < hides)
    return np.where(outside & (hides > 1), hides, 0.0)


def quantile_values(output: Quantile, rows: Floats, half_width: Floats | None = None) -> Floats:
    """Each group's quantile as a number (see ``Quantile.grid``); NaN for a group without rows.

    With exact counts and every value on the grid, these are DuckDB's own. ``half_width`` is that of each row of the
    workload where they are noisy: ranks that the noise hides are then moved away from the end, for at the end itself
    a quantile would follow the noise of the very first counts.
    """
    counts = _rising(output, rows)
    grid, n = np.array(output.grid), counts[:, -1]
    hides = margin(output, rows, half_width)
    whole_n = np.maximum(np.round(n), 1.0)
    least = np.clip(hides, 1.0, (whole_n + 1) / 2)

    def at_rank(rank: Floats) -> Floats:
        return grid[_at(counts, np.clip(rank, least, whole_n + 1 - least) - _HALF)]

    if output.interpolated and not output.every:
        place = np.maximum(n - 1, 0.0) * output.share
        before = np.floor(place + _ROUNDING)
        ends = np.maximum(hides, _ROUNDING * n), n - hides
        low, high = (_inside(grid, counts, np.clip(before + row, *ends)) for row in (_HALF, 1 + _HALF))
        value = low + (high - low) * np.maximum(place - before, 0.0)
    elif output.interpolated:
        place = (whole_n - 1) * output.share
        before = np.floor(place + _ROUNDING)
        low, high = at_rank(before + 1), at_rank(before + 2)
        value = low + (high - low) * np.maximum(place - before, 0.0)
    elif output.descending:
        value = at_rank(np.floor(whole_n * output.share + _ROUNDING) + 1)
    else:
        value = at_rank(np.ceil(whole_n * output.share - _ROUNDING))
    return np.where(total(output, rows) > 0, value, np.nan)


def _rising(output: Quantile, rows: Floats) -> Floats:
    """The counts of each group (groups × grid), nearest to the released ones, as counts can be: rising, from 0 to n."""
    from scipy.optimize import isotonic_regression  # heavy, and only quantiles need it

    counts = rows[np.array(output.prefixes, dtype=np.int64)].T.copy()
    n = np.maximum(counts[:, -1:], 0.0)
    below = counts[:, :-1]
    for group in np.flatnonzero((np.diff(below, axis=1) < 0).any(axis=1)):
        below[group] = isotonic_regression(below[group]).x
    return np.hstack([np.clip(below, 0.0, n), n])


def _at(counts: Floats, rank: Floats) -> Integers:
    """The first place of each group where so many rows lie at or below."""
    reached = counts >= rank[:, None]
    reached[:, -1] = True
    return np.asarray(reached.argmax(axis=1), dtype=np.int64)


def _inside(grid: Floats, counts: Floats, rank: Floats) -> Floats:
    """Where a rank lies between two values of the grid, as if the rows between them lay at equal steps."""
    at = _at(counts, rank)
    before = np.maximum(at - 1, 0)
    groups = np.arange(len(counts))
    start = np.where(at > 0, counts[groups, before], 0.0)
    step = counts[groups, at] - start
    part = np.divide(rank - start, step, out=np.ones_like(step), where=step > 0)
    return np.asarray(grid[before] + (grid[at] - grid[before]) * np.clip(part, 0.0, 1.0))


def mode_places(output: Mode, rows: Floats) -> Integers:
    """Which value of each group has the largest count; -1 where no count is above zero."""
    counts = rows[np.array(output.counts, dtype=np.int64)]
    best = counts.argmax(axis=0)
    return np.where(counts.max(axis=0) > 0, best, -1)


def mode_values(output: Mode, rows: Floats) -> Floats:
    """Each group's mode as a number; NaN for a group without rows."""
    return np.append(np.array(output.values, dtype=np.float64), np.nan)[mode_places(output, rows)]


def typed(output: Quantile | Mode, rows: Floats, half_width: Floats | None = None) -> pd.Series:
    """The values of an output, with the dtype that DuckDB's frame would have; numbers are float64."""
    if isinstance(output, Mode):
        return pd.Series(mode_values(output, rows)) if output.type == "DOUBLE" else _listed(output, rows)
    value = quantile_values(output, rows, half_width)
    missing = np.isnan(value)
    match output.type:
        case "DOUBLE":
            return pd.Series(value)
        case "BOOLEAN":
            return _taken((False, True), np.where(missing, -1, np.nan_to_num(value)).astype(np.int64), output.type)
    unit = _DAY if output.type == "DATE" else _MICROSECOND
    moments = np.datetime64("1970-01-01", "us") + np.round(np.nan_to_num(value)).astype(np.int64) * unit
    return pd.Series(np.where(missing, np.datetime64("NaT", "us"), moments))


def _listed(output: Mode, rows: Floats) -> pd.Series:
    return _taken(output.values, mode_places(output, rows), output.type)


def _taken(values: tuple[object, ...], places: Integers, type_: str) -> pd.Series:
    """Listed values at places; NULL at -1."""
    null = (None,) if (places < 0).any() else ()
    listed = frame(("v",), (type_,), tuple((value,) for value in (*values, *null)))["v"]
    return listed.take(np.where(places < 0, len(values), places)).reset_index(drop=True)
