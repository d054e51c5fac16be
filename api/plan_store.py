"""Where plans are kept: in memory, and in a folder beside the ledger, or where ``TACIT_CACHE`` says.

A plan is a function of the batch's workload. None depends on a row, so that keeping one gives nothing of the data away;
but whoever shares the folder can tell from the time that ``explain`` takes whether a batch was planned before. So each
ledger has a folder of its own. The engine checks what it reads (``engine/mechanism/stored_plan.py``): a file that was
changed is at worst a plan with a larger error, and it says so. Where nothing can be written nothing is, silently.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.engine.accounting.file import shares_with_group
from tacit.engine.mechanism.stored_plan import FoundPlan, PlanRecord

PLACE = "TACIT_CACHE"
"""The environment variable that names the folder; set but empty, it keeps plans in memory only."""
MOST_BYTES = 256 << 20
"""Of a folder: beyond, the files that were not used for the longest time are removed."""
LARGEST_FILE = 64 << 20
PLANS_IN_MEMORY = 32

_MAGIC = b"tacit plan 1\n"
_TYPES = {"<f8", "<i8", "<u4"}
_SUFFIX, _UNFINISHED = ".plan", ".part"
_ABANDONED = 3600.0
"""Seconds after which a file that nobody finished writing is removed."""


class Plans:
    """The plans of one connection: those in memory, and the records of a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._plans: dict[str, FoundPlan] = {}

    def recall(self, key: str) -> FoundPlan | None:
        """The plan in memory."""
        return self._plans.get(key)

    def remember(self, key: str, found: FoundPlan) -> None:
        """Keep a plan in memory, and forget the oldest where there are too many."""
        self._plans.pop(key, None)
        self._plans[key] = found
        while len(self._plans) > PLANS_IN_MEMORY:
            self._plans.pop(next(iter(self._plans)))

    def read(self, key: str) -> PlanRecord | None:
        """The record in the folder; None where there is none, or none that can be read."""
        if self._folder is None:
            return None
        path = self._folder / f"{key}{_SUFFIX}"
        try:
            if not path.is_file() or path.stat().st_size > LARGEST_FILE:
                return None
            record = decode(key, path.read_bytes())
            with contextlib.suppress(OSError):  # who only reads does not say that the file was used
                os.utime(path)
            return record
        except (OSError, ValueError, TypeError, KeyError, RecursionError, MemoryError):
            return None

    def write(self, key: str, record: PlanRecord) -> None:
        """Put a record into the folder, whole or not at all; where that fails, nothing is kept."""
        if self._folder is None:
            return
        data = encode(key, record)
        if len(data) > LARGEST_FILE:
            return
        with contextlib.suppress(OSError):
            shared = _make_folder(self._folder)
            handle, name = tempfile.mkstemp(dir=self._folder, suffix=_UNFINISHED)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    if shared:
                        os.fchmod(file.fileno(), 0o660)
                os.replace(name, self._folder / f"{key}{_SUFFIX}")
            except OSError:
                os.unlink(name)
                raise
            _remove_oldest(self._folder)


def folder_for(ledger: Path | None) -> Path | None:
    """The folder for the plans of a ledger; None for memory only."""
    place = os.environ.get(PLACE)
    if ledger is None or place == "":
        return None
    if place is None:
        return ledger.with_name(f"{ledger.name.removesuffix('.ledger')}.plans")
    return Path(place) / hashlib.sha256(str(ledger.absolute()).encode(errors="surrogatepass")).hexdigest()[:32]


def _make_folder(folder: Path) -> bool:
    """Make the folder where it is missing; whether its plans are for a group, as the ledger beside it is."""
    try:
        folder.mkdir(parents=PLACE in os.environ)  # beside a ledger nothing else is made
    except FileExistsError:
        return shares_with_group(folder)
    if shares_with_group(folder.parent):
        folder.chmod(0o2770)
    return shares_with_group(folder)


def encode(key: str, record: PlanRecord) -> bytes:
    """A record as bytes: what it is, a line of JSON, then the arrays."""
    arrays = {name: np.ascontiguousarray(array) for name, array in record.arrays.items()}
    body = b"".join(array.tobytes() for array in arrays.values())
    head = {
        "key": key,
        "meta": dict(record.meta),
        "arrays": [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()],
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return _MAGIC + json.dumps(head).encode() + b"\n" + body


def decode(key: str, data: bytes) -> PlanRecord | None:
    """The record of a key from its bytes; None, or an error of Python's own, where they are something else."""
    if not data.startswith(_MAGIC):
        return None
    end = data.index(b"\n", len(_MAGIC))
    head = json.loads(data[len(_MAGIC) : end])
    body = memoryview(data)[end + 1 :]
    if head["key"] != key or not isinstance(head["meta"], dict) or hashlib.sha256(body).hexdigest() != head["sha256"]:
        return None
    arrays: dict[str, NDArray[Any]] = {}
    start = 0
    for name, kind, shape in head["arrays"]:
        if kind not in _TYPES or not all(isinstance(side, int) and side >= 0 for side in shape):
            return None
        count = math.prod(shape)
        arrays[name] = np.frombuffer(body, dtype=kind, count=count, offset=start).reshape(shape)
        start += count * np.dtype(kind).itemsize
    return PlanRecord(head["meta"], arrays) if start == len(body) else None


def _remove_oldest(folder: Path) -> None:
    """Bring the folder below its size; other processes may do the same, so that a file may be gone already."""
    files: list[tuple[float, int, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                state = entry.stat(follow_symlinks=False)
                if entry.name.endswith(_SUFFIX):
                    files.append((state.st_mtime, state.st_size, entry.path))
                elif entry.name.endswith(_UNFINISHED) and state.st_mtime < time.time() - _ABANDONED:
                    os.unlink(entry.path)
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= MOST_BYTES:
            break
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size
