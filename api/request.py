"""One request as the caller made it. What an argument may be by itself is checked here, before anything is compiled.

What depends on the compiled batch is checked where it is known: the number of weights in ``compiled_batch.py``, whether
an error can be promised in ``pricing.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tacit.engine import strategies, to_confidence, to_delta, to_epsilon, to_error

from .errors import PrivacyParameterError, ProgrammingError

Batch = str | Sequence[str]
Params = Sequence[Any] | Mapping[str, Any] | None
Number = int | float | Decimal

ROUNDING = 0.5
"""How far rounding can move a figure (``Estimate.rounded``)."""
_WIDEST_WEIGHTS = 1e9
"""Largest over smallest weight. Far below where strategies and their rounding to whole numbers run out of digits."""


@dataclass(frozen=True)
class Ask:
    """A request whose arguments have been checked."""

    batch: Batch
    params: Params = None
    epsilon: Decimal | None = None
    delta: Decimal = Decimal(0)
    error: float | None = None
    confidence: float = 0.95
    weights: tuple[float, ...] | None = None
    strategy: str | None = None
    nonnegative: bool = False
    integer: bool = False
    refresh: bool = False
    """Buy new noise for the whole batch, whatever was released about it before."""

    @property
    def names_budget(self) -> bool:
        """Whether the caller said what to spend."""
        return self.epsilon is not None or self.error is not None

    @property
    def noise_width(self) -> float | None:
        """How far the noise alone may move a figure under ``error=``: rounding adds up to one half to it."""
        return self.error - ROUNDING if self.error is not None and self.integer else self.error


def ask(
    batch: Batch,
    params: Params = None,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    error: float | None = None,
    confidence: float = 0.95,
    weights: Sequence[float] | None = None,
    strategy: str | None = None,
    nonnegative: bool = False,
    integer: bool = False,
    refresh: bool = False,
) -> Ask:
    """The arguments of ``explain`` and ``answer``, checked before anything is compiled."""
    if not isinstance(batch, (str, list, tuple)):
        raise ProgrammingError('a batch is one SQL string or a list of them\nhint: write ["SELECT …", "SELECT …"]')
    _check_text([batch] if isinstance(batch, str) else batch, "the batch")
    _check_text(params.values() if isinstance(params, Mapping) else params, "a parameter")
    if epsilon is not None and error is not None:
        raise PrivacyParameterError(
            "epsilon= and error= were both given\nhint: keep one; error= finds the smallest epsilon itself"
        )
    if strategy is not None and strategy not in strategies():
        raise ProgrammingError(
            f"there is no strategy {strategy!r}\nhint: one of {', '.join(strategies())}, or leave strategy= out"
        )
    width = None if error is None else to_error(error)
    if integer and width is not None and width <= ROUNDING:
        raise PrivacyParameterError(
            f"error={width:g} cannot be promised with integer=True: rounding moves a figure by up to one half\n"
            "hint: ask for more than 0.5, such as error=1, or leave integer= out"
        )
    return Ask(
        batch=batch,
        params=params,
        epsilon=None if epsilon is None else to_epsilon(epsilon),
        delta=Decimal(0) if delta is None else to_delta(delta),
        error=width,
        confidence=to_confidence(confidence),
        weights=None if weights is None else _weights(weights),
        strategy=strategy,
        nonnegative=bool(nonnegative),
        integer=bool(integer),
        refresh=bool(refresh),
    )


def _check_text(values: Any, what: str) -> None:
    """Half a surrogate pair is no text for DuckDB, which would say so only when it scans the table."""
    try:
        for value in values if isinstance(values, Iterable) else ():
            if isinstance(value, str):
                value.encode()
    except UnicodeEncodeError:
        raise ProgrammingError(
            f"{what} holds half a surrogate pair, which is no text\nhint: decode it as UTF-8 first"
        ) from None


def _weights(weights: Sequence[float]) -> tuple[float, ...]:
    try:
        checked = tuple(float(w) for w in weights)
    except (TypeError, ValueError, OverflowError):
        checked = ()
    if not checked or isinstance(weights, str) or not all(math.isfinite(w) and w > 0 for w in checked):
        raise ProgrammingError("weights= must hold one positive finite number per query\nhint: weights=[1, 1, 10]")
    largest = max(checked)
    if min(checked) < largest / _WIDEST_WEIGHTS:
        raise ProgrammingError(
            f"the largest of weights= is more than {_WIDEST_WEIGHTS:,.0f} times the smallest: so little is as good as "
            "nothing\nhint: bring them closer, such as weights=[1, 1000], or ask for the queries in two batches"
        )
    return tuple(w / largest for w in checked)
