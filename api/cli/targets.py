"""``--error`` and ``--size``: how close figures must be, for all queries or for each, in figures or in percent."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .exits import UsageProblem
from .shared_options import number

_NOTHING = "-"
"""In a list of errors: nothing is asked of this query."""


def error_target(text: str | float | list[float | str | None]) -> float | str | list[float | str | None]:
    """``50``, ``5%``, or one for each query: ``50,5%,-``.

    >>> [error_target(text) for text in ("50", "5%", "50,5%,-")]
    [50.0, '5%', [50.0, '5%', None]]
    """
    if not isinstance(text, str):
        return text
    listed = [_one(part.strip()) for part in text.split(",")]
    return listed if len(listed) > 1 or listed[0] is None else listed[0]


def _one(text: str) -> float | str | None:
    if text == _NOTHING:
        return None
    if text.endswith("%"):
        return f"{number(text.removesuffix('%')):f}%"
    return float(number(text))


def expected_size(text: str | float | list[float]) -> float | str | list[float]:
    """``2000``, one for each query: ``2000,300``, or the word ``released``.

    >>> [expected_size(text) for text in ("2000", "2000,300", "released")]
    [2000.0, [2000.0, 300.0], 'released']
    """
    if not isinstance(text, str) or text == "released":
        return text
    listed = [float(number(part.strip())) for part in text.split(",")]
    return listed if len(listed) > 1 else listed[0]


def sizes_for(error: Any, size: Any, *, shown: bool) -> Any:
    """What ``sizes=`` is for an error in percent; where sizes are ``shown`` beside a plan, they go with any error."""
    listed = error if isinstance(error, list) else [error]
    if any(isinstance(one, str) for one in listed):
        if size is None or size == "released":
            raise UsageProblem(
                "an --error in percent is of a size, and nobody has said how large the answers are expected to be\n"
                "hint: --error 5% --size 2000, or a size for each query: --size 2000,300"
            )
        return size
    if size is not None and not shown:
        raise UsageProblem("--size goes with an --error in percent\nhint: --error 5% --size 2000")
    return None


Error = Annotated[
    Any,
    typer.Option(
        parser=error_target,
        metavar="±",
        help="In place of --epsilon: the least ε that keeps every figure this close, or this many %; a,b,- for "
        "each query.",
    ),
]
Size = Annotated[
    Any,
    typer.Option(
        parser=expected_size, metavar="N", help="How large answers are expected to be, for an --error in %; N,M,…"
    ),
]
ShownSize = Annotated[
    Any,
    typer.Option(
        parser=expected_size, metavar="N", help="How large answers are, for relative errors; N,M,… or: released."
    ),
]
