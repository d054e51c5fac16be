"""A structured strategy with the errors of its blocks, before it is compared with others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tacit.engine.measures import joint, share_root
from tacit.engine.product_workload import Block
from tacit.engine.strategy import Privacy


@dataclass(frozen=True, eq=False)
class Candidate:
    """Blocks of questions and their shares of the budget."""

    name: str
    blocks: tuple[Block, ...] = field(repr=False)
    shares: tuple[float, ...]
    error: float

    @classmethod
    def of(cls, name: str, privacy: Privacy, blocks: Sequence[Block], errors: Sequence[float]) -> Candidate:
        """Blocks that have nothing to do with each other, at the shares that make the sum of their errors least."""
        root = share_root(privacy, "total")
        roots = [error**root for error in errors]
        shares = tuple(value / sum(roots) for value in roots)
        return cls(name, tuple(blocks), shares, joint(errors, privacy, "total"))
