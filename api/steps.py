"""The steps of the pipeline, one function each. Only ``release`` lets a private row be seen, and it is sealed."""

from __future__ import annotations

import hashlib
import json
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from tacit.engine import (
    Amount,
    JointPlan,
    Measurement,
    PlanOptions,
    choose_plan,
    choose_plan_for_error,
    measure,
    plan_release,
    table_workload,
)
from tacit.engine.accounting.amounts import exact_sum
from tacit.engine.accounting.ledger import Charge, ChargeRequest, Ledger
from tacit.sql import Catalog, Limits, Source, compile_batch
from tacit.sql.present import is_number, rows_used
from tacit.sql.scan import Scan
from tacit.sql.workload import Linear, Output, Stacked, Workload

from .budget import Purse
from .catalog import with_versions
from .compiled import Ask, Compiled
from .errors import LedgerError, NotSupportedError, OperationalError, PrivacyParameterError, ProgrammingError
from .evidence import Release, Shelf, combine, read, write

T = TypeVar("T")

__all__ = ["Ask", "Compiled", "Desk", "Priced", "Release", "combine"]

_KEPT_PLANS = 32
_SHOWN = 20
"""So many queries are named in one error."""


@dataclass(frozen=True)
class Priced:
    """A plan and what carrying it out costs."""

    plan: JointPlan
    epsilon: Decimal
    delta: Decimal
    fingerprint: str
    """Equal for requests whose releases can stand in for each other."""
    units: Mapping[str, str]
    """The privacy unit of every table that is read."""

    @property
    def cost(self) -> Amount:
        return Amount(*self.plan.cost(self.epsilon, self.delta))


@dataclass(frozen=True)
class Desk:
    """What a connection answers from."""

    source: Source
    schema: Catalog
    """The tables as the policy declares them, without the versions of those that it gives none."""
    limits: Limits
    purse: Purse
    plans: dict[str, Priced] = field(default_factory=dict)
    """The last few plans: ``answer`` after ``explain`` does not search for the strategy again."""
    kept: Shelf = field(default_factory=Shelf)
    """The releases of the ledger that were read so far; a release never changes."""

    @property
    def catalog(self) -> Catalog:
        """The catalog as of now. A version that the curator declared in the ledger stands before all others."""
        ledger = self.purse.peek()
        declared = {} if ledger is None else ledger.versions()
        return with_versions(self.schema, self.source, declared, self.purse.key)


def compile_ask(desk: Desk, ask: Ask) -> Compiled:
    """SQL text to blocks. Reads the catalog and, for joins, the keys of public tables."""
    workload = compile_batch(ask.batch, desk.catalog, ask.params, desk.limits)
    for scan in workload.scans:
        check_joins(desk.source, scan)
        desk.source.rehearse(scan)
    pairs = [
        (scan, table_workload(workload.matrix[:, scan.columns], rows_per_unit=scan.rows_per_unit, one_row=scan.one_row))
        for scan in workload.scans
        if not scan.table.public
    ]
    pairs = [(scan, block) for scan, block in pairs if block.rows.size]
    return Compiled(
        workload=workload,
        scans=tuple(scan for scan, _ in pairs),
        blocks=tuple(block for _, block in pairs),
        public=tuple(scan for scan in workload.scans if scan.table.public),
        weights=_row_weights(workload, ask.weights),
    )


def check_joins(source: Source, scan: Scan) -> None:
    """Each private row may match at most one row of a public table: its key must be one."""
    for _, join in scan.joins:
        key = tuple(theirs for _, theirs in join.on)
        if not source.unique(join.table, key):
            raise NotSupportedError(
                f"{join.table.name} has several rows for one value of {', '.join(key)}, so a join could count a row "
                f"many times\nhint: join {join.table.name} on a column that is unique in it"
            )


def read_public(source: Source, compiled: Compiled) -> NDArray[np.float64]:
    """What public tables add to every row of the workload, exactly."""
    rows = np.zeros(compiled.rows)
    for scan in compiled.public:
        counts = source.count(scan, bytes(32)).astype(np.float64) / scan.one_row
        rows += compiled.workload.matrix[:, scan.columns] @ counts
    return rows


def price(desk: Desk, ask: Ask, compiled: Compiled) -> Priced:
    """Choose the plan, and with ``error=`` the smallest ε; the cost follows from the two.

    What is refused is refused before a plan is looked up: plans are kept by the rows that they measure, and whether a
    request is sound depends on its queries too.
    """
    _check_request(ask, compiled)
    key = _hash(
        *(compiled.fingerprint, str(ask.epsilon), str(ask.delta), ask.noise_width),
        *(ask.confidence if ask.error else None, _listed(compiled.weights), ask.strategy, desk.purse.rule),
    )
    if key not in desk.plans:
        if len(desk.plans) >= _KEPT_PLANS:
            desk.plans.pop(next(iter(desk.plans)))
        desk.plans[key] = _priced(ask, compiled, desk.purse.rule)
    return desk.plans[key]


def _check_request(ask: Ask, compiled: Compiled) -> None:
    if ask.error is not None:
        _check_promised(compiled)
    elif ask.epsilon is None:
        raise PrivacyParameterError(
            "no budget was named for this batch\n"
            "hint: write epsilon=0.5, or error=10 for the smallest budget that reaches it; for calls that "
            "cannot say, set con.spend = 0.1 or spend = 0.1 under [budget] in the policy"
        )


def _check_promised(compiled: Compiled) -> None:
    """``error=`` is for figures whose error does not depend on the released values."""
    computed = [
        index
        for index, query in enumerate(compiled.workload.queries)
        if any(is_number(column.output) and not _is_linear(column.output) for column in query.columns)
    ]
    if computed:
        shown = ", ".join(map(str, computed[:_SHOWN])) + (", …" if len(computed) > _SHOWN else "")
        raise PrivacyParameterError(
            f"error= cannot be promised for query {shown}: the error of AVG and of other computed figures depends "
            "on the released values\n"
            "hint: ask for SUM and COUNT in its place, or name epsilon= instead of error="
        )


def _listed(weights: NDArray[np.float64] | None) -> list[float] | None:
    """Weights by row, because the same rows can belong to other queries."""
    return None if weights is None else weights.tolist()


def _priced(ask: Ask, compiled: Compiled, rule: str) -> Priced:
    options = PlanOptions(compiled.weights, ask.strategy, compiled.rows)
    gaussian = _gaussian(compiled, options) if rule == "zcdp" and ask.delta > 0 else None
    if ask.noise_width is not None:
        target = linear_rows(compiled).tolist()
        if gaussian is not None:
            plan, epsilon = gaussian, gaussian.epsilon_for(ask.noise_width, ask.confidence, ask.delta, target)
        else:
            plan, epsilon = choose_plan_for_error(
                compiled.blocks, ask.noise_width, ask.confidence, ask.delta, options, target=target
            )
    else:
        assert ask.epsilon is not None
        plan, epsilon = gaussian or choose_plan(compiled.blocks, ask.epsilon, ask.delta, options), ask.epsilon
    # Whatever changes L changes the fingerprint: a charge never released is taken up by the same plan only.
    fingerprint = _hash(compiled.fingerprint, plan.privacy, ask.strategy, _listed(compiled.weights))
    return Priced(plan, epsilon, ask.delta, fingerprint, compiled.units)


def _gaussian(compiled: Compiled, options: PlanOptions) -> JointPlan | None:
    """The plan for a ledger that accounts by zCDP: at equal ρ, Gaussian noise is never the worse one.

    Laplace noise at ε costs ρ = ε²/2 there, for a variance of Δ₁²/ρ; Gaussian noise has Δ₂²/2ρ, and Δ₂ ≤ Δ₁. ``None``
    for a forced strategy that is made for Laplace noise only.
    """
    try:
        return plan_release(compiled.blocks, privacy="approximate", options=options)
    except NotSupportedError:
        return None


def request(priced: Priced, purse: Purse) -> ChargeRequest:
    """What the ledger is asked to admit."""
    return ChargeRequest(
        fingerprint=priced.fingerprint,
        epsilon=priced.cost.epsilon,
        delta=priced.cost.delta,
        analyst=purse.analyst,
        analyst_cap=purse.analyst_cap,
        cap=purse.cap,
        mechanism=priced.plan.describe(priced.epsilon, priced.delta, priced.units),
        rho=priced.plan.rho(priced.epsilon, priced.delta),
    )


def charge(ledger: Ledger, priced: Priced, purse: Purse) -> Charge:
    """Pay. Raises ``BudgetError`` with nothing written when a cap would be exceeded.

    What comes back may be an older charge that covers this one and was never released; then it costs nothing.

    Guarantee: what a ledger has added up speaks of one kind of neighbours, because it is bound to one policy, which the
    transaction of the charge compares with this connection's (``Ledger.under``).
    """
    return ledger.charge(request(priced, purse))


def quote(ledger: Ledger | None, priced: Priced, purse: Purse) -> Amount:
    """What ``charge`` would add to what was spent."""
    return purse.first_cost(request(priced, purse)) if ledger is None else ledger.quote(request(priced, purse))


def release(source: Source, compiled: Compiled, priced: Priced, paid: Charge, ledger: Ledger) -> Release:
    """Count, draw and store, and return what was stored: from the exact counts to the release in one sealed call.

    Guarantee: nothing of the exact counts outlives this call, whatever goes wrong in it. What is returned was read back
    from the ledger. What is raised is a new exception with a constant text, raised when the frames that held counts are
    gone: neither its traceback nor what it was raised from leads to them.
    """
    return _sealed(lambda: _released(source, compiled, priced, paid, ledger))


def _released(source: Source, compiled: Compiled, priced: Priced, paid: Charge, ledger: Ledger) -> Release:
    drawn = draw(priced, paid, count(source, compiled, ledger.salt))
    kept = ledger.store(paid.id, *write(compiled.scans, drawn))
    return read(kept, Amount(paid.epsilon, paid.delta), paid.id)


def count(source: Source, compiled: Compiled, salt: bytes) -> list[NDArray[Any]]:
    """The exact unit counts of every private table in the batch: the one read of private rows."""
    return [source.count(scan, salt) for scan in compiled.scans]


def draw(priced: Priced, paid: Charge, counts: Sequence[NDArray[Any]]) -> tuple[Measurement, ...]:
    """Measure with noise, as exactly as what was paid allows.

    Guarantee: that of ``engine.mechanism.measure`` at (``paid.epsilon``, ``paid.delta``).
    """
    return measure(priced.plan, counts, paid.epsilon, paid.delta)


def _sealed(step: Callable[[], T]) -> T:
    """Run a step that sees private rows; whatever it raises becomes a new exception that knows nothing of them.

    Even an exception that nobody prints would lead to the rows: DuckDB quotes one in its text, and a traceback keeps
    the frames, with their variables, of every function that it came through. The step has a thread of its own, because
    an interrupt reaches the main thread only: it can come while the rest is being cleared away, and would then carry
    what is not cleared yet. Whoever waits here holds no row, whatever interrupts the waiting.
    """
    done: list[T] = []
    said: list[BaseException] = []

    def work() -> None:
        try:
            done.append(step())
        except BaseException as error:
            said.append(_without_rows(error))
            _forget(error)

    thread = threading.Thread(target=work, name="tacit release", daemon=True)
    thread.start()
    thread.join()
    if not done:
        raise said[0] if said else _without_rows(RuntimeError())
    return done[0]


def _without_rows(error: BaseException) -> BaseException:
    """What may be said of an error: that the ledger could not be written, that it was an interrupt, or nothing."""
    if isinstance(error, LedgerError):  # a constant text and the file's name
        return LedgerError(f"{error}\nhint: the batch was charged; repeating it costs nothing")
    if isinstance(error, SystemExit):
        return SystemExit(error.code if isinstance(error.code, int) else 1)
    if not isinstance(error, Exception):
        return KeyboardInterrupt()
    return OperationalError(
        "the batch was charged, and then the tables could not be read; nothing was released\n"
        "hint: check that the database is intact, and repeat the batch: that costs nothing"
    )


def _forget(error: BaseException) -> None:
    """Empty the frames of an error and of all that it was raised from, also where they hold each other in a circle."""
    todo: list[BaseException | None] = [error]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        todo += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
        traceback.clear_frames(one.__traceback__)
        one.__traceback__ = one.__cause__ = one.__context__ = None


def _is_linear(output: Output) -> bool:
    if isinstance(output, Stacked):
        return all(_is_linear(part) for _, part in output.parts)
    return isinstance(output, Linear)


def linear_rows(compiled: Compiled) -> NDArray[np.int64]:
    """The rows left to measure that ``error=`` speaks of."""
    rows = {row for query in compiled.workload.queries for row in rows_used(query)}
    rows &= {int(row) for block in compiled.blocks for row in block.rows}
    return np.array(sorted(rows), dtype=np.int64)


def _row_weights(workload: Workload, weights: tuple[float, ...] | None) -> NDArray[np.float64] | None:
    if weights is None:
        return None
    if len(weights) != len(workload.queries):
        raise ProgrammingError(
            f"weights= has {len(weights)} entries for {len(workload.queries)} queries\n"
            "hint: give one positive number per query"
        )
    of_row = np.zeros(workload.matrix.shape[0])
    for weight, query in zip(weights, workload.queries, strict=True):
        rows = rows_used(query)
        of_row[rows] = np.maximum(of_row[rows], weight)
    return np.where(of_row > 0, of_row, 1.0)


def total(costs: Iterable[Amount]) -> Amount:
    """The exact sum: Python's decimals round to 28 digits unless told otherwise."""
    listed = list(costs)
    return Amount(exact_sum(c.epsilon for c in listed), exact_sum(c.delta for c in listed))


def _hash(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
