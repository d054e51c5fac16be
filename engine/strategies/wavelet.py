"""The wavelet mechanism (Privelet: Xiao et al., ICDE 2010; WM in both papers)."""

from __future__ import annotations

import numpy as np
from tacit.engine.strategy import Matrix, Privacy
from tacit.engine.watch import Watch


def wavelet(workload: Matrix, privacy: Privacy, watch: Watch) -> Matrix:
    """The Haar wavelet over the cells in their order: the total, and of every interval left half minus right.

    Guarantee: a cell is in the total and in one difference per level, each with weight ±1, so the L1
    sensitivity is 1 + ⌈log₂ n⌉ (Privelet, Section IV, without weights) and the L2 sensitivity its root.
    Limits: made for ranges over ordered cells. For n that is no power of two the halves are as even as they
    can be; L is then still square and invertible.
    """
    n = workload.shape[1]
    L = np.zeros((n, n))
    L[0] = 1.0
    row, level = 1, [(0, n)]
    while level:
        below = []
        for low, high in level:
            if high - low > 1:
                middle = (low + high + 1) // 2
                L[row, low:middle], L[row, middle:high] = 1.0, -1.0
                row += 1
                below += [(low, middle), (middle, high)]
        level = below
    return L
