"""The parts of the experiments that a tiny run does not show: resuming, limits, data from files, and γ."""

from __future__ import annotations

import ast
import json
import re
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tacit.engine import optimize

from benchmarks.paper.data import ADULT, DATA_SETS, NET, SEARCH, SOCIAL, SPARSE, UNIFORM, origin, unit_counts
from benchmarks.paper.sizes import FULL, QUICK
from benchmarks.paper.store import Store
from benchmarks.paper.talk_tasks import by_width, every_range
from benchmarks.paper.tasks import FAILED, LATE, Lemmas, Measures, Outcome, Planned
from benchmarks.paper.words import compare
from benchmarks.paper.workers import measured
from benchmarks.paper.workloads import PAPERS, Setting, all_ranges, cube

ROOT = Path(__file__).parents[1]
ONE, TWO, THREE = (Lemmas(Setting("WRange", 4, n), "pure") for n in (8, 16, 32))


def test_a_run_that_was_killed_is_taken_up_again(tmp_path: Path) -> None:
    path = tmp_path / "measured.jsonl"
    first = Store(path, resume=False)
    first.keep(ONE, Outcome({"error": 2.0}))
    first.keep(TWO, Outcome({}, f"{FAILED}: by a defect"))
    with path.open("a", encoding="utf-8") as stream:
        stream.write('{"task": "cut off in the mid')
    second = Store(path, resume=True)
    assert second.missing([ONE, TWO, THREE]) == [TWO, THREE]  # what failed is tried again
    second.keep(THREE, Outcome({"error": 3.0}))
    third = Store(path, resume=True)
    assert third.outcomes([ONE, TWO, THREE]) == {ONE: Outcome({"error": 2.0}), THREE: Outcome({"error": 3.0})}
    assert Store(path, resume=False).outcomes([ONE, TWO, THREE]) == {}


@pytest.mark.parametrize("outcome", [Outcome({"error": 1.0, "stopped": 1.0}), Outcome({}, f"{LATE} 10 seconds")])
def test_what_a_limit_ended_is_tried_again_with_more_time_only(tmp_path: Path, outcome: Outcome) -> None:
    path = tmp_path / "measured.jsonl"
    Store(path, resume=False, limit=10.0).keep(ONE, outcome)
    for limit, again in ((5.0, []), (10.0, []), (20.0, [ONE]), (None, [ONE])):
        assert Store(path, resume=True, limit=limit).missing([ONE]) == again
    assert repr(Planned(ONE.setting, "pure", "lrm", 5.0)) == repr(Planned(ONE.setting, "pure", "lrm", 10.0))


def test_outcomes_of_another_search_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "measured.jsonl"
    Store(path, resume=False).keep(ONE, Outcome({"error": 2.0}))
    line = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**line, "code": "another"}) + "\n", encoding="utf-8")
    store = Store(path, resume=True)
    store.keep(TWO, Outcome({"error": 3.0}))
    assert store.other_code([ONE, TWO]) == 1


@dataclass(frozen=True)
class Sleeps:
    seconds: float

    def run(self) -> Measures:
        time.sleep(self.seconds)
        return {"slept": self.seconds}


@dataclass(frozen=True)
class Dies:
    def run(self) -> Measures:
        raise SystemExit(3)


def test_what_takes_too_long_or_dies_ends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.paper.workers.GRACE", -60.0)  # 60 s − 60·0.9 s: six seconds in all
    outcomes = dict(measured([Sleeps(60.0), Dies(), Sleeps(0.01)], jobs=2, limit=0.9))
    assert outcomes[Sleeps(0.01)].measures == {"slept": 0.01}
    assert outcomes[Dies()].reason.startswith(FAILED)
    assert outcomes[Sleeps(60.0)].reason == "took more than 0.9 seconds"


@pytest.fixture
def files(tmp_path: Path) -> str:
    np.save(tmp_path / "SEARCHLOGS.n16.npy", np.arange(16))
    (tmp_path / "adult-domain.json").write_text('{"age": 85, "hours-per-week": 99, "sex": 2}', encoding="utf-8")
    (tmp_path / "adult.csv").write_text("age,sex,hours-per-week\n0,1,0\n0,0,98\n84,1,98\n", encoding="utf-8")
    return str(tmp_path)


def test_data_is_read_from_a_folder_and_merged_in_order(files: str) -> None:
    assert unit_counts(SEARCH, 4, files).tolist() == [6, 22, 38, 54]
    assert unit_counts(ADULT, 85, files).tolist() == [2, *[0] * 83, 1]
    assert [origin(name, files) for name in DATA_SETS] == ["file", "generated", "generated", "file", *["generated"] * 2]
    with pytest.raises(ValueError, match="fewer than 32"):
        unit_counts(SEARCH, 32, files)


def test_generated_data_is_the_same_every_time_and_whole(files: str) -> None:
    for name in DATA_SETS:
        counts = unit_counts(name, 64)
        assert counts.dtype == np.int64
        assert counts.min() >= 0
        assert counts.tolist() == unit_counts(name, 64).tolist()
    assert unit_counts(SOCIAL, 11_342).sum() == 100_000
    assert (unit_counts(NET, 4096) == 0).mean() > 0.5
    assert (unit_counts(SPARSE, 1024) == 0).mean() > 0.9
    assert 8.0 < unit_counts(UNIFORM, 8192).var() < 12.0  # COA's Random Uniform has variance 10, at every n
    assert 6.0 < unit_counts(UNIFORM, 64).var() < 16.0


@pytest.mark.parametrize("workload", PAPERS)
def test_gamma_is_the_same_share_of_w_as_at_the_papers_size(workload: str) -> None:
    small, large = Setting(workload, 64, 256), Setting(workload, 256, 1024)
    shares = [sizes.gamma(s) / np.linalg.norm(s.matrix()) for sizes, s in ((QUICK, small), (FULL, large))]
    assert FULL.gamma(large) == 0.01
    if workload != "WMarginal":  # its queries grow denser or sparser with the number of attributes
        assert shares[0] == pytest.approx(shares[1], rel=0.1)


def test_a_root_of_the_gram_matrix_stands_for_all_ranges() -> None:
    W, R = every_range(16), all_ranges(16).matrix()
    assert len(W) == all_ranges(16).m == 136
    np.testing.assert_allclose(R.T @ R, W.T @ W)
    for name in ("identity", "hierarchical", "wavelet"):
        s = optimize(W, strategy=name)
        assert optimize(R, strategy=name).error == pytest.approx(s.error)
        per_query = s.sensitivity**2 * np.sum(s.B**2, axis=1)  # shortest ranges first
        assert by_width(s)[0] == pytest.approx(per_query[:16].mean())
        assert by_width(s)[-1] == pytest.approx(per_query[-1])


def test_a_cube_has_every_marginal() -> None:
    W = cube(16).matrix()
    assert W.shape == (25, 16) == (cube(16).m, 16)
    assert sorted(W.sum(axis=1)) == [1.0] * 16 + [4.0] * 8 + [16.0]
    assert np.linalg.matrix_rank(W) == 16


def test_a_claim_whose_figure_is_half_measured_is_left_open() -> None:
    from benchmarks.paper.figures import Row

    rows = [Row("LRM 7", "WRange", "m", 4.0, "LRM", "", 1.0), Row("LRM 8", "WRelated", "m", 4.0, "LRM", "", 1.0)]
    lines = compare(rows).splitlines()[2:]
    assert len(lines) == 2
    assert all(line.endswith("| not all of it is measured | open |") for line in lines)


def test_the_page_names_what_exists() -> None:
    """docs/papers.md says for every item which code and which test stand for it."""
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", (ROOT / "docs" / "papers.md").read_text(encoding="utf-8"))
    assert len(named) > 100
    missing = [f"{path}::{name}" for path, name in named if name not in _defined(ROOT / path)]
    assert not missing


def _defined(path: Path) -> set[str]:
    if not path.is_file():
        return set()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
