"""Whole numbers computed from whole numbers of one row: none is NULL, and nothing here fails on any row."""

from __future__ import annotations

from collections.abc import Collection, Iterable


def least(numbers: Iterable[str]) -> str:
    """The least of some numbers, whatever order they are given in."""
    return _of("least", numbers)


def greatest(numbers: Iterable[str]) -> str:
    """The greatest of some numbers, whatever order they are given in."""
    return _of("greatest", numbers)


def _of(function: str, numbers: Iterable[str]) -> str:
    different = sorted(set(numbers))
    return different[0] if len(different) == 1 else f"{function}({', '.join(different)})"


def opposite(number: str, largest: int) -> str:
    """``largest`` for 0, and 0 for ``largest``."""
    return f"({largest} - {number})"


def chosen(number: str, among: Collection[int], then: int) -> str:
    """``then`` where a number is one of some, and 0 elsewhere."""
    return f"CASE WHEN {number} IN ({', '.join(map(str, sorted(among)))}) THEN {then} ELSE 0 END"


def first_of(conditions: Iterable[tuple[str, int]]) -> str:
    """The place of the first number that is what it should be; their count where none is."""
    listed = [f"WHEN {number} = {wanted} THEN {place}" for place, (number, wanted) in enumerate(conditions)]
    return f"CASE {' '.join(listed)} ELSE {len(listed)} END"


def place_of(digits: Iterable[tuple[str, int]]) -> str:
    """The place of a combination of numbers, each below its bound, in row-major order; the last where one is not."""
    place, inside, size = "0", [], 1
    for number, bound in digits:
        place = number if size == 1 else f"({place} * {bound} + {number})"
        inside.append(f"{number} < {bound}")
        size *= bound
    return f"CASE WHEN {' AND '.join(inside)} THEN {place} ELSE {size} END"
