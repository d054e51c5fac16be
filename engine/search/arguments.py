"""What the door of the search refuses, and what to write instead: every refusal is a ProgrammingError."""

from __future__ import annotations

import inspect
import math
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike
from tacit.engine.measures import Objective
from tacit.engine.search.named import MAKERS, strategies
from tacit.engine.search.options import Options
from tacit.engine.strategy import Matrix, Vector
from tacit.errors import ProgrammingError

_LEAST_WHOLE = {"branching": 2, "start": 0, "inner": 0, "iterations": 0}
"""Least values of whole-numbered parameters, 1 for all others; no iteration at all gives the start point."""
_MAY_BE_ZERO = ("gamma", "margin")
"""Real-numbered parameters that may be 0; all others are above it."""
_EXTREME = 499
"""Power of two that the largest entry of a workload may reach, up or down: beyond it squares leave the floats."""
_WEIGHTS = (1e-100, 1e100)
_SIZES = (1e-45, 1e45)
_RATIO = 1e60
"""Of the largest to the least weight; beyond it the error of the lighter query does not register at all."""


def checked_workload(workload: ArrayLike) -> Matrix:
    """The workload as a matrix of finite numbers, or ProgrammingError."""
    W = _array(workload, "a workload is a matrix of numbers, one row per query")
    if W.ndim != 2:
        raise ProgrammingError(f"a workload has two dimensions (queries, cells), not {W.ndim}")
    if W.size == 0:
        raise ProgrammingError(f"a workload needs at least one query and one cell, not {W.shape[0]}×{W.shape[1]}")
    if not np.isfinite(W).all():
        raise ProgrammingError("a workload's entries are finite numbers")
    W += 0.0  # −0.0 is 0.0 now: equal workloads have equal bytes and so equal strategies
    largest = max(float(W.max()), -float(W.min()))
    if largest != 0.0 and not 2.0**-_EXTREME <= largest <= 2.0**_EXTREME:
        raise ProgrammingError(
            f"the largest entry of this workload is {largest:.3g}, and its square is no ordinary float: scale its "
            f"rows, such as workload / {largest:.3g}, and multiply the answers by that"
        )
    return W


def checked_weights(weights: ArrayLike | None, queries: int) -> Vector:
    """One positive number per query; ones when there are none."""
    if weights is None:
        return np.ones(queries)
    omega = _array(weights, "weights are numbers, one per query")
    if omega.shape != (queries,) or not np.isfinite(omega).all() or not (omega > 0.0).all():
        raise ProgrammingError(f"weights are positive numbers, one for each of the {queries} queries")
    least, most = float(omega.min()), float(omega.max())
    if least < _WEIGHTS[0] or most > _WEIGHTS[1] or most / least > _RATIO:
        raise ProgrammingError(
            f"weights are between {_WEIGHTS[0]:g} and {_WEIGHTS[1]:g}, the largest at most {_RATIO:g} times the least; "
            f"these go from {least:.3g} to {most:.3g}: only their ratios matter to the strategy, so write weights / "
            f"max(weights), and leave out queries of no weight"
        )
    return omega


def weights_of_sizes(sizes: ArrayLike | None, objective: str, queries: int) -> Vector:
    """1/size², which makes the sum of squared errors one of squared relative errors; ones for other objectives."""
    if objective != "relative":
        if sizes is not None:
            raise ProgrammingError('sizes belong to objective="relative": write that, or leave sizes out')
        return np.ones(queries)
    if sizes is None:
        raise ProgrammingError(
            'objective="relative" needs sizes, one positive number per query: how large its answer is expected to be'
        )
    expected = _array(sizes, "sizes are numbers, one per query")
    if expected.shape != (queries,) or not np.isfinite(expected).all() or not (expected > 0.0).all():
        raise ProgrammingError(f"sizes are positive numbers, one for each of the {queries} queries")
    if expected.max() / expected.min() > _RATIO**0.5 or not _SIZES[0] <= expected.min() <= expected.max() <= _SIZES[1]:
        raise ProgrammingError(
            f"sizes are between {_SIZES[0]:g} and {_SIZES[1]:g}, the largest at most {_RATIO**0.5:g} times the least; "
            f"these go from {expected.min():.3g} to {expected.max():.3g}"
        )
    return np.asarray(1.0 / expected**2)


def check_range(workload: Matrix, weights: Vector) -> None:
    """A weighted squared error that a float can hold, however extreme entries and weights are together."""
    largest, most = max(float(workload.max()), -float(workload.min())), float(weights.max())
    if largest > 0.0 and abs(2.0 * math.log2(largest) + math.log2(most)) > 2.0 * _EXTREME:
        raise ProgrammingError(
            f"weights up to {most:.3g} on entries up to {largest:.3g} give errors that no float can hold: write "
            f"weights / max(weights), or rescale the workload"
        )


def check_choice(what: str, value: object, choices: Iterable[str]) -> None:
    """One of several words."""
    words = tuple(choices)
    if not isinstance(value, str) or value not in words:
        listed = ", ".join(f'"{word}"' for word in words)
        raise ProgrammingError(f"{what} is one of {listed}; not {_shown(value)}")


def checked_options(options: Options) -> Options:
    """Every keyword of ``optimize``, with a strategy's own as plain numbers of Python: those of numpy overflow."""
    check_choice("privacy", options.privacy, ("pure", "approximate"))
    check_choice("objective", options.objective, get_args(Objective))
    _check_stops(options)
    _check_switches(options)
    if options.strategy is not None:
        check_choice("strategy", options.strategy, strategies())
        parameters = _checked_parameters(options.strategy, MAKERS[options.strategy], options.parameters)
        return replace(options, parameters=parameters)
    if options.parameters:
        raise ProgrammingError(f"{', '.join(options.parameters)}: parameters belong to a strategy; name one")
    return options


def _check_stops(options: Options) -> None:
    if options.deadline is not None and not _real(options.deadline, least=0.0, finite=False):
        raise ProgrammingError(
            f"deadline is a number of seconds, such as deadline=2.0, or None for no limit; "
            f"not {_shown(options.deadline)}"
        )
    if not _real(options.target_gap, least=0.0):
        raise ProgrammingError(
            f"target_gap is a fraction of at least 0, such as target_gap=0.001 for 0.1 %; "
            f"not {_shown(options.target_gap)}"
        )


def _check_switches(options: Options) -> None:
    if options.reduce is not None and not isinstance(options.reduce, bool | np.bool_):
        raise ProgrammingError(f"reduce is True, False or None, not {_shown(options.reduce)}")
    if options.progress is not None and not callable(options.progress):
        raise ProgrammingError(
            f"progress is a function of one argument, such as progress=print, not {_shown(options.progress)}"
        )
    if options.cancel is not None and not callable(options.cancel):
        raise ProgrammingError(
            f"cancel is a function without arguments that says whether to stop, such as cancel=event.is_set, "
            f"not {_shown(options.cancel)}"
        )


def _checked_parameters(strategy: str, maker: Callable[..., Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A named strategy's own keywords: it must have them, and they are of the kind that its signature says."""
    kinds_by_name = {
        p.name: str(p.annotation) for p in inspect.signature(maker).parameters.values() if p.kind is p.KEYWORD_ONLY
    }
    wrong = [name for name in parameters if name not in kinds_by_name]
    if wrong:
        raise ProgrammingError(
            f"strategy {strategy!r} has no parameter {', '.join(wrong)}; it has {', '.join(kinds_by_name) or 'none'}"
        )
    checked: dict[str, Any] = dict(parameters)
    for name, value in parameters.items():
        kinds = kinds_by_name[name].split(" | ")
        if value is None and "None" in kinds:
            continue
        if (expected := _expected(name, kinds[0], value)) is not None:
            raise ProgrammingError(f"{name} of strategy {strategy!r} is {expected}, not {_shown(value)}")
        checked[name] = {"bool": bool, "int": int, "float": float}.get(kinds[0], str)(value)
    return checked


def _expected(name: str, kind: str, value: object) -> str | None:
    """What the parameter should have been; None when it is that."""
    if kind == "bool":
        return None if isinstance(value, bool | np.bool_) else "True or False"
    if kind == "int":
        least = _LEAST_WHOLE.get(name, 1)
        whole = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least
        return None if whole else f"a whole number of at least {least}"
    if kind.startswith("Literal["):
        words = literal_eval(kind.removeprefix("Literal"))
        return None if isinstance(value, str) and value in words else " or ".join(f'"{word}"' for word in words)
    zero = name in _MAY_BE_ZERO
    return None if _real(value, least=0.0, open_ended=not zero) else f"a number {'of at least' if zero else 'above'} 0"


def _real(value: object, *, least: float, open_ended: bool = False, finite: bool = True) -> bool:
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return False
    try:
        number = float(value)
    except OverflowError:
        return False
    return (number > least if open_ended else number >= least) and (math.isfinite(number) or not finite)


def _array(values: ArrayLike, otherwise: str) -> Matrix:
    if np.ma.is_masked(values) or (isinstance(values, list | tuple) and any(map(_any_masked, values))):
        raise ProgrammingError(f"{otherwise}; masked entries have no value: fill them, such as with .filled(0)")
    try:
        plain = np.asarray(values)
        # Text that looks like a number is not one, and complex numbers lose a part.
        if plain.dtype.kind not in "biufO" or (plain.dtype.kind == "O" and not all(map(_number, plain.flat))):
            raise ProgrammingError(otherwise)
        with np.errstate(over="ignore"):  # a long double beyond all floats becomes infinite, which is refused
            return np.array(plain, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ProgrammingError(otherwise) from None


def _any_masked(row: object) -> bool:
    return bool(np.ma.is_masked(row)) or (isinstance(row, list | tuple) and any(x is np.ma.masked for x in row))


def _number(value: object) -> bool:
    return isinstance(value, Real | Decimal | np.bool_)


def _shown(value: object) -> str:
    """The value, or its type where it would fill the screen."""
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"
