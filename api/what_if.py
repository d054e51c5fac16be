"""What a plan can be asked beside its own budget: other budgets, and its queries one by one. Reads no private row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.engine import Estimate, to_epsilon
from tacit.sql.present import rows_used

from .combine import combine
from .errors import Error
from .pickled import KeptWhatIf
from .pricing import Pricer, Purchase
from .request import Ask, Number
from .reuse import Decision, least_that_reaches

Floats = NDArray[np.float64]

_SECONDS = 0.5
"""For the search of one query by itself: the figure is for orientation."""
_ROUNDING = 1 + 1e-9


@dataclass(frozen=True, repr=False, eq=False)
class WhatIf:
    """A batch, priced again."""

    ask: Ask
    whole: Purchase
    """The whole batch bought anew."""
    decision: Decision
    predicted: Estimate
    """The errors of the answer."""
    pricer: Pricer
    """Not the connection's own: a plan may be asked from another thread, and after the connection is closed."""
    rule: str
    _alone: dict[int, Decimal | None] = field(default_factory=dict)

    def alone(self, query: int) -> Decimal | None:
        """The ε for which one query by itself is as exact as in the batch; None where it needs none.

        The plan of the whole batch answers it too, so it is never more than the batch costs.
        """
        if query not in self._alone:
            self._alone[query] = self._priced_alone(query)
        return self._alone[query]

    def released(self) -> Estimate | None:
        """What the caller has been told of the batch already; None where that is nothing.

        What others paid for and the caller has not read yet would count against the caller's cap: it is left out.
        """
        decision = self.decision
        told = tuple(release for release in decision.used if release not in decision.read)
        return combine(told, self.whole.batch, partial=True) if told else None

    def kept(self) -> KeptWhatIf:
        """What of it can be pickled."""
        return KeptWhatIf(self.predicted, self.released(), dict(self._alone))

    def curve(self, epsilons: Sequence[Number], rows: NDArray[np.int64]) -> pd.DataFrame:
        """The half-widths of some rows of the workload that each ε buys."""
        batch, delta = self.whole.batch, self.whole.delta
        found: dict[str, list[float]] = {name: [] for name in ("epsilon", "smallest", "median", "largest")}
        for epsilon in sorted(to_epsilon(one) for one in epsilons):
            ask = replace(self.ask, epsilon=epsilon, error=None)
            plan = self.pricer.price(ask, batch, self.rule).plan
            widths = plan.half_widths(epsilon, delta, self.ask.confidence)[rows]
            found["epsilon"].append(float(epsilon))
            for name, summary in (("smallest", np.min), ("median", np.median), ("largest", np.max)):
                found[name].append(float(summary(widths)) if len(widths) else 0.0)
        return pd.DataFrame(found, dtype=np.float64)

    def _priced_alone(self, query: int) -> Decimal | None:
        whole = self.whole
        rows = np.zeros(whole.batch.row_count, dtype=np.bool_)
        rows[rows_used(whole.batch.workload.queries[query])] = True
        part = whole.batch.only(rows & whole.batch.to_measure)
        if not part.tables:
            return None
        wanted = part.measured(whole.plan.stderr(whole.epsilon, whole.delta)) * _ROUNDING
        ask = replace(self.ask, epsilon=whole.epsilon, error=None, plan_seconds=_SECONDS)
        try:
            bought = self.pricer.price(ask, part, self.rule)
        except Error:  # a strategy that is forced on the batch may not be for one of its queries
            return whole.epsilon

        def reaches(epsilon: Decimal) -> bool:
            return part.measured(bought.plan.stderr(epsilon, whole.delta)) <= wanted

        return least_that_reaches(whole.epsilon, reaches) if reaches(whole.epsilon) else whole.epsilon
