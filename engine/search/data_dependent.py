"""Strategies whose questions depend on the data: DAWA and MWEM, by name and settings.

They look at the counts with part of the budget before they decide what to ask. So there is no L before the data is
seen, and no error can be predicted: this file holds what is known beforehand, and ``mechanism/stages.py`` runs them.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TypeAlias

from tacit.engine.search.options import Options
from tacit.engine.strategy import Matrix, Strategy, Vector
from tacit.errors import NotSupportedError, ProgrammingError

LARGEST_CELLS = 4096
"""DAWA weighs n·log₂ n intervals, MWEM keeps a count for every cell: refused beforehand, never when data was seen."""
LARGEST_ROUNDS = 1000


@dataclass(frozen=True, kw_only=True)
class Dawa:
    """Li, Hay, Miklau & Wang 2014: a private partition of the cells into even buckets, then the buckets' counts."""

    ratio: float = 0.25
    """The share of ε that the partition is bought with, as in the paper's experiments."""
    margin: float = 2.0
    """What an interval costs beside the noise on its count, in scales of the noise on its cost; 0 in the paper. The
    partition of least *noisy* cost is made of intervals whose noise happened to be low, so without a margin it has many
    more of them than the counts call for. A larger one suits small ε or counts that are mostly zero, a smaller one
    large ε; 2 is a compromise, chosen on two data sets (``benchmarks/data_dependent.py``)."""

    def __post_init__(self) -> None:
        if not 0.01 <= self.ratio <= 0.99:
            raise ProgrammingError("ratio of strategy 'dawa' is the partition's share of ε: from 0.01 to 0.99")


@dataclass(frozen=True, kw_only=True)
class Mwem:
    """Hardt, Ligett & McSherry 2012: in each round the worst answered query is chosen and measured, both privately."""

    rounds: int = 10

    def __post_init__(self) -> None:
        if self.rounds > LARGEST_ROUNDS:
            raise ProgrammingError(f"rounds of strategy 'mwem' are at most {LARGEST_ROUNDS:,}: each gets a share of ε")


Settings: TypeAlias = Dawa | Mwem

DATA_DEPENDENT: dict[str, type[Dawa] | type[Mwem]] = {"dawa": Dawa, "mwem": Mwem}


class DataDependent(Strategy):
    """A strategy that chooses its questions when it sees the counts.

    ``workload`` and ``weights`` are what ``optimize`` was given. The figures that strategies compete on do not exist:
    ``error`` is NaN, ``lower_bound`` is 0, and ``L``, ``B`` and ``sensitivity`` raise.
    """

    workload: Matrix
    weights: Vector
    settings: Settings

    def __init__(self, name: str, settings: Settings, workload: Matrix, weights: Vector, seconds: float = 0.0) -> None:
        fields = {
            "name": name,
            "privacy": "pure",
            "error": math.nan,
            "lower_bound": 0.0,
            "seconds": seconds,
            "trace": (),
            "workload": workload,
            "weights": weights,
            "settings": settings,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    @property
    def L(self) -> Matrix:
        """There is none before the counts are seen."""
        raise self._refusal()

    @property
    def B(self) -> Matrix:
        """There is none before the counts are seen."""
        raise self._refusal()

    @property
    def sensitivity(self) -> float:
        """Each stage has one of its own (``mechanism/stages.py``)."""
        raise self._refusal()

    @property
    def gap(self) -> float:
        """Not known, as the error."""
        return math.nan

    def _refusal(self) -> NotSupportedError:
        return NotSupportedError(
            f"{self.name} chooses its questions when it sees the counts; its error is measured, not predicted\n"
            "hint: release(s, x, epsilon) runs it; compare its answers with exact ones to measure the error"
        )

    def __repr__(self) -> str:
        m, n = self.workload.shape
        return f"DataDependent({self.settings}: {m}×{n}, error measured, not predicted)"


def data_dependent(workload: Matrix, weights: Vector, options: Options) -> DataDependent:
    """The strategy of that name for a workload. Nothing is searched, so no option of a search matters to it."""
    name, began = str(options.strategy), time.perf_counter()
    if options.privacy != "pure":
        raise NotSupportedError(f'strategy "{name}" adds Laplace noise in all its stages: it is for privacy="pure"')
    if options.objective not in ("total", "relative"):
        raise NotSupportedError(
            f'strategy "{name}" predicts no error, so there is none to minimise\n'
            "hint: leave objective= out; weights= say which queries matter more"
        )
    if workload.shape[1] > LARGEST_CELLS:
        raise NotSupportedError(
            f'strategy "{name}" takes up to {LARGEST_CELLS:,} cells, and this workload has {workload.shape[1]:,}\n'
            "hint: leave strategy= out, or ask fewer or coarser queries"
        )
    settings = DATA_DEPENDENT[name](**options.parameters)
    return DataDependent(name, settings, workload, weights, time.perf_counter() - began)
