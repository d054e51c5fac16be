"""The portfolio as a table: which families apply to which shapes, in which order, and at which effort."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support import seams
from tacit.engine import Privacy, data_dependent_strategies, strategies
from tacit.engine.search import shape
from tacit.engine.search.contest import Contest, operations
from tacit.engine.search.data_dependent import DATA_DEPENDENT
from tacit.engine.search.named import NAMED
from tacit.engine.search.portfolio import PORTFOLIO, Family, run_families, search
from tacit.engine.search.shape import Shape
from tacit.engine.search.strategies import free, lrm
from tacit.engine.search.watch import Watch
from tacit.process import one_blas_thread

from .workloads import Matrix, prefix, ranges, real


def near_singular(n: int) -> Matrix:
    U, V = (np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0] for seed in (0, 1))
    return np.asarray((U * np.geomspace(1.0, 1e-6, n)) @ V)


SHAPES: dict[str, tuple[Matrix, int, set[str]]] = {
    "tiny": (prefix(8), 8, {"tiny", "small", "thin", "free", "thin, few queries"}),
    "square": (prefix(60), 60, {"full, few queries", "free"}),
    "thin": (real(20, 70, 6), 20, {"thin", "thin, few queries", "free"}),
    "thin, many queries": (real(20, 70, 6), 200, {"thin", "free"}),
    "stiff": (
        near_singular(30),
        30,
        {"small", "stiff", "thin", "thin, few queries", "free", "lrm"},
    ),
    "large and stiff": (near_singular(60), 60, {"full, few queries", "free"}),
    "two directions": (real(9, 30, 2), 9, {"small", "thin", "thin, few queries"}),
    "wide": (ranges(30, 300), 30, {"thin", "thin, few queries"}),
}
PREDICATES: dict[str, Callable[[Shape], bool]] = {
    "tiny": Shape.is_tiny,
    "small": Shape.is_small,
    "stiff": Shape.is_stiff,
    "thin": Shape.is_thin,
    "thin, few queries": Shape.is_thin_with_few_queries,
    "full, few queries": Shape.is_full_with_few_queries,
    "lrm": lrm.applies,
    "free": free.applies,
}


@pytest.mark.parametrize("name", SHAPES)
def test_predicates_of_shapes(name: str) -> None:
    W, queries, expected = SHAPES[name]
    assert {name for name, holds in PREDICATES.items() if holds(Shape(W, queries))} == expected


def test_the_rank_of_a_shape_is_that_of_its_workload() -> None:
    thin = Shape(real(20, 70, 6), 20)
    assert (thin.rank, thin.rows, thin.cells) == (6, 20, 70)
    assert thin.spectrum == pytest.approx(np.linalg.svd(thin.workload, compute_uv=False)[:6])


def test_a_square_strategy_fits_up_to_the_documented_width() -> None:
    widest = shape.WIDEST
    for rows, cells, fits in ((3, widest, True), (3, widest + 1, False), (widest, 2 * widest, True)):
        wide = Shape(np.broadcast_to(1.0, (rows, cells)), rows)
        assert wide.fits_square() == fits
    assert Shape(np.ones((3, 256)), 3).fits_trees() and not Shape(np.ones((3, 257)), 3).fits_trees()


def test_a_decomposition_is_made_only_when_a_predicate_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seams.refuse_decompositions(monkeypatch)
    wide = Shape(np.ones((40, 90)), 40)
    assert wide.fits_square() and wide.has_queries_worth_asking() and wide.has_few_queries()


class Recorder(Contest):
    """A contest that notes who enters."""

    def __init__(self, W: Matrix, privacy: Privacy, watch: Watch | None = None, effort: float = 1.0) -> None:
        super().__init__(W, privacy, watch or Watch(), effort)
        self.entered: list[str] = []

    def enter(self, name: str, strategy: Matrix) -> float:
        self.entered.append(name)
        return super().enter(name, strategy)

    def run(self) -> list[str]:
        """The names in the order of their first entry."""
        with one_blas_thread():
            run_families(PORTFOLIO[self.privacy], self)
        return list(dict.fromkeys(self.entered))


def family(name: str, *, scale: float = 1.0, **options: object) -> Family:
    """Enters cells with one row too many: a strategy whose error ``scale`` decides."""

    def run(contest: Contest) -> None:
        n = contest.shape.cells
        contest.enter(name, np.vstack([np.eye(n), scale * np.eye(n)[:1]]))

    options.setdefault("applies", Shape.always)
    return Family(name, run=run, **options)  # type: ignore[arg-type]


def never(shape: Shape) -> bool:
    return False


def run_made_up(*families: Family, watch: Watch | None = None, effort: float = 1.0) -> list[str]:
    contest = Recorder(prefix(5), "pure", watch, effort)
    run_families(families, contest)
    return contest.entered


def stopped() -> Watch:
    return Watch(cancel=lambda: True)


def test_families_run_in_order_and_only_where_they_apply() -> None:
    assert run_made_up(family("b"), family("a"), family("c", applies=never), family("d")) == ["b", "a", "d"]


def test_a_family_that_does_not_apply_is_not_even_begun() -> None:
    def run(contest: Contest) -> None:
        raise AssertionError("it does not apply")

    assert run_made_up(Family("x", never, run), family("a")) == ["a"]


def test_once_stopped_only_what_always_runs_is_run() -> None:
    families = (family("first"), family("second"), family("bound", unconditional=True), family("third"))
    assert run_made_up(*families, watch=stopped()) == ["first", "bound"], "there must be a strategy to return"


def test_long_searches_need_the_full_effort() -> None:
    families = (family("short"), family("long", full_effort=True))
    assert run_made_up(*families) == ["short", "long"]
    assert run_made_up(*families, effort=0.25) == ["short"]


@pytest.mark.parametrize(("scale", "expected"), [(0.0, ["a", "b", "after b"]), (2.0, ["a", "b"])])
def test_a_family_may_follow_a_leader(scale: float, expected: list[str]) -> None:
    families = (family("a", scale=1.0), family("b", scale=scale), family("after b", leader="b"))
    assert run_made_up(*families) == expected


def test_the_best_of_all_is_returned_and_ties_go_to_the_first() -> None:
    contest = Recorder(prefix(5), "pure")
    run_families((family("worse", scale=1.0), family("best", scale=0.0), family("equal", scale=0.0)), contest)
    assert contest.name == "best"
    assert contest.error == contest.watch.error == pytest.approx(15.0)


def test_a_strategy_that_cannot_be_completed_is_not_ranked() -> None:
    contest = Recorder(prefix(5), "pure")
    assert contest.enter("empty", np.zeros((1, 5))) == float("inf")
    assert contest.error == float("inf") and contest.name == "results"


def test_approximate_stops_at_the_certified_optimum() -> None:
    assert Recorder(prefix(12), "approximate", Watch(target_gap=1e-4)).run() == ["dual"]
    assert Recorder(prefix(12), "approximate").run() == ["dual", "results", "identity"]


FIRST = ["results", "identity", "dual"]
LISTED = {*FIRST, "hierarchical", "wavelet", "p-identity", "weighted", "low-rank", "adaptive", "lrm", "free"}
"""The families that this file speaks of; one that is added is free to enter between them."""


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: ranges(30, 55), ["hierarchical", "wavelet", "p-identity", "weighted"]),
        (lambda: real(10, 60, 3), ["hierarchical", "wavelet", "weighted", "low-rank"]),
        (lambda: real(4, 260, 2), ["weighted", "low-rank"]),
    ],
    ids=["nearly full rank", "thin", "thin and wide"],
)
def test_families_of_real_workloads(make: Callable[[], Matrix], expected: list[str]) -> None:
    entered = Recorder(make(), "pure", effort=0.25).run()
    assert [name for name in entered if name in LISTED] == FIRST + expected


def test_less_effort_leaves_the_long_searches_out() -> None:
    W = ranges(12, 20)
    assert "free" in Recorder(W, "pure").run()
    assert "free" not in Recorder(W, "pure", effort=0.25).run()
    assert operations(300) > operations(100) > operations(50) == operations(10)


def test_a_stopped_search_returns_a_strategy_and_a_bound_at_once() -> None:
    contest = Recorder(ranges(30, 55), "pure", stopped())
    assert contest.run() == FIRST
    assert 0.0 < contest.watch.lower_bound <= contest.watch.error == contest.error


def test_beyond_the_width_nothing_square_is_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape, "WIDEST", 50)
    entered = Recorder(ranges(8, 120), "pure").run()
    assert not {"identity", "p-identity", "hierarchical", "wavelet"} & set(entered)


def test_a_single_cell_needs_no_search() -> None:
    watch = Watch()
    name, L = search(np.array([[3.0], [4.0]]), "pure", watch)
    assert (name, L.tolist(), watch.error) == ("identity", [[1.0]], pytest.approx(25.0))


def test_every_family_can_be_asked_for_by_name() -> None:
    names = {line.name for table in PORTFOLIO.values() for line in table}
    assert names - {"svd bound"} <= set(strategies())
    assert not names & set(data_dependent_strategies()), "a search sees no data"


def test_the_readme_lists_every_strategy_and_its_parameters() -> None:
    text = (Path(__file__).parents[2] / "engine" / "README.md").read_text(encoding="utf-8")
    table = text.partition("| name |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    listed = {cells[0].strip("`"): re.findall(r"`(\w+)`", cells[3]) for cells in rows}
    factored = {name: list(inspect.signature(make).parameters)[3:] for name, make in NAMED.items()}
    chosen = {name: list(inspect.signature(settings).parameters) for name, settings in DATA_DEPENDENT.items()}
    assert listed == factored | chosen
