"""What answers, plans and budgets keep when they are pickled: everything that they show, and nothing that asks again.

A release, a plan and a budget are figures that were computed; a pickle holds those. What would compute more needs
the ledger, whose salt is secret, and the compiled batch: in a pickle that is a refusal which says what to keep instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .errors import NotSupportedError

if TYPE_CHECKING:
    from tacit.engine import Estimate

    from .request import Number

Floats = NDArray[np.float64]
Ends = Mapping[int, tuple[Floats, Floats]]


class Unchanging:
    """A copy of what never changes is itself; a pickle is not, because it leaves behind what cannot come along."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self


@dataclass(frozen=True)
class Kept:
    """A function that has been called: it returns the same again."""

    result: Any

    def __call__(self) -> Any:
        return self.result


@dataclass(frozen=True)
class Left:
    """A function that did not come along."""

    what: str
    instead: str

    def __call__(self, *_: object) -> NoReturn:
        raise left_behind(self.what, self.instead)


CELLS = Left("cells()", "call answers.cells() where the batch was answered, and pickle that frame too")
CURVE = Left("a curve", "call plan.curve() where the batch was explained, and pickle that frame")
ASKED = Left("what a plan is asked further", "ask it where the batch was explained, and pickle the answer")
REALISED = Left("realised", "read con.budget.realised before pickling: then it is kept")


def left_behind(what: str, instead: str) -> NotSupportedError:
    """What asks for more than a pickle holds."""
    return NotSupportedError(f"{what} needs the connection, and this was pickled without it\nhint: {instead}")


@dataclass(frozen=True, repr=False, eq=False)
class KeptWhatIf:
    """Of ``WhatIf``: the predicted errors, what was released before, and the costs that have been asked for."""

    predicted: Estimate
    estimate: Estimate | None
    costs: Mapping[int, Decimal | None] = field(default_factory=dict)

    def alone(self, query: int) -> Decimal | None:
        """The ε of one query by itself, if that was asked for before."""
        if query not in self.costs:
            raise left_behind("the cost of a query by itself", "call plan.by_query(alone=True) before pickling")
        return self.costs[query]

    def released(self) -> Estimate | None:
        """What the caller had been told of the batch."""
        return self.estimate

    def curve(self, epsilons: Sequence[Number], rows: NDArray[np.int64]) -> pd.DataFrame:
        """Not kept: each ε is priced anew."""
        CURVE()
