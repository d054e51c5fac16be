"""Measurements survive storage exactly, and damaged ones are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tacit.engine.mechanism.measurement import Measurement, pack, unpack
from tacit.errors import LedgerError


def example(seed: int = 0) -> Measurement:
    rng = np.random.default_rng(seed)
    L = rng.integers(-(2**50), 2**50, size=(4, 7)) * rng.integers(0, 2, size=(4, 7))
    noisy = rng.integers(-(2**62), 2**62, size=4)
    return Measurement(L, -33, noisy, -31, "laplace", 2.0**28 / 0.3)


def test_round_trip_is_exact() -> None:
    for m in (
        example(),
        example(1),
        Measurement(np.zeros((0, 3), np.int64), 0, np.zeros(0, np.int64), 0, "gaussian", 1.5),
    ):
        (back,) = unpack(pack((m,)))
        assert np.array_equal(back.L_int, m.L_int) and back.L_int.dtype == np.int64
        assert np.array_equal(back.noisy, m.noisy)
        assert (back.exponent, back.step, back.noise, back.lattice_scale) == (
            m.exponent,
            m.step,
            m.noise,
            m.lattice_scale,
        )
        assert pack((back,)) == pack((m,))
    assert len(unpack(pack((example(), example(1))))) == 2
    assert unpack(pack(())) == ()


def test_real_values() -> None:
    m = Measurement(np.array([[3, -1]]), -1, np.array([5]), 2, "gaussian", 3.0)
    assert m.L.tolist() == [[1.5, -0.5]]
    assert m.values.tolist() == [20.0]
    assert m.scale == m.stddev == 12.0


CHANGES: list[dict[str, object]] = [
    {"noise": "none"},
    {"scale": "0x0p+0"},
    {"scale": "nan"},
    {"scale": 3},
    {"shape": [4]},
    {"shape": [4, -7]},
    {"shape": [4, 10**30]},
    {"shape": [4, 3]},
    {"shape": [5, 7]},
    {"noisy": "!!"},
    {"noisy": "AAAA"},
    {"entries": ""},
    {"exponent": "x"},
    {"step": 10**6},
    {"step": None},
]


@pytest.mark.parametrize("change", CHANGES)
def test_damaged_measurements_are_refused(change: dict[str, object]) -> None:
    content = json.loads(pack((example(),)))
    content["measurements"][0] |= change
    with pytest.raises(LedgerError):
        unpack(json.dumps(content).encode())


@pytest.mark.parametrize(
    "payload", [b"", b"{}", b"[]", b"null", b"\xff", b'{"format":2}', b'{"format":1}', b"[" * 10**5]
)
def test_what_is_no_release_is_refused(payload: bytes) -> None:
    with pytest.raises(LedgerError):
        unpack(payload)
