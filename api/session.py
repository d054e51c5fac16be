"""What a connection answers from: the database, the policy's catalog, the ledger, and what it remembers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tacit.sql import Catalog, Limits, Source

from .budget import LedgerAccess
from .compiled_batch import CompiledBatch, compile_ask
from .discovery import Discoveries, Discovery, with_found
from .policy_catalog import with_versions
from .pricing import Pricer, Purchase
from .releases import ReleaseCache
from .request import Ask


@dataclass(frozen=True)
class Session:
    """One connection's own state. Threads take turns on it (``Connection``)."""

    source: Source
    schema: Catalog
    """The tables as the policy declares them, without the versions of those that it gives none."""
    limits: Limits
    access: LedgerAccess
    pricer: Pricer = field(default_factory=Pricer)
    releases: ReleaseCache = field(default_factory=ReleaseCache)
    found: Discoveries = field(default_factory=Discoveries)
    stand_ins: tuple[Discovery, ...] = ()
    """What takes the place of lists and ranges that ``explain`` would have to buy first."""

    @property
    def catalog(self) -> Catalog:
        """The catalog as of now: what the policy declares, and what was found where it declares nothing."""
        return with_found(self.declared, [*self.found.now(self.access.peek()), *self.stand_ins])

    @property
    def declared(self) -> Catalog:
        """The policy's catalog as of now. A version that the ledger declares stands before all others."""
        ledger = self.access.peek()
        declared = {} if ledger is None else ledger.versions()
        catalog = with_versions(self.schema, self.source, declared, self.access.salt)
        rights = self.access.rights
        if rights is None or rights.tables is None:
            return catalog
        allowed = rights.tables
        return replace(catalog, tables=tuple(t for t in catalog.tables if t.public or t.name in allowed))

    def compile(self, ask: Ask) -> CompiledBatch:
        """The batch over the catalog as of now."""
        return compile_ask(ask, self.catalog, self.source, self.limits)

    def price(self, ask: Ask, batch: CompiledBatch) -> Purchase:
        """What measuring the rows of a batch costs under this ledger's rule."""
        return self.pricer.price(ask, batch, self.access.rule)
