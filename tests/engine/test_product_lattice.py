"""Blocks of products on the lattice: exact norms, exact answers, exact orthogonality, true sensitivity."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tacit.engine import plan_release
from tacit.engine.mechanism.lattice import exact_answers
from tacit.engine.mechanism.measure import measure
from tacit.engine.mechanism.measurement import Measurement, pack, unpack
from tacit.engine.mechanism.plan import JointPlan, predicted_measurements
from tacit.engine.mechanism.product_lattice import ProductLattice, product_of_factors
from tacit.engine.mechanism.table_plan import ProductPlan, product_widths
from tacit.engine.product_workload import ProductWorkload
from tacit.engine.strategy import Privacy
from tacit.errors import LedgerError

from .products import all_sets, marginals, random_workload, table, workload
from .workloads import prefix

KINDS: tuple[Privacy, ...] = ("pure", "approximate")
UNIT = 2**20

PREFIXES = workload(
    [6, 5, 3], [((0, 1), [prefix(6), np.eye(5)]), ((1, 2), [prefix(5), np.eye(3)]), ((2,), [np.eye(3)])]
)
SUMS = workload(
    [4, 2, 3, 2],
    [
        ((0, 1), [np.eye(4), np.array([[-5.0, 250.0]])]),
        ((0, 3), [np.eye(4), np.array([[0.1, 1234.567]])]),
        ((0, 2), [np.eye(4), np.eye(3)]),
        ((2,), [np.eye(3)]),
    ],
    summed=frozenset({1, 3}),
    fixed_point=UNIT,
)
THIN = workload([5, 4], [((0, 1), [np.array([[1.0, 1, 0, 0, 0]]), np.eye(4)]), ((0,), [np.array([[0.0, 1, 1, 0, 0]])])])
CASES: dict[str, ProductWorkload] = {
    "cube": marginals([4, 3, 2], all_sets(3, 0, 3)),
    "pairs": marginals([5, 2, 3, 2], all_sets(4, 2, 2)),
    "prefixes": PREFIXES,
    "sums": SUMS,
    "thin": THIN,
    "random": random_workload(np.random.default_rng(9), axes=3, largest=4),
    "random too": random_workload(np.random.default_rng(12), axes=4, largest=3),
}


@cache
def planned(name: str, privacy: Privacy, **others: Any) -> JointPlan:
    products = CASES[name]
    if others:
        products = ProductWorkload(products.sizes, products.groups, summed=products.summed, **others)
    return plan_release([table(products)], privacy=privacy)


def lattices(plan: JointPlan) -> tuple[ProductLattice, ...]:
    (part,) = plan.parts
    assert isinstance(part, ProductPlan)
    return part.lattices


def integers(lattice: ProductLattice) -> list[list[int]]:
    """What is asked, written out in Python's integers."""
    whole = [[1 << lattice.shift]]
    for factor in lattice.factors:
        whole = [[a * b for a in row for b in other] for row in whole for other in factor.tolist()]
    return whole


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("privacy", KINDS)
def test_norms_and_answers_are_exact(name: str, privacy: Privacy) -> None:
    rng = np.random.default_rng(3)
    for lattice in lattices(planned(name, privacy)):
        rows = integers(lattice)
        columns = list(zip(*rows, strict=True))
        if privacy == "pure":
            assert lattice.norm == max(sum(map(abs, column)) for column in columns)
        else:
            square = max(sum(v * v for v in column) for column in columns)
            assert lattice.norm**2 >= square
            assert (lattice.norm - 1) ** 2 < square
            assert Fraction(lattice.norm) ** 2 <= Fraction(square) * (1 + Fraction(1, 2**20)) ** 2
        for largest in (100, 2**40, 2**62):
            x = rng.integers(0, largest, size=lattice.cells)
            exact = [sum(a * b for a, b in zip(row, x.tolist(), strict=True)) for row in rows]
            assert lattice.exact(x) == exact
        assert (lattice.questions, lattice.cells) == (len(rows), len(rows[0]))


def test_products_that_would_overflow() -> None:
    """The bound on partial sums turns to Python's integers in time, also in the middle of a product."""
    factors = [np.array([[2**30, -(2**30)], [1, 1]]), np.array([[2**30, 1], [2**31, -1]]), np.eye(2, dtype=np.int64)]
    for size in (1, 2**3, 2**31, 2**62, 2**70):
        x = np.array([size * k for k in (1, -1, 1, 1, -1, 1, 1, -1)], dtype=object)
        whole: list[list[int]] = [[1]]
        for factor in factors:
            whole = [[a * b for a in row for b in other] for row in whole for other in factor.tolist()]
        expected = [sum(a * b for a, b in zip(row, x.tolist(), strict=True)) for row in whole]
        assert product_of_factors(factors, x) == expected
        if size < 2**62:
            assert product_of_factors(factors, x.astype(np.int64)) == expected


@pytest.mark.parametrize("name", ["cube", "pairs", "prefixes", "random"])
def test_what_sees_no_total_sees_none_after_rounding(name: str) -> None:
    """Rows are orthogonal to the weights p in integers: p is a multiple of integers too."""
    looked_at = 0
    for lattice in lattices(planned(name, "approximate")):
        for factor, split in zip(lattice.factors, lattice.splits, strict=True):
            if split is None or not split.any():
                continue
            fractions = [Fraction(float(p)).limit_denominator(4096) for p in split.tolist()]
            assert sum(fractions) == 1
            assert all(abs(float(p) - q) < 1e-12 for p, q in zip(fractions, split.tolist(), strict=True))
            for row in factor.tolist():
                assert sum(p * v for p, v in zip(fractions, row, strict=True)) == 0
            looked_at += 1
    assert looked_at


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("privacy", KINDS)
def test_rounding_costs_next_to_nothing(name: str, privacy: Privacy) -> None:
    """Errors from the rounded blocks are those that were searched for: every row is still determined."""
    plan = planned(name, privacy)
    (part,) = plan.parts
    assert isinstance(part, ProductPlan)
    total = float(np.square(part.row_weights * part._unit_stderr).sum())
    if name == "random" and privacy == "approximate":  # arbitrary reals are asked point by point, which costs more
        assert part.strategy.error < total < 1.5 * part.strategy.error
    else:
        assert total == pytest.approx(part.strategy.error, rel=2e-3)


@pytest.mark.parametrize("privacy", KINDS)
def test_divided_rows_are_not_rounded_to_whole_ones(privacy: Privacy) -> None:
    """Without noise, the sum of one row that is 0.3 of the way between its ends."""
    plan = planned("sums", privacy, fixed_point=UNIT)
    blocks = plan.blocks
    noises = plan.calibrate(1, 0 if privacy == "pure" else 1e-6)
    looked_at = 0
    for block, noise in zip(blocks, noises, strict=True):
        lattice = block.lattice
        assert isinstance(lattice, ProductLattice)
        if block.one_row == 1:
            continue
        looked_at += 1
        x = np.zeros(lattice.cells, dtype=np.int64)
        x[0], x[1] = UNIT - UNIT * 3 // 10, UNIT * 3 // 10
        released = exact_answers(lattice, x, noise.resolution).astype(float) * 2.0**noise.step
        exact = np.array([[float(v) for v in row] for row in integers(lattice)]) @ (x / UNIT)
        exact = np.ldexp(exact, lattice.exponent)
        size = math.ldexp(lattice.norm, lattice.exponent)
        np.testing.assert_allclose(released / size, exact / size, atol=2.0**-20)
        assert noise.resolution.sensitivity >= 2**20  # the lattice is fine, so rounding adds nothing to the noise
    assert looked_at


@pytest.mark.parametrize("rows_per_unit", [1, 3])
@pytest.mark.parametrize("name", ["cube", "prefixes", "sums", "thin", "random"])
@pytest.mark.parametrize("privacy", KINDS)
def test_no_neighbour_is_further_than_the_sensitivity(name: str, privacy: Privacy, rows_per_unit: int) -> None:
    """One unit more, of rows that fall anywhere, or are divided anyhow; the distance is reached by some."""
    rng = np.random.default_rng(17)
    plan = planned(name, privacy, rows_per_unit=rows_per_unit, fixed_point=UNIT)
    delta = 0 if privacy == "pure" else 1e-6
    for epsilon in (1.0, 1e-5):
        for block, noise in zip(plan.blocks, plan.calibrate(epsilon, delta), strict=True):
            lattice, reach = block.lattice, 0.0
            sensitivity = noise.resolution.sensitivity
            for trial in range(60):
                x = rng.integers(0, 1000 * block.one_row, size=lattice.cells)
                more = x.copy()
                same = int(rng.integers(lattice.cells)) if trial % 2 else None
                for _ in range(rows_per_unit):
                    more += _one_row(rng, lattice.cells, block.one_row, trial % lattice.cells if same is None else same)
                before, after = (exact_answers(lattice, v, noise.resolution) for v in (x, more))
                moved = [abs(int(a) - int(b)) for a, b in zip(before.tolist(), after.tolist(), strict=True)]
                if privacy == "pure":
                    assert sum(moved) <= sensitivity
                    reach = max(reach, sum(moved) / sensitivity)
                else:
                    assert sum(m * m for m in moved) <= sensitivity**2
                    reach = max(reach, math.sqrt(sum(m * m for m in moved)) / sensitivity)
            assert reach >= 0.98 if lattice.cells <= 30 else reach > 0.7


def _one_row(rng: np.random.Generator, cells: int, one_row: int, cell: int) -> NDArray[np.int64]:
    x = np.zeros(cells, dtype=np.int64)
    if one_row == 1 or rng.random() < 0.5:
        x[cell] = one_row
    else:
        part = int(rng.integers(one_row + 1))
        x[cell], x[(cell + 1) % cells] = 0, 0
        x[cell] += part
        x[(cell + 1) % cells] += one_row - part
    return x


@pytest.mark.parametrize("privacy", KINDS)
def test_a_factor_that_blocks_share_is_rounded_once(privacy: Privacy) -> None:
    """So that they still split its axis alike, and their components can be put together."""
    (part,) = planned("prefixes", privacy).parts
    assert isinstance(part, ProductPlan)
    rounded: dict[int, set[int]] = {}
    for block, lattice in zip(part.strategy.blocks, part.lattices, strict=True):
        for L, factor in zip(block.factors, lattice.factors, strict=True):
            rounded.setdefault(id(L), set()).add(id(factor))
    assert sum(len(lattice.axes) for lattice in part.lattices) > len(rounded)
    assert all(len(numbers) == 1 for numbers in rounded.values())


def _measurements(privacy: Privacy) -> tuple[Measurement, ...]:
    plan = planned("sums", privacy, fixed_point=UNIT)
    xs = [np.arange(block.lattice.cells) for block in plan.blocks]
    return measure(plan, xs, 1, 0 if privacy == "pure" else 1e-6)


@pytest.mark.parametrize("privacy", KINDS)
def test_what_is_stored_is_read_back(privacy: Privacy) -> None:
    measured = _measurements(privacy)
    for m, read in zip(measured, unpack(pack(measured)), strict=True):
        assert m.product is not None
        assert read.product is not None
        assert (m.exponent, m.step, m.noise, m.lattice_scale) == (
            read.exponent,
            read.step,
            read.noise,
            read.lattice_scale,
        )
        assert m.product.exponents == read.product.exponents
        np.testing.assert_array_equal(m.noisy, read.noisy)
        np.testing.assert_array_equal(m.L_int, read.L_int)
        for a, b in zip(m.product.factors, read.product.factors, strict=True):
            np.testing.assert_array_equal(a, b)
        for p, q in zip(m.product.splits, read.product.splits, strict=True):
            assert (p is None) == (q is None)
            if p is not None and q is not None:
                np.testing.assert_array_equal(p, q)


def test_predictions_have_the_noise_of_the_release() -> None:
    plan = planned("cube", "pure")
    xs = [np.zeros(block.lattice.cells, dtype=np.int64) for block in plan.blocks]
    for m, p in zip(measure(plan, xs, 1), predicted_measurements(plan, 1), strict=True):
        assert (m.stddev, m.step, m.exponent) == (p.stddev, p.step, p.exponent)
        np.testing.assert_array_equal(m.L_int, p.L_int)


def _packed(values: list[int]) -> str:
    return base64.b64encode(zlib.compress(np.array(values, dtype="<i8").tobytes())).decode()


def _factor(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda m: change(m["factors"][0])


DAMAGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no noise": lambda m: m.pop("noise"),
    "another noise": lambda m: m.update(noise="none"),
    "no scale": lambda m: m.update(scale="nan"),
    "a scale of nothing": lambda m: m.update(scale="0x0p0"),
    "a step that is no integer": lambda m: m.update(step=0.5),
    "an endless step": lambda m: m.update(step=10**6),
    "an exponent above its factors'": lambda m: m.update(exponent=m["exponent"] + 41),
    "an exponent far below its factors'": lambda m: m.update(exponent=m["exponent"] - 41),
    "a factor less": lambda m: m["factors"].pop(),
    "no factors": lambda m: m.update(factors=None),
    "a factor twice": lambda m: m["factors"].append(m["factors"][0]),
    "fewer answers": lambda m: m.update(noisy=_packed([1])),
    "answers that are no text": lambda m: m.update(noisy=5),
    "another shape": _factor(lambda f: f.update(shape=[1, 1])),
    "a negative shape": _factor(lambda f: f.update(shape=[-1, -1])),
    "a shape with holes": _factor(lambda f: f.update(shape=[True, 2])),
    "a huge shape": _factor(lambda f: f.update(shape=[10**6, 10**6])),
    "entries that are too few": _factor(lambda f: f.update(entries=_packed([1]))),
    "entries that are no base64": _factor(lambda f: f.update(entries="????")),
    "no exponent of a factor": _factor(lambda f: f.pop("exponent")),
    "a large exponent of a factor": _factor(lambda f: f.update(exponent=501)),
    "weights of another length": _factor(lambda f: f.update(split=["0x1p0"] * 9)),
    "weights that are no numbers": _factor(lambda f: f.update(split=["nan"] * f["shape"][1])),
    "weights that are no list": _factor(lambda f: f.update(split=3)),
}


@pytest.fixture(scope="module")
def stored() -> bytes:
    return pack(_measurements("approximate"))


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_records_are_refused(stored: bytes, name: str) -> None:
    content = json.loads(stored)
    one = next(m for m in content["measurements"] if len(m["factors"]) > 1)
    DAMAGE[name](one)
    with pytest.raises(LedgerError):
        unpack(json.dumps(content).encode())


def test_an_older_tacit_does_not_take_products_for_a_matrix(stored: bytes) -> None:
    content = json.loads(stored)
    assert content["format"] == 3
    content["format"] = 4
    with pytest.raises(LedgerError, match="newer version"):
        unpack(json.dumps(content).encode())


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_a_noise_far_below_its_step_widens_no_row_beyond_chebyshev(level: float) -> None:
    """Integers with hardly any noise, beside sums that have some: the sums' intervals stay in proportion."""
    alone = product_widths(np.array([3.0]), [("laplace", 50.0)], level)
    beside = product_widths(np.array([3.0]), [("laplace", 50.0), ("laplace", 0.02)], level)
    assert alone < beside <= 3.0 / (1 - level) ** 0.5 * (1 + 1e-12)
    assert product_widths(np.array([3.0]), [("laplace", 50.0), ("laplace", 40.0)], level) < beside
