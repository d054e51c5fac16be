"""The one place where private counts meet noise: a privacy reviewer reads this file first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tacit.engine.mechanism.exact import Integers, integer_vector
from tacit.engine.mechanism.lattice import exact_answers
from tacit.engine.mechanism.measurement import Measurement
from tacit.engine.mechanism.noise import add_gaussian, add_laplace
from tacit.engine.mechanism.plan import JointPlan, measurement
from tacit.errors import InternalError


def measure(plan: JointPlan, xs: Sequence[Integers], epsilon: Any, delta: Any = 0) -> tuple[Measurement, ...]:
    """Answer the plan's questions with noise: the only place where the secret meets the noise.

    Guarantee. ``xs`` are exact integer counts, one vector for each block of questions. Everything else (lattices,
    resolutions, scales) is computed from the plan and (ε, δ) before a count is looked at. ``exact_answers`` is
    integer arithmetic with the sensitivity that ``calibrate`` was given, ``noise`` adds exact discrete noise to
    integers, and what is returned is the noisy integers and data-free facts. The whole tuple together is (ε,
    δ)-differentially private for one privacy unit added or removed, by ``JointPlan.calibrate``; anything computed
    from it is post-processing.
    """
    noises = plan.calibrate(epsilon, delta)
    if len(xs) != len(plan.blocks):
        raise InternalError("one vector of counts is needed for each block")
    results = []
    for block, noise, x in zip(plan.blocks, noises, xs, strict=True):
        lattice = block.lattice
        counts = integer_vector(x, lattice.cells)
        exact = exact_answers(lattice, counts, noise.resolution)
        if noise.kind == "laplace":
            noisy = add_laplace(exact, noise.scale, sensitivity=noise.resolution.sensitivity, epsilon=noise.epsilon)
        else:
            noisy = add_gaussian(exact, noise.scale)
        results.append(measurement(lattice, noisy, noise))
    return tuple(results)
