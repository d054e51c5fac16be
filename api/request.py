"""One request as the caller made it. What an argument may be by itself is checked here, before anything is compiled.

What depends on the compiled batch is checked where it is known: the number of weights and sizes in
``compiled_batch.py``, whether an error can be promised in ``pricing.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, get_args

from tacit.engine import strategies, to_confidence, to_delta, to_epsilon
from tacit.engine.inference.estimate import Inference
from tacit.engine.measures import Objective

from .error_targets import Sizes, Targets, is_relative, smallest, to_targets
from .errors import PrivacyParameterError, ProgrammingError

Batch = str | Sequence[str]
Params = Sequence[Any] | Mapping[str, Any] | None
Number = int | float | Decimal
Error = float | str
"""A half-width, or a percentage of a size."""

ROUNDING = 0.5
"""How far rounding can move a figure (``Estimate.rounded``)."""
_SIZES = (1e-45, 1e45)
"""Of answers: beyond, their squares leave the floats. Those of ``optimize`` are the same."""
WIDEST_WEIGHTS = 1e9
"""Largest over smallest weight. Far below where strategies and their rounding to whole numbers run out of digits."""


@dataclass(frozen=True)
class Ask:
    """A request whose arguments have been checked."""

    batch: Batch
    params: Params = None
    epsilon: Decimal | None = None
    delta: Decimal = Decimal(0)
    error: Targets | None = None
    confidence: float = 0.95
    weights: tuple[float, ...] | None = None
    strategy: str | None = None
    objective: Objective = "total"
    sizes: Sizes = None
    inference: Inference = "least squares"
    nonnegative: bool = False
    integer: bool = False
    refresh: bool = False
    """Buy new noise for the whole batch, whatever was released about it before."""
    plan_seconds: float | None = None
    """How long to search for a plan."""
    discover: bool = False
    """Find what the batch needs and the policy does not declare, with a part of its ε and δ."""

    @property
    def names_budget(self) -> bool:
        """Whether the caller said what to spend."""
        return self.epsilon is not None or self.error is not None

    @property
    def is_plain(self) -> bool:
        """Whether cells need not be listed: named strategies, other measures and other estimates go through each."""
        return (
            self.strategy is None
            and self.objective in ("total", "relative")
            and self.inference == "least squares"
            and not self.nonnegative
        )


def ask(
    batch: Batch,
    params: Params = None,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    error: Error | Sequence[Error | None] | Mapping[int, Error] | None = None,
    confidence: float = 0.95,
    weights: Sequence[float] | None = None,
    strategy: str | None = None,
    objective: Objective = "total",
    sizes: float | Sequence[float] | None = None,
    inference: Inference = "least squares",
    nonnegative: bool = False,
    integer: bool = False,
    refresh: bool = False,
    plan_seconds: float | None = None,
    discover: bool = False,
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
    _check_word("objective", objective, get_args(Objective))
    _check_word("inference", inference, get_args(Inference))
    if (objective == "relative" or is_relative(error)) != (sizes is not None):
        raise ProgrammingError(
            'objective="relative", or an error= in percent, and sizes= go together: sizes= says how large the answer '
            'to each query is expected to be\nhint: objective="relative", sizes=[100, 5000]; error="5%", sizes=2000'
        )
    expected = None if sizes is None else _sizes(sizes)
    if inference == "likelihood" and (nonnegative or error is not None):
        raise ProgrammingError(
            f'inference="likelihood" does not go with {"nonnegative=True" if nonnegative else "error="}: '
            + ("both replace least squares" if nonnegative else "the ε for an error is found by least squares")
            + "\nhint: leave one of them out"
        )
    if nonnegative and error is not None:
        raise ProgrammingError(
            "error= cannot be promised with nonnegative=True: what is cut off below zero adds up in sums over many "
            "cells\nhint: leave one of them out, or name epsilon= in place of error="
        )
    targets = None if error is None else to_targets(error, expected)
    least = None if targets is None else smallest(targets)
    if integer and least is not None and least <= ROUNDING:
        raise PrivacyParameterError(
            f"error={least:g} cannot be promised with integer=True: rounding moves a figure by up to one half\n"
            "hint: ask for more than 0.5, such as error=1, or leave integer= out"
        )
    return Ask(
        batch=batch,
        params=params,
        epsilon=None if epsilon is None else to_epsilon(epsilon),
        delta=Decimal(0) if delta is None else to_delta(delta),
        error=targets,
        confidence=to_confidence(confidence),
        weights=None if weights is None else _weights(weights),
        strategy=strategy,
        objective=objective,
        sizes=expected,
        inference=inference,
        nonnegative=bool(nonnegative),
        integer=bool(integer),
        refresh=bool(refresh),
        plan_seconds=None if plan_seconds is None else _seconds(plan_seconds),
        discover=bool(discover),
    )


def _seconds(value: Any) -> float:
    try:
        seconds = math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ProgrammingError(
            "plan_seconds= must be a finite number of seconds, not below 0\n"
            "hint: plan_seconds=2, or leave it out to let the search end by itself"
        )
    return seconds


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


def _check_word(name: str, value: object, words: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in words:
        raise ProgrammingError(
            f"{name}= is none of its words\nhint: one of {', '.join(repr(word) for word in words)}, "
            f"or leave {name}= out"
        )


def _weights(weights: Sequence[float]) -> tuple[float, ...]:
    checked = _positive(weights, "weights", "[1, 1, 10]")
    largest = max(checked)
    if min(checked) < largest / WIDEST_WEIGHTS:
        raise ProgrammingError(
            f"the largest of weights= is more than {WIDEST_WEIGHTS:,.0f} times the smallest: so little is as good as "
            "nothing\nhint: bring them closer, such as weights=[1, 1000], or ask for the queries in two batches"
        )
    return tuple(w / largest for w in checked)


def _sizes(sizes: float | Sequence[float]) -> float | tuple[float, ...]:
    single = isinstance(sizes, (int, float)) and not isinstance(sizes, bool)
    checked = _positive([sizes] if single else sizes, "sizes", "[100, 5000, 20]")  # type: ignore[arg-type, list-item]
    if not _SIZES[0] <= min(checked) <= max(checked) <= _SIZES[1]:
        raise ProgrammingError(
            f"sizes= are between {_SIZES[0]:g} and {_SIZES[1]:g}\nhint: say how large each answer is expected to be, "
            "such as sizes=[100, 5000]"
        )
    return checked[0] if single else checked


def _positive(values: Sequence[float], name: str, example: str) -> tuple[float, ...]:
    try:
        checked = tuple(math.nan if isinstance(value, (str, bytes)) else float(value) for value in values)
    except (TypeError, ValueError, OverflowError):
        checked = ()
    if not checked or not all(math.isfinite(value) and value > 0 for value in checked):
        raise ProgrammingError(f"{name}= must hold one positive finite number per query\nhint: {name}={example}")
    return checked
