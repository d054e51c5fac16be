"""A condition taken apart into conditions that all must hold, as far as three-valued logic allows.

A row counts where its condition is TRUE. AND is TRUE where every part is, OR is FALSE where every part is, and NOT
turns truth around: so the question whether a predicate has one of some truth values often is a conjunction of such
questions about its parts. Questions about one column each make a product of one factor per column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from tacit.errors import InternalError

from .predicate import And, ColumnQuestion, FixedTruth, IsTruth, Not, Or, Predicate, evaluate
from .truths import FALSE, TRUE, UNKNOWN, Truth

Truths = frozenset[int]
_FALSE, _UNKNOWN, _TRUE = (frozenset({int(truth)}) for truth in (FALSE, UNKNOWN, TRUE))
_ANY: Truths = _FALSE | _UNKNOWN | _TRUE


@dataclass(frozen=True)
class Condition:
    """A predicate must have one of these truth values."""

    predicate: Predicate
    truths: Truths = _TRUE

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it mentions."""
        return mentioned(self.predicate)

    def holds(self, truth: Truth) -> Truth:
        """1 where the predicate's truth is one of them, 0 elsewhere."""
        return np.isin(truth, sorted(self.truths)).astype(np.uint8)


def conjunction(predicate: Predicate, truths: Truths = _TRUE) -> tuple[Condition, ...] | None:
    """Conditions that all hold exactly where the predicate has one of the truth values; None if it never has."""
    if not truths:
        return None
    if truths == _ANY:
        return ()
    match predicate:
        case FixedTruth(truth):
            return () if int(truth) in truths else None
        case Not(part):
            return conjunction(part, frozenset(2 - truth for truth in truths))
        case IsTruth(part, truth):
            wanted = _ANY if int(TRUE) in truths and int(FALSE) in truths else frozenset({int(truth)})
            if int(TRUE) not in truths:
                wanted = _ANY - wanted if int(FALSE) in truths else frozenset()
            return conjunction(part, wanted)
        case And(parts) if len(parts) == 1 or truths in (_TRUE, _TRUE | _UNKNOWN):
            return _all(parts, truths)
        case Or(parts) if len(parts) == 1 or truths in (_FALSE, _FALSE | _UNKNOWN):
            return _all(parts, truths)
    if not mentioned(predicate):
        return () if int(evaluate(predicate, _no_column)) in truths else None
    return (Condition(predicate, truths),)


def _no_column(asks: ColumnQuestion) -> Truth:
    raise InternalError(f"a condition without columns asks about {asks.attribute}")


def _all(parts: Iterable[Predicate], truths: Truths) -> tuple[Condition, ...] | None:
    conditions: dict[Condition, None] = {}
    for part in parts:
        taken = conjunction(part, truths)
        if taken is None:
            return None
        conditions.update(dict.fromkeys(taken))
    return tuple(conditions)


def mentioned(predicate: Predicate) -> frozenset[str]:
    """The columns that a predicate mentions."""
    match predicate:
        case ColumnQuestion(attribute):
            return frozenset({attribute})
        case And(parts) | Or(parts):
            return frozenset().union(*map(mentioned, parts))
        case Not(part) | IsTruth(part):
            return mentioned(part)
    return frozenset()
