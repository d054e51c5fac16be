"""Amounts are exact, and everything that is no amount is refused."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from tacit.engine.accounting.amounts import exact_difference, exact_sum, to_confidence, to_delta, to_epsilon, to_error
from tacit.errors import PrivacyParameterError

NO_NUMBERS: list[Any] = [True, np.bool_(True), "1", b"1", None, [1.0], 1j, np.array([1.0])]
NOT_FINITE: list[Any] = [math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity")]


@pytest.mark.parametrize("value", [*NO_NUMBERS, *NOT_FINITE, 0, 0.0, -1, -0.0, Decimal(-1), 10**500, 1e300])
def test_epsilon_refuses(value: Any) -> None:
    with pytest.raises(PrivacyParameterError, match="epsilon"):
        to_epsilon(value)


@pytest.mark.parametrize("value", [*NO_NUMBERS, *NOT_FINITE, -1e-9, 1, 1.0, 2])
def test_delta_refuses(value: Any) -> None:
    with pytest.raises(PrivacyParameterError, match="delta"):
        to_delta(value)


@pytest.mark.parametrize("value", [*NO_NUMBERS, *NOT_FINITE, 0, 1, 95])
def test_confidence_refuses(value: Any) -> None:
    with pytest.raises(PrivacyParameterError, match="confidence"):
        to_confidence(value)


@pytest.mark.parametrize("value", [*NO_NUMBERS, *NOT_FINITE, 0, -1])
def test_error_refuses(value: Any) -> None:
    with pytest.raises(PrivacyParameterError, match="error"):
        to_error(value)


def test_amounts_are_the_decimals_that_were_written() -> None:
    assert to_epsilon(0.1) == Decimal("0.1")
    assert to_epsilon(np.float64(0.1)) == Decimal("0.1")
    assert to_epsilon(np.int32(3)) == Decimal(3)
    assert to_epsilon(Decimal("0.30000000000000000000000000000000001")) == Decimal(
        "0.30000000000000000000000000000000001"
    )
    assert to_delta(0) == 0
    assert to_delta(1e-300) == Decimal("1e-300")


def test_sums_do_not_round() -> None:
    tiny = to_epsilon(5e-324)
    assert exact_sum([Decimal(1), tiny]) > 1
    assert exact_difference(exact_sum([Decimal(10**8), tiny]), Decimal(10**8)) == tiny
    assert exact_sum([to_epsilon(0.1)] * 10) == 1


@pytest.mark.parametrize("text", ["1e-401", "0." + "1" * 61])
def test_absurdly_long_decimals_are_refused(text: str) -> None:
    with pytest.raises(PrivacyParameterError):
        to_epsilon(Decimal(text))
