"""What the door of the search takes and refuses: extreme scales, weights, arguments of every type."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from tacit.engine import optimize
from tacit.engine.search.named import NAMED
from tacit.errors import NotSupportedError, ProgrammingError

from .test_strategies import KINDS, check
from .workloads import prefix


@pytest.mark.parametrize("privacy", KINDS)
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scale_is_only_a_factor(privacy: str, scale: float) -> None:
    W = np.tril(np.ones((6, 6)))
    plain, scaled = optimize(W, privacy=privacy), optimize(W * scale, privacy=privacy)
    check(W, plain)
    assert np.linalg.norm((scaled.B / scale) @ scaled.L - W) <= 1e-9 * np.linalg.norm(W)
    assert scaled.error / scale / scale == pytest.approx(plain.error, rel=2e-3)


@pytest.mark.parametrize("scale", [1e308, 2.0**500, 2.0**-500, 1e-310])
def test_a_workload_whose_squares_are_no_floats_is_refused(scale: float) -> None:
    with pytest.raises(ProgrammingError, match="scale its rows"):
        optimize([[scale, 0.0], [scale, -scale]])
    for edge in (2.0**499, 2.0**-499):
        s = optimize([[0.0, -edge]])
        assert s.error == edge**2 == pytest.approx(s.lower_bound)


@pytest.mark.parametrize("privacy", KINDS)
def test_tiny_entries_beside_ordinary_ones_neither_overflow_nor_vanish(privacy: str) -> None:
    for tiny in ([[1e-310, 1.0], [2e-310, 1.0]], [[1e-200, 1e-200], [2e-200, 2e-200]]):
        W = np.array([*tiny, [1.0, 0.0]])
        check(W, optimize(W, privacy=privacy))


@pytest.mark.parametrize("objective", ["total", "largest", "absolute"])
@pytest.mark.parametrize("privacy", KINDS)
def test_a_common_factor_of_the_weights_is_only_a_factor(privacy: str, objective: str) -> None:
    W, weights = prefix(5), np.array([1.0, 1.5, 0.25, 1.0, 1.0])
    seen: dict[float, list[float]] = {}
    results = {}
    for factor in (1.0, 2.0**-330, 2.0**330):
        reported = seen.setdefault(factor, [])
        results[factor] = optimize(
            W,
            privacy=privacy,  # type: ignore[arg-type]
            objective=objective,  # type: ignore[arg-type]
            weights=factor * weights,
            progress=lambda p, reported=reported: reported.extend((p.error, p.lower_bound)),
        )
    plain = results[1.0]
    for factor, s in results.items():
        assert s.L.tobytes() == plain.L.tobytes()
        assert (s.error / factor, s.lower_bound / factor) == (plain.error, plain.lower_bound)
        assert [value / factor for value in seen[factor]] == seen[1.0]
        assert [(e / factor, b / factor) for _, e, b in s.trace] == [(e, b) for _, e, b in plain.trace]


@pytest.mark.parametrize("weights", [[1e155] * 3, [1e-320] * 3, [1e-101, 1.0, 1.0], [1e31, 1e-30, 1.0]])
def test_weights_that_squares_cannot_hold_are_refused_with_what_to_write(weights: list[float]) -> None:
    with pytest.raises(ProgrammingError, match=re.escape("write weights / max(weights)")):
        optimize(prefix(3), weights=weights)


@pytest.mark.parametrize("sign", [1, -1])
def test_weights_and_entries_that_are_extreme_together_are_refused(sign: int) -> None:
    W, weights = prefix(3) * 10.0 ** (140 * sign), np.full(3, 10.0 ** (90 * sign))
    with pytest.raises(ProgrammingError, match="no float can hold"):
        optimize(W, weights=weights)
    assert optimize(W, weights=1.0 / weights).gap < 1.0


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("privacy", KINDS)
def test_extreme_weights_are_taken(privacy: str, name: str) -> None:
    weights = np.array([1e60, 1.0, 1e30, 1.0])
    try:
        s = optimize(prefix(4), privacy=privacy, strategy=name, weights=weights)  # type: ignore[arg-type]
    except NotSupportedError:
        return
    assert np.allclose(s.B @ s.L, prefix(4))
    assert s.error == pytest.approx(float(weights @ (s.sensitivity**2 * np.sum(s.B**2, axis=1))))
    assert 0.9e60 < s.lower_bound <= s.error


def test_the_sign_of_a_zero_changes_nothing() -> None:
    W = np.array([[1.0, -0.0, 1.0], [-0.0, 1.0, 1.0], [-0.0, -0.0, -1.0]])
    for name in (None, "results", "lrm"):
        signed, plain = optimize(W, strategy=name), optimize(W + 0.0, strategy=name)
        assert (signed.L.tobytes(), signed.B.tobytes()) == (plain.L.tobytes(), plain.B.tobytes())


@pytest.mark.parametrize("privacy", KINDS)
def test_rows_of_very_different_scales_are_all_answered(privacy: str) -> None:
    W = np.tril(np.ones((20, 20)))
    W[3] *= 250_000.0
    W[7] *= 1e-6
    s = optimize(W, privacy=privacy)
    rows = np.linalg.norm(W, axis=1)
    assert np.max(np.linalg.norm(s.B @ s.L - W, axis=1) / rows) <= 1e-9
    assert s.lower_bound <= s.error <= 1.001 * np.sum(W**2)


@pytest.mark.parametrize(
    "wrong",
    [
        [[np.nan, 1.0]],
        [[np.inf, 1.0]],
        [1.0, 2.0],
        [[[1.0]]],
        [[]],
        np.zeros((0, 3)),
        [["a"]],
        [[1.0], [1.0, 2.0]],
        [["1"]],
        np.array([[1j]]),
        [[10**400]],
        [[None]],
        None,
        np.array([["1", "2"]], dtype=object),
        np.array([[1.0, "2"]], dtype=object),
        np.array([[np.longdouble("1e400")]]),
        np.array([[np.longdouble("1e400"), 1]], dtype=object),
        np.ma.array([[1.0, 2.0]], mask=[[False, True]]),
        [np.ma.array([1.0, 2.0], mask=[False, True]), [1.0, 2.0]],
        [[np.ma.masked, 1.0]],
    ],
)
def test_what_is_no_workload_is_refused(wrong: object) -> None:
    with pytest.raises(ProgrammingError):
        optimize(wrong)  # type: ignore[arg-type]


WRONG_ARGUMENTS = [
    *[({"deadline": wrong}, "deadline=2.0") for wrong in ("x", -1.0, np.nan, True, [2.0], 10**400)],
    *[({"target_gap": wrong}, "target_gap=0.001") for wrong in ("x", -1e-3, np.nan, np.inf, None, [1])],
    *[({"progress": wrong}, "progress=print") for wrong in (1, "print", [print])],
    *[({"cancel": wrong}, "cancel=event.is_set") for wrong in (True, 0, "no")],
    *[({"privacy": wrong}, '"approximate"') for wrong in ("gaussian", ["pure"], 1, None, np.ones(2))],
    *[({"objective": wrong}, '"largest"') for wrong in ("max", ["total"], 1, None)],
    *[({"strategy": wrong}, '"identity"') for wrong in ("magic", ["lrm"], 1, {}, np.ones(2))],
    *[({"reduce": wrong}, "True, False or None") for wrong in ("yes", 1, [])],
    ({"gamma": 1.0}, "name one"),
    ({"strategy": "lrm", "gama": 1.0}, "gamma"),
    *[({"strategy": "lrm", "gamma": wrong}, "at least 0") for wrong in ("a", -1.0, np.nan, np.inf, None, True)],
    *[({"strategy": "lrm", "rank": wrong}, "whole number of at least 1") for wrong in (-1, 0, 2.0, "a", True)],
    *[({"strategy": "lrm", "rounds": wrong}, "at least 1") for wrong in (0, None, 1.5)],
    *[({"strategy": "lrm", "starts": wrong}, "at least 1") for wrong in (0, -1, 2.5)],
    *[({"strategy": "coa", "iterations": wrong}, "at least 0") for wrong in (1.5, -3, "ten")],
    *[({"strategy": "coa", "theta": wrong}, "above 0") for wrong in (0.0, -1.0, "a", np.nan)],
    *[({"strategy": "coa", "inner": wrong}, "at least 0") for wrong in (-1, 0.5)],
    *[({"strategy": "coa", "homotopy": wrong}, "True or False") for wrong in ("no", 1)],
    *[({"strategy": "coa", "settings": wrong}, '"program" or "paper"') for wrong in ("matlab", 1, ["paper"])],
    *[({"strategy": "esm", "smoothing": wrong}, "above 0") for wrong in (0, "a")],
    *[({"strategy": "esm", "theta": wrong}, "above 0") for wrong in (0, -1)],
    *[({"strategy": "hierarchical", "branching": wrong}, "at least 2") for wrong in (1, "a", 2.5)],
    *[({"strategy": "adaptive", "rounds": wrong}, "at least 1") for wrong in (0, [1])],
    *[({"strategy": "p-identity", "rows": wrong}, "at least 1") for wrong in (0, "a")],
    *[({"strategy": "p-identity", "iterations": wrong}, "at least 0") for wrong in (-1, None)],
    *[({"strategy": "low-rank", name: -1}, "at least") for name in ("rows", "start", "levels", "iterations")],
    ({"strategy": "weighted", "levels": 0}, "at least 1"),
]


@pytest.mark.parametrize(("arguments", "advice"), WRONG_ARGUMENTS, ids=lambda value: str(value)[:60])
@pytest.mark.parametrize("workload", [[[1.0, 2.0]], [[0.0]]], ids=["a workload", "all zero"])
def test_wrong_arguments_are_refused_with_what_to_write(workload: object, arguments: dict, advice: str) -> None:
    with pytest.raises(ProgrammingError, match=re.escape(advice)):
        optimize(workload, **arguments)  # type: ignore[arg-type]


def test_arguments_of_other_number_types_are_taken() -> None:
    W = np.tril(np.ones((4, 4)))
    mixed = np.array([[1, Decimal("2.5"), Fraction(1, 2), True, np.float32(1.0), np.True_]], dtype=object)
    for workload in (mixed, np.ma.array(W), W.astype(np.longdouble), W.astype(bool).tolist()):
        check(np.array(workload, dtype=float), optimize(workload, weights=np.ma.array(np.ones(len(workload)))))
    for arguments in (
        {"deadline": np.float32(1.0), "target_gap": 0, "reduce": np.True_},
        {"deadline": np.inf, "strategy": "lrm", "gamma": 0, "rank": np.int64(5), "rounds": 3},
        {"deadline": 1, "strategy": "p-identity", "rows": None, "iterations": 2},
        *({"strategy": name, "iterations": 0} for name in ("p-identity", "low-rank", "weighted")),
        *({"strategy": name, "iterations": 0, "privacy": "approximate"} for name in ("coa", "esm")),
    ):
        check(W, optimize(W, **arguments))


@pytest.mark.parametrize("rank", [np.uint8(7), np.int8(7), np.int64(7), 7])
def test_numbers_of_numpy_are_numbers(rank: int) -> None:
    """Small integers of numpy wrap around in products; they count as Python's."""
    W = np.tril(np.ones((6, 40)))
    assert optimize(W, strategy="lrm", rank=rank, starts=1, rounds=5).L.shape == (7, 40)
