"""The matrices of a plan, for pictures: what each figure counts, and what is asked with noise. Nothing of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import ProgrammingError
from .pickled import KeptWhatIf, left_behind

if TYPE_CHECKING:
    from .explain import Plan

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Matrices:
    """W and L of the first table whose cells are listed, with words for their rows and columns."""

    W: Floats
    L: Floats
    strategy: str
    rows: tuple[str, ...]
    """A row of W: the figure that it counts for."""
    cells: tuple[str, ...]


def matrices(plan: Plan) -> Matrices:
    """The matrices of a plan; ``ProgrammingError`` where no table has its cells listed."""
    if isinstance(plan.what_if, KeptWhatIf):
        raise left_behind("this picture", "draw it where the batch was explained")
    parts: Sequence[Any] = () if plan.what_if is None else plan.what_if.whole.plan.parts
    listed = [(k, part) for k, part in enumerate(parts) if hasattr(part, "lattice")]
    if not listed:
        raise ProgrammingError("this batch has no table whose cells are listed, so there is no matrix to draw")
    place, part = listed[0]
    assert plan.what_if is not None
    scan = plan.what_if.whole.batch.scans[place]
    frame = plan.figures()
    of_row: Mapping[int, str] = {
        int(row): f"{query}{f': {group}' if group else ''} {column}"
        for query, group, column, row in zip(frame["query"], frame["group"], frame["column"], frame["row"], strict=True)
    }
    labels = tuple(of_row.get(int(row), "behind a figure") for row in part.workload.rows)
    cells = tuple(cell.label for cell in plan.cells[scan.columns])
    return Matrices(_dense(part.workload.matrix), _dense(part.lattice.L), part.strategy.name, labels, cells)


def _dense(values: Any) -> Floats:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)
