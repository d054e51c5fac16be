"""Plans that are kept: found again by their workload, and checked as if somebody had changed the file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import seams
from tacit.engine import PlanOptions, choose_plan, choose_plan_for_error, optimize, plan_release, table_workload
from tacit.engine.measures import Measure
from tacit.engine.mechanism.stored_plan import (
    Allowance,
    FoundPlan,
    PlanRecord,
    SearchTerms,
    find_strategy,
    is_enough,
    plan_key,
    read_strategy,
    write_strategy,
)
from tacit.engine.strategy import Matrix, Privacy, sensitivity

from .workloads import prefix, ranges

W = ranges(12, 30)


class Memory:
    """A store without a folder; ``joint`` says whether whole plans are remembered too."""

    def __init__(self, *, joint: bool = True) -> None:
        self.records: dict[str, PlanRecord] = {}
        self.plans: dict[str, FoundPlan] = {}
        self._joint = joint

    def read(self, key: str) -> PlanRecord | None:
        return self.records.get(key)

    def write(self, key: str, record: PlanRecord) -> None:
        self.records[key] = record

    def recall(self, key: str) -> FoundPlan | None:
        return self.plans.get(key)

    def remember(self, key: str, found: FoundPlan) -> None:
        if self._joint:
            self.plans[key] = found


def options(store: Memory, **others: Any) -> PlanOptions:
    return PlanOptions(terms=SearchTerms(store=store), **others)


@pytest.fixture
def no_search(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def forbid() -> None:
        def refused(*args: Any, **kwargs: Any) -> Any:
            raise AssertionError("searched again")

        seams.replace(monkeypatch, "search", refused)

    return forbid


@pytest.mark.parametrize("joint", [True, False], ids=["in memory", "as a record"])
def test_a_strategy_does_not_depend_on_epsilon(joint: bool, no_search: Callable[[], None]) -> None:
    store, workloads = Memory(joint=joint), [table_workload(W), table_workload(prefix(5), rows_per_unit=2)]
    first = choose_plan(workloads, 1, 1e-6, options(store))
    no_search()
    again = choose_plan(workloads, 1, 1e-6, options(store))
    assert first.describe(1, 1e-6) == again.describe(1, 1e-6), "the same lattices at the same noise"
    assert again.error == first.error and again.lower_bound == pytest.approx(first.lower_bound)
    for epsilon in (0.1, 7):
        choose_plan(workloads, epsilon, 0, options(store))
    choose_plan_for_error(workloads, 30.0, 0.9, 1e-6, options(store))


def test_what_changes_the_strategy_is_another_plan() -> None:
    store, workload = Memory(), table_workload(W)
    weights = np.linspace(1, 2, len(W))
    asked: list[tuple[Privacy, dict[str, Any]]] = [
        ("pure", {}),
        ("approximate", {}),
        ("pure", {"strategy": "identity"}),
        ("pure", {"measure": "largest"}),
        ("pure", {"weights": weights}),
    ]
    for privacy, others in asked:
        plan_release([workload], privacy=privacy, options=options(store, **others))
    plan_release([table_workload(W[:, ::-1])], privacy="pure", options=options(store))
    assert len(store.records) == len(store.plans) == len(asked) + 1


@pytest.mark.parametrize("measure", ["total", "largest", "absolute"])
@pytest.mark.parametrize("privacy", ["pure", "approximate"])
def test_a_record_gives_back_what_was_written(privacy: Privacy, measure: Measure) -> None:
    for workload in (W, np.repeat(W, 3, axis=1), np.eye(20)):
        found = optimize(workload, privacy=privacy, objective=measure)
        stored = read_strategy(write_strategy(found, None), workload, privacy, None, measure)
        assert stored is not None
        strategy, given = stored
        assert given is None and strategy.name == found.name and np.array_equal(strategy.L, found.L)
        assert strategy.error == pytest.approx(found.error) and strategy.lower_bound == pytest.approx(found.lower_bound)
        assert strategy.sensitivity == found.sensitivity
        assert np.abs(strategy.B @ strategy.L - workload).max() < 1e-9


def test_only_what_is_not_zero_is_written() -> None:
    cells = write_strategy(optimize(np.eye(50), strategy="identity"), None)
    assert sum(array.nbytes for array in cells.arrays.values()) <= 50 * 16


FOUND = write_strategy(optimize(W, strategy="p-identity"), None)
ENTRIES = FOUND.arrays["entries"]


BLIND = write_strategy(replace(optimize(W, strategy="identity"), L=np.ones((3, 30)), error=1e12, lower_bound=0.0), None)
"""Questions that W does not follow from."""


def changed(meta: dict[str, Any] | None = None, **arrays: Any) -> PlanRecord:
    kept = {name: array for name, array in {**FOUND.arrays, **arrays}.items() if array is not None}
    return PlanRecord({**FOUND.meta, **(meta or {})}, kept)


def entries(change: Callable[[Matrix], object]) -> PlanRecord:
    copy = ENTRIES.copy()
    change(copy)
    return changed(entries=copy)


@pytest.mark.parametrize(
    "record",
    [
        PlanRecord({}, {}),
        BLIND,
        changed(entries=None),
        changed({"shape": [1]}),
        changed({"shape": [0, 30]}),
        changed({"shape": [10**9, 30]}),
        changed({"shape": [30, 10**9]}),
        changed({"shape": "no"}),
        changed(entries=ENTRIES[:-1]),
        changed(where=np.zeros(ENTRIES.size - 1, dtype=np.int64)),
        changed(where=np.full(ENTRIES.size, 10**9)),
        changed(where=np.full(ENTRIES.size, -1)),
        changed(position=np.full(30, 77, dtype="<u4")),
        changed(position=np.zeros(7, dtype="<u4")),
        changed(position=np.zeros(30)),
        entries(lambda L: L.fill(0.0)),
        entries(lambda L: L.fill(1.0)),
        entries(lambda L: L.__setitem__(0, np.nan)),
        entries(lambda L: L.__setitem__(0, np.inf)),
        entries(lambda L: np.multiply(L, np.linspace(1e-3, 1, L.size).reshape(L.shape), out=L)),
        changed({"name": "hope"}),
        changed({"name": ["p-identity"]}),
        changed({"error": "x"}),
        changed({"error": float("nan")}),
        changed({"error": FOUND.meta["error"] / 2}),
        changed({"lower_bound": FOUND.meta["error"] * 2}),
        changed({"lower_bound": -1.0}),
        changed({"lower_bound": float("nan")}),
        changed({"seconds": float("inf")}),
        changed({"given": -1}),
        changed({"given": "x"}),
    ],
)
def test_a_changed_record_is_as_if_it_were_not_there(record: PlanRecord) -> None:
    assert read_strategy(FOUND, W, "pure", None, "total") is not None
    assert read_strategy(record, W, "pure", None, "total") is None


def test_a_record_of_another_workload_or_strategy_is_not_taken() -> None:
    assert read_strategy(FOUND, np.vstack([W, np.ones((1, 30))])[:, :29], "pure", None, "total") is None
    assert read_strategy(FOUND, W, "pure", "identity", "total") is None
    assert read_strategy(FOUND, W, "pure", "p-identity", "total") is not None


def test_a_worse_strategy_in_a_record_has_its_true_sensitivity_and_error() -> None:
    """The worst that a changed file can do: L is not the best, and everything that is said of it is true."""
    L = np.vstack([np.eye(30), 5.0 * np.ones((1, 30))])
    record = write_strategy(replace(optimize(W, strategy="identity"), L=L, error=1e12, lower_bound=0.0), None)
    stored = read_strategy(record, W, "pure", None, "total")
    assert stored is not None
    assert stored[0].sensitivity == sensitivity(L, "pure") == 6.0
    assert stored[0].error == pytest.approx(36.0 * float(np.sum((W @ np.linalg.pinv(L)) ** 2)))
    store = Memory()
    store.records[plan_key("strategy", W, "pure", None, "total")] = record
    plan = plan_release([table_workload(W)], privacy="pure", options=options(store))
    lattice = plan.parts[0].lattice
    assert lattice.norm == int(np.abs(lattice.L_int).sum(axis=0).max()), "noise is for the integers themselves"


def test_a_broken_record_is_searched_again_and_replaced() -> None:
    store = Memory()
    terms = SearchTerms(store=store)
    found, _ = find_strategy(W, "pure", None, "total", terms)
    (key,) = store.records
    store.records[key] = PlanRecord({}, {})
    again, _ = find_strategy(W, "pure", None, "total", terms)
    assert again.error == found.error and store.records[key].arrays


@pytest.mark.parametrize(
    ("given", "asked", "enough"),
    [(None, None, True), (None, 1.0, True), (1.0, None, False), (1.0, 1.0, True), (1.0, 0.5, True), (1.0, 2.0, False)],
)
def test_a_search_that_was_cut_short_serves_those_in_a_hurry(
    given: float | None, asked: float | None, enough: bool
) -> None:
    assert is_enough(given, asked) == enough


def test_a_plan_that_was_cut_short_is_searched_for_again() -> None:
    store, workload = Memory(), table_workload(prefix(40))

    def plan(seconds: float | None) -> float:
        terms = SearchTerms(seconds=seconds, store=store)
        return plan_release([workload], privacy="pure", options=PlanOptions(terms=terms)).error

    quick = plan(0.0)
    (record,) = store.records.values()
    assert record.meta["given"] == 0.0
    full = plan(None)
    assert full < quick
    (record,) = store.records.values()
    assert record.meta["given"] is None
    assert plan(0.0) == full, "what is there costs no time"


def test_an_allowance_is_shared_among_the_searches_that_are_left() -> None:
    allowance = Allowance(30.0, 3)
    shares = [allowance.next() for _ in range(3)]
    assert shares == pytest.approx([10.0, 15.0, 30.0], rel=0.1)
    assert Allowance(None, 2).next() is None
    assert Allowance(0.0, 1).next() == 0.0


def test_a_search_is_told_of_and_can_be_ended() -> None:
    seen: list[Any] = []
    terms = SearchTerms(progress=seen.append, cancel=lambda: True)
    plan = plan_release([table_workload(prefix(40))], privacy="pure", options=PlanOptions(terms=terms))
    assert seen and seen[-1].error == pytest.approx(plan.error)
