"""The cursor: a script is a batch, answered as one release, and ``nextset`` walks its queries.

``pandas.read_sql(sql, con)`` reads through it, spending ``con.spend``. pandas emits a ``UserWarning`` for every
DB-API connection that is neither sqlite3's nor SQLAlchemy's, whatever that connection does. Without one:
``pandas.read_sql(sql, engine)`` with an engine of ``sqlalchemy_dialect``, or ``con.answer(sql)[0].df``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pandas as pd
from tacit.sql.placeholders import positional, uses

from .answers import Answer, Answers
from .errors import InterfaceError, ProgrammingError
from .request import Params

if TYPE_CHECKING:
    import polars
    import pyarrow

    from .connection import Connection

Row = tuple[Any, ...]
Description = tuple[str, str, None, None, None, None, None]


class Cursor:
    """PEP 249's cursor over the answers of one batch."""

    arraysize: int = 1
    lastrowid: None = None

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._answers: Answers | None = None
        self._set = 0
        self._rows: list[Row] = []
        self._next = 0
        self._closed = False

    def execute(
        self,
        operation: str,
        parameters: Params = None,
        *,
        epsilon: int | float | Decimal | None = None,
        delta: int | float | Decimal | None = None,
        discover: bool = False,
    ) -> Self:
        """Answer a script; without ``epsilon`` it spends the connection's ``spend``."""
        self._check_open()
        if not isinstance(operation, str):
            raise ProgrammingError("execute takes one SQL string\nhint: con.answer takes a list of them")
        return self._run(operation, parameters, epsilon, delta, discover=discover)

    def executemany(
        self,
        operation: str,
        seq_of_parameters: Iterable[Sequence[Any] | Mapping[str, Any]],
        *,
        epsilon: int | float | Decimal | None = None,
        delta: int | float | Decimal | None = None,
    ) -> Self:
        """Answer the same text for every set of parameters, all in one batch and one release."""
        self._check_open()
        if not isinstance(operation, str) or not isinstance(seq_of_parameters, Iterable):
            raise ProgrammingError("executemany takes one SQL string and a list of parameter sets")
        texts: list[str] = []
        values: list[Any] = []
        for parameters in seq_of_parameters:
            text, ordered = _one_set(operation, parameters)
            if texts and len(ordered) * len(texts) != len(values):
                raise ProgrammingError(
                    f"parameter set {len(texts)} does not have as many values as those before it\n"
                    "hint: give every set one value for each placeholder"
                )
            texts.append(text)
            values += ordered
        return self._run(texts, values, epsilon, delta)

    @property
    def description(self) -> tuple[Description, ...] | None:
        """Name and DuckDB type of each column of the current query; released figures are DOUBLE."""
        answer = self._current
        if answer is None:
            return None
        return tuple((name, type_, *(None,) * 5) for name, type_ in answer.types)

    @property
    def rowcount(self) -> int:
        """How many rows the current query has; -1 before the first ``execute``."""
        return -1 if self._current is None else len(self._rows)

    @property
    def rownumber(self) -> int | None:
        """The position of the next row to fetch."""
        return None if self._current is None else self._next

    def fetchone(self) -> Row | None:
        """The next row, or ``None`` after the last."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next ``size`` rows (``arraysize`` by default), fewer at the end."""
        self._check_results()
        size = self.arraysize if size is None else size
        if not isinstance(size, int):
            raise ProgrammingError("fetchmany takes a number of rows\nhint: cur.fetchmany(10)")
        rows = self._rows[self._next : self._next + max(size, 0)]
        self._next += len(rows)
        return rows

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        self._check_results()
        return self.fetchmany(len(self._rows))

    def nextset(self) -> bool | None:
        """Go on to the next query of the script; ``None`` when there is none."""
        self._check_results()
        assert self._answers is not None
        if self._set + 1 >= len(self._answers):
            return None
        self._show(self._set + 1)
        return True

    def df(self) -> pd.DataFrame:
        """The current query's whole frame."""
        return self._check_results().df

    def fetch_arrow_table(self) -> pyarrow.Table:
        """The current query's whole result as an Arrow table. Needs the extra ``arrow``."""
        return self._check_results().arrow()

    def arrow(self) -> pyarrow.Table:
        """The same as ``fetch_arrow_table``."""
        return self.fetch_arrow_table()

    def pl(self) -> polars.DataFrame:
        """The current query's whole result as a polars frame. Needs the extra ``polars``."""
        return self._check_results().pl()

    def close(self) -> None:
        """Forget the answers; any later use is an ``InterfaceError``."""
        self._closed = True
        self._answers, self._rows = None, []

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Required by PEP 249; does nothing."""
        self._check_open()

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Required by PEP 249; does nothing."""
        self._check_open()

    def __iter__(self) -> Iterator[Row]:
        self._check_results()
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    next = __next__

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, batch: str | list[str], params: Params, epsilon: Any, delta: Any, *, discover: bool = False) -> Self:
        self._answers, self._rows = None, []  # a failed execute leaves no old result behind
        self._answers = self.connection.answer(batch, params, epsilon=epsilon, delta=delta, discover=discover)
        self._show(0)
        return self

    def _show(self, index: int) -> None:
        assert self._answers is not None
        self._set, self._next = index, 0
        self._rows = self._answers[index].rows()

    @property
    def _current(self) -> Answer | None:
        return None if self._answers is None else self._answers[self._set]

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        with self.connection._open():
            pass

    def _check_results(self) -> Answer:
        self._check_open()
        if self._current is None:
            raise InterfaceError("there is no result to fetch\nhint: call execute first")
        return self._current


def _one_set(operation: str, parameters: Any) -> tuple[str, list[Any]]:
    """The text with ``?`` for every placeholder, and their values in order."""
    if isinstance(parameters, Mapping):
        return positional(operation, parameters)
    if not isinstance(parameters, Sequence) or isinstance(parameters, (str, bytes)):
        raise ProgrammingError(
            "each parameter set is a sequence or a mapping\nhint: write [(18,), (40,)] or [{'age': 18}]"
        )
    numbered = {str(number): value for number, value in enumerate(parameters, start=1)}
    return positional(operation, numbered) if uses(operation, numbered) else (operation, list(parameters))
