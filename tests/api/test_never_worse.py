"""Asking more together never costs more error than asking it apart, with the budget split at its optimum.

``TACIT_FUZZ`` takes larger batches too, whose plans are searched for half a minute each: ``make fuzz`` sets it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from support.random_sql import query
from tacit.compiled_batch import CompiledBatch, compile_ask
from tacit.engine import PlanOptions, plan_release
from tacit.engine.measures import joint
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.strategy import Privacy
from tacit.errors import Error
from tacit.request import ask
from tacit.sql import Catalog, Limits, Source
from tacit.sql.present import rows_used

from tests.sql.conftest import catalog, database, source  # noqa: F401

Rows = NDArray[np.bool_]
KINDS: tuple[Privacy, ...] = ("pure", "approximate")
MOST_CELLS = 400 if "TACIT_FUZZ" in os.environ else 60
HEURISTIC = 1.01
"""Where only the search over listed cells has a candidate."""
STRUCTURED = 1 + 1e-6


def planned(batch: CompiledBatch, privacy: Privacy) -> float:
    """In the batch's own scaling, but for the noise's constant: ``JointPlan.error``."""
    options = PlanOptions(batch.weights, rows=batch.row_count)
    return plan_release(batch.tables, privacy=privacy, options=options).error


def by_statement(batch: CompiledBatch) -> list[Rows]:
    """A row that several statements use is the first one's."""
    taken = ~batch.to_measure
    parts = []
    for one in batch.workload.queries:
        rows = np.zeros(batch.row_count, dtype=np.bool_)
        rows[rows_used(one)] = True
        rows &= ~taken
        taken |= rows
        parts.append(rows)
    return [*parts, ~taken]


def by_columns(batch: CompiledBatch) -> list[Rows]:
    """Rows that name the same axes of the same table; what is no single product is a part of its own."""
    parts: dict[tuple[int, tuple[int, ...] | None], Rows] = {}
    for number, table in enumerate(batch.tables):
        products = table if isinstance(table, ProductTable) else table.product
        axes_of: dict[int, tuple[int, ...]] = {}
        if products is not None:
            axes_of = {int(row): group.axes for group in products.products.groups for row in group.rows}
            indices, factors = products.terms
            single = np.count_nonzero(factors, axis=1) == 1
            named = {
                int(r): axes_of.get(int(i[0])) for r, i, s in zip(products.rows, indices, single, strict=True) if s
            }
        else:
            named = {}
        for row in table.rows.tolist():
            key = (number, named.get(row))
            parts.setdefault(key, np.zeros(batch.row_count, dtype=np.bool_))[row] = True
    return list(parts.values())


def apart(batch: CompiledBatch, parts: Sequence[Rows], privacy: Privacy) -> float:
    errors = [planned(batch.only(rows), privacy) for rows in parts if (rows & batch.to_measure).any()]
    return joint(errors, privacy, "total")


def random_batches(catalog: Catalog, source: Source, seed: int, limits: Limits) -> list[CompiledBatch]:  # noqa: F811
    rng = random.Random(seed)
    found: list[CompiledBatch] = []
    while len(found) < 2:
        asked = [one.text for one in (query(rng) for _ in range(rng.choice([2, 3]))) if one.params is None]
        if len(asked) < 2:
            continue
        try:
            batch = compile_ask(ask(asked, epsilon=1), catalog, source, limits)
        except Error:
            continue
        sizes = [
            t.products.points(g.axes) for t in batch.tables if isinstance(t, ProductTable) for g in t.products.groups
        ]
        sizes += [table.matrix.shape[1] for table in batch.listed]
        if batch.tables and max(sizes, default=0) <= MOST_CELLS and batch.row_count < 200:
            found.append(batch)
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("privacy", KINDS)
def test_batches_whose_cells_are_listed(catalog: Catalog, source: Source, seed: int, privacy: Privacy) -> None:  # noqa: F811
    for batch in random_batches(catalog, source, seed, Limits()):
        together = planned(batch, privacy)
        for parts in (by_statement(batch), by_columns(batch)):
            assert together <= apart(batch, parts, privacy) * HEURISTIC, batch.workload.queries


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("privacy", KINDS)
def test_batches_of_products(catalog: Catalog, source: Source, seed: int, privacy: Privacy) -> None:  # noqa: F811
    """The same where no cell is listed: whatever has a product form is planned by it."""
    for batch in random_batches(catalog, source, 100 + seed, replace(Limits(), dense_cells=1)):
        listed = any(not isinstance(table, ProductTable) for table in batch.tables)
        together = planned(batch, privacy)
        for parts in (by_statement(batch), by_columns(batch)):
            leeway = HEURISTIC if listed else STRUCTURED
            assert together <= apart(batch, parts, privacy) * leeway, batch.workload.queries
