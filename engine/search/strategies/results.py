"""Noise on results: ask the queries themselves, the Laplace and Gaussian mechanisms (LRM, Eq. 5)."""

from __future__ import annotations

from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy


def results(workload: Matrix, privacy: Privacy, watch: Watch) -> Matrix:
    """L = W.

    Guarantee: the sensitivity is W's own largest column norm, in L1 (Laplace) or L2 (Gaussian). The published
    mechanism has B = I; the least-squares B = W·W⁺ projects the noisy answers on what W can produce, which
    is never worse and makes dependent queries add up.
    """
    return workload.copy()
