"""What the papers' lemmas say of a workload alone, in the unit of ``Strategy.error``: sensitivity²·‖B‖²_F."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln
from tacit.engine.linalg import row_space, spectrum
from tacit.engine.strategy import Matrix


def lemma3_bound(workload: Matrix) -> float:
    """r·Σλ², from above: the best pure strategy is no worse (LRM, Lemma 3: B = √r·U·Σ, L = V/√r).

    The paper states it with the noise's constant left out; so does this.
    """
    sigma = spectrum(workload)
    return float(len(sigma) * np.sum(sigma**2))


def coa_upper_bound(workload: Matrix) -> float:
    """ρ²·‖W‖²_F, from above, for approximate privacy: L = V has column norms at most ρ (COA, Lemma 4).

    The paper says it of any feasible X and with θ; it is true of the optimum, and without θ.
    """
    _, V = row_space(workload)
    rho = float(np.max(np.einsum("ij,ij->j", V, V), initial=0.0))
    return rho * float(np.sum(workload**2))


def lemma4_figure(workload: Matrix) -> float:
    """((2^r/r!)·Πλ)^(2/r)·r³, the shape of LRM's Lemma 4: for plots only, never a certificate.

    The lemma is an Ω(·) with an unnamed constant, and its proof takes Vol(V·B₁ⁿ) for Vol(B₁ʳ), which is wrong
    for n > r: for one row of n ones the figure grows with n while the true error stays 1.
    """
    sigma = spectrum(workload)
    r = len(sigma)
    if r == 0:
        return 0.0
    log_volume = r * math.log(2.0) - float(gammaln(r + 1)) + float(np.sum(np.log(sigma)))
    return math.exp(2.0 / r * log_volume) * r**3
