"""The papers' parameters (LRM, Table 1; COA, Section 5), and the same shapes at a fraction of the size."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """What each figure varies and what it holds still."""

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
    own_limit: float | None
    """Seconds for tacit's own search; None lets it count its work instead, and the result repeats exactly."""
    named_limit: float | None


GAMMAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
RATIOS = (0.8, 1.0, 1.2, 1.4, 1.7, 2.1, 2.5, 3.0, 3.6)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

FULL = Sizes(
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
    own_limit=None,
    named_limit=1800.0,
)

# LRM's sizes divided by sixteen, COA's by eight without the largest n: its n×n strategies take n³ operations.
QUICK = Sizes(
    tuning=(16, 64),
    gammas=GAMMAS,
    ratios=RATIOS,
    lrm_m=16,
    lrm_n=64,
    lrm_ns=(8, 16, 32, 64, 128, 256, 512),
    lrm_ms=(4, 8, 16, 32, 64),
    shares=(0.1, 0.2, 0.3, 0.5, 0.7, 1.0),
    convergence=(128, 128),
    steps=(0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30),
    coa_m=128,
    coa_n=64,
    coa_ns=(16, 32, 64, 128, 256),
    coa_ms=(8, 16, 32, 64, 128, 256, 512, 1024),
    square=128,
    time_n=128,
    time_m=256,
    own_limit=None,
    named_limit=None,
)

# For the tests: one of everything, and as many settings as possible shared between figures.
TINY = Sizes(
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
    own_limit=None,
    named_limit=None,
)

SIZES = {"tiny": TINY, "quick": QUICK, "full": FULL}
