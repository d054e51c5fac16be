"""What a ledger's guarantee depends on beside its caps: the policy that it is bound to."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from tacit.engine.accounting.description import recorded_units
from tacit.engine.accounting.entry import Entry
from tacit.errors import LedgerError

NO_UNIT = "a row"
"""The unit on record of a charge where no privacy unit was declared."""


class Terms(Protocol):
    """What the guarantee depends on beside the caps, as one connection states it. The ledger stores its text."""

    @property
    def text(self) -> str:
        """The policy in one canonical form, as it is written into the ledger."""
        ...

    def units_of(self, table: str) -> Collection[str | None]:
        """What may be protected of a table that a charge names: ``NO_UNIT`` unless another unit is declared.

        ``None`` if it is public. More than one where the policy's spelling can mean several tables.
        """
        ...

    @property
    def may_begin(self) -> bool:
        """Whether these terms may become those of a ledger that has none yet."""
        ...

    def accepts(self, recorded: str) -> bool:
        """Whether a connection with these terms may use a ledger with the recorded ones."""
        ...


def check_units(charges: Sequence[Entry], terms: Terms) -> None:
    """Refuse terms whose units contradict what earlier charges protect.

    Guarantee: what a ledger has added up speaks of one kind of neighbours. Charges that protect rows and charges that
    protect persons have no common sum: a person has more than one row, and a row that comes or goes can move which
    rows of a person are kept.
    """
    for charge in charges:
        for table, unit in recorded_units(charge.detail).items():
            other = next((stated for stated in terms.units_of(table) if stated not in (unit, None)), None)
            if other is not None:
                raise LedgerError(
                    f"the ledger has charges that protect {unit} of {table}, and this policy protects {other}\n"
                    "hint: connect with the policy that the ledger was begun with; for another unit, begin a new "
                    "ledger with ledger=, whose sum then says nothing about what was released from this one"
                )
