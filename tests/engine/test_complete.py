"""Rows for what a strategy lacks."""

from __future__ import annotations

import numpy as np
import pytest
from tacit.engine import Privacy
from tacit.engine.linalg import reconstruct
from tacit.engine.search.complete import factorise
from tacit.engine.strategy import sensitivity

KINDS: tuple[Privacy, ...] = ("pure", "approximate")


@pytest.mark.parametrize("privacy", KINDS)
@pytest.mark.parametrize("least", [1e-3, 1e-6, 1e-7])
def test_what_is_lost_is_asked_for_at_little_cost(least: float, privacy: Privacy) -> None:
    U, V = (np.linalg.qr(np.random.default_rng(seed).normal(size=(9, 9)))[0] for seed in (1, 2))
    sizes = np.array([4.0, 3.0, 2.0, 2.0, 1.0, 1.0, 1.0, 0.5, least])
    W, L = (U * sizes) @ V, V[:-1]
    assert reconstruct(W, L) is None
    factors = factorise(W, L, privacy)
    assert factors is not None
    completed, B = factors.L, factors.B
    assert np.array_equal(completed[:8], L)
    assert np.linalg.norm(W - B @ completed) <= 1e-9 * np.linalg.norm(W)
    before = sensitivity(L, privacy) ** 2 * np.sum((W @ L.T) ** 2)
    after = sensitivity(completed, privacy) ** 2 * np.sum(B**2)
    assert after <= before * (1.0 + 3.0 * least ** (2.0 / 3.0))


def test_a_strategy_that_lacks_nothing_is_left_alone() -> None:
    W = np.tril(np.ones((5, 5)))
    factors = factorise(W, np.eye(5), "pure")
    assert factors is not None
    assert np.array_equal(factors.L, np.eye(5)) and np.allclose(factors.B, W)
