"""The wavelet mechanism (Privelet: Xiao et al., ICDE 2010; WM in both papers)."""

from __future__ import annotations

import numpy as np
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy


def wavelet(workload: Matrix, privacy: Privacy, watch: Watch) -> Matrix:
    """The Haar wavelet over the cells in their order: the total, and of every interval left half minus right.

    Privelet has half the difference of the two means as its coefficient, weighted by the size of the interval:
    the product is exactly the left sum minus the right one. These rows under one noise are Privelet's coefficients
    under its noise of scale λ/weight.

    Guarantee: a cell is in the total and in one difference per level, each with ±1, so the L1 sensitivity is
    1 + ⌈log₂ n⌉ (Privelet's generalised sensitivity, Section IV) and the L2 sensitivity its root.
    Limits: made for ranges over ordered cells. For n that is no power of two Privelet pads with empty cells; here
    the halves are as even as they can be, and L is still square and invertible.
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
