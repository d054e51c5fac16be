"""What a charge paid for: the mechanism of one release, without data, as the ledger records it.

This file is the only one that writes the record's text and the only one that reads it. The text is part of the entry
of a charge, so the chain of digests covers it: its bytes must never change for the same mechanism.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tacit.engine.accounting.amounts import Amount

NOTHING_RECORDED = "{}"
"""The text of a charge that states no mechanism."""


@dataclass(frozen=True)
class PartRecord:
    """The noise on one table's answers."""

    strategy: str
    noise: str
    scale: float
    """In steps of the released lattice."""
    sensitivity: int
    """In the same steps."""
    coordinates: int
    """How many questions there are. The name is part of the text that is recorded, and so it stays."""
    rows_per_unit: int
    lattice: str
    """The digest of the rounded strategy."""


@dataclass(frozen=True)
class StageRecord:
    """One stage of a strategy that chooses its questions by the data, on one table."""

    strategy: str
    stage: str
    epsilon: str
    """The stage's part of ε: an exact fraction."""
    scale: float
    """Of its noise; NaN where the lattice follows from an earlier stage."""
    count: int
    """How many choices or measurements it consists of."""
    rows_per_unit: int
    lattice: str
    """The digest of the workload and the settings: all that is known of the questions beforehand."""


@dataclass(frozen=True)
class QuestionRecord:
    """What was asked, for the reader of the log. Nothing is decided by it."""

    tables: tuple[str, ...]
    columns: tuple[str, ...]
    """As ``table.column``."""
    queries: int
    digest: str
    """Of the text of all queries, with the ledger's salt: equal for equal texts, and no way back to the text."""
    text: tuple[str, ...] | None = None
    """The queries themselves, where the policy says so: their constants can be somebody's secrets."""


@dataclass(frozen=True)
class MechanismRecord:
    """A mechanism at one (ε, δ)."""

    privacy: str
    cost: Amount
    parts: tuple[PartRecord | StageRecord, ...]
    units: Mapping[str, str] = field(default_factory=dict)
    """What is protected of every table that is read: the column of its privacy unit, or ``terms.NO_UNIT``."""
    question: QuestionRecord | None = None
    """Ledgers older than 0.2.0 have none."""

    @property
    def text(self) -> str:
        """The record as canonical JSON."""
        content: dict[str, Any] = {
            "privacy": self.privacy,
            "epsilon": str(self.cost.epsilon),
            "delta": str(self.cost.delta),
            "parts": [{**vars(part), "scale": part.scale.hex()} for part in self.parts],
            "units": dict(self.units),
        }
        if self.question is not None:
            content["question"] = {key: value for key, value in vars(self.question).items() if value is not None}
        return json.dumps(content, sort_keys=True, separators=(",", ":"))


def asks_the_same(text: str, record: MechanismRecord | None) -> bool:
    """Whether the record with this text and another one ask the same questions, on the same lattices.

    A request without a record states none, so none can differ.
    """
    if record is None:
        return True
    try:
        lattices = [part["lattice"] for part in json.loads(text)["parts"]]
    except (ValueError, TypeError, KeyError):
        return False
    return lattices == [part.lattice for part in record.parts]


def recorded_units(text: str) -> dict[str, Any]:
    """The ``units`` of the record with this text; none for a charge that states no mechanism of tacit's.

    Nothing else of the text is checked: whatever the rest of it is, units that are on record count.
    """
    try:
        return dict(json.loads(text).get("units", {}))
    except (ValueError, TypeError, AttributeError):
        return {}


def recorded_question(text: str) -> QuestionRecord | None:
    """The question of the record with this text; None for a charge that states none, or in another form."""
    try:
        found = json.loads(text)["question"]
        words = {key: tuple(map(str, found[key])) for key in ("tables", "columns", "text") if key in found}
        return QuestionRecord(queries=int(found["queries"]), digest=str(found["digest"]), **words)
    except (ValueError, TypeError, KeyError):
        return None
