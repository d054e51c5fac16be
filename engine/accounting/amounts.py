"""Privacy amounts as exact decimals, and the few other numbers that callers state.

A float ledger at 1.0 does not move under 10⁵ spends of 10⁻¹⁷, and ``not (nan > left)`` admits everything; so
every ε and δ is checked and made a ``Decimal`` once, at the door, and stays one.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Clamped, Context, Decimal, Inexact, InvalidOperation, Overflow, Rounded, Subnormal
from typing import Any, NamedTuple

import numpy as np
from tacit.errors import PrivacyParameterError

_MAX_DIGITS = 60
_LARGEST = Decimal("1e9")
_SMALLEST_EXPONENT = -400
# Every admitted amount is a multiple of 10⁻⁴⁰⁰ below 10⁹, so a thousand digits hold any sum of them; the
# traps turn a breach of that argument into an exception instead of a rounded sum.
_EXACT = Context(prec=1000, traps=[Inexact, Rounded, InvalidOperation, Overflow, Clamped, Subnormal])


class Amount(NamedTuple):
    """An (ε, δ) pair."""

    epsilon: Decimal
    delta: Decimal


NOTHING = Amount(Decimal(0), Decimal(0))


def to_epsilon(value: Any) -> Decimal:
    """ε as the exact decimal that the caller wrote; a float stands for its shortest decimal form.

    >>> to_epsilon(0.1), to_epsilon(2)
    (Decimal('0.1'), Decimal('2'))
    """
    amount = _decimal(value, "epsilon")
    if amount <= 0:
        raise PrivacyParameterError(f"epsilon must be greater than 0, not {amount}")
    if amount > _LARGEST:
        raise PrivacyParameterError(f"epsilon must be at most {_LARGEST:g}")
    return amount


def to_delta(value: Any) -> Decimal:
    """δ in [0, 1) as an exact decimal; 0 asks for pure differential privacy."""
    amount = _decimal(value, "delta")
    if not 0 <= amount < 1:
        raise PrivacyParameterError(f"delta must be at least 0 and less than 1, not {amount}")
    return amount


def to_amount(epsilon: Any, delta: Any) -> Amount:
    """Both at once."""
    return Amount(to_epsilon(epsilon), to_delta(delta))


def to_error(value: Any) -> float:
    """A wanted half-width of an interval: positive and finite."""
    amount = float(_decimal(value, "error"))
    if not amount > 0:
        raise PrivacyParameterError(f"error must be greater than 0, not {amount}")
    return amount


def to_confidence(value: Any) -> float:
    """A confidence strictly between 0 and 1."""
    amount = float(_decimal(value, "confidence"))
    if not 0 < amount < 1:
        raise PrivacyParameterError(f"confidence must lie between 0 and 1, not {amount}")
    return amount


def smaller(a: Amount, b: Amount) -> Amount:
    """The smaller ε and the smaller δ of two."""
    return Amount(min(a.epsilon, b.epsilon), min(a.delta, b.delta))


def exact_sum(amounts: Iterable[Decimal]) -> Decimal:
    """The sum without rounding: the default context would round it to 28 digits."""
    total = Decimal(0)
    for amount in amounts:
        total = _EXACT.add(total, amount)
    return total


def exact_difference(a: Decimal, b: Decimal) -> Decimal:
    """``a - b`` without rounding."""
    return _EXACT.subtract(a, b)


def _decimal(value: Any, name: str) -> Decimal:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | Decimal | np.integer | np.floating):
        raise PrivacyParameterError(f"{name} must be a number, not {type(value).__name__}")
    if isinstance(value, Decimal):
        amount = value
    elif isinstance(value, int | np.integer):
        whole = int(value)
        if abs(whole) > 10**_MAX_DIGITS:  # before str(): Python refuses to print integers of 4,300 digits
            raise PrivacyParameterError(f"{name} is too large")
        amount = Decimal(whole)
    else:
        amount = Decimal(repr(float(value)))
    if not amount.is_finite():
        raise PrivacyParameterError(f"{name} must be a finite number, not {amount}")
    _, digits, exponent = amount.as_tuple()
    if len(digits) > _MAX_DIGITS or int(exponent) < _SMALLEST_EXPONENT or amount.adjusted() > _MAX_DIGITS:
        raise PrivacyParameterError(f"{name} has too many digits")
    return amount
