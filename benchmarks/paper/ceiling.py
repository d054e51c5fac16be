"""At the papers' own largest sizes: how far ahead of noise on data can any factorisation be?

‖W‖²_F, the error of noise on data, over the SVD bound. It takes one decomposition and no search, so the quick form
can check at full size what the papers say of orders of magnitude.
"""

from __future__ import annotations

import numpy as np
from tacit.engine.search.bounds import svd_bound
from threadpoolctl import threadpool_limits

from benchmarks.paper.workloads import Setting

SETTINGS = (
    *(("LRM 4–6", Setting(workload, 256, 8192)) for workload in ("WDiscrete", "WRange", "WRelated")),
    ("LRM 6", Setting("WRelated", 256, 8192, 0.1)),
    ("LRM 9", Setting("WRelated", 256, 1024, 0.1)),
    *(("COA 2–5", Setting(workload, 1024, 8192)) for workload in ("WDiscrete", "WMarginal", "WRange", "WRelated")),
    ("COA 10", Setting("WRelated", 1024, 1024, 0.1)),
    ("COA 10", Setting("WRelated", 1024, 1024, 1.0)),
)


def ceilings() -> str:
    """A Markdown table: for pure ε the true ceiling is lower still, because the bound is that of L2."""
    lines = ["| figure | workload | m | n | s | no factorisation leads by more than |", "|---|---|---|---|---|---|"]
    for figure, setting in SETTINGS:
        W = setting.matrix()
        with threadpool_limits(limits=1, user_api="blas"):
            ratio = float(np.sum(W**2)) / svd_bound(W)
        base = str(setting.base) if setting.workload == "WRelated" else ""
        lines.append(f"| {figure} | {setting.workload} | {setting.m} | {setting.n} | {base} | {ratio:.3g}× |")
    return "\n".join(lines) + "\n"
