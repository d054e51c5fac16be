"""The connection: PEP 249's, with ``explain``, ``answer`` and ``budget`` on top."""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, Self, TypeVar, get_type_hints

from tacit.engine import to_epsilon
from tacit.sql import Catalog
from tacit.sql.wanted import What

from . import discover as discovering
from . import errors, pipeline
from .answers import Answers
from .budget import Budget
from .cursor import Cursor
from .discovery import Discovery
from .display import html_table, shortened
from .errors import Error, InterfaceError, InternalError, OperationalError
from .explain import Plan
from .request import Ask, Batch, Number, Params, ask
from .session import Session

if TYPE_CHECKING:
    import pandas as pd

_INTERRUPTED = "Query interrupted"
"""What DuckDB makes of Ctrl-C while the main thread waits for it."""
_LINE = 80
"""Characters of a line in a terminal."""
P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound="Connection")


def takes(
    ask: Callable[P, Ask],
) -> Callable[[Callable[[C, Ask], T]], Callable[Concatenate[C, P], T]]:
    """Give a method the parameters of ``ask``, which checks them: they are spelled once, for all methods that ask."""
    signature = inspect.signature(ask)
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def decorate(method: Callable[[C, Ask], T]) -> Callable[Concatenate[C, P], T]:
        @functools.wraps(method)
        def asked(self: C, /, *args: P.args, **kwargs: P.kwargs) -> T:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:  # as any function's own
                raise TypeError(f"{method.__qualname__}() {error}") from None
            with self._open(), guarded():
                request = ask(*args, **kwargs)
                return method(self, request if request.names_budget else replace(request, epsilon=self._spend))

        asked.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[first, *signature.parameters.values()], return_annotation=method.__annotations__["return"]
        )
        asked.__annotations__ = {**get_type_hints(ask), "return": method.__annotations__["return"]}
        return asked

    return decorate


class Connection:
    """One database, one policy, one ledger. Threads may share it: its calls take turns.

    Opened with ``analyst=``, it offers no path to exact counts. That stops misuse, not malice: Python keeps no
    secrets from code in the same process.
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, session: Session, spend: Decimal | None) -> None:
        self._session = session
        self._spend = spend
        self._lock = threading.RLock()
        self._closed = False

    def __reduce__(self) -> NoReturn:
        raise TypeError("a connection cannot be pickled or copied: call tacit.connect where it is needed")

    @takes(ask)
    def explain(self, ask: Ask) -> Plan:
        """What ``answer`` would do with the same arguments, and how exact it would be; free.

        ``nonnegative`` changes no prediction: what it does to the errors depends on the released values.
        ``inference="likelihood"`` does: its errors do not depend on any value.
        """
        return pipeline.explain(self._session, ask)

    @takes(ask)
    def answer(self, ask: Ask) -> Answers:
        """Answer all queries of the batch in one joint release.

        ``epsilon`` and ``delta`` are what the whole batch costs; or ``error`` asks for the smallest budget with
        which every figure is within ±error at ``confidence``. ``weights`` says how much each query's error
        matters, ``strategy`` forces one by name, ``nonnegative`` fits cell counts that are not below zero (better for
        small counts, and biased upwards for sums of many), ``integer`` rounds.

        ``objective`` is what the questions are chosen for: the least sum of squared errors (``"total"``), the least
        largest one (``"largest"``), the least sum of standard errors (``"absolute"``), each after dividing a figure's
        error by the largest amount that one row can add to it; or the least sum of squared relative errors
        (``"relative"``), with ``sizes`` for how large each query's figures are expected to be. ``weights`` multiply
        what is summed.

        ``inference="likelihood"`` takes the centre of the likelihood in place of least squares. It is free and the
        questions are the same; the errors are smaller where Laplace noise was measured with redundancy: several
        releases of one table, or a strategy with many more questions than cells. Elsewhere it is least squares.

        What was released before is used, and only what it does not tell as exactly as asked
        is bought; ``refresh`` buys new noise for the whole batch all the same.

        ``plan_seconds`` bounds the search for the questions, which ends then with the best so far. Plans are kept
        beside the ledger, or in the folder that the environment variable ``TACIT_CACHE`` names: the same batch is
        planned once, whatever ε it is asked at.

        ``discover`` finds the group keys and the ranges that the batch needs and the policy does not declare, with a
        quarter of ε, and for keys half of δ, in equal parts; the answers have the rest, also when all of it was found
        before. ``explain`` says what would be bought. What is found stays: see ``discover``.

        Guarantee: that of ``pipeline.answer``.
        """
        return pipeline.answer(self._session, ask)

    def curve(
        self, batch: Batch, params: Params = None, *, epsilons: Sequence[Number] | None = None, **options: Any
    ) -> pd.DataFrame:
        """What each ε would buy of a batch: see ``Plan.curve``; ``options`` are those of ``explain``. Free."""
        if "epsilon" not in options and "error" not in options:
            options["epsilon"] = max(epsilons) if epsilons else 1
        return self.explain(batch, params, **options).curve(epsilons)

    def discover(
        self,
        column: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        what: What | None = None,
    ) -> Discovery:
        """Find the values of a column (``what="keys"``), or its range (``what="range"``), which nobody declared.

        ``column`` is ``"visits.city"``, or an expression over one table's columns, such as ``"lower(visits.city)"``.
        Without ``what``, stored numbers have a range and everything else has keys. Keys need a δ: those are found that
        enough units hold, and ``threshold`` of the result says how many that is, give or take the noise. A range is
        found in steps of powers of two (years for dates) and needs none. What is found is public from then on: the
        ledger keeps it, and every connection has it in its catalog where the policy declares nothing. The same again
        for the same version of the table costs nothing, and a public table is read for nothing.

        Guarantee: that of ``discover.release``, at the cost charged before the first row was read.
        """
        with self._open(), guarded():
            spend = self._spend if epsilon is None else epsilon
            return discovering.discover(self._session, column, what, spend, delta)

    def cursor(self) -> Cursor:
        """A PEP 249 cursor."""
        with self._open():
            return Cursor(self)

    @property
    def budget(self) -> Budget:
        """What was spent and what is left, now."""
        with self._open():
            return self._session.access.budget()

    @property
    def spend(self) -> Decimal | None:
        """The ε of a call that names no budget, such as ``pandas.read_sql(sql, con)``."""
        return self._spend

    @spend.setter
    def spend(self, value: Number | None) -> None:
        self._spend = None if value is None else to_epsilon(value)

    @property
    def analyst(self) -> str | None:
        """Whom the connection was opened for; ``None`` for the curator."""
        return self._session.access.analyst

    @property
    def catalog(self) -> Catalog:
        """The tables, columns and declared domains that a batch may use."""
        return self._session.catalog

    def commit(self) -> None:
        """Nothing to do: the source is read-only, and a release is final when it is returned."""
        with self._open():
            pass

    def rollback(self) -> None:
        """Nothing to undo: nothing was written, and what was charged stays charged."""
        with self._open():
            pass

    def close(self) -> None:
        """Close the database. Closing twice is fine; any other use afterwards is an ``InterfaceError``."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._session.source.close()

    def __enter__(self) -> Self:
        with self._open():
            return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        number = len(self._session.schema.tables)
        state = "closed" if self._closed else f"{number} table{'s' if number != 1 else ''}"
        return f"<tacit.Connection: {state}{f', analyst {self.analyst}' if self.analyst else ''}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """IPython's prompt: the tables with whose presence is hidden, and the budget."""
        lines = [repr(self)]
        with self._lock:
            if not self._closed:
                for table in self._session.catalog.tables:
                    hidden = "public" if table.public else f"unit: {table.privacy_unit or 'each row'}"
                    names = ", ".join(column.name for column in table.columns)
                    lines.append(shortened(f"  {table.name} ({hidden}): {names}", _LINE))
                lines.append(f"  {str(self.budget).replace(chr(10), chr(10) + '  ')}")
        printer.text("\n".join(lines))

    def _repr_html_(self) -> str:
        with self._lock:
            if self._closed:
                return f"<p>{escape(repr(self))}</p>"
            tables = self._session.catalog.tables
            shown = {
                "table": [table.name for table in tables],
                "columns": [", ".join(column.name for column in table.columns) for table in tables],
                "": ["public" if table.public else f"unit {table.privacy_unit or 'row'}" for table in tables],
            }
            return f"<p>{escape(repr(self))}</p>{html_table(shown, left=tuple(shown))}{self.budget._repr_html_()}"

    @contextmanager
    def _open(self) -> Iterator[None]:
        """This thread's turn on a connection that is still open."""
        with self._lock:
            if self._closed:
                raise InterfaceError("the connection is closed")
            yield


class guarded:
    """The front door for what goes wrong behind it.

    Whatever is not of tacit's tree is tacit's own defect, and is said in the tree's terms, with every frame on the way.
    What is of the tree says itself what is wrong and what to write: the frames between would hide that, and are left
    out, unless the environment variable ``TACIT_TRACEBACK`` is set.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Error):
            if not isinstance(error, InternalError) and not os.environ.get("TACIT_TRACEBACK"):
                error.__traceback__ = None
        elif isinstance(error, RuntimeError) and str(error) == _INTERRUPTED:
            raise KeyboardInterrupt from None
        elif isinstance(error, MemoryError):
            raise OperationalError(
                "this batch needs more memory than there is\nhint: ask for fewer queries or groups at a time"
            ) from None
        elif isinstance(error, Exception):
            raise InternalError(
                f"tacit failed on this batch ({type(error).__name__}): a defect of tacit, not of the batch\n"
                "hint: report it, with the text of the batch and the policy"
            ).with_traceback(trace) from None
