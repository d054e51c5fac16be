"""Answers from blocks of questions over different axes, component by component.

Fix weights p for every axis, adding up to 1. A row q over one axis is (q·p)·1 plus the rest, which is orthogonal to
p; so a product of rows over several axes is a sum of components, one for each subset U of its axes: the rests over
U, times the means q·p over the others. A component over U is asked of nothing but the counts over U. A block of
questions over S tells of the component over U ⊆ S what it knows after adding up over S \\ U. Where p is chosen by
the block's own questions (``AxisQuestions.split``), the noise in different components of one block is uncorrelated,
so each component can be taken from all blocks by the inverse of their variances: for marginals that is least
squares, in closed form. It is what ResidualPlanner (arXiv 2305.08175) and HDMM's marginals do for equal weights;
here every axis has its own.

Everything here is post-processing, and data-free but for the answers that it is given.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from tacit.engine.linalg import pseudo_inverse
from tacit.engine.product_workload import Axes, Block, ProductRows, kron
from tacit.engine.strategy import Matrix, Vector

_SEEN = 1e-7
"""A row is in the row space of the questions if they miss it by no more than this part of its largest entry."""
_NOTHING = 1e-12
"""A part of a row that is smaller than this share of it is rounding."""


@dataclass(frozen=True, eq=False)
class AxisQuestions:
    """One factor of a block: what its rows tell of one axis."""

    L: Matrix
    given: Vector | None = None
    """Weights that all rows are orthogonal to."""

    @cached_property
    def inverse(self) -> Matrix:
        return pseudo_inverse(self.L)

    @cached_property
    def total(self) -> Vector:
        """How the total over the axis is read off."""
        return np.asarray(self.inverse.sum(axis=0))

    @cached_property
    def total_square(self) -> float:
        """The variance of the total, where each answer has variance 1."""
        return float(self.total @ self.total)

    @cached_property
    def sees_total(self) -> bool:
        return self.given is None and bool(np.abs(self.total @ self.L - 1).max() <= _SEEN)

    @cached_property
    def split(self) -> Vector | None:
        """p: the given weights; or, if the rows determine every point, those at which the total and the rest are
        uncorrelated. With G = L⁺L⁺ᵀ, 1ᵀG(q − (q·p)1) = 0 for all q gives p = G1/1ᵀG1. None where neither is so."""
        if self.given is not None:
            return self.given
        if np.abs(self.inverse @ self.L - np.eye(self.L.shape[1])).max() > _SEEN:
            return None
        weights = self.inverse @ self.total
        return np.asarray(weights / weights.sum())

    def rests(self, split: Vector) -> Matrix:
        """How each point's indicator, without its mean, is read off."""
        return np.asarray(self.inverse - np.outer(split, self.total))

    def holds(self, rows: Matrix) -> bool:
        """Whether the questions determine these rows."""
        missing = np.abs(rows @ self.inverse @ self.L - rows).max(initial=0.0)
        return bool(missing <= _SEEN * max(np.abs(rows).max(initial=0.0), 1e-300))


@dataclass(frozen=True, eq=False)
class Evidence:
    """A block of questions that was asked, with the noise on its answers."""

    axes: Axes
    questions: tuple[AxisQuestions, ...]
    stddev: float
    answers: NDArray[np.float64] | None = field(default=None, repr=False)
    """One axis for each factor; None where only errors are predicted."""
    source: int = 0
    """Which release it is of."""

    @cached_property
    def by_axis(self) -> dict[int, AxisQuestions]:
        return dict(zip(self.axes, self.questions, strict=True))


@dataclass(frozen=True, eq=False)
class _Kind:
    """Blocks that ask the same of the axes of a component, and so tell of it alike but for the size of their noise."""

    questions: tuple[AxisQuestions, ...]
    """For each axis of the component, in ascending order."""
    blocks: tuple[tuple[Evidence, float], ...]
    """Each with the weight that its word has, the inverse of a variance."""
    weight: float
    noise: float
    """Σ weight² · (the variance of one question after adding up over the other axes)."""


class Direct:
    """One block by itself: whatever its rows determine."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    @property
    def sources(self) -> frozenset[int]:
        return frozenset([self._evidence.source])

    def determines(self, group: ProductRows) -> bool:
        mine = self._evidence.by_axis
        return (
            set(group.axes) <= mine.keys()
            and all(mine[a].sees_total for a in mine if a not in group.by_axis)
            and all(mine[a].holds(f) for a, f in group.by_axis.items())
        )

    def variances(self, group: ProductRows) -> Vector:
        mine = self._evidence.by_axis
        beside = math.prod(q.total_square for a, q in mine.items() if a not in group.by_axis)
        norms = [_squares(f @ mine[a].inverse) for a, f in group.by_axis.items()]
        return beside * self._evidence.stddev**2 * kron(norms)

    def values(self, group: ProductRows) -> Vector:
        mine = self._evidence
        assert mine.answers is not None
        matrices = [
            group.by_axis[a] @ q.inverse if a in group.by_axis else q.total[None, :] for a, q in mine.by_axis.items()
        ]
        tensor = applied(mine.answers, matrices)
        beside = tuple(i for i, a in enumerate(mine.axes) if a not in group.by_axis)
        order = [a for a in mine.axes if a in group.by_axis]
        return tensor.squeeze(beside).transpose([order.index(a) for a in group.axes]).reshape(-1)

    def covariance(self, first: ProductRows, i: Index, second: ProductRows, j: Index) -> Vector:
        mine = self._evidence
        result = np.full(len(i[0]) if i else len(j[0]) if j else 1, mine.stddev**2)
        for a, q in mine.by_axis.items():
            left = _picked(first, a, i, q.inverse, q.total)
            right = _picked(second, a, j, q.inverse, q.total)
            result = result * np.einsum("rk,rk->r", *np.broadcast_arrays(left, right))
        return np.asarray(result)


Index = Sequence[NDArray[np.int64]]
"""For each axis of a group, the rows of its factor."""


class Frame:
    """Blocks with the same weights p on every axis: components are taken from all of them."""

    def __init__(self, evidence: Sequence[Evidence], splits: dict[int, Vector]) -> None:
        self._evidence = tuple(evidence)
        self._splits = splits
        self._able: dict[frozenset[int], tuple[_Kind, ...]] = {}
        self._estimates: dict[tuple[frozenset[int], tuple[int, ...]], NDArray[np.float64]] = {}
        self._held: dict[tuple[int, int], tuple[bool, Matrix, AxisQuestions]] = {}
        self._norms: dict[tuple[int, int], tuple[Vector, Matrix, AxisQuestions]] = {}
        self._means: dict[tuple[int, int], tuple[Vector, bool, Matrix]] = {}

    @property
    def sources(self) -> frozenset[int]:
        return frozenset(e.source for e in self._evidence)

    def determines(self, group: ProductRows) -> bool:
        return all(a in self._splits or not self._has_rest(group, a) for a in group.axes) and all(
            self._kinds(U, group) for U in self._components(group)
        )

    def variances(self, group: ProductRows) -> Vector:
        total = np.zeros(math.prod(group.shape))
        for U in self._components(group):
            kinds = self._kinds(U, group)
            weight = sum(kind.weight for kind in kinds)
            for kind in kinds:
                asked = dict(zip(sorted(U), kind.questions, strict=True))
                vectors = [
                    self._rest_norms(f, asked[a], a) if a in U else np.square(self._mean(group, a))
                    for a, f in group.by_axis.items()
                ]
                total += kind.noise / weight**2 * kron(vectors)
        return total

    def values(self, group: ProductRows) -> Vector:
        total = np.zeros(math.prod(group.shape))
        for U in self._components(group):
            order = [a for a in group.axes if a in U]
            tensor = self._estimate(U, self._kinds(U, group))
            tensor = tensor.transpose([sorted(U).index(a) for a in order])
            tensor = applied(tensor, [group.by_axis[a] for a in order])
            for k, a in enumerate(group.axes):
                if a not in U:
                    tensor = np.multiply.outer(tensor, self._mean(group, a))
                    tensor = np.moveaxis(tensor, -1, k)
            total += tensor.reshape(-1)
        return total

    def covariance(self, first: ProductRows, i: Index, second: ProductRows, j: Index) -> Vector:
        count = len(i[0]) if i else len(j[0]) if j else 1
        result = np.zeros(count)
        common = frozenset(first.axes) & frozenset(second.axes)
        for U in self._components(first):
            if not common >= U:
                continue
            means = np.ones(count)
            for group, index in ((first, i), (second, j)):
                for k, a in enumerate(group.axes):
                    if a not in U:
                        means = means * self._mean(group, a)[index[k]]
            kinds, others = self._kinds(U, first), self._kinds(U, second)
            weights = sum(kind.weight for kind in kinds) * sum(kind.weight for kind in others)
            for kind in kinds:
                if not any(kind is other for other in others):
                    continue
                term = means * (kind.noise / weights)
                for a, questions in zip(sorted(U), kind.questions, strict=True):
                    rests = questions.rests(self._splits[a])
                    left, right = (
                        (g.by_axis[a] @ rests)[index[g.axes.index(a)]] for g, index in ((first, i), (second, j))
                    )
                    term = term * np.einsum("rk,rk->r", left, right)
                result += term
        return result

    def _components(self, group: ProductRows) -> Iterator[frozenset[int]]:
        """The subsets of a group's axes over which its rows have a component."""
        optional = [a for a in group.axes if self._has_mean(group, a) and self._has_rest(group, a)]
        needed = [a for a in group.axes if not self._has_mean(group, a)]
        for size in range(len(optional) + 1):
            for chosen in itertools.combinations(optional, size):
                yield frozenset((*needed, *chosen))

    def _has_mean(self, group: ProductRows, axis: int) -> bool:
        return bool(np.abs(self._mean(group, axis)).max() > _NOTHING * np.abs(group.by_axis[axis]).max())

    def _has_rest(self, group: ProductRows, axis: int) -> bool:
        self._mean(group, axis)
        return self._means[axis, id(group.by_axis[axis])][1]

    def _mean(self, group: ProductRows, axis: int) -> Vector:
        """Under the axis' weights; a constant row, such as the sum of a clamp of one value, has it under any."""
        factor = group.by_axis[axis]
        key = (axis, id(factor))
        if key not in self._means:
            split = self._splits.get(axis)
            mean = np.asarray(factor.mean(axis=1) if split is None else factor @ split)
            rest = np.abs(factor - mean[:, None]).max() > _NOTHING * np.abs(factor).max()
            self._means[key] = mean, bool(rest), factor
        return self._means[key][0]

    def _rest(self, group: ProductRows, axis: int) -> Matrix:
        return np.asarray(group.by_axis[axis] - self._mean(group, axis)[:, None])

    def _rest_norms(self, factor: Matrix, questions: AxisQuestions, axis: int) -> Vector:
        key = (id(factor), id(questions))
        if key not in self._norms:
            self._norms[key] = _squares(factor @ questions.rests(self._splits[axis])), factor, questions
        return self._norms[key][0]

    def _kinds(self, U: frozenset[int], group: ProductRows) -> tuple[_Kind, ...]:
        """The blocks that tell of a group's component over U, weighed by the inverse of their variances.

        The weights do not depend on the rows that are asked, so that answers agree with each other to the last digit.
        """
        if U not in self._able:
            self._able[U] = tuple(self._listed(U))
        axes = sorted(U)
        return tuple(
            kind
            for kind in self._able[U]
            if all(self._holds(q, group, a) for a, q in zip(axes, kind.questions, strict=True))
        )

    def _listed(self, U: frozenset[int]) -> Iterator[_Kind]:
        alike: dict[tuple[int, ...], list[tuple[Evidence, float]]] = {}
        axes = sorted(U)
        for e in self._evidence:
            if e.by_axis.keys() >= U and all(q.sees_total for a, q in e.by_axis.items() if a not in U):
                alike.setdefault(tuple(id(e.by_axis[a]) for a in axes), []).append((e, _noise_beside(e, U)))
        for members in alike.values():
            questions = tuple(members[0][0].by_axis[a] for a in axes)
            typical = math.prod(self._typical(q, a) for a, q in zip(axes, questions, strict=True))
            blocks = tuple((e, 1 / (beside * typical)) for e, beside in members)
            noise = sum(w**2 * beside for (_, w), (_, beside) in zip(blocks, members, strict=True))
            yield _Kind(questions, blocks, sum(w for _, w in blocks), noise)

    def _holds(self, questions: AxisQuestions, group: ProductRows, axis: int) -> bool:
        factor = group.by_axis[axis]
        key = (id(questions), id(factor))
        if key not in self._held:
            self._held[key] = questions.holds(self._rest(group, axis)), factor, questions
        return self._held[key][0]

    def _typical(self, questions: AxisQuestions, axis: int) -> float:
        rests = questions.rests(self._splits[axis])
        return max(float(np.square(rests).sum()) / max(len(rests) - 1, 1), 1e-300)

    def _estimate(self, U: frozenset[int], kinds: Sequence[_Kind]) -> NDArray[np.float64]:
        """The counts over U without their means, axes in ascending order."""
        key = (U, tuple(id(kind) for kind in kinds))
        if key not in self._estimates:
            total = np.zeros([len(self._splits[a]) for a in sorted(U)])
            weight = sum(kind.weight for kind in kinds)
            for evidence, own in (block for kind in kinds for block in kind.blocks):
                assert evidence.answers is not None
                matrices = [
                    q.rests(self._splits[a]) if a in U else q.total[None, :] for a, q in evidence.by_axis.items()
                ]
                tensor = applied(evidence.answers, matrices)
                beside = tuple(k for k, a in enumerate(evidence.axes) if a not in U)
                order = [a for a in evidence.axes if a in U]
                total += own / weight * tensor.squeeze(beside).transpose([order.index(a) for a in sorted(U)])
            self._estimates[key] = total
        return self._estimates[key]


Source = Frame | Direct


def sources(evidence: Sequence[Evidence]) -> tuple[Source, ...]:
    """The evidence in parts that have nothing in common: frames of blocks that agree on p, and single blocks."""
    frames: list[tuple[dict[int, Vector], list[Evidence]]] = []
    single: list[Direct] = []
    for e in evidence:
        mine = {a: q.split for a, q in e.by_axis.items()}
        if any(split is None for split in mine.values()):
            single.append(Direct(e))
            continue
        known = {a: split for a, split in mine.items() if split is not None}
        for splits, members in frames:
            if all(a not in splits or _same(splits[a], split) for a, split in known.items()):
                splits.update({a: split for a, split in known.items() if a not in splits})
                members.append(e)
                break
        else:
            frames.append((known, [e]))
    return (*(Frame(members, splits) for splits, members in frames), *single)


def evidence_of(blocks: Sequence[Block], stddevs: Sequence[float]) -> list[Evidence]:
    """Blocks as they would be asked, without answers; equal factors are one."""
    known: dict[tuple[int, int], AxisQuestions] = {}
    result = []
    for block, stddev in zip(blocks, stddevs, strict=True):
        questions = []
        for L, split in zip(block.factors, block.splits, strict=True):
            questions.append(known.setdefault((id(L), id(split)), AxisQuestions(L, split)))
        result.append(Evidence(block.axes, tuple(questions), stddev))
    return result


def applied(tensor: NDArray[np.float64], matrices: Sequence[Matrix]) -> NDArray[np.float64]:
    """Each matrix along its own axis of the tensor."""
    for axis, matrix in enumerate(matrices):
        tensor = np.moveaxis(np.tensordot(matrix, tensor, axes=(1, axis)), 0, axis)
    return tensor


def _noise_beside(evidence: Evidence, U: frozenset[int]) -> float:
    """The variance of one question after adding up over the axes that are not in U."""
    return evidence.stddev**2 * math.prod(q.total_square for a, q in evidence.by_axis.items() if a not in U)


def _picked(group: ProductRows, axis: int, index: Index, inverse: Matrix, total: Vector) -> Matrix:
    if axis not in group.by_axis:
        return total[None, :]
    return np.asarray((group.by_axis[axis] @ inverse)[index[group.axes.index(axis)]])


def _squares(matrix: Matrix) -> Vector:
    return np.asarray(np.einsum("ij,ij->i", matrix, matrix))


def _same(a: Vector, b: Vector) -> bool:
    return a.shape == b.shape and bool(np.abs(a - b).max() <= 1e-9)
