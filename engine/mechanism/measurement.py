"""What a release consists of: noisy integers, the lattice strategy that they answer, and the noise that was added.

A measurement holds nothing private. It is what the ledger stores, so it is written exactly, and checked
when it is read back: a damaged one is refused, and nothing in it is ever executed.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from tacit.engine.mechanism.exact import IntegerMatrix, entries
from tacit.engine.mechanism.lattice import real
from tacit.engine.mechanism.noise import Kind, variance
from tacit.engine.mechanism.product_lattice import ProductLattice
from tacit.engine.strategy import Questions, fits
from tacit.errors import InternalError, LedgerError

_FORMAT = 1
_STAGED_FORMAT = 2
_PRODUCT_FORMAT = 3
_DAMAGED = "a stored release is damaged and cannot be read"
_LARGEST_ENTRIES = 10**9
_LARGEST_WRITTEN = 1 << 24
"""Entries of a product that may be written out, and of one of its factors."""
_CACHED_ENTRIES = 1 << 16
"""Up to this size, L in units of the noise is computed once: many batches use one release."""


@dataclass(frozen=True, eq=False)
class ProductQuestions:
    """Questions that are a Kronecker product, with what is needed to read them again."""

    factors: tuple[NDArray[np.int64], ...]
    exponents: tuple[int, ...]
    splits: tuple[NDArray[np.float64] | None, ...]
    """See ``product_workload.Block``."""

    @property
    def cells(self) -> int:
        return math.prod(factor.shape[1] for factor in self.factors)

    @property
    def count(self) -> int:
        return math.prod(factor.shape[0] for factor in self.factors)


@dataclass(frozen=True, eq=False)
class Measurement:
    """y = L_int·x·2^(exponent − step), rounded, plus noise of ``scale`` steps on every question."""

    listed: IntegerMatrix | None = field(repr=False)
    """L_int, where it was written out."""
    exponent: int
    """L = L_int · 2^exponent."""
    noisy: NDArray[np.int64] = field(repr=False)
    step: int
    """z = noisy · 2^step."""
    noise: Kind
    lattice_scale: float
    product: ProductQuestions | None = field(default=None, repr=False)
    """L_int as a product, where it was not."""

    @classmethod
    def of_product(
        cls, lattice: ProductLattice, noisy: NDArray[np.int64], step: int, noise: Kind, lattice_scale: float
    ) -> Measurement:
        """Of a block of questions that is never written out."""
        questions = ProductQuestions(lattice.factors, lattice.exponents, lattice.splits)
        return cls(None, lattice.exponent, noisy, step, noise, lattice_scale, questions)

    @property
    def cells(self) -> int:
        """How many cells it speaks of."""
        if self.product is not None:
            return self.product.cells
        assert self.listed is not None
        return int(self.listed.shape[1])

    @property
    def entries(self) -> int:
        """How large L is when it is written out."""
        return len(self.noisy) * self.cells

    @property
    def L_int(self) -> IntegerMatrix:
        """The questions, written out: for few cells, and integers that fit."""
        if self.listed is not None:
            return self.listed
        assert self.product is not None
        self._check_written()
        shift = sum(self.product.exponents) - self.exponent
        largest = [int(np.abs(factor).max(initial=1)).bit_length() for factor in self.product.factors]
        if shift + sum(largest) > 62:
            raise InternalError("the integers of this block do not fit")
        result = np.full((1, 1), 1 << shift, dtype=np.int64)
        for factor in self.product.factors:
            result = np.kron(result, factor)
        return result

    @property
    def L(self) -> Questions:
        """The strategy in real numbers."""
        if self.product is None:
            return real(self.L_int, self.exponent)
        self._check_written()
        result: NDArray[np.float64] = np.ones((1, 1))  # the integers of a product need not fit int64
        for factor, exponent in zip(self.product.factors, self.product.exponents, strict=True):
            result = np.asarray(np.kron(result, np.ldexp(factor.astype(np.float64), exponent)), dtype=np.float64)
        return result

    def _check_written(self) -> None:
        if self.entries > _LARGEST_WRITTEN:
            raise InternalError("a block of so many questions is not written out")

    @property
    def values(self) -> NDArray[np.float64]:
        """z: the noisy answers to the rows of L."""
        return np.ldexp(self.noisy.astype(np.float64), self.step)

    @property
    def scale(self) -> float:
        """Laplace's b or Gauss's σ, in the units of ``values``."""
        return math.ldexp(self.lattice_scale, self.step)

    @property
    def stddev(self) -> float:
        """The standard deviation of the noise on one question, in the units of ``values``."""
        return math.ldexp(math.sqrt(variance(self.noise, self.lattice_scale)), self.step)

    @property
    def questions(self) -> Questions:
        """L in units of the noise, so that every error has variance one."""
        return self._questions if self.entries <= _CACHED_ENTRIES else self.L / self.stddev

    @cached_property
    def _questions(self) -> Questions:
        return self.L / self.stddev

    @cached_property
    def answers(self) -> NDArray[np.float64]:
        """``values`` in the same units."""
        return self.values / self.stddev

    @cached_property
    def level(self) -> float:
        """The noise against the size of what it is added to."""
        return 1 / max(float(np.abs(entries(self.questions)).max(initial=0.0)), 1e-300)

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values; integers packed exactly."""
        if self.product is not None:
            return self._product_to_json(self.product)
        sparse = scipy.sparse.csr_array(self.L_int)
        return self._noise_to_json() | {
            "shape": list(self.L_int.shape),
            "starts": _pack(sparse.indptr),
            "columns": _pack(sparse.indices),
            "entries": _pack(sparse.data),
        }

    def _noise_to_json(self) -> dict[str, Any]:
        return {
            "noise": self.noise,
            "scale": self.lattice_scale.hex(),
            "exponent": self.exponent,
            "step": self.step,
            "noisy": _pack(self.noisy),
        }

    def _product_to_json(self, product: ProductQuestions) -> dict[str, Any]:
        return self._noise_to_json() | {
            "factors": [
                {
                    "shape": list(factor.shape),
                    "entries": _pack(factor),
                    "exponent": exponent,
                    "split": None if split is None else [v.hex() for v in split.tolist()],
                }
                for factor, exponent, split in zip(product.factors, product.exponents, product.splits, strict=True)
            ],
        }

    @classmethod
    def _product_from_json(cls, stored: Any) -> Measurement:
        factors, exponents, splits = [], [], []
        for one in stored["factors"]:
            rows, columns = (_count(v) for v in one["shape"])
            if rows * columns > _LARGEST_WRITTEN or type(one["exponent"]) is not int or abs(one["exponent"]) >= 500:
                raise LedgerError(_DAMAGED)
            factors.append(_unpack(one["entries"], rows * columns).reshape(rows, columns))
            exponents.append(one["exponent"])
            split = None if one["split"] is None else np.array([float.fromhex(v) for v in one["split"]])
            if split is not None and (split.shape != (columns,) or not np.isfinite(split).all()):
                raise LedgerError(_DAMAGED)
            splits.append(split)
        product = ProductQuestions(tuple(factors), tuple(exponents), tuple(splits))
        scale = float.fromhex(stored["scale"])
        if (
            not 0 < product.count <= _LARGEST_ENTRIES
            or not 0 < product.cells <= _LARGEST_ENTRIES
            or stored["noise"] not in ("laplace", "gaussian")
            or not (math.isfinite(scale) and scale > 0)
            or not all(type(stored[k]) is int and abs(stored[k]) < 2000 for k in ("exponent", "step"))
            or not 0 <= sum(exponents) - stored["exponent"] <= 40
        ):
            raise LedgerError(_DAMAGED)
        noisy = _unpack(stored["noisy"], product.count)
        return cls(None, stored["exponent"], noisy, stored["step"], stored["noise"], scale, product)

    @classmethod
    def from_json(cls, stored: Any) -> Measurement:
        """The measurement that ``to_json`` wrote; LedgerError for anything else."""
        try:
            if "factors" in stored:
                return cls._product_from_json(stored)
            rows, columns = (_count(v) for v in stored["shape"])
            noisy = _unpack(stored["noisy"], rows)
            starts = _unpack(stored["starts"], rows + 1)
            values = _unpack(stored["entries"], int(starts[-1]))
            indices = _unpack(stored["columns"], int(starts[-1]))
            scale = float.fromhex(stored["scale"])
            if (
                np.any(np.diff(starts, prepend=0) < 0)
                or np.any((indices < 0) | (indices >= columns))
                or stored["noise"] not in ("laplace", "gaussian")
                or not (math.isfinite(scale) and scale > 0)
                or not all(type(stored[k]) is int and abs(stored[k]) < 2000 for k in ("exponent", "step"))
            ):
                raise LedgerError(_DAMAGED)
            L_int = scipy.sparse.csr_array((values, indices, starts), shape=(rows, columns))
            listed = L_int.toarray() if fits(rows, columns, len(values)) else L_int
            return cls(listed, stored["exponent"], noisy, stored["step"], stored["noise"], scale)
        except (KeyError, TypeError, ValueError, zlib.error, OverflowError, IndexError):
            raise LedgerError(_DAMAGED) from None


def pack(measurements: Sequence[Measurement], cells: Sequence[Any] | None = None) -> bytes:
    """A whole release as bytes: what the ledger stores. ``cells`` describes in JSON what each one measured."""
    number = _FORMAT if all(m.product is None for m in measurements) else _PRODUCT_FORMAT
    content: dict[str, Any] = {"format": number, "measurements": [m.to_json() for m in measurements]}
    if cells is not None:
        content["cells"] = list(cells)
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def unpack(payload: bytes) -> tuple[Measurement, ...]:
    """The release that ``pack`` wrote; LedgerError for anything else."""
    return unpack_with_cells(payload)[0]


def unpack_with_cells(payload: bytes) -> tuple[tuple[Measurement, ...], tuple[Any, ...]]:
    """The release, and the description of each measurement's cells as it was given to ``pack``."""
    try:
        content = json.loads(payload)
        if content["format"] == _STAGED_FORMAT:
            raise LedgerError("a stored release has questions that were chosen by the data: it is read by itself only")
        if content["format"] not in (_FORMAT, _PRODUCT_FORMAT):
            raise LedgerError("a stored release was written by a newer version of tacit")
        measurements = tuple(Measurement.from_json(m) for m in content["measurements"])
        return measurements, tuple(content.get("cells", ()))
    except (KeyError, TypeError, ValueError, RecursionError):
        raise LedgerError(_DAMAGED) from None


def pack_staged(strategy: str, tables: Sequence[Sequence[Measurement]]) -> bytes:
    """A release whose questions were chosen by the data, as bytes.

    It has a form of its own, which ``unpack`` refuses: least squares over it and other releases would take its noise
    for independent of its questions.
    """
    listed = [[m.to_json() for m in measurements] for measurements in tables]
    content = {"format": _STAGED_FORMAT, "strategy": strategy, "tables": listed}
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def unpack_staged(payload: bytes, strategy: str) -> tuple[tuple[Measurement, ...], ...]:
    """The release that ``pack_staged`` wrote for this strategy; LedgerError for anything else."""
    try:
        content = json.loads(payload)
        if content["format"] != _STAGED_FORMAT or content["strategy"] != strategy:
            raise LedgerError(_DAMAGED)
        return tuple(tuple(Measurement.from_json(m) for m in measurements) for measurements in content["tables"])
    except (KeyError, TypeError, ValueError, RecursionError):
        raise LedgerError(_DAMAGED) from None


def _pack(integers: Any) -> str:
    data = np.ascontiguousarray(integers, dtype="<i8").tobytes()
    return base64.b64encode(zlib.compress(data, 1)).decode("ascii")


def _unpack(text: Any, length: int) -> NDArray[np.int64]:
    if not 0 <= length <= _LARGEST_ENTRIES:
        raise ValueError
    inflate = zlib.decompressobj()
    data = inflate.decompress(base64.b64decode(text, validate=True), length * 8 + 1)
    if len(data) != length * 8:  # also ends a stream that would inflate without end
        raise ValueError
    return np.frombuffer(data, dtype="<i8").astype(np.int64)


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _LARGEST_ENTRIES:
        raise ValueError
    return value
