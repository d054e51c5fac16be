"""``error=`` as a caller writes it: for the whole batch or for each query, absolute or relative to a size.

``error=50`` asks for every figure within ±50; ``error=[50, 10, None]`` says so of each query, and promises nothing of
the third; ``error={0: 50, 2: 10}`` names some by number, and promises nothing of the others. ``error="5%"`` is
relative to what ``sizes=`` says: with ``sizes=2000`` it is ±100; ``error=["5%", 10], sizes=[2000, 300]`` is ±100, ±10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.engine import to_error

from .errors import PrivacyParameterError

Sizes = float | tuple[float, ...] | None
Targets = float | tuple[float | None, ...] | dict[int, float]
"""Half-widths in units of the answers: for every figure, for each query in turn, or for some by number."""

_EXAMPLE = 'hint: error=50, error=[50, 10], error={0: 50}, or error="5%" with sizes=[2000, 300]'


def is_relative(error: Any) -> bool:
    """Whether some of it is in percent, and needs a size."""
    if isinstance(error, Mapping):
        error = tuple(error.values())
    listed = error if isinstance(error, (list, tuple)) else [error]
    return any(isinstance(one, str) and one.rstrip().endswith("%") for one in listed)


def to_targets(error: Any, sizes: Sizes) -> Targets:
    """The half-widths that are asked for, with percentages of the sizes worked out."""
    if isinstance(error, Mapping):
        if not error or not all(isinstance(i, int) and not isinstance(i, bool) and i >= 0 for i in error):
            raise PrivacyParameterError(f"error= names queries by their number, from 0\n{_EXAMPLE}")
        return {i: _target(one, _size_of(sizes, i)) for i, one in error.items()}
    if isinstance(error, (list, tuple)):
        if all(one is None for one in error):
            raise PrivacyParameterError(f"error= promises nothing of any query\n{_EXAMPLE}")
        return tuple(None if one is None else _target(one, _size_of(sizes, i)) for i, one in enumerate(error))
    if isinstance(error, str) and isinstance(sizes, tuple):
        return tuple(_target(error, size) for size in sizes)
    return _target(error, None if isinstance(sizes, tuple) else sizes)


def _size_of(sizes: Sizes, query: int) -> float | None:
    if isinstance(sizes, tuple):
        return sizes[query] if query < len(sizes) else None
    return sizes


def _target(error: Any, size: float | None) -> float:
    if not isinstance(error, str):
        return to_error(error)
    share = error.strip().removesuffix("%")
    if share == error.strip():
        raise PrivacyParameterError(f"an error in text is a percentage, such as '5%', not {error[:40]!r}\n{_EXAMPLE}")
    if size is None:
        raise PrivacyParameterError(
            f"error={error!r} is relative to a size, and sizes= does not say how large the answer is expected to be\n"
            f"{_EXAMPLE}"
        )
    try:
        return to_error(float(share) / 100 * size)
    except ValueError:
        raise PrivacyParameterError(f"error={error[:40]!r} is no percentage\n{_EXAMPLE}") from None


def of_queries(targets: Targets, count: int) -> Sequence[float | None]:
    """A half-width for each of so many queries; None where nothing is promised."""
    if isinstance(targets, dict):
        unknown = sorted(i for i in targets if i >= count)
        if unknown:
            raise PrivacyParameterError(
                f"error= names query {unknown[0]}, and the batch has {count}, numbered from 0\n{_EXAMPLE}"
            )
        return [targets.get(i) for i in range(count)]
    if isinstance(targets, tuple):
        if len(targets) != count:
            raise PrivacyParameterError(
                f"error= has {len(targets)} entries for {count} {'query' if count == 1 else 'queries'}\n{_EXAMPLE}"
            )
        return targets
    return [targets] * count


def smallest(targets: Targets) -> float:
    """The smallest of them."""
    if isinstance(targets, float):
        return targets
    listed = targets.values() if isinstance(targets, dict) else targets
    return min(one for one in listed if one is not None)


def in_words(targets: Targets) -> str:
    """``±50``, or that there are several."""
    return f"±{targets:g}" if isinstance(targets, float) else "the error of each query"
