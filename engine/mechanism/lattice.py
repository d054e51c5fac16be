"""The strategy on a lattice: integers times a power of two, with W still in its row space.

Rounding the entries of a thin L would turn its row space away from W and bias every answer. So a thin L is
first written as C·R over an integer row basis R of the workload and only C is rounded: L̃ = C̃·R has W in
its row space as before. A square or tall L of full column rank spans everything and its entries may be
rounded directly.

An L that is a multiple of a matrix of small integers is that matrix: the size of L means nothing to the answers. Over
whole counts its L·x are integers, and geometric noise on the integers themselves has less variance than noise on a fine
lattice (``noise.variance``).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse import csr_array
from tacit.engine.linalg import (
    INDEPENDENT,
    SQUARES_EACH,
    equal,
    is_identity,
    parts_of,
    rebuild,
    residual,
    row_norms,
)
from tacit.engine.mechanism.exact import (
    IntegerMatrix,
    Integers,
    coarsen,
    entries,
    isqrt_up,
    largest_column_norm,
    product,
    with_entries,
)
from tacit.engine.search.reduce import merge_columns
from tacit.engine.strategy import Privacy, Questions, sensitivity
from tacit.errors import InternalError

BITS = 28
"""The released lattice is 2⁻²⁸ of the sensitivity: far finer than any noise, and 2³⁴ rows still fit int64."""
FINE_BITS = 50
"""L itself may be finer than what is released: entries and column norms of 2⁵⁰ fit int64 with room."""

_ACCEPTED_EXCESS = 1.0005
_ACCEPTED_RESIDUAL = 1e-9
_LARGEST_RESIDUAL = 1e-6
_SMALL_DENOMINATOR = 2**20
_MOST_BITS = 56
"""Of the norm of a sparse L, whose parts have steps of their own."""
_LARGEST_INTEGER = 2**30
_LOOK = 2**14
"""Entries that usually tell arbitrary reals from small integers."""
_LARGEST_ENTRY = 2**10
"""Of a matrix of small integers: on a lattice of a thousandth of the sensitivity, noise is next to continuous."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """A rounded strategy L̃ = ``L_int`` · 2^``exponent`` and the B̃ that belongs to it."""

    privacy: Privacy
    L_int: IntegerMatrix = field(repr=False)
    exponent: int
    norm: int
    """Guarantee: no column of ``L_int`` has a larger norm; L1 (pure) exact, L2 (approximate) rounded up."""
    B: NDArray[np.float64] = field(repr=False)
    """W·L̃⁺, so ``B @ L`` is W up to ``residual``."""
    residual: float

    @property
    def L(self) -> Questions:
        """L̃ in real numbers; exact, because entries have at most 53 bits."""
        return real(self.L_int, self.exponent)

    @property
    def questions(self) -> int:
        """How many rows L̃ has."""
        return int(self.L_int.shape[0])

    @property
    def cells(self) -> int:
        """How many columns L̃ has."""
        return int(self.L_int.shape[1])

    def digest(self) -> str:
        """Equal for equal lattices."""
        digest = hashlib.sha256(f"{self.exponent} {self.L_int.shape}".encode())
        parts = [self.L_int] if isinstance(self.L_int, np.ndarray) else [self.L_int.indptr, self.L_int.indices]
        for part in (*parts, entries(self.L_int)):
            digest.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
        return digest.hexdigest()

    def exact(self, x: Integers) -> list[int]:
        """L_int @ x in exact integers. Secret: only noise may see it."""
        return product(self.L_int, x)

    @property
    def sensitivity(self) -> float:
        """The largest column norm of L̃ in real numbers."""
        return math.ldexp(self.norm, self.exponent)

    @property
    def error(self) -> float:
        """sensitivity² · ‖B̃‖²_F, the figure that strategies compete on."""
        return self.sensitivity**2 * _weighted_squares(self.B, np.ones(len(self.B)))


def real(L_int: IntegerMatrix, exponent: int) -> Questions:
    """Integers times 2^exponent."""
    values = entries(L_int).astype(np.float64)
    scaled: Questions = with_entries(L_int, np.ldexp(values, exponent, out=values))
    return scaled


class Asked(Protocol):
    """Integer questions, written out or as a product: all that noise and sensitivity have to know of them."""

    @property
    def privacy(self) -> Privacy: ...
    @property
    def norm(self) -> int: ...
    @property
    def questions(self) -> int: ...
    @property
    def cells(self) -> int: ...
    @property
    def exponent(self) -> int: ...
    def exact(self, x: Any) -> Any: ...
    def digest(self) -> str: ...


@dataclass(frozen=True)
class Resolution:
    """How ``L_int @ x`` becomes the integers that are released, and how far one privacy unit moves them."""

    shift: int
    sensitivity: int


def round_strategy(
    L: Questions,
    W: NDArray[np.float64],
    privacy: Privacy,
    row_weights: NDArray[np.float64] | None = None,
    *,
    whole: bool = False,
    B: NDArray[np.float64] | None = None,
) -> Lattice:
    """The cheapest rounding of L that keeps W in its row space and costs at most 0.1% in error.

    ``row_weights`` multiply the rows of W when that cost is judged: the error that is minimised is usually
    not that of the raw rows. ``whole`` says that x holds whole rows and no fractions of them: then Laplace noise goes
    on the integers themselves where L is a multiple of small ones. ``B`` is W·L⁺ where the caller has it.

    Columns that neither W nor L tells apart stay equal, so that they are rounded once: B·L = W asks the same of B.
    """
    if isinstance(L, np.ndarray) and not is_identity(L):
        merged, position = merge_columns(np.vstack([W, L]))
        if merged.shape[1] < L.shape[1]:
            distinct = round_strategy(merged[len(W) :], merged[: len(W)], privacy, row_weights, whole=whole, B=B)
            assert isinstance(distinct.L_int, np.ndarray)
            return replace(distinct, L_int=np.ascontiguousarray(distinct.L_int[:, position]))
    weights = np.ones(W.shape[0]) if row_weights is None else row_weights
    order = 1 if privacy == "pure" else 2
    if B is None:
        B = rebuild(W, L)
    reference = sensitivity(L, privacy) ** 2 * _weighted_squares(B, weights)
    best: Lattice | None = None
    for L_int, exponent in _roundings(L, W, privacy, whole=whole):
        rounded = real(L_int, exponent)
        B_rounded = B if equal(rounded, L) else rebuild(W, rounded)
        norm = largest_column_norm(L_int, order)
        lattice = Lattice(privacy, L_int, exponent, norm, B_rounded, residual(W, B_rounded, rounded))
        excess = lattice.sensitivity**2 * _weighted_squares(B_rounded, weights)
        if lattice.residual <= _ACCEPTED_RESIDUAL and excess <= _ACCEPTED_EXCESS * reference:
            return lattice
        if best is None or lattice.residual < best.residual:
            best = lattice
    if best is None or best.residual > _LARGEST_RESIDUAL:
        raise InternalError("the rounded strategy no longer answers the workload")
    return best


def released_resolution(lattice: Asked, rows_per_unit: int, one_row: int, noise_per_sensitivity: float) -> Resolution:
    """The lattice that noise is added on, and the sensitivity there.

    Guarantee. Neighbours differ by one privacy unit, that is by at most k = ``rows_per_unit`` rows, each
    of which adds non-negative parts that sum to exactly ``one_row`` to the integer vector x. A row therefore
    moves ``L_int @ x`` by ``one_row`` times a convex mix of columns of ``L_int``, so by at most one_row·norm in
    the L1 (pure) or L2 (approximate) norm, and k rows by at most k·one_row·norm. Division by one_row·2^s
    followed by rounding gives integers y with |y_i − y'_i| < |v_i − v'_i|/(one_row·2^s) + 1, so over r
    coordinates the distance is at most k·norm/2^s + r in L1 and k·norm/2^s + √r in L2 (Minkowski); without
    division nothing is rounded and it is exactly k·norm, however small the integers are: 1 for a histogram of
    whole rows. Clamping is 1-Lipschitz in every coordinate. The shift s depends on the
    plan and on ε only, never on x.
    """
    r = lattice.questions
    reach = rows_per_unit * lattice.norm
    s = max(0, lattice.norm.bit_length() - 1 - BITS)
    # Noise of 2⁵² on a range of 2⁶² saturates with probability below e⁻⁵⁰⁰; tiny ε only makes the lattice coarser.
    while reach * noise_per_sensitivity > 2.0 ** (52 + s):
        s += 1
    shift = one_row.bit_length() - 1 + s
    if shift == 0:
        return Resolution(0, reach)
    if lattice.privacy == "pure":
        return Resolution(shift, (reach >> s) + r)
    return Resolution(shift, -(-reach >> s) + isqrt_up(r))


def exact_answers(lattice: Asked, x: Integers, resolution: Resolution) -> NDArray[np.int64]:
    """``L_int @ x`` on the released lattice. Secret: only ``noise`` may see it."""
    return coarsen(lattice.exact(x), resolution.shift)


def _weighted_squares(B: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    return float(np.sum(np.square(weights * row_norms(B))))


def integer_multiple(L: NDArray[np.float64], largest: int = _LARGEST_ENTRY) -> NDArray[np.int64] | None:
    """The matrix of integers without a common divisor that L is a multiple of; None if some would be above ``largest``.

    The entries may carry a few roundings: a strategy whose sensitivity was brought to 1 holds thirds.
    """
    if np.unique(np.abs(L.ravel()[:_LOOK])).size > largest + 1:
        return None
    if (np.rint(L) == L).all() and 0.0 < float(np.abs(L).max(initial=0.0)) <= largest:
        whole = L.astype(np.int64)
        return np.asarray(whole // np.gcd.reduce(whole, axis=None))
    values = np.unique(np.abs(L))
    if values.size > largest + 1 or not values.any():
        return None
    least = values[values > 0][0]
    if values[-1] > (1 + largest) * least:
        return None
    integers = _integer_row(values)
    if integers is None or int(integers.max()) > largest:
        return None
    return np.asarray(np.sign(L).astype(np.int64) * integers[np.searchsorted(values, np.abs(L))])


def _roundings(
    L: Questions, W: NDArray[np.float64], privacy: Privacy, *, whole: bool
) -> Iterator[tuple[IntegerMatrix, int]]:
    size = sensitivity(L, privacy)
    if whole and privacy == "pure" and (integers := integer_multiple(entries(L))) is not None:
        yield with_entries(L, integers), 0
    if not isinstance(L, np.ndarray):
        if (by_parts := _round_parts(L, W, privacy)) is not None:
            yield by_parts
        values, exponent = _round(L.data, size, FINE_BITS)
        yield with_entries(L, values), exponent
        return
    if L.shape[0] >= L.shape[1] or L.shape[0] >= int((W.any(axis=0) | L.any(axis=0)).sum()):
        yield _round(L, size, BITS)
    over_basis = _round_over_basis(L, W, size)
    if over_basis is not None:
        yield over_basis
    yield _round(L, size, FINE_BITS)


def _round(L: NDArray[np.float64], size: float, bits: int) -> tuple[NDArray[np.int64], int]:
    exponent = _exponent(size) - bits
    steps = np.ldexp(L, -exponent)
    return np.rint(steps, out=steps).astype(np.int64), exponent


def _round_parts(L: csr_array, W: NDArray[np.float64], privacy: Privacy) -> tuple[csr_array, int] | None:
    """A sparse L, part by part: what is a multiple of a sum of cells stays one; any other part is an L of its own.

    All are brought to the finest step; None where the integers would not fit that.
    """
    size = sensitivity(L, privacy)
    cells, parts = parts_of(L)
    uneven = [row for row in cells[np.diff(L.indptr)[cells] > 0] if np.ptp(_row(L, row)) > 0.0]
    parts += [(np.array([row]), L.indices[L.indptr[row] : L.indptr[row + 1]].astype(np.intp)) for row in uneven]
    whole, exponent = _round(L.data, size, BITS)
    if not parts:
        return with_entries(L, whole), exponent
    lattices = []
    for rows, inside in parts:
        asked = np.flatnonzero(W[:, inside].any(axis=1))
        lattices.append(round_strategy(L[rows][:, inside].toarray(), W[np.ix_(asked, inside)], privacy))
    finest = min(exponent, *(lattice.exponent for lattice in lattices))
    if _exponent(size) - finest > _MOST_BITS:
        return None
    even = np.setdiff1d(cells, uneven)
    pieces = [(even, np.arange(L.shape[1]), csr_array(with_entries(L, whole))[even], exponent)]
    for (rows, inside), lattice in zip(parts, lattices, strict=True):
        pieces.append((rows, inside, csr_array(lattice.L_int), lattice.exponent))
    row = np.concatenate([rows[piece.tocoo().row] for rows, _, piece, _ in pieces])
    column = np.concatenate([inside[piece.tocoo().col] for _, inside, piece, _ in pieces])
    data = np.concatenate([piece.tocoo().data << (step - finest) for _, _, piece, step in pieces])
    return csr_array((data, (row, column)), shape=L.shape), finest


def _row(L: csr_array, row: int) -> NDArray[np.float64]:
    return np.asarray(L.data[L.indptr[row] : L.indptr[row + 1]])


def _exponent(value: float) -> int:
    """The smallest e with value ≤ 2^e."""
    mantissa, exponent = math.frexp(value)
    return exponent - 1 if mantissa == 0.5 else exponent


def round_factor(
    L: NDArray[np.float64], rows: NDArray[np.float64], privacy: Privacy, bits: int, *, spans: bool
) -> tuple[NDArray[np.int64], int] | None:
    """One factor of a product, with ``rows`` still in its row space: integers of so many bits, and their exponent.

    ``spans`` says that a factor of full column rank may be rounded entry by entry.
    """
    size = sensitivity(L, privacy)
    values = np.linalg.eigvalsh(L.T @ L)
    if spans and values[0] > 1e-9 * values[-1]:
        return _round(L, size, bits)
    return _round_over_basis(L, rows, size, bits)


def _round_over_basis(
    L: NDArray[np.float64], W: NDArray[np.float64], size: float, coefficient_bits: int | None = None
) -> tuple[NDArray[np.int64], int] | None:
    """C̃·R in integers. C is rounded to 2⁻⁵⁰ of L's size, or to so many bits of its own largest entry."""
    R = _integer_row_basis(W)
    if R is None:
        return None
    basis = R.astype(np.float64)
    C = rebuild(L, basis)
    if residual(L, C, basis) > _ACCEPTED_RESIDUAL:
        return None  # L asks for more than the row space of W: there is nothing to keep exact
    # All of |C̃|·|R| summed over a column of R must stay below 2⁵³ for the product of floats to be exact.
    largest = float((np.abs(C) @ np.abs(basis)).max())
    finest = (
        _exponent(size) - FINE_BITS
        if coefficient_bits is None
        else _exponent(float(np.abs(C).max())) - coefficient_bits
    )
    exponent = max(_exponent(largest) - 52, finest)
    C_int = np.rint(np.ldexp(C, -exponent))
    rounding = 0.5 * float(np.abs(basis).sum(axis=0).max())  # of |C̃|·|R|, at most
    if math.ldexp(largest, -exponent) * (1 + 1e-9) + rounding >= 2.0**53:
        return None
    return (C_int @ basis).astype(np.int64), exponent


def _integer_row_basis(W: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Rows of W, each times a rational, that are integers and span the row space of W; None for arbitrary reals."""
    nonzero = W[np.abs(W).max(axis=1) > 0]
    unit_rows = nonzero / np.linalg.norm(nonzero, axis=1, keepdims=True)
    rows = [_integer_row(nonzero[i]) for i in _independent(unit_rows)]
    if any(row is None for row in rows):
        return None
    return np.array(rows, dtype=np.int64)


def _independent(unit_rows: NDArray[np.float64]) -> list[int]:
    """Which rows to keep for a basis of their space: usually all, which their products with one another show."""
    m, n = unit_rows.shape
    if m <= n:
        try:
            pivots = np.diag(scipy.linalg.cholesky(unit_rows @ unit_rows.T, check_finite=False))
        except np.linalg.LinAlgError:
            pivots = np.zeros(1)
        if pivots.min() > SQUARES_EACH * pivots.max():
            return list(range(m))
    _, R, order = scipy.linalg.qr(unit_rows.T, mode="economic", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > INDEPENDENT * diagonal[0]).sum())
    return sorted(order[:rank].tolist())


def _integer_row(row: NDArray[np.float64]) -> NDArray[np.int64] | None:
    if float(np.abs(row).max()) <= _LARGEST_INTEGER and (np.rint(row) == row).all():
        whole = row.astype(np.int64)
        return np.asarray(whole // np.gcd.reduce(whole))
    values, where = np.unique(row, return_inverse=True)
    largest = float(np.abs(values).max())
    ratios = [Fraction(v / largest).limit_denominator(_SMALL_DENOMINATOR) for v in values.tolist()]
    # 2⁻⁴⁹ is a few roundings; a random real is within it of such a fraction about once in 2⁹.
    if any(abs(float(q) - v / largest) > 2.0**-49 for q, v in zip(ratios, values.tolist(), strict=True)):
        ratios = [Fraction(repr(v)) for v in values.tolist()]  # clamps such as 0.1 and 1234.567
    scale = math.lcm(*(q.denominator for q in ratios))
    numerators = [int(q * scale) for q in ratios]
    divisor = math.gcd(*numerators)
    integers = [v // divisor for v in numerators]
    if max(abs(v) for v in integers) > _LARGEST_INTEGER:
        return None
    return np.array(integers, dtype=np.int64)[where]
