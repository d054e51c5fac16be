"""Records of structured strategies: read back as they were written, and worth nothing once anything is changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tacit.engine import PlanOptions, plan_release
from tacit.engine.mechanism import stored_products
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.mechanism.stored_plan import FoundPlan, PlanRecord, SearchTerms
from tacit.engine.mechanism.stored_products import find_products, read_products, write_products
from tacit.engine.product_workload import ProductStrategy
from tacit.engine.search.structured.structured import optimize_products
from tacit.engine.strategy import Privacy

from .products import all_sets, marginals, random_workload, table, workload
from .workloads import prefix

KINDS: tuple[Privacy, ...] = ("pure", "approximate")
TABLES: dict[str, ProductTable] = {
    "cube": table(marginals([4, 3, 2], all_sets(3, 0, 3))),
    "histograms": table(marginals([6, 5, 4, 3], all_sets(4, 1, 1))),
    "ranges": table(workload([6, 4], [((0,), [prefix(6)]), ((0, 1), [prefix(6), np.eye(4)]), ((1,), [np.eye(4)])])),
    "apart": table(random_workload(np.random.default_rng(7), largest=4)),
}


def weights_of(products: ProductTable) -> np.ndarray:
    return np.linspace(0.5, 2, len(products.products.rows))


def found(name: str, privacy: Privacy) -> ProductStrategy:
    products = TABLES[name]
    return optimize_products(products.products, privacy=privacy, weights=weights_of(products))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("privacy", KINDS)
def test_what_is_written_is_read_back(name: str, privacy: Privacy) -> None:
    products, s = TABLES[name], found(name, privacy)
    for seconds in (None, 2.5):
        record = write_products(s, seconds)
        read = read_products(record, products, weights_of(products), privacy)
        assert read is not None
        again, given = read
        assert given == seconds
        assert (again.name, again.privacy, again.error, again.seconds) == (s.name, s.privacy, s.error, s.seconds)
        assert again.lower_bound == s.lower_bound
        np.testing.assert_allclose(again.shares, s.shares, rtol=1e-12)
        for a, b in zip(again.blocks, s.blocks, strict=True):
            assert a.axes == b.axes
            for L, M in zip(a.factors, b.factors, strict=True):
                np.testing.assert_array_equal(L, M)
            for p, q in zip(a.splits, b.splits, strict=True):
                assert (p is None) == (q is None)
                if p is not None and q is not None:
                    np.testing.assert_array_equal(p, q)


Change = Callable[[dict[str, Any], dict[str, np.ndarray]], Any]


def _in_first(meta: dict[str, Any], place: int) -> list[Any]:
    """Of the first block that names an axis."""
    block = next(block for block in meta["blocks"] if block[0])
    listed: list[Any] = block[place]
    return listed


def _array(change: Callable[[np.ndarray], np.ndarray]) -> Change:
    def apply(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        name = _in_first(meta, 1)[0]
        arrays[name] = change(arrays[name])

    return apply


def _one(matrix: np.ndarray, value: float) -> np.ndarray:
    changed = matrix.copy()
    changed[0, 0] = value
    return changed


def _shares(values: Callable[[list[float]], list[float]]) -> Change:
    return lambda meta, _: meta.update(shares=values(meta["shares"]))


CHANGES: dict[str, Change] = {
    "a larger norm": _array(lambda L: L * 1.01),
    "a smaller norm": _array(lambda L: L * 0.99),
    "a number that is none": _array(lambda L: _one(L, np.nan)),
    "an endless number": _array(lambda L: _one(L, np.inf)),
    "integers": _array(lambda L: L.astype(np.int64)),
    "a column more": _array(lambda L: np.hstack([L, L[:, :1]])),
    "one dimension": _array(lambda L: L.reshape(-1)),
    "a factor that tells one thing only": _array(lambda L: np.ones((1, L.shape[1]))),
    "no array": lambda meta, arrays: arrays.pop(_in_first(meta, 1)[0]),
    "a factor that is not there": lambda meta, _: _in_first(meta, 1).__setitem__(0, "m99"),
    "a factor less": lambda meta, _: _in_first(meta, 1).pop(),
    "weights less": lambda meta, _: _in_first(meta, 2).pop(),
    "an axis that is not there": lambda meta, _: _in_first(meta, 0).__setitem__(0, 17),
    "an axis below zero": lambda meta, _: _in_first(meta, 0).__setitem__(0, -1),
    "an axis that is true": lambda meta, _: _in_first(meta, 0).__setitem__(0, True),
    "a block less": lambda meta, _: (meta["blocks"].pop(), meta["shares"].pop()),
    "a block less than shares": lambda meta, _: meta["blocks"].pop(),
    "no blocks": lambda meta, _: meta.update(blocks=[], shares=[]),
    "blocks that are none": lambda meta, _: meta.update(blocks=3),
    "a share of nothing": _shares(lambda shares: [0.0, shares[0] + shares[1], *shares[2:]]),
    "a share below nothing": _shares(lambda shares: [-shares[0], shares[1] + 2 * shares[0], *shares[2:]]),
    "shares of more than all": _shares(lambda shares: [share * 1.01 for share in shares]),
    "shares of less than all": _shares(lambda shares: [share * 0.99 for share in shares]),
    "other shares": _shares(lambda shares: [1 - 0.01 * (len(shares) - 1), *[0.01] * (len(shares) - 1)]),
    "a share that is no number": _shares(lambda shares: [float("nan"), *shares[1:]]),
    "another error": lambda meta, _: meta.update(error=meta["error"] * 1.01),
    "a smaller error": lambda meta, _: meta.update(error=meta["error"] * 0.99),
    "an error that is no number": lambda meta, _: meta.update(error=float("nan")),
    "no error": lambda meta, _: meta.pop("error"),
    "a bound that is no number": lambda meta, _: meta.update(lower_bound=float("nan")),
    "a bound below zero": lambda meta, _: meta.update(lower_bound=-1.0),
    "no bound": lambda meta, _: meta.update(lower_bound=None),
    "another name": lambda meta, _: meta.update(name="identity"),
    "seconds below zero": lambda meta, _: meta.update(seconds=-1.0),
    "no seconds": lambda meta, _: meta.pop("seconds"),
    "seconds that are no number": lambda meta, _: meta.update(given="long"),
}


@pytest.fixture(scope="module")
def written() -> dict[Privacy, PlanRecord]:
    return {privacy: write_products(found("histograms", privacy), None) for privacy in KINDS}


def changed(record: PlanRecord, change: Change) -> PlanRecord:
    meta = copy.deepcopy(dict(record.meta))
    arrays = {name: array.copy() for name, array in record.arrays.items()}
    change(meta, arrays)
    return PlanRecord(meta, arrays)


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("privacy", KINDS)
def test_anything_changed_is_nothing(written: dict[Privacy, PlanRecord], name: str, privacy: Privacy) -> None:
    products = TABLES["histograms"]
    weights = weights_of(products)
    assert len(written[privacy].meta["shares"]) > 1
    assert read_products(written[privacy], products, weights, privacy) is not None
    assert read_products(changed(written[privacy], CHANGES[name]), products, weights, privacy) is None


def test_changed_weights_of_an_axis() -> None:
    """They are trusted by the estimator: rows that are not orthogonal to them would be answered wrongly."""
    products = TABLES["cube"]
    record = write_products(found("cube", "approximate"), None)

    def turn(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        name = next(split for block in meta["blocks"] for split in block[2] if split is not None)
        arrays[name] = np.roll(np.linspace(0.5, 1.5, len(arrays[name])) / len(arrays[name]), 1)

    assert read_products(changed(record, turn), products, weights_of(products), "approximate") is None


def test_a_record_of_another_table_or_kind_or_weights() -> None:
    cube, ranges = TABLES["cube"], TABLES["ranges"]
    record = write_products(found("cube", "approximate"), None)
    assert read_products(record, ranges, weights_of(ranges), "approximate") is None
    assert read_products(record, cube, weights_of(cube), "pure") is None
    assert read_products(record, cube, weights_of(cube)[::-1], "approximate") is None


class Memory:
    """A store of records."""

    def __init__(self) -> None:
        self.records: dict[str, PlanRecord] = {}

    def read(self, key: str) -> PlanRecord | None:
        return self.records.get(key)

    def write(self, key: str, record: PlanRecord) -> None:
        self.records[key] = record

    def recall(self, key: str) -> FoundPlan | None:
        return None

    def remember(self, key: str, found: FoundPlan) -> None:
        pass


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("privacy", KINDS)
def test_a_plan_is_searched_for_once(name: str, privacy: Privacy, monkeypatch: pytest.MonkeyPatch) -> None:
    products, store = TABLES[name], Memory()
    options = PlanOptions(terms=SearchTerms(store=store))
    first = plan_release([products], privacy=privacy, options=options)

    def forbidden(*_: Any, **__: Any) -> Any:
        raise AssertionError("searched again")

    monkeypatch.setattr(stored_products, "optimize_products", forbidden)
    again = plan_release([products], privacy=privacy, options=options)
    assert again.error == first.error
    np.testing.assert_allclose(again.stderr(1, 1e-6), first.stderr(1, 1e-6), rtol=1e-9)
    for key, record in store.records.items():  # and again, once what is stored is worth nothing
        store.records[key] = changed(record, CHANGES["a larger norm"])
    with pytest.raises(AssertionError, match="searched again"):
        plan_release([products], privacy=privacy, options=options)


def test_a_search_that_was_cut_short_is_not_enough_for_more_time() -> None:
    products, store = TABLES["ranges"], Memory()
    weights = np.ones(len(products.rows))
    _, cut = find_products(products, weights, "approximate", SearchTerms(seconds=1e-9, store=store))
    assert cut == 1e-9
    _, again = find_products(products, weights, "approximate", SearchTerms(seconds=1e-9, store=store))
    assert again == 1e-9
    _, full = find_products(products, weights, "approximate", SearchTerms(store=store))
    assert full is None
    _, kept = find_products(products, weights, "approximate", SearchTerms(seconds=1e-9, store=store))
    assert kept is None
