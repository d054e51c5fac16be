"""The rows of a run by curve, and what can be said of a few curves together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from benchmarks.paper.figures import Row


class Unmeasured(LookupError):
    """A judge asked for what this run does not have."""


class Curve(dict[float, float]):
    """x → y."""

    def __missing__(self, x: float) -> float:
        raise Unmeasured(x)

    @property
    def first(self) -> float:
        """The smallest x."""
        return min(self) if self else self[0.0]

    @property
    def last(self) -> float:
        return max(self) if self else self[0.0]

    @property
    def growth(self) -> float:
        """From the first to the last."""
        return self[self.last] / self[self.first]


Verdict: TypeAlias = Literal["agrees", "partly", "differs", "open"]
Judged: TypeAlias = tuple[Verdict, str]
Claim: TypeAlias = tuple[tuple[str, ...], str, Callable[["Curves"], Judged]]
"""The figures a claim is about, what the paper says of them, and the judge of it."""


class Curves:
    """x → y of every curve that was measured; gaps are left out."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._curves: dict[tuple[str, str, str], Curve] = {}
        for row in rows:
            if not math.isnan(row.y):
                self._curves.setdefault((row.figure, row.panel, row.series), Curve())[row.x] = row.y

    def has(self, figures: Iterable[str]) -> bool:
        return set(figures) <= {key[0] for key in self._curves}

    def panels(self, figures: Iterable[str]) -> list[tuple[str, str]]:
        """(figure, panel) pairs, in the order of the run."""
        wanted = set(figures)
        return list(dict.fromkeys(key[:2] for key in self._curves if key[0] in wanted))

    def curve(self, where: tuple[str, str], series: str) -> Curve:
        return self._curves.get((*where, series), Curve())

    def names(self, where: tuple[str, str]) -> list[str]:
        return [series for figure, panel, series in self._curves if (figure, panel) == where]

    def ratios(self, where: tuple[str, str], above: str, below: str) -> Curve:
        """``above`` over ``below`` wherever both were measured."""
        return over(self.curve(where, above), self.curve(where, below))

    def best(self, where: tuple[str, str], among: Sequence[str]) -> Curve:
        """The smallest of several curves at every x."""
        smallest = Curve()
        for series in among:
            for x, y in self.curve(where, series).items():
                smallest[x] = min(y, smallest.get(x, math.inf))
        return smallest


def over(above: Curve, below: Curve) -> Curve:
    return Curve({x: above[x] / below[x] for x in above if x in below and below[x] > 0})


def spread(curve: Curve) -> float:
    """Largest over smallest."""
    return most(curve.values()) / least(curve.values())


def most(values: Iterable[float]) -> float:
    """The largest; nothing measured is no number."""
    listed = list(values)
    if not listed:
        raise Unmeasured
    return max(listed)


def least(values: Iterable[float]) -> float:
    return -most(-value for value in values)


def extent(values: Iterable[float]) -> str:
    """
    >>> extent([3.0, 1.25, 40.0])
    '1.25 to 40'
    """
    values = list(values)
    low, high = f"{least(values):.3g}", f"{most(values):.3g}"
    return low if low == high else f"{low} to {high}"


def count(true: int, all_: int) -> Verdict:
    """Holds in every case, in a third of them at least, or in fewer."""
    if all_ == 0:
        raise Unmeasured
    return "agrees" if true == all_ else "partly" if 3 * true >= all_ else "differs"
