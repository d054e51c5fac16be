"""The counts of the experiments that depend on data: read from a folder, or generated.

Both papers use Search Log, Net Trace and Social Network, COA also UCI Adult; its Figure 14 adds Random Uniform, the
talk a sparse data set. A folder may hold any of the first, second and fourth (``SEARCHLOGS*.npy``, ``NETTRACE*.npy``,
``adult.csv`` with ``adult-domain.json``); what it lacks is generated, with the same kind of tail. The social network is
always generated. The same folder gives the same counts everywhere.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

SEARCH, NET, SOCIAL, ADULT = "Search Log", "Net Trace", "Social Network", "UCI Adult"
UNIFORM, SPARSE = "Random Uniform", "sparse"
DATA_SETS = (SEARCH, NET, SOCIAL, ADULT, UNIFORM, SPARSE)
ADULT_COLUMNS = ("age", "hours-per-week")
"""85·99 cells in row order, merged like the others: the two numeric columns whose neighbours mean something."""
_FILES = {SEARCH: "SEARCHLOGS*.npy", NET: "NETTRACE*.npy", ADULT: "adult.csv"}


def unit_counts(name: str, n: int, folder: str | None = None) -> Counts:
    """Counts of n cells, merged from neighbours in order as LRM's Section 6 does."""
    counts = _whole(name, folder)
    if name == UNIFORM:  # independent of its neighbours at every n: drawn, never merged
        counts = counts[:n]
    if len(counts) < n:
        raise ValueError(f"{name} has {len(counts)} cells, fewer than {n}")
    return np.array([part.sum() for part in np.array_split(counts, n)], dtype=np.int64)


def origin(name: str, folder: str | None) -> str:
    """Where the counts are from, for the report."""
    return "generated" if _file(name, folder) is None else "file"


def _file(name: str, folder: str | None) -> Path | None:
    if folder is None or name not in _FILES:
        return None
    matches = sorted(Path(folder).glob(_FILES[name]))
    return matches[0] if matches else None


@lru_cache(maxsize=16)
def _whole(name: str, folder: str | None) -> Counts:
    path = _file(name, folder)
    if path is None:
        return _GENERATED[name](np.random.default_rng(0))
    if path.suffix == ".npy":
        counts = np.load(path)
        if counts.ndim != 1 or counts.dtype.kind not in "iu":
            raise ValueError(f"{path.name} is not one list of whole numbers")
        return np.asarray(counts, dtype=np.int64)
    return _adult(path)


def _adult(path: Path) -> Counts:
    domain = json.loads((path.parent / "adult-domain.json").read_text(encoding="utf-8"))
    shape = tuple(domain[column] for column in ADULT_COLUMNS)
    counts = np.zeros(shape, dtype=np.int64)
    with path.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            counts[tuple(int(row[column]) for column in ADULT_COLUMNS)] += 1
    return counts.ravel()


def _search(rng: np.random.Generator) -> Counts:
    """2¹⁶ keywords (LRM, Section 6), heavy-tailed."""
    return np.minimum(rng.zipf(2.0, 2**16), 1000).astype(np.int64)


def _net(rng: np.random.Generator) -> Counts:
    """2¹⁵ addresses: few hosts with nearly all packets, most with none."""
    counts = np.zeros(2**15, dtype=np.int64)
    busy = rng.choice(len(counts), len(counts) // 30, replace=False)
    counts[busy] = np.minimum(rng.zipf(1.7, len(busy)), 10_000)
    return counts


def _social(rng: np.random.Generator) -> Counts:
    """How many users have each degree, 0 to 11,341, in a generated graph whose degrees follow a power law.

    Users get weights i^−0.75 (an exponent of 7/3), and both ends of 600,000 friendships are drawn by weight.
    """
    weights = np.arange(1, 100_001) ** -0.75
    ends = rng.random(2 * 600_000) * weights.sum()
    degrees = np.bincount(np.searchsorted(np.cumsum(weights), ends), minlength=len(weights))
    return np.bincount(np.minimum(degrees, 11_341), minlength=11_342)


def _grown_up(rng: np.random.Generator) -> Counts:
    """48,842 people over age × hours: a broad hump in age, most of them at 40 hours."""
    age = np.clip(rng.gamma(5.0, 5.0, 48_842), 0, 84).astype(np.int64)
    hours = np.where(rng.random(len(age)) < 0.45, 39, np.clip(rng.normal(39.0, 13.0, len(age)), 0, 98).astype(np.int64))
    return np.bincount(age * 99 + hours, minlength=85 * 99)


def _uniform(rng: np.random.Generator) -> Counts:
    """COA, Section 5: uniform with mean 0 and variance 10, so on ±√30; rounded, and raised by 6 to be counts.

    A shift of all cells changes no data-independent error, nor what DAWA thinks of neighbours.
    """
    return np.rint(rng.uniform(-np.sqrt(30.0), np.sqrt(30.0), 2**13)).astype(np.int64) + 6


def _sparse(rng: np.random.Generator) -> Counts:
    """The talk's "synthetic sparse dataset", of which it says no more: 1,024 cells, 50 of them with 1 to 1,000."""
    counts = np.zeros(1024, dtype=np.int64)
    counts[rng.choice(len(counts), 50, replace=False)] = rng.integers(1, 1001, 50)
    return counts


_GENERATED: dict[str, Callable[[np.random.Generator], Counts]] = {
    SEARCH: _search,
    NET: _net,
    SOCIAL: _social,
    ADULT: _grown_up,
    UNIFORM: _uniform,
    SPARSE: _sparse,
}
