"""A plan as it travels: JSON with what every reader needs, and what more can be asked about it.

A plan that came from a server asks it again for what depends on a question of the reader's: sizes, other budgets,
queries alone, cells, matrices. The server plans the same request then, so it speaks of what is released by then.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, overload

import numpy as np
import pandas as pd
from tacit.sql.workload import Cell

from . import wire
from .assumed import checked_size
from .errors import NotSupportedError, OperationalError
from .explain import Plan
from .pickled import ASKED
from .plan_matrices import Matrices
from .request import Number
from .wire_numbers import Floats, listed, number, numbers, read_number, read_numbers
from .wire_results import RemoteQuery

Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Explains the same request once more, with some of ``QUESTIONS``; gives the reply's body."""
QUESTIONS = ("rows", "curve", "size", "alone", "listed", "matrices")
"""What a request for a plan may ask beside the plan."""
_NUMBERS = ("error", "combined", "lower_bound")
_TEXTS = ("text", "group", "column", "note", "kind")
_MOST_CELLS = 100_000
"""That are listed: a batch over many columns has more cells than anybody can read."""
_MOST_ENTRIES = 4_000_000
"""Of a matrix that is sent to be drawn."""


class RemoteCells(Sequence[Cell]):
    """The cells of a plan: how many, and what each is when somebody looks."""

    def __init__(self, count: int, ask: Callable[[], Sequence[Cell]]) -> None:
        self._count, self._ask = count, ask

    @cached_property
    def _cells(self) -> Sequence[Cell]:
        return self._ask()

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Cell: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Cell]: ...
    def __getitem__(self, index: int | slice) -> Cell | Sequence[Cell]:
        return self._cells[index]


class RemoteWhatIf:
    """What a plan of a server can be asked about its queries one by one."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    @cached_property
    def _alone(self) -> list[Decimal | None]:
        return [None if one is None else Decimal(one) for one in self._ask({"alone": True})["alone"]]

    def alone(self, query: int) -> Decimal | None:
        """The ε for which one query by itself is as exact as in the batch; None where it needs none."""
        return self._alone[query]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ask": ASKED}  # what has been asked comes along


@dataclass(frozen=True, repr=False, eq=False)
class RemotePlan(Plan):
    """What a server would do."""

    queries: tuple[RemoteQuery, ...]  # type: ignore[assignment]
    frame: pd.DataFrame = None  # type: ignore[assignment]
    others: bool = False
    joint: Floats = field(default_factory=lambda: np.zeros(0))
    ask: Ask = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "ask": ASKED}

    @property
    def joint_half_width(self) -> Floats:
        """See ``Plan.joint_half_width``."""
        return self.joint

    def figures(self, *, size: Any = None) -> pd.DataFrame:
        """``df`` with the kind of each figure: see ``Plan.figures``."""
        if size is None or self.what_if is None:
            return self.frame.copy()
        stated = checked_size(size, len(self.queries))
        return _read_figures(self.ask({"size": stated if isinstance(stated, str) else list(stated)})["figures"])

    @property
    def other_groups(self) -> bool:
        """Whether some group is of the values that nobody declared, under its usual name."""
        return self.others

    def _curve(self, epsilons: Sequence[Number], query: int | None) -> pd.DataFrame:
        asked = {"epsilons": [wire.written(one) for one in epsilons]} | ({} if query is None else {"query": query})
        columns = self.ask({"curve": asked})["curve"]
        return pd.DataFrame({name: read_numbers(column) for name, column in columns.items()})

    def _matrices(self) -> Matrices:
        return _read_matrices(self.ask({"matrices": True})["matrices"])


def plan_body(plan: Plan, asked: Mapping[str, Any]) -> dict[str, Any]:
    """A plan as JSON, and what is ``asked`` about it: some of ``QUESTIONS``."""
    frame = plan.figures(size=wire.read(asked["size"]) if "size" in asked else None)
    body: dict[str, Any] = {
        "epsilon": str(plan.epsilon),
        "delta": str(plan.delta),
        "cost": wire.amount(plan.cost),
        "bought": wire.amount(plan.bought),
        "why": plan.why,
        "confidence": plan.confidence,
        "strategy": plan.strategy,
        "privacy": plan.privacy,
        "objective": plan.objective,
        "cells": len(plan.cells),
        "queries": [query.sql for query in plan.queries],
        **{name: number(getattr(plan, name)) for name in _NUMBERS},
        "least_error": None if plan.least_error is None else number(plan.least_error),
        "gap": number(plan.gap),
        "alternatives": {name: number(error) for name, error in plan.alternatives.items()},
        "stages": list(plan.stages),
        "discover": list(plan.discover),
        "text": plan.text(),
        "account": None if plan.account is None else wire.account(plan.account),
        "units": dict(plan.units),
        "other_groups": plan.other_groups,
        "predicts": plan.what_if is not None,
        "figures": {name: listed(frame[name]) for name in frame.columns},
    }
    if asked.get("rows"):
        names = ("stderr", "half_width", "joint_half_width", "peaks")
        rows = {name: getattr(plan, name) for name in names}
        body["rows"] = {name: None if row is None else numbers(row) for name, row in rows.items()}
        body["alternative_rows"] = {name: numbers(row) for name, row in plan.alternative_stderr.items()}
    if curve := asked.get("curve"):
        body["curve"] = _curve_body(plan, curve)
    if asked.get("alone"):
        body["alone"] = [None if one is None else str(one) for one in plan.by_query(alone=True)["alone"]]
    if asked.get("listed"):
        body["listed"] = _cells_body(plan.cells)
    if asked.get("matrices"):
        body["matrices"] = _matrices_body(plan._matrices())
    return body


def _curve_body(plan: Plan, asked: Any) -> dict[str, Any] | None:
    if asked is True:
        asked = {}
        if plan.what_if is None:
            return None
    epsilons = asked.get("epsilons")
    found = plan.curve(None if epsilons is None else wire.read(epsilons), query=asked.get("query"))
    return {name: listed(found[name]) for name in found.columns}


def _cells_body(cells: Sequence[Cell]) -> list[list[str]]:
    if len(cells) > _MOST_CELLS:
        raise NotSupportedError(
            f"{len(cells):,} cells are too many to be listed; a server sends {_MOST_CELLS:,}\n"
            "hint: look at the plan of a part of the batch"
        )
    return [[cell.table, cell.label] for cell in cells]


def _matrices_body(found: Matrices) -> dict[str, Any]:
    return {
        "strategy": found.strategy,
        "rows": list(found.rows),
        "cells": list(found.cells),
        **{name: _packed(getattr(found, name)) for name in ("W", "L")},
    }


def _packed(matrix: Floats) -> dict[str, Any]:
    if matrix.size > _MOST_ENTRIES:
        raise NotSupportedError(
            f"a matrix of {matrix.shape[0]:,} × {matrix.shape[1]:,} is too large to be sent\n"
            "hint: draw the plan of a part of the batch"
        )
    data = zlib.compress(np.ascontiguousarray(matrix, dtype="<f8").tobytes(), 1)
    return {"shape": list(matrix.shape), "data": base64.b64encode(data).decode()}


def _unpacked(content: Mapping[str, Any]) -> Floats:
    m, n = (int(side) for side in content["shape"])
    if min(m, n) < 0 or m * n > _MOST_ENTRIES:
        raise OperationalError("the server sent a matrix that is too large")
    data = zlib.decompressobj().decompress(base64.b64decode(content["data"]), 8 * m * n)
    return np.frombuffer(data, dtype="<f8").reshape(m, n).astype(np.float64)


def _read_matrices(content: Mapping[str, Any]) -> Matrices:
    W, L = (_unpacked(content[name]) for name in ("W", "L"))
    return Matrices(W, L, content["strategy"], tuple(content["rows"]), tuple(content["cells"]))


def _read_figures(columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    read = {
        name: pd.Series(values, dtype="str")
        if name in _TEXTS
        else np.array(values, dtype=np.int64)
        if name in ("query", "row")
        else read_numbers(values)
        for name, values in columns.items()
    }
    return pd.DataFrame(read)


def read_plan(body: Mapping[str, Any], ask: Ask) -> RemotePlan:
    """The plan that a server sends; ``ask`` asks it more."""
    rows = {name: None if row is None else read_numbers(row) for name, row in body["rows"].items()}
    least = body["least_error"]

    def cells() -> Sequence[Cell]:
        return tuple(Cell(table, label) for table, label in ask({"listed": True})["listed"])

    return RemotePlan(
        epsilon=Decimal(body["epsilon"]),
        delta=Decimal(body["delta"]),
        cost=wire.read_amount(body["cost"]),
        bought=wire.read_amount(body["bought"]),
        why=body["why"],
        confidence=float(body["confidence"]),
        strategy=body["strategy"],
        privacy=body["privacy"],
        queries=tuple(RemoteQuery(sql) for sql in body["queries"]),
        cells=RemoteCells(int(body["cells"]), cells),
        least_error=None if least is None else read_number(least),
        alternatives={name: read_number(value) for name, value in body["alternatives"].items()},
        stderr=rows["stderr"],  # type: ignore[arg-type]
        half_width=rows["half_width"],  # type: ignore[arg-type]
        alternative_stderr={name: read_numbers(row) for name, row in body["alternative_rows"].items()},
        objective=body["objective"],
        stages=tuple(body["stages"]),
        discover=tuple(body["discover"]),
        account=None if body["account"] is None else wire.read_account(body["account"]),
        units=dict(body["units"]),
        peaks=rows["peaks"],
        what_if=RemoteWhatIf(ask) if body["predicts"] else None,  # type: ignore[arg-type]
        others=bool(body["other_groups"]),
        frame=_read_figures(body["figures"]),
        joint=rows["joint_half_width"],  # type: ignore[arg-type]
        ask=ask,
        error=read_number(body["error"]),
        combined=read_number(body["combined"]),
        lower_bound=read_number(body["lower_bound"]),
    )
