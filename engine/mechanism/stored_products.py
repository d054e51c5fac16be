"""Structured strategies, stored or searched for: see ``stored_plan`` for what is taken from a record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.engine.components import evidence_of
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.mechanism.stored_plan import PlanRecord, SearchTerms, is_enough, plan_key
from tacit.engine.mechanism.viewed import best_of
from tacit.engine.product_answers import total_error
from tacit.engine.product_workload import Block, ProductStrategy
from tacit.engine.search.structured.structured import NAMES, optimize_products
from tacit.engine.strategy import Privacy, Vector, sensitivity
from tacit.process import one_blas_thread

_ROUNDING = 1e-6


def find_products(
    table: ProductTable, weights: Vector, privacy: Privacy, terms: SearchTerms, *, quick: bool = False
) -> tuple[ProductStrategy, float | None]:
    """The structured strategy for a table, and the seconds that cut its search short, if any did.

    ``weights`` are those of its rows. A ``quick`` search is for a table whose cells are listed too. Where the rows can
    be read in several ways, each is searched for, and the best is taken.
    """
    if not table.is_viewed:
        return _search(table, weights, privacy, terms, quick=quick)
    if terms.seconds is not None:
        terms = replace(terms, seconds=terms.seconds / len(table.readings))
    of_terms = table.terms[0].shape[1] > 1  # many rows are made of the same few products, small as those are
    found = [
        _search(table.read_as(number), weights, privacy, terms, quick=quick, aside=number > 0 or of_terms)
        for number in range(len(table.readings))
    ]
    cut = next((cut for _, cut in found if cut is not None), None)
    return best_of(table, [one for one, _ in found], weights), cut


def _search(
    table: ProductTable, weights: Vector, privacy: Privacy, terms: SearchTerms, *, quick: bool, aside: bool = False
) -> tuple[ProductStrategy, float | None]:
    of_products = table.weights_of_products(weights)
    key = ""
    if terms.store is not None:
        key = plan_key("structured", *product_parts(table), of_products, privacy, quick, *([aside] if aside else []))
        record = terms.store.read(key)
        stored = None if record is None else read_products(record, table, of_products, privacy)
        if stored is not None and is_enough(stored[1], terms.seconds):
            return stored
    found = optimize_products(
        table.products,
        privacy=privacy,
        weights=of_products,
        quick=quick,
        aside=aside,
        deadline=terms.seconds,
        cancel=terms.cancel,
    )
    cut = terms.seconds if terms.seconds is not None and found.seconds >= terms.seconds else None
    if terms.store is not None:
        terms.store.write(key, write_products(found, cut))
    return found, cut


def product_parts(table: ProductTable) -> list[Any]:
    """All that a structured plan depends on, for ``plan_key``."""
    products, combination = table.products, table.combination
    parts: list[Any] = [list(products.sizes), products.rows_per_unit, sorted(products.summed), products.fixed_point]
    parts += [table.rows, combination.indptr, combination.indices, combination.data]
    parts += [array for other in table.others for array in (other.indptr, other.indices, other.data)]
    parts += [] if table.peaks is None else [table.peaks]
    numbers: dict[int, int] = {}
    for group in products.groups:
        for factor in group.factors:
            if id(factor) not in numbers:
                numbers[id(factor)] = len(numbers)
                parts.append(factor)
        parts += [list(group.axes), [numbers[id(factor)] for factor in group.factors], group.rows, group.part]
    return parts


def write_products(found: ProductStrategy, seconds: float | None) -> PlanRecord:
    """A structured strategy as a record: every different factor once."""
    arrays: dict[str, NDArray[Any]] = {}
    numbers: dict[int, str] = {}

    def number(array: NDArray[np.float64] | None) -> str | None:
        if array is None:
            return None
        if id(array) not in numbers:
            numbers[id(array)] = f"m{len(numbers)}"
            arrays[numbers[id(array)]] = np.ascontiguousarray(array)
        return numbers[id(array)]

    blocks = [
        [list(block.axes), [number(L) for L in block.factors], [number(split) for split in block.splits]]
        for block in found.blocks
    ]
    meta = {
        "name": found.name,
        "shares": list(found.shares),
        "error": found.error,
        "lower_bound": found.lower_bound,
        "seconds": found.seconds,
        "given": seconds,
        "blocks": blocks,
    }
    return PlanRecord(meta, arrays)


def read_products(
    record: PlanRecord, table: ProductTable, weights: Vector, privacy: Privacy
) -> tuple[ProductStrategy, float | None] | None:
    """The strategy of a record with the seconds that its search was given; None where anything in it is wrong.

    Guarantee: as ``optimize_products``. Norms are computed again from the factors, in integers, before noise is drawn;
    here the blocks must determine every row, and ``error`` is computed from them. The name and ``lower_bound`` are as
    stored: no noise depends on them.
    """
    try:
        meta = record.meta
        name, bound, stored = meta["name"], float(meta["lower_bound"]), float(meta["error"])
        seconds, given = float(meta["seconds"]), None if meta["given"] is None else float(meta["given"])
        shares = [float(share) for share in meta["shares"]]
        blocks = [_block(block, record.arrays, table.products.sizes, privacy) for block in meta["blocks"]]
    except (KeyError, TypeError, ValueError, IndexError, OverflowError):
        return None
    total = sum(shares)
    if name not in NAMES or len(shares) != len(blocks) or not blocks or not all(0 < s < 2 for s in shares):
        return None
    if abs(total - 1) > _ROUNDING or not (math.isfinite(seconds) and seconds >= 0):
        return None
    strategy = ProductStrategy(
        name, privacy, tuple(blocks), tuple(s / total for s in shares), stored, min(bound, stored), seconds
    )
    with one_blas_thread():
        answers = table.answered(evidence_of(strategy.blocks, strategy.spreads))
        error = total_error(table.products, answers, weights)
    if not (math.isfinite(error) and bound >= 0 and abs(error - stored) <= 1e-3 * stored):
        return None
    return strategy, given


def _block(stored: Any, arrays: Any, sizes: Sequence[int], privacy: Privacy) -> Block:
    axes, factors, splits = stored
    if len(set(axes)) != len(axes) or not all(type(a) is int and 0 <= a < len(sizes) for a in axes):
        raise ValueError("no such axes")
    if not len(axes) == len(factors) == len(splits):
        raise ValueError("a factor is missing")
    Ls, ps = [], []
    for axis, factor, split in zip(axes, factors, splits, strict=True):
        L = arrays[factor]
        if L.ndim != 2 or L.shape[1] != sizes[axis] or L.dtype.kind != "f" or not np.isfinite(L).all():
            raise ValueError("a factor does not fit its axis")
        if abs(sensitivity(L, privacy) - 1) > _ROUNDING:
            raise ValueError("a factor has another norm")
        p = None if split is None else arrays[split]
        if p is not None and (p.shape != (sizes[axis],) or p.dtype.kind != "f" or np.abs(L @ p).max() > _ROUNDING):
            raise ValueError("a factor is not orthogonal to its weights")
        Ls.append(L)
        ps.append(p)
    return Block(tuple(axes), tuple(Ls), tuple(ps))
