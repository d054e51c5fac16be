"""What a batch needs of a column and nobody declared, the list of its values or its range, and how it is looked for.

A list is looked for by counting the units of every value, a range by counting rows in bins that are fixed beforehand:
powers of two and their negatives for numbers, calendar years for days and moments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .catalog import Bound, Column, Range, Table, Values
from .dialect import comparison_type, has_dtype, kind_of, ordering
from .literals import Constant
from .ordering import Cut
from .regions import Regions
from .scan import Scan
from .truths import Truths

What = Literal["keys", "range"]

_WHOLE_EXPONENTS = range(128)
_FLOAT_EXPONENTS = range(-32, 65)
_YEARS = range(1800, 2201)


@dataclass(frozen=True)
class Wanted:
    """The list of values, or the range, of a column of one table; the column can be computed from others of it."""

    what: What
    table: Table
    column: Column

    @property
    def key(self) -> tuple[What, tuple[str, ...], str]:
        """Equal for what is the same, whatever is declared of it."""
        return self.what, self.table.key, identity(self.column)

    @property
    def name(self) -> str:
        """In words, such as ``visits.city`` or ``lower("city") of visits``."""
        column = self.column
        return f"{column.name} of {self.table.name}" if column.expression else f"{self.table.name}.{column.name}"

    @property
    def default(self) -> Range:
        """The range of a column of which nothing was found."""
        match kind_of(self.column.type):
            case "day":
                return Range(date(2000, 1, 1), date(2000, 12, 31))
            case "moment":
                return Range(datetime(2000, 1, 1), datetime(2001, 1, 1))
        return Range(0, 1)

    @property
    def stand_in(self) -> Values | Range:
        """One value that stands for an unknown list, or an unknown range: for predictions only."""
        kind = kind_of(self.column.type)
        if self.what == "range":
            return self.default
        stand_ins: dict[str, Any] = {
            "truth": False,
            "text": "?",
            "day": date(2000, 1, 1),
            "moment": datetime(2000, 1, 1),
        }
        return Values((stand_ins.get(kind, 0),))

    def scan(self) -> Scan:
        """How the column is counted: every value for a list, its bins for a range."""
        column = self.column
        order = ordering(column.type)
        bins = self._bins() if self.what == "range" else []
        cuts = tuple(cut for cut, _ in bins)
        pieces = len(cuts) + 1
        inner = range(pieces) if self._is_bounded else range(1, pieces - 1)
        cell_of = np.full(pieces + 1, -1, dtype=np.int64)  # NULL is last, and no bin
        cell_of[inner.start : inner.stop] = np.arange(len(inner))
        regions = Regions(column, order, cuts, tuple(range(pieces)), pieces + 1, Truths({}, pieces + 1, nullable=True))
        return Scan(self.table, slice(0, len(inner)), (regions,), (), cell_of.reshape(1, -1))

    def range_of(self, passing: NDArray[np.bool_]) -> Range | None:
        """From the first bin that passes to the last, rounded outward to their ends; None where none does."""
        order = ordering(self.column.type)
        assert order is not None
        if not passing.any():
            return None
        edges: list[Any] = [edge for _, edge in self._bins()]
        if self._is_bounded:
            edges = [order.value(order.least), *edges, None]
        places = np.flatnonzero(passing)
        low, above = edges[int(places[0])], edges[int(places[-1]) + 1]
        if above is None:
            high = order.value(order.greatest)
        elif order.discrete:
            high = above - (timedelta(days=1) if order.kind == "moment" else 1)
        else:
            high = above
        if low == high:  # a clamp has two ends
            low, high = (low - 1, high) if low > 0 else (low, high + 1)
        return Range(low, high)

    @property
    def _is_bounded(self) -> bool:
        """Whether the type has a first and a last value, so that the outermost bins have ends too."""
        order = ordering(self.column.type)
        return order is not None and order.kind == "number" and self.column.type not in ("FLOAT", "DOUBLE")

    def _bins(self) -> list[tuple[Cut, Bound]]:
        """Where the bins begin, in order, as far as the type reaches: the last is the end of the last."""
        order = ordering(self.column.type)
        assert order is not None
        bins = []
        for edge in _edges(self.column.type):
            constant = Constant.of(edge)
            cut, _ = order.locate(constant, comparison_type(self.column.type, [constant]))
            if (order.least is None or cut > order.least) and (order.greatest is None or cut <= order.greatest):
                bins.append((cut, edge))
        return bins


def wanted(what: What, table: Table, column: Column) -> Wanted | None:
    """What is missing of a column, if it can be found: of one table, and of values that can be listed or placed."""
    if column.origin is not None:
        table, column = column.origin
    if table.rows is not None:
        return None  # its rows are computed: what could be found is a column behind it
    if column.expression and (column.labels or not column.inputs or what == "range"):
        return None  # a scan of one table cannot compute it
    order = ordering(column.type)
    if order is None or (order.kind not in ("number", "moment") if what == "range" else not has_dtype(column.type)):
        return None
    return Wanted(what, table, replace(column, name=column.own_name, label=""))


def identity(column: Column) -> str:
    """What a column of a table is: its expression, or its name as the table has it."""
    return column.expression or column.name


def _edges(type_: str) -> list[Bound]:
    kind = kind_of(type_)
    if kind == "day":
        return [date(year, 1, 1) for year in _YEARS]
    if kind == "moment":
        return [datetime(year, 1, 1) for year in _YEARS]
    if type_ in ("FLOAT", "DOUBLE"):
        powers: list[Any] = [2.0**exponent for exponent in _FLOAT_EXPONENTS]
        return [*(-power for power in reversed(powers)), 0.0, *powers]
    whole = [2**exponent for exponent in _WHOLE_EXPONENTS]
    return [*(-power for power in reversed(whole)), 0, *whole]
