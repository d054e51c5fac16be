"""Answers to a table whose cells are not listed, from blocks of products: post-processing, like ``estimate``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tacit.engine.inference.estimate import Estimate
from tacit.engine.inference.product_spread import ProductSpread
from tacit.engine.mechanism.measurement import Measurement
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.product_answers import View
from tacit.errors import InternalError
from tacit.process import one_blas_thread


def estimate_products(
    table: ProductTable,
    views: Sequence[View],
    measurements: Sequence[Measurement],
    *,
    rows: int,
    releases: int,
    partial: bool = False,
) -> Estimate:
    """The rows of the table from all evidence: see ``components`` and ``product_answers``.

    ``measurements`` are those that the evidence comes from. With ``partial``, a row that they do not determine has the
    value NaN and an infinite error; without, it is a defect to ask for it.
    """
    noises = tuple(dict.fromkeys((m.noise, m.lattice_scale) for m in measurements))
    with one_blas_thread():
        answers = table.seen(views or [View(table.products.groups, ())])
        spread = ProductSpread(table, answers, noises or (("gaussian", 1.0),))
        determined = np.isfinite(spread.stderr)
        if not determined.all() and not partial:
            raise InternalError("these measurements do not answer this workload")
        values, stderr = np.zeros(rows), np.zeros(rows)
        known = any(e.answers is not None for view in views for e in view.evidence)
        found = table.values(answers) if known else np.zeros(len(table.rows))
        values[table.rows] = np.where(determined, found, np.nan)
        stderr[table.rows] = spread.stderr
    used = np.zeros(releases, dtype=np.bool_)
    used[sorted(answers.used)] = True
    return Estimate(values, stderr, (spread,), (np.zeros(0),), (used,))
