"""Columns cut into regions by the constants that the batch names.

An ``Attribute`` collects the questions that the batch asks of one column. When all are known, ``regions()``
cuts the column's line at their constants, joins the pieces that no question tells apart, and adds NULL as the
last region. Every value that a row can hold falls into exactly one region, whatever it is.

What is declared of a stored column saves regions, and is not relied on. A column that is NOT NULL has no region of its
own for NULL: a row that holds one all the same is read as if its value lay before all others. A complete list of values
is cut only where a listed value begins: what is not on the list is read as the listed value before it, or as the first.

Guarantee. The region of a row is a function of that row alone, defined for all of them: declared, broken or odd. So a
row that breaks a declaration still falls into exactly one cell of every grid and adds one unit to it, and it can make
nothing fail. The declaration decides which figures such a row is counted in, never how much it can move them.

Truth values are 0 for false, 1 for unknown and 2 for true, so that AND is min, OR is max and NOT is 2 - v.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from .catalog import Column, Values
from .dialect import comparison_type, ordering
from .literals import Constant
from .ordering import Cut, Incomparable, Ordering, Place
from .truths import FALSE, TRUE, UNKNOWN, Question, Runs, Truths, joined, merged_runs

_SIDES = {  # which of (less, equal, greater) make the comparison true
    "=": (False, True, False),
    "<>": (True, False, True),
    "<": (True, False, False),
    "<=": (True, True, False),
    ">": (False, False, True),
    ">=": (False, True, True),
}


IS_NULL = Question((), FALSE, TRUE)
NOT_NULL = Question((), TRUE, FALSE)


@dataclass(frozen=True)
class Regions:
    """One column, cut: the pieces of its line in order, and which region each belongs to."""

    column: Column
    order: Ordering | None
    cuts: tuple[Cut, ...]
    region_of_piece: tuple[int, ...]
    """len(cuts) + 1 entries: the region of the values before the first cut, between the first two, …"""
    count: int
    """Number of regions, that of NULL included."""
    truths: Truths
    nullable: bool = True
    """Whether NULL has a region of its own, the last."""
    listed: tuple[Cut, ...] = ()
    """Where the values of a complete list begin; empty where a row may hold others."""
    numbered: tuple[str, ...] = ()
    """Of a column whose value is the number of its region already: every region in words."""

    @classmethod
    def of_numbers(cls, column: Column, words: tuple[str, ...], runs: dict[Question, Runs]) -> Regions:
        """Of a column whose values are 0, 1, … and never NULL."""
        count = len(words)
        cuts, region_of_piece = tuple(range(1, count)), tuple(range(count))
        truths = Truths(runs, count, nullable=False)
        return cls(column, ordering(column.type), cuts, region_of_piece, count, truths, nullable=False, numbered=words)

    def asked(self, questions: Iterable[Question]) -> Regions:
        """The column cut no further than these of its questions tell apart."""
        first, region, truths = self.truths.joined(questions)
        pieces = region[list(self.region_of_piece)].tolist()
        kept = [i for i in range(len(self.cuts)) if pieces[i] != pieces[i + 1]]
        return replace(
            self,
            cuts=tuple(self.cuts[i] for i in kept),
            region_of_piece=(*(pieces[i] for i in kept), pieces[-1]),
            count=len(first) + self.nullable,
            truths=truths,
        )

    @property
    def null_region(self) -> int:
        """The region of NULL: its own, or that of the beginning of the line."""
        return self.count - 1 if self.nullable else self.region_of_piece[0]

    def label(self, region: int) -> str:
        """A region in words, such as ``age in [10, 18)`` or ``state not in {'CA', 'NY'}``."""
        if self.numbered:
            return self.numbered[region]
        name = self.column.name
        values = self.count - self.nullable
        if region == values:
            return f"{name} is NULL"
        if values == 1:
            return f"{name} is not NULL"
        assert self.order is not None
        if self.listed:
            return self._listed_label(region)
        runs = self._runs[region]
        if len(runs) > 1:
            outside = [run for other in range(values) if other != region for run in self._runs[other]]
            if all(self._is_point(*run) for run in outside):
                return f"{name} not in " + self._set(sorted(outside))
        if all(self._is_point(*run) for run in runs):
            return f"{name} in " + self._set(runs)
        return f"{name} in " + " or ".join(self._interval(*run) for run in runs)

    def _listed_label(self, region: int) -> str:
        """A region of a column with a complete list of values, by the shorter of the two ways to say it."""
        assert self.order is not None
        inside = self._values_of.get(region, [])
        word, shown = "in", inside
        if 2 * len(inside) > len(self.listed):
            held = set(inside)
            word, shown = "not in", [start for start in self.listed if start not in held]
        return f"{self.column.name} {word} {{" + ", ".join(_shown(self.order.value(start)) for start in shown) + "}"

    @cached_property
    def _values_of(self) -> dict[int, list[Cut]]:
        """The values of a complete list that belong to each region."""
        values: dict[int, list[Cut]] = {}
        for start in self.listed:
            values.setdefault(self.region_of_piece[bisect_right(self.cuts, start)], []).append(start)
        return values

    @cached_property
    def _runs(self) -> list[list[tuple[int, int]]]:
        """For each region the stretches of neighbouring pieces that belong to it: (first, last)."""
        runs: list[list[tuple[int, int]]] = [[] for _ in range(self.count)]
        for piece, owner in enumerate(self.region_of_piece):
            own = runs[owner]
            if own and own[-1][1] == piece - 1:
                own[-1] = (own[-1][0], piece)
            else:
                own.append((piece, piece))
        return runs

    def _ends(self, first: int, last: int) -> tuple[Cut | None, Cut | None]:
        """Where a run begins and where the next value after it would; None for the open ends of a line."""
        low = self.cuts[first - 1] if first else None
        high = self.cuts[last] if last < len(self.cuts) else None
        if self.order is not None and self.order.kind == "truth":
            return low or 0, high or 2
        return low, high

    def _is_point(self, first: int, last: int) -> bool:
        low, high = self._ends(first, last)
        if low is None or high is None:
            return False
        if isinstance(low, tuple):
            return bool(low == (high[0], 0) and high[1] == 1)
        return bool(high - low == 1)

    def _set(self, runs: list[tuple[int, int]]) -> str:
        assert self.order is not None
        return "{" + ", ".join(_shown(self.order.value(self._ends(*run)[0])) for run in runs) + "}"

    def _interval(self, first: int, last: int) -> str:
        assert self.order is not None
        low, high = self._ends(first, last)
        opens = "(" if low is None or low == (_text(low), 1) else "["
        closes = "]" if high is not None and high == (_text(high), 1) else ")"
        left = "-∞" if low is None else _shown(self.order.value(low))
        right = "∞" if high is None else _shown(self.order.value(high))
        return f"{opens}{left}, {right}{closes}"


def _text(cut: Cut) -> str | None:
    return cut[0] if isinstance(cut, tuple) else None


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)


class Attribute:
    """The questions that the batch asks of one column, collected before the column is cut."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.order = ordering(column.type)
        self.nullable = column.nullable or bool(column.expression)
        """An expression over columns that are NOT NULL can be NULL."""
        self._questions: dict[Question, None] = {}

    def ask(self, question: Question) -> Question:
        """Remember a question; its truth per region is known once ``regions()`` is called."""
        self._questions[question] = None
        return question

    def compare(self, operator: str, constants: list[Constant], *, null_safe: bool = False) -> Question:
        """``column operator constant``, for a list of constants joined by OR (``IN``).

        With ``null_safe`` the operator is IS [NOT] DISTINCT FROM. Raises Incomparable.
        """
        if null_safe:
            return self._distinct(operator, constants[0])
        places = self.places([c for c in constants if c.kind != "null"])
        has_null = len(places) < len(constants)
        pieces = tuple((operator, place) for place in places)
        return self.ask(Question(pieces, UNKNOWN if has_null else FALSE, UNKNOWN if constants else FALSE))

    def _distinct(self, operator: str, constant: Constant) -> Question:
        if constant.kind == "null":
            return self.ask(IS_NULL if operator == "=" else NOT_NULL)
        (place,) = self.places([constant])
        return self.ask(Question(((operator, place),), FALSE, FALSE if operator == "=" else TRUE))

    def places(self, constants: list[Constant]) -> list[Place]:
        """Where constants sit on the column's line; raises Incomparable."""
        if self.order is None:
            raise Incomparable(f"tacit can only ask whether a {self.column.type} column IS NULL")
        type_ = comparison_type(self.column.type, constants)
        return [self.order.locate(constant, type_) for constant in constants]

    def regions(self) -> Regions:
        """Cut the line at every constant and join the pieces that no question tells apart."""
        places = (place for question in self._questions for _, place in question.pieces)
        cuts = sorted({self._snapped(cut) for place in places for cut in place if self._inside(cut)})
        runs = {question: self._runs(question, cuts) for question in self._questions}
        first, region_of_piece, truths = joined(runs, len(cuts) + 1, nullable=self.nullable)
        return Regions(
            self.column, self.order, tuple(cuts), tuple(region_of_piece.tolist()), len(first) + self.nullable,
            truths, self.nullable, self._listed,
        )  # fmt: skip

    def _runs(self, question: Question, cuts: list[Cut]) -> Runs:
        """The pieces of the line on which a question is true because one of its comparisons is."""
        return merged_runs(run for operator, place in question.pieces for run in self._held(operator, place, cuts))

    def _inside(self, cut: Cut) -> bool:
        """Whether values lie on both sides of a cut; a constant beyond the ends cuts nothing."""
        least, greatest = self._ends
        return (least is None or cut > least) and (greatest is None or cut <= greatest)

    @property
    def _ends(self) -> tuple[Cut | None, Cut | None]:
        """The first and the last value: of a complete list, or else of the type."""
        assert self.order is not None
        return (self._listed[0], self._listed[-1]) if self._listed else (self.order.least, self.order.greatest)

    @cached_property
    def _listed(self) -> tuple[Cut, ...]:
        """Where the values of a complete list begin, in the order of the line; empty where there is no such list."""
        domain = self.column.domain
        if self.order is None or self.column.expression or not isinstance(domain, Values) or not domain.complete:
            return ()
        try:
            places = [self.places([Constant.of(value)])[0] for value in domain.values]
        except (Incomparable, TypeError):  # GROUP BY says that the values are not of the column's type
            return ()
        return tuple(sorted({below for below, above in places if below != above}))

    def _snapped(self, cut: Cut) -> Cut:
        """The cut moved up to where the next value begins, so that no piece is without a value."""
        place = bisect_left(self._listed, cut)
        return self._listed[place] if place < len(self._listed) else cut

    def _held(self, operator: str, place: Place, cuts: list[Cut]) -> Iterable[tuple[int, int]]:
        below, above = (self._piece_at(cut, cuts) for cut in place)
        runs = ((0, below), (below, above), (above, len(cuts) + 1))
        return (run for run, holds in zip(runs, _SIDES[operator], strict=True) if holds)

    def _piece_at(self, cut: Cut, cuts: list[Cut]) -> int:
        """The first piece that lies at or after a cut."""
        least, greatest = self._ends
        if least is not None and cut <= least:
            return 0
        if greatest is not None and cut > greatest:
            return len(cuts) + 1
        return bisect_left(cuts, self._snapped(cut)) + 1
