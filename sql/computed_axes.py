"""What an aggregate asks as columns of their own, where the grid of the columns that it mentions cannot be listed.

``a1 = 1 OR a2 = 2 OR …`` over thirty columns cuts a table into more cells than can be counted, and still asks one thing
of a row. So the condition is computed for every row, and its truth is a column with three values, as a condition that
compares two columns always was. Noise on the counts of such a column is noise on the result: no cell is needed. In the
same way the number of a row's group is a column, where other queries cut the columns of the key too finely.

What is lost is what the columns had in common. A histogram of ``a1`` says nothing of the condition above: the two are
measured apart, each with a share of the budget. So it is done only where nothing finer fits:

1. Conditions that mix columns are fused into one axis from the narrowest on, as long as the axis can be listed. Each of
   the others is a column of its own; equal ones are one column, in all queries.
2. Where the grid of an aggregate's axes is too large, all its conditions together are one column; then each of its
   keys; then keys that stand side by side, until the grid is as large as the answers at most.

Guarantee. A computed column is a number from 0 to its count − 1, made of the regions of one row by CASE, least,
greatest and comparisons of small numbers: it is a function of that row alone, never NULL, and fails on no row. So every
row is at exactly one point of every set of axes, as with stored columns, and adds one unit to it, whatever the columns
behind the axes have in common. A plan takes all combinations of points for possible; where some are not, its norms are
those of more rows than there can be.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from . import dialect
from .catalog import Column
from .cells import GroupedAggregate
from .conjunction import Condition, Truths, mentioned
from .factors import WIDEST_FUSED
from .parse import Limits
from .parts import Keys, MixedColumns, Parts, taken_apart
from .predicate import ALWAYS, And, ColumnQuestion, FixedTruth, IsTruth, Not, Or, Predicate, evaluate, where_true
from .product_scan import MOST_POINTS
from .regions import Regions
from .scalar import stored
from .truths import FALSE, TRUE, Question, merged_runs

Aggregates = Sequence[tuple[GroupedAggregate, range]]
Key = tuple[Predicate, ...]
"""The groups of one GROUP BY key."""

_TRUTHS = ("false", "unknown", "true")
_LONGEST = 200
"""Characters of a condition in the name of a cell."""


def with_computed_axes(
    regions: Sequence[Regions], aggregates: Aggregates, limits: Limits
) -> tuple[list[Regions], list[tuple[GroupedAggregate, range]]]:
    """The same aggregates over fewer points: computed columns beside those that are still asked about."""
    keys = Keys()
    read = [taken_apart(aggregate, keys) for aggregate, _ in aggregates]
    narrowing = _Narrowing(regions, [parts for parts in read if parts is not None], min(MOST_POINTS, limits.points))
    narrowed = [None if parts is None else narrowing.narrowed(parts) for parts in read]
    rewritten = [
        (_never(aggregate) if parts is None else _aggregate(parts), numbers)
        for (aggregate, numbers), parts in zip(aggregates, narrowed, strict=True)
    ]
    left = [parts for parts in narrowed if parts is not None]
    return _asked_about(regions, left, narrowing.computed), rewritten


def _never(aggregate: GroupedAggregate) -> GroupedAggregate:
    """It counts nothing, so what else it asks need not be told apart; the number of its groups stays."""
    return GroupedAggregate(FixedTruth(FALSE), tuple((FixedTruth(FALSE),) * len(key) for key in aggregate.keys))


def _unlisted(read: Sequence[Parts], mixed: MixedColumns) -> set[Condition]:
    """The conditions whose columns make no axis with all that they are mixed with. Narrow ones are put together first.

    The columns of a key come before all conditions: groups are what several aggregates have in common.
    """
    for key in {id(key): key for parts in read for key in parts.keys}.values():
        mixed.join(frozenset().union(*map(mentioned, key)))
    conditions = dict.fromkeys(condition for parts in read for condition in parts.conditions)
    apart: set[Condition] = set()
    for condition in sorted(conditions, key=lambda condition: mixed.points(condition.columns)):
        if len(condition.columns) > 1 and mixed.points(condition.columns) > WIDEST_FUSED:
            apart.add(condition)
        else:
            mixed.join(condition.columns)
    return apart


def _asked_about(regions: Sequence[Regions], read: Sequence[Parts], computed: _Computed) -> list[Regions]:
    """All columns that are asked about, each cut no further than needed, by name."""
    questions: dict[str, dict[Question, None]] = {}
    predicates = dict.fromkeys(condition.predicate for parts in read for condition in parts.conditions)
    keys = {id(key): key for parts in read for key in parts.keys}.values()
    for predicate in (*predicates, *(group for key in keys for group in key)):
        for asks in _questions(predicate):
            questions.setdefault(asks.attribute, {})[asks.question] = None
    cut = [r.asked(questions[r.column.name]) for r in regions if r.column.name in questions]
    cut += [computed.regions(name, asked) for name, asked in questions.items() if name in computed.columns]
    return sorted(cut, key=lambda r: r.column.name)


def _questions(predicate: Predicate) -> Iterable[ColumnQuestion]:
    match predicate:
        case ColumnQuestion():
            yield predicate
        case And(parts) | Or(parts):
            for part in parts:
                yield from _questions(part)
        case Not(part) | IsTruth(part):
            yield from _questions(part)


def _aggregate(parts: Parts) -> GroupedAggregate:
    where = tuple(map(_as_predicate, parts.conditions))
    return GroupedAggregate(And(where) if len(where) > 1 else (where or (ALWAYS,))[0], parts.keys, None, parts.summed)


def _as_predicate(condition: Condition) -> Predicate:
    """TRUE exactly where the condition holds."""
    if condition.truths == {int(TRUE)}:
        return condition.predicate
    one, *more = (IsTruth(condition.predicate, np.uint8(truth)) for truth in sorted(condition.truths))
    return Or((one, *more)) if more else one


class _Narrowing:
    """Makes the grid of every aggregate small, if it is not."""

    def __init__(self, regions: Sequence[Regions], read: Sequence[Parts], largest: int) -> None:
        self.computed = _Computed({r.column.name: r for r in regions})
        self._largest = largest
        self._apart = _unlisted(read, MixedColumns(regions))
        listed = [replace(parts, conditions=self._listed(parts)) for parts in read]
        self._mixed = MixedColumns(_asked_about(regions, listed, self.computed))
        for parts in listed:
            for columns in _columns(parts):
                self._mixed.join(columns)

    def narrowed(self, parts: Parts) -> Parts:
        """The aggregate over a grid that can be listed. What is computed least comes first."""
        listed = self._listed(parts)
        apart = [condition for condition in parts.conditions if condition in self._apart]
        of_conditions = frozenset().union(*(condition.columns for condition in listed))
        of_keys = frozenset().union(*_columns(replace(parts, conditions=())))
        truths = len(_TRUTHS) ** len(apart)
        keys: list[tuple[Key, ...]] = [(key,) for key in parts.keys]
        conditions = (*listed, *map(self.computed.truth, apart))
        if self._fits(parts, self._mixed.points(of_conditions | of_keys) * truths):
            return replace(parts, conditions=conditions)
        together = (self.computed.together(parts.conditions),) if parts.conditions else ()
        if self._fits(parts, self._mixed.points(of_keys) * len(_TRUTHS)):
            return replace(parts, conditions=together)
        if self._fits(parts, self._mixed.points(of_conditions) * truths * _points_of_keys(keys)):
            return replace(parts, conditions=conditions, keys=tuple(map(self.computed.group, keys)))
        while len(keys) > 1 and not self._fits(parts, _points_of_keys(keys) * len(_TRUTHS)):
            sizes = [_size(first) * _size(second) for first, second in itertools.pairwise(keys)]
            place = sizes.index(min(sizes))
            keys[place : place + 2] = [(*keys[place], *keys[place + 1])]
        return replace(parts, conditions=together, keys=tuple(map(self.computed.group, keys)))

    def _listed(self, parts: Parts) -> tuple[Condition, ...]:
        return tuple(condition for condition in parts.conditions if condition not in self._apart)

    def _fits(self, parts: Parts, points: int) -> bool:
        return points * (1 if parts.summed is None else 2) <= self._largest


def _columns(parts: Parts) -> Iterable[frozenset[str]]:
    yield from (condition.columns for condition in parts.conditions)
    yield from (frozenset().union(*map(mentioned, key)) for key in parts.keys)


def _size(keys: Sequence[Key]) -> int:
    return math.prod(map(len, keys))


def _points_of_keys(keys: Sequence[Sequence[Key]]) -> int:
    """A point for each group, and one for the rows of no group."""
    return math.prod(_size(together) + 1 for together in keys)


@dataclass(frozen=True)
class _Number:
    """A computed column: its number's SQL, what it is computed from, and its values in words."""

    column: Column
    words: Callable[[], tuple[str, ...]] = field(compare=False)
    count: int


class _Computed:
    """The computed columns, by name: the text of their SQL. What computes alike is one column."""

    def __init__(self, regions: Mapping[str, Regions]) -> None:
        self._regions = regions
        self.columns: dict[str, _Number] = {}
        self._groups: dict[tuple[int, ...], Key] = {}
        self._written: dict[int, tuple[Key, str]] = {}

    def regions(self, name: str, questions: Iterable[Question]) -> Regions:
        """A computed column cut into its values."""
        number = self.columns[name]
        runs = {question: merged_runs(place for _, place in question.pieces) for question in questions}
        return Regions.of_numbers(number.column, number.words(), runs)

    def truth(self, condition: Condition) -> Condition:
        """The condition as a question about a column that holds the truth of its predicate."""
        predicate = condition.predicate

        def words() -> tuple[str, ...]:
            return tuple(f"({self._words(predicate)}) is {truth}" for truth in _TRUTHS)

        name = self._add(self._truth_sql(predicate), condition.columns, words, len(_TRUTHS))
        return Condition(_is_one_of(name, condition.truths))

    def together(self, conditions: Sequence[Condition]) -> Condition:
        """Conditions as a question about one column: the truth of the only one, or whether all of them hold."""
        if len(conditions) == 1:
            return self.truth(conditions[0])
        sql = dialect.least(self._holds_sql(condition) for condition in conditions)
        together = And(tuple(map(_as_predicate, conditions)))

        def words() -> tuple[str, ...]:
            return f"not ({self._words(together)})", self._words(together)

        columns = frozenset().union(*(condition.columns for condition in conditions))
        return Condition(_is_one_of(self._add(sql, columns, words, 2), {1}))

    def group(self, keys: Sequence[Key]) -> Key:
        """Keys as one key: the groups are the values of a column that holds the number of a row's combination."""
        known = tuple(map(id, keys))
        if known not in self._groups:
            count = _size(keys)
            numbers = [(self._group_sql(key), len(key)) for key in keys]
            sql = numbers[0][0] if len(numbers) == 1 else dialect.place_of(numbers)
            columns = frozenset().union(*(mentioned(group) for key in keys for group in key))
            name = self._add(sql, columns, lambda: self._group_words(keys), count + 1)
            self._groups[known] = tuple(_is_one_of(name, {number}) for number in range(count))
        return self._groups[known]

    def _add(self, sql: str, columns: Iterable[str], words: Callable[[], tuple[str, ...]], count: int) -> str:
        if sql not in self.columns:
            inputs = stored(self._column(name) for name in sorted(columns))
            column = Column(sql, "INTEGER", nullable=False, expression=sql, inputs=inputs)
            self.columns[sql] = _Number(column, words, count)
        return sql

    def _column(self, name: str) -> Column:
        return self.columns[name].column if name in self.columns else self._regions[name].column

    def _truth_sql(self, predicate: Predicate) -> str:
        """The truth of a predicate as a number. What it says of one column is read off that column's regions."""
        columns = mentioned(predicate)
        if len(columns) == 1:
            regions = self._regions[next(iter(columns))]
            truth = evaluate(predicate, lambda asks: regions.truths[asks.question])
            return dialect.number_sql(regions, np.broadcast_to(truth, regions.count).tolist())
        match predicate:
            case And(parts):
                return dialect.least(map(self._truth_sql, parts))
            case Or(parts):
                return dialect.greatest(map(self._truth_sql, parts))
            case Not(part):
                return dialect.opposite(self._truth_sql(part), int(TRUE))
            case IsTruth(part, wanted):
                return dialect.chosen(self._truth_sql(part), {int(wanted)}, int(TRUE))
            case FixedTruth(always):
                return str(int(always))
        raise AssertionError("a question is about one column")

    def _holds_sql(self, condition: Condition) -> str:
        """1 where a condition holds, 0 elsewhere."""
        if len(condition.columns) == 1:
            regions = self._regions[next(iter(condition.columns))]
            truth = evaluate(condition.predicate, lambda asks: regions.truths[asks.question])
            return dialect.number_sql(regions, condition.holds(np.broadcast_to(truth, regions.count)).tolist())
        return dialect.chosen(self._truth_sql(condition.predicate), condition.truths, 1)

    def _group_sql(self, key: Key) -> str:
        """The number of the group that holds a row; the count of groups where none does."""
        if id(key) in self._written:
            return self._written[id(key)][1]
        columns = frozenset().union(*map(mentioned, key))
        if len(columns) == 1:
            regions = self._regions[next(iter(columns))]
            number = np.full(regions.count, len(key))
            for place, group in enumerate(key):
                number[where_true(group, regions)] = place
            sql = dialect.number_sql(regions, number.tolist())
        else:
            sql = dialect.first_of((self._truth_sql(group), int(TRUE)) for group in key)
        self._written[id(key)] = key, sql
        return sql

    # what the values are called

    def _words(self, predicate: Predicate) -> str:
        """A condition by the regions that make it true."""
        columns = mentioned(predicate)
        if len(columns) == 1:
            regions = self._regions[next(iter(columns))]
            true = where_true(predicate, regions).tolist()
            return _joined(" or ", (regions.label(region) for region in true)) or "never"
        match predicate:
            case And(parts):
                return _joined(" and ", (f"({self._words(part)})" for part in parts))
            case Or(parts):
                return _joined(" or ", (f"({self._words(part)})" for part in parts))
            case Not(part):
                return f"not ({self._words(part)})"
            case IsTruth(part, wanted):
                return f"({self._words(part)}) is {_TRUTHS[int(wanted)]}"
        return "every row"

    def _group_words(self, keys: Sequence[Key]) -> tuple[str, ...]:
        of_keys = [[self._words(group) for group in key] for key in keys]
        return *(" and ".join(chosen) for chosen in itertools.product(*of_keys)), "none of the groups"


def _joined(word: str, parts: Iterable[str]) -> str:
    """Parts joined by a word, as far as a label goes."""
    text = ""
    for part in parts:
        if len(text) > _LONGEST:
            return f"{text}{word}…"
        text += word * bool(text) + part
    return text


def _is_one_of(name: str, numbers: Truths | set[int]) -> ColumnQuestion:
    pieces = tuple(("=", (number, number + 1)) for number in sorted(numbers))
    return ColumnQuestion(name, Question(pieces, FALSE, FALSE))
