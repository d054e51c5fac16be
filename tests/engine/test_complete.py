"""Rows for what a strategy lacks."""

from __future__ import annotations

import numpy as np
import pytest
from tacit.engine import Privacy
from tacit.engine.search.complete import reconstructed
from tacit.engine.strategy import best_reconstruction, sensitivity
from tacit.errors import InternalError

KINDS: tuple[Privacy, ...] = ("pure", "approximate")


@pytest.mark.parametrize("privacy", KINDS)
@pytest.mark.parametrize("least", [1e-3, 1e-6, 1e-7])
def test_what_is_lost_is_asked_for_at_little_cost(least: float, privacy: Privacy) -> None:
    U, V = (np.linalg.qr(np.random.default_rng(seed).normal(size=(9, 9)))[0] for seed in (1, 2))
    sizes = np.array([4.0, 3.0, 2.0, 2.0, 1.0, 1.0, 1.0, 0.5, least])
    W, L = (U * sizes) @ V, V[:-1]
    with pytest.raises(InternalError):
        best_reconstruction(W, L)
    completed, B = reconstructed(W, L, privacy)
    assert np.array_equal(completed[:8], L)
    assert np.linalg.norm(W - B @ completed) <= 1e-9 * np.linalg.norm(W)
    before = sensitivity(L, privacy) ** 2 * np.sum((W @ L.T) ** 2)
    after = sensitivity(completed, privacy) ** 2 * np.sum(B**2)
    assert after <= before * (1.0 + 3.0 * least ** (2.0 / 3.0))


def test_a_strategy_that_lacks_nothing_is_left_alone() -> None:
    W = np.tril(np.ones((5, 5)))
    L, B = reconstructed(W, np.eye(5), "pure")
    assert np.array_equal(L, np.eye(5)) and np.allclose(B, W)
