"""At the papers' own sizes: what can be said of orders of magnitude, and of LM, WM and HM, without a search.

‖W‖²_F, the error of noise on data, over the SVD bound is how far ahead of it any factorisation can be. Trees and
wavelets are fixed, and their error is one product. So the quick form can check these at full size.
"""

from __future__ import annotations

import numpy as np
from tacit.engine import optimize
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


TREES = (("LRM 5", 256), ("LRM 7", 1024))
"""Figure → m, for WRange at the n of LRM's Table 1 around which its errors cross; only n matters much."""


ERROR_AXES = {"WDiscrete": ("10⁴", "10¹²"), "WRange": ("10⁴", "10¹²"), "WRelated": ("10⁴", "10¹⁰")}
"""First and last label of the error axes of LRM's Figure 2, for ε from 1 to 0.01: every second power of ten has one."""


def at_full_size() -> str:
    return f"{_ceilings()}\n{_trees()}\n{_axes()}"


def _axes() -> str:
    """What the axes of LRM's Figure 2 must hold: nothing is below the bound, and LRM is said to be below LM."""
    lines = [
        "| LRM 2 | labels of its axis | per query: bound at ε = 1 to LM at ε = 0.01 | sum over the 256 queries |",
        "|---|---|---|---|",
    ]
    for workload, labels in ERROR_AXES.items():
        W = Setting(workload, 256, 1024).matrix()
        with threadpool_limits(limits=1, user_api="blas"):
            low, high = 2.0 * svd_bound(W), 2.0 * float(np.sum(W**2)) / 0.01**2
        cells = [f"{low / k:.2g} to {high / k:.2g}" for k in (len(W), 1)]
        lines.append(f"| {workload} | {' to '.join(labels)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _trees() -> str:
    """Noise on data, wavelet and tree on ranges, per query and without 2/ε²: where they cross."""
    lines = ["| figure | m | n | LM | WM | HM |", "|---|---|---|---|---|---|"]
    for figure, m in TREES:
        for n in (256, 512, 1024) if m < 1024 else (1024,):
            W = Setting("WRange", m, n).matrix()
            errors = [optimize(W, strategy=name).error / m for name in ("identity", "wavelet", "hierarchical")]
            lines.append(f"| {figure} | {m} | {n} | {' | '.join(f'{e:.4g}' for e in errors)} |")
    return "\n".join(lines) + "\n"


def _ceilings() -> str:
    """A Markdown table: for pure ε the true ceiling is lower still, because the bound is that of L2."""
    lines = ["| figure | workload | m | n | s | no factorisation leads by more than |", "|---|---|---|---|---|---|"]
    for figure, setting in SETTINGS:
        W = setting.matrix()
        with threadpool_limits(limits=1, user_api="blas"):
            ratio = float(np.sum(W**2)) / svd_bound(W)
        base = str(setting.base) if setting.workload == "WRelated" else ""
        lines.append(f"| {figure} | {setting.workload} | {setting.m} | {setting.n} | {base} | {ratio:.3g}× |")
    return "\n".join(lines) + "\n"
