"""The connection: PEP 249's, with ``explain``, ``answer`` and ``budget`` on top."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from types import TracebackType
from typing import Any, Self

from tacit.engine import strategies
from tacit.engine.accounting.amounts import to_confidence, to_delta, to_epsilon, to_error
from tacit.sql import Catalog

from . import errors
from .answers import Answers
from .budget import Budget
from .compiled import ROUNDING
from .cursor import Cursor
from .errors import Error, InterfaceError, InternalError, PrivacyParameterError, ProgrammingError
from .pipeline import answer, explain
from .plan import Plan
from .steps import Ask, Desk

Batch = str | Sequence[str]
Params = Sequence[Any] | Mapping[str, Any] | None
Number = int | float | Decimal

_WIDEST_WEIGHTS = 1e9
"""Largest over smallest weight. Far below where strategies and their rounding to whole numbers run out of digits."""


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

    def __init__(self, desk: Desk, spend: Decimal | None) -> None:
        self._desk = desk
        self._spend = spend
        self._lock = threading.RLock()
        self._closed = False

    def explain(
        self,
        batch: Batch,
        params: Params = None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        error: float | None = None,
        confidence: float = 0.95,
        weights: Sequence[float] | None = None,
        strategy: str | None = None,
        nonnegative: bool = False,
        integer: bool = False,
        refresh: bool = False,
    ) -> Plan:
        """What ``answer`` would do with the same arguments, and how exact it would be; free.

        ``nonnegative`` changes no prediction: what it does to the errors depends on the released values.
        """
        with self._open(), guarded():
            return explain(
                self._desk,
                self._ask(
                    *(batch, params, epsilon, delta, error, confidence, weights, strategy),
                    *(nonnegative, integer, refresh),
                ),
            )

    def answer(
        self,
        batch: Batch,
        params: Params = None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        error: float | None = None,
        confidence: float = 0.95,
        weights: Sequence[float] | None = None,
        strategy: str | None = None,
        nonnegative: bool = False,
        integer: bool = False,
        refresh: bool = False,
    ) -> Answers:
        """Answer all queries of the batch in one joint release.

        ``epsilon`` and ``delta`` are what the whole batch costs; or ``error`` asks for the smallest budget with
        which every figure is within ±error at ``confidence``. ``weights`` says how much each query's error
        matters, ``strategy`` forces one by name, ``nonnegative`` fits cell counts that are not below zero,
        ``integer`` rounds. What was released before is used, and only what it does not tell as exactly as asked
        is bought; ``refresh`` buys new noise for the whole batch all the same.

        Guarantee: that of ``pipeline.answer``.
        """
        with self._open(), guarded():
            return answer(
                self._desk,
                self._ask(
                    *(batch, params, epsilon, delta, error, confidence, weights, strategy),
                    *(nonnegative, integer, refresh),
                ),
            )

    def cursor(self) -> Cursor:
        """A PEP 249 cursor."""
        with self._open():
            return Cursor(self)

    @property
    def budget(self) -> Budget:
        """What was spent and what is left, now."""
        with self._open():
            return self._desk.purse.budget()

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
        return self._desk.purse.analyst

    @property
    def catalog(self) -> Catalog:
        """The tables, columns and declared domains that a batch may use."""
        return self._desk.catalog

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
                self._desk.source.close()

    def __enter__(self) -> Self:
        with self._open():
            return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        number = len(self._desk.schema.tables)
        state = "closed" if self._closed else f"{number} table{'s' if number != 1 else ''}"
        return f"<tacit.Connection: {state}{f', analyst {self.analyst}' if self.analyst else ''}>"

    @contextmanager
    def _open(self) -> Iterator[None]:
        """This thread's turn on a connection that is still open."""
        with self._lock:
            if self._closed:
                raise InterfaceError("the connection is closed")
            yield

    def _ask(
        self,
        batch: Batch,
        params: Params,
        epsilon: Number | None,
        delta: Number | None,
        error: float | None,
        confidence: float,
        weights: Sequence[float] | None,
        strategy: str | None,
        nonnegative: bool,
        integer: bool = False,
        refresh: bool = False,
    ) -> Ask:
        """Check everything that is not SQL, before anything is compiled."""
        if not isinstance(batch, (str, list, tuple)):
            raise ProgrammingError('a batch is one SQL string or a list of them\nhint: write ["SELECT …", "SELECT …"]')
        _check_text([batch] if isinstance(batch, str) else batch, "the batch")
        _check_text(params.values() if isinstance(params, Mapping) else params, "a parameter")
        if epsilon is not None and error is not None:
            raise PrivacyParameterError(
                "epsilon= and error= were both given\nhint: keep one; error= finds the smallest epsilon itself"
            )
        if strategy is not None and strategy not in strategies():
            raise ProgrammingError(
                f"there is no strategy {strategy!r}\nhint: one of {', '.join(strategies())}, or leave strategy= out"
            )
        wanted = None if error is None else to_error(error)
        if integer and wanted is not None and wanted <= ROUNDING:
            raise PrivacyParameterError(
                f"error={wanted:g} cannot be promised with integer=True: rounding moves a figure by up to one half\n"
                "hint: ask for more than 0.5, such as error=1, or leave integer= out"
            )
        chosen = None if epsilon is None else to_epsilon(epsilon)
        if epsilon is None and error is None:
            chosen = self._spend
        return Ask(
            batch=batch,
            params=params,
            epsilon=chosen,
            delta=Decimal(0) if delta is None else to_delta(delta),
            error=wanted,
            confidence=to_confidence(confidence),
            weights=None if weights is None else _weights(weights),
            strategy=strategy,
            nonnegative=bool(nonnegative),
            integer=bool(integer),
            refresh=bool(refresh),
        )


@contextmanager
def guarded() -> Iterator[None]:
    """Whatever is not of tacit's tree is tacit's own defect, and is said in the tree's terms."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        raise InternalError(
            f"tacit failed on this batch ({type(error).__name__}): a defect of tacit, not of the batch\n"
            "hint: report it, with the text of the batch and the policy"
        ) from None


def _check_text(values: Any, what: str) -> None:
    """Half a surrogate pair is no text for DuckDB, which would say so only when it scans the table."""
    try:
        for value in values if isinstance(values, Iterable) else ():
            if isinstance(value, str):
                value.encode()
    except UnicodeEncodeError:
        raise ProgrammingError(
            f"{what} holds half a surrogate pair, which is no text\nhint: decode it as UTF-8 first"
        ) from None


def _weights(weights: Sequence[float]) -> tuple[float, ...]:
    try:
        checked = tuple(float(w) for w in weights)
    except (TypeError, ValueError, OverflowError):
        checked = ()
    if not checked or isinstance(weights, str) or not all(math.isfinite(w) and w > 0 for w in checked):
        raise ProgrammingError("weights= must hold one positive finite number per query\nhint: weights=[1, 1, 10]")
    largest = max(checked)
    if min(checked) < largest / _WIDEST_WEIGHTS:
        raise ProgrammingError(
            f"the largest of weights= is more than {_WIDEST_WEIGHTS:,.0f} times the smallest: so little is as good as "
            "nothing\nhint: bring them closer, such as weights=[1, 1000], or ask for the queries in two batches"
        )
    return tuple(w / largest for w in checked)
