"""The protocol of a source of rows, and its schema as it reports it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .catalog import Bound, Table
from .derived import PublicQuery
from .dialect import without_enums
from .product_scan import ProductScan
from .scan import Scan

ColumnTypes = Mapping[str, Mapping[str, str]]
"""Declared types by table and column, needed where a file has none (csv)."""

Keep = Callable[[NDArray[np.int64]], NDArray[np.bool_]]
"""Which of some values may be told, by how many units hold each."""


@dataclass(frozen=True)
class SourceColumn:
    """A column as the schema has it; the policy decides whether ``enum``, ``minimum`` and ``maximum`` are public."""

    name: str
    type: str
    nullable: bool
    enum: tuple[str, ...] | None = None
    minimum: Bound | None = None
    maximum: Bound | None = None
    recast: bool = False
    """Whether ``type`` is not the one that the column is stored with."""

    def untrusted(self) -> SourceColumn:
        """The column without what may have come from the data: an ENUM is a VARCHAR, inside nested types too.

        Guarantee. What is public of the result is the same whatever labels an ENUM has and whatever a CHECK says.
        """
        type_ = without_enums(self.type)
        return replace(self, type=type_, enum=None, minimum=None, maximum=None, recast=type_ != self.type)


@dataclass(frozen=True)
class SourceTable:
    """A table or view as the schema has it; ``view`` is the SELECT behind a view."""

    name: str
    columns: tuple[SourceColumn, ...]
    view: str = ""
    path: tuple[str, ...] = ()
    """Schema and name."""
    primary_key: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    """Columns of the stored table that are not among ``columns``, each with the reason."""


class Source(Protocol):
    """Where the rows are. ``count``, ``count_all`` and ``values`` are the only methods that read one."""

    path: Path | None
    """The file beside which the ledger lies; None where there is none."""
    main: str
    """What the database calls the schema whose tables go by their bare name; in ``SourceTable.path`` it is ``main``."""

    @property
    def also_at(self) -> frozenset[Path]:
        """Other paths by which some of the same rows can be opened."""
        ...

    @property
    def database(self) -> str:
        """What SQL may call the database, before the schema or in its place; empty where it has no such name."""
        ...

    def schema(self) -> tuple[SourceTable, ...]:
        """Names and types of all tables; reads no row."""
        ...

    @property
    def memory(self) -> str | None:
        """The identity of a database that lives in memory; None where ``path`` is one, and where others share it."""
        ...

    def version(self, key: bytes) -> str:
        """A public name of the present state of all tables: a hash with a secret key, because it follows the rows."""
        ...

    def unique(self, table: Table, columns: tuple[str, ...]) -> bool:
        """Whether no two rows of a public table agree in these columns; NULL keys match nothing."""
        ...

    def read_public(self, query: PublicQuery) -> list[tuple[Any, ...]]:
        """The rows of a query over public tables."""
        ...

    def compute(
        self, query: PublicQuery, frames: Mapping[str, tuple[pd.DataFrame, Sequence[tuple[str, str]]]]
    ) -> pd.DataFrame:
        """The frame of a query over public tables and over released frames, each with the types of its columns."""
        ...

    def rehearse(self, scan: Scan | ProductScan) -> None:
        """Run the scan on rows that are not the table's; NotSupportedError if it cannot be run at all."""
        ...

    def rehearse_all(self, scans: Sequence[Scan]) -> None:
        """The same for what ``count_all`` runs."""
        ...

    def count(self, scan: Scan, salt: bytes) -> NDArray[np.int64]:
        """The integer vector x of one table: the one read of private rows. Call it only after the charge."""
        ...

    def count_all(self, scans: Sequence[Scan], salt: bytes) -> list[NDArray[np.int64]]:
        """``count`` for several scans, in one pass over the rows that they share."""
        ...

    def rehearse_values(self, scan: Scan) -> None:
        """The same for what ``values`` runs."""
        ...

    def values(self, scan: Scan, salt: bytes, keep: Keep) -> list[Any]:
        """The values of a scan's one column, of those that ``keep`` lets pass. Call it only after the charge.

        The list has no order: that of the rows must not be shown.
        """
        ...

    def interrupt(self) -> None:
        """End what runs now, from another thread; whoever wants an end repeats it until there is one."""
        ...

    def progress(self) -> float | None:
        """How much of what runs now is done, from 0 to 1; None where nobody can say. It is shown to an analyst."""
        ...

    def close(self) -> None:
        """Close the database."""
        ...
