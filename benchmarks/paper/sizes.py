"""The papers' parameters (LRM, Table 1; COA, Section 5), and the same shapes at a fraction of the size.

γ is a bound on ‖W − B·L‖_F, so the papers' γ are for W of their sizes. A form that divides m, n and s by k takes
γ·‖W‖_F/‖W at the paper's size‖_F: γ/k for entries that do not depend on the size, γ/k^1.5 for WRelated, whose entries
have variance s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.paper.workloads import Setting


@dataclass(frozen=True)
class Sizes:
    """What each figure varies and what it holds still."""

    divisor: int
    """k: the papers' m, n and s are divided by it."""
    tuning: tuple[int, int]
    """(m, n) of LRM's Figures 2 and 3."""
    gammas: tuple[float, ...]
    ratios: tuple[float, ...]
    lrm_m: int
    lrm_n: int
    lrm_ns: tuple[int, ...]
    lrm_ms: tuple[int, ...]
    shares: tuple[float, ...]
    convergence: tuple[int, int]
    """(m, n) of COA's Figure 1."""
    steps: tuple[int, ...]
    coa_m: int
    coa_n: int
    coa_ns: tuple[int, ...]
    coa_ms: tuple[int, ...]
    square: int
    """m = n of COA's Figure 10."""
    time_n: int
    """n of COA's Figure 11."""
    time_m: int
    """m of COA's Figure 13; Figure 12 has the m of Figures 2 to 5."""
    time_ns: tuple[int, ...]
    """n of COA's Figures 12 and 13."""
    own_limit: float | None
    """Seconds for tacit's own search; None lets it count its work instead, and the result repeats exactly."""
    named_limit: float | None
    dawa_ns: tuple[int, ...]
    dawa_ms: tuple[int, ...]
    """n and m of COA's Figure 14; DAWA's releases take up to 4,096 cells."""
    ranges: tuple[int, ...]
    """Cells of the talk's all ranges; the last one for single widths and for inference too."""
    subset_n: int
    subsets: tuple[int, ...]
    """Cells and numbers of queries of the talk's random subsets of ranges."""
    cubes: tuple[int, ...]
    weighted_n: int
    most_cells: Mapping[str, int] = field(default_factory=dict)
    """Cells up to which a curve is drawn in this form; all of them when it is not here."""

    def gamma(self, setting: Setting, gamma: float = 0.01) -> float:
        """The paper's γ (by default the bold one of Table 1) at this form's size."""
        power = 1.5 if setting.workload == "WRelated" else 1.0
        return gamma / math.pow(self.divisor, power)


GAMMAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
RATIOS = (0.8, 1.0, 1.2, 1.4, 1.7, 2.1, 2.5, 3.0, 3.6)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

FULL = Sizes(
    divisor=1,
    tuning=(256, 1024),
    gammas=GAMMAS,
    ratios=RATIOS,
    lrm_m=256,
    lrm_n=1024,
    lrm_ns=(128, 256, 512, 1024, 2048, 4096, 8192),
    lrm_ms=(64, 128, 256, 512, 1024),
    shares=SHARES,
    convergence=(1024, 1024),
    steps=(0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50),
    coa_m=1024,
    coa_n=512,
    coa_ns=(64, 128, 256, 512, 1024, 2048, 4096, 8192),
    coa_ms=(32, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
    square=1024,
    time_n=1024,
    time_m=2048,
    time_ns=(32, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
    own_limit=None,
    named_limit=1800.0,
    dawa_ns=(64, 128, 256, 512, 1024, 2048, 4096),
    dawa_ms=(32, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
    ranges=(16, 32, 64, 128, 256, 512, 1024),
    subset_n=1024,
    subsets=(16, 64, 256, 1024, 4096, 16384),
    cubes=(64, 256, 1024),
    weighted_n=64,
)

# A quarter of the papers' sizes, where their orderings are decided as at full size; every second or third value of a
# sweep, and COA's without the largest n: its n×n strategies take n³ operations.
QUICK = Sizes(
    divisor=4,
    tuning=(64, 256),
    gammas=(1e-4, 1e-2, 1.0, 10.0),
    ratios=(0.8, 1.0, 1.2, 1.7, 2.5),
    lrm_m=64,
    lrm_n=256,
    lrm_ns=(32, 128, 256, 512, 2048),
    lrm_ms=(16, 64, 256),
    shares=(0.1, 0.2, 0.5, 0.8, 1.0),
    convergence=(256, 256),
    steps=(0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50),
    coa_m=256,
    coa_n=128,
    coa_ns=(16, 64, 256, 512),
    coa_ms=(8, 32, 128, 512, 2048),
    square=256,
    time_n=256,
    time_m=512,
    time_ns=(16, 64, 256),
    own_limit=None,
    named_limit=None,
    dawa_ns=(16, 64, 256),
    dawa_ms=(8, 32, 128, 512, 2048),
    ranges=(16, 64, 256, 1024),
    subset_n=256,
    subsets=(16, 64, 256, 1024, 4096),
    cubes=(64, 256),
    weighted_n=32,
    most_cells={"ESM": 256, "AMM (ESM)": 256, "COA (paper)": 256},
)

# For the tests: one of everything, and as many settings as possible shared between figures.
TINY = Sizes(
    divisor=64,
    tuning=(4, 8),
    gammas=(1e-2, 10.0),
    ratios=(1.2, 2.0),
    lrm_m=4,
    lrm_n=16,
    lrm_ns=(4, 16),
    lrm_ms=(4,),
    shares=(0.3, 1.0),
    convergence=(8, 8),
    steps=(0, 2, 10),
    coa_m=8,
    coa_n=8,
    coa_ns=(8, 16),
    coa_ms=(8,),
    square=8,
    time_n=8,
    time_m=8,
    time_ns=(8, 16),
    own_limit=None,
    named_limit=None,
    dawa_ns=(8, 16),
    dawa_ms=(8,),
    ranges=(8, 16),
    subset_n=16,
    subsets=(8,),
    cubes=(8,),
    weighted_n=8,
)

SIZES = {"tiny": TINY, "quick": QUICK, "full": FULL}
