"""The steps of the pipeline, one function each. Only ``count`` and ``draw`` can see a private row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from tacit.engine import (
    Amount,
    Block,
    Estimate,
    JointPlan,
    Measurement,
    block_of,
    choose_plan,
    choose_plan_for_error,
    estimate_batch,
    measure,
    unpack,
)
from tacit.engine.amounts import exact_sum
from tacit.engine.ledger import Charge, Ledger, Request
from tacit.sql import Catalog, Limits, Source, compile_batch
from tacit.sql.present import is_number, rows_used
from tacit.sql.scan import Scan
from tacit.sql.workload import Linear, Output, Query, Stacked, Workload

from .budget import Purse, smaller
from .catalog import with_versions
from .errors import BudgetError, NotSupportedError, OperationalError, PrivacyParameterError, ProgrammingError

T = TypeVar("T")

_KEPT_PLANS = 32


@dataclass(frozen=True)
class Ask:
    """One request as the caller made it, its numbers checked."""

    batch: str | Sequence[str]
    params: Sequence[Any] | Mapping[str, Any] | None = None
    epsilon: Decimal | None = None
    delta: Decimal = Decimal(0)
    error: float | None = None
    confidence: float = 0.95
    weights: tuple[float, ...] | None = None
    strategy: str | None = None
    nonnegative: bool = False


@dataclass(frozen=True)
class Compiled:
    """The batch as the engine sees it: one block for each private table that matters to it."""

    workload: Workload
    scans: tuple[Scan, ...]
    blocks: tuple[Block, ...]
    public: tuple[Scan, ...]
    """The scans of public tables: read freely, without noise."""
    weights: NDArray[np.float64] | None
    """Per row of the workload."""

    @property
    def fingerprint(self) -> str:
        """Of what the batch measures, and of the state of the tables that it measures it on."""
        return self.workload.fingerprint

    @property
    def rows(self) -> int:
        return int(self.workload.matrix.shape[0])


@dataclass(frozen=True)
class Priced:
    """A plan and what carrying it out costs."""

    plan: JointPlan
    epsilon: Decimal
    delta: Decimal
    fingerprint: str
    """Equal for requests whose releases can stand in for each other."""

    @property
    def cost(self) -> Amount:
        return Amount(*self.plan.cost(self.epsilon, self.delta))


@dataclass(frozen=True)
class Release:
    """A stored release, paid for: what it cost, and its measurements."""

    cost: Amount
    measurements: tuple[Measurement, ...]


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

    @property
    def catalog(self) -> Catalog:
        """The catalog as of now."""
        return with_versions(self.schema, self.source)


def compile_ask(desk: Desk, ask: Ask) -> Compiled:
    """SQL text to blocks. Reads the catalog and, for joins, the keys of public tables."""
    workload = compile_batch(ask.batch, desk.catalog, ask.params, desk.limits)
    for scan in workload.scans:
        check_joins(desk.source, scan)
    pairs = [
        (scan, block_of(workload.matrix[:, scan.columns], rows_per_unit=scan.rows_per_unit, unit=scan.unit))
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
        if not source.unique(join.table.name, key):
            raise NotSupportedError(
                f"{join.table.name} has several rows for one value of {', '.join(key)}, so a join could count a row "
                f"many times\nhint: join {join.table.name} on a column that is unique in it"
            )


def read_public(source: Source, compiled: Compiled) -> NDArray[np.float64]:
    """What public tables add to every row of the workload, exactly."""
    rows = np.zeros(compiled.rows)
    for scan in compiled.public:
        counts = source.count(scan, bytes(32)).astype(np.float64) / scan.unit
        rows += compiled.workload.matrix[:, scan.columns] @ counts
    return rows


def price(desk: Desk, ask: Ask, compiled: Compiled) -> Priced:
    """Choose the plan, and with ``error=`` the smallest ε; the cost follows from the two."""
    key = _hash(
        *(compiled.fingerprint, str(ask.epsilon), str(ask.delta), ask.error),
        *(ask.confidence if ask.error else None, ask.weights, ask.strategy),
    )
    if key not in desk.plans:
        if len(desk.plans) >= _KEPT_PLANS:
            desk.plans.pop(next(iter(desk.plans)))
        desk.plans[key] = _priced(ask, compiled)
    return desk.plans[key]


def _priced(ask: Ask, compiled: Compiled) -> Priced:
    how: dict[str, Any] = {"weights": compiled.weights, "strategy": ask.strategy, "rows": compiled.rows}
    if ask.error is not None:
        target = _linear_rows(compiled.workload.queries).tolist()
        plan, epsilon = choose_plan_for_error(
            compiled.blocks, ask.error, ask.confidence, ask.delta, target=target, **how
        )
    elif ask.epsilon is not None:
        plan, epsilon = choose_plan(compiled.blocks, ask.epsilon, ask.delta, **how), ask.epsilon
    else:
        raise PrivacyParameterError(
            "no budget was named for this batch\n"
            "hint: write epsilon=0.5, or error=10 for the smallest budget that reaches it; for calls that "
            "cannot say, set con.spend = 0.1 or spend = 0.1 under [budget] in the policy"
        )
    # Whatever changes L changes the fingerprint: a forced strategy is not answered from another one's release.
    fingerprint = _hash(compiled.fingerprint, plan.privacy, ask.strategy, ask.weights)
    return Priced(plan, epsilon, ask.delta, fingerprint)


def past_releases(
    ledger: Ledger, priced: Priced, ask: Ask, compiled: Compiled, purse: Purse, *, dry: bool = False
) -> tuple[Release, ...]:
    """The stored releases that this reader may combine; a ``dry`` look writes nothing.

    Reading what another analyst paid for counts against the reader's own cap. So it is done only when it makes
    a new release needless, and only when it costs the reader no more than what was asked.
    """
    stored = ledger.releases(priced.fingerprint)
    everything = tuple(Release(Amount(r.epsilon, r.delta), unpack(r.payload)) for r in stored)
    if purse.analyst is None:
        return everything
    read = {e.refers for e in ledger.entries() if e.kind == "read" and e.analyst == purse.analyst}
    mine = [r.analyst == purse.analyst or r.charge_id in read for r in stored]
    own = tuple(release for release, is_mine in zip(everything, mine, strict=True) if is_mine)
    if good_enough(own, priced, ask, compiled):
        return own
    spent = ledger.spent(purse.analyst)
    limit = total([spent, priced.cost])
    if purse.analyst_cap is not None:
        limit = smaller(limit, purse.analyst_cap)
    theirs = [i for i, is_mine in enumerate(mine) if not is_mine]
    alone = sorted(theirs, key=lambda i: everything[i].cost)
    for extra in (*([i] for i in alone), theirs):  # the cheapest that is enough by itself, or else all together
        readable = tuple(r for i, r in enumerate(everything) if mine[i] or i in extra)
        if not good_enough(readable, priced, ask, compiled):
            continue
        if dry:
            after = total([spent, *(everything[i].cost for i in extra)])
            affordable = smaller(after, limit) == after
        else:
            affordable = _admitted(ledger, purse.analyst, [stored[i].charge_id for i in extra], limit)
        if affordable:
            return readable
    return own


def _admitted(ledger: Ledger, analyst: str, charges: Sequence[int], limit: Amount) -> bool:
    try:
        ledger.admit_read(charges, analyst, limit)
    except BudgetError:
        return False
    return True


def good_enough(releases: Sequence[Release], priced: Priced, ask: Ask, compiled: Compiled) -> bool:
    """Whether stored releases are at least as exact, row by row, as what was asked for.

    One that cost as much is, by its fingerprint: rounding in the comparison below must not charge it again.
    """
    asked = priced.cost
    if any(r.cost.epsilon >= asked.epsilon and r.cost.delta >= asked.delta for r in releases):
        return True
    if not releases:
        return False
    known = combine(releases, compiled)
    if ask.error is not None:
        rows = _linear_rows(compiled.workload.queries)
        return bool(np.all(known.half_width(ask.confidence)[rows] <= ask.error))
    return bool(np.all(known.stderr <= priced.plan.stderr(priced.epsilon, priced.delta) * (1 + 1e-9)))


def charge(ledger: Ledger, priced: Priced, purse: Purse) -> Charge:
    """Pay. Raises ``BudgetError`` with nothing written when a cap would be exceeded.

    What comes back may be an older charge that covers this one and was never released; then it costs nothing.
    """
    return ledger.charge(
        Request(
            fingerprint=priced.fingerprint,
            epsilon=priced.cost.epsilon,
            delta=priced.cost.delta,
            analyst=purse.analyst,
            analyst_cap=purse.analyst_cap,
            cap=purse.cap,
            mechanism=priced.plan.describe(priced.epsilon, priced.delta),
        )
    )


def count(source: Source, compiled: Compiled, salt: bytes) -> list[NDArray[Any]]:
    """The exact unit counts of every private table in the batch: the one read of private rows."""
    return _sealed(lambda: [source.count(scan, salt) for scan in compiled.scans])


def draw(priced: Priced, paid: Charge, counts: Sequence[NDArray[Any]]) -> tuple[Measurement, ...]:
    """Measure with noise, as exactly as what was paid allows.

    Guarantee: that of ``engine.mechanism.measure`` at (``paid.epsilon``, ``paid.delta``).
    """
    return _sealed(lambda: measure(priced.plan, counts, paid.epsilon, paid.delta))


def combine(
    releases: Sequence[Release],
    compiled: Compiled,
    public: NDArray[np.float64] | None = None,
    *,
    nonnegative: bool = False,
) -> Estimate:
    """All rows of the batch from all releases at hand, by generalised least squares: post-processing."""
    estimate = estimate_batch(
        compiled.blocks, [r.measurements for r in releases], rows=compiled.rows, nonnegative=nonnegative
    )
    return estimate if public is None else replace(estimate, values=estimate.values + public)


def _sealed(step: Callable[[], T]) -> T:
    """Run a step that sees private rows; whatever it raises becomes one constant sentence.

    The new error is raised after the handler has ended, so that it carries no ``__context__``: even an
    exception that nobody prints would hold the row that DuckDB quoted.
    """
    try:
        return step()
    except Exception:
        pass
    raise OperationalError(
        "the batch was charged, and then the tables could not be read; nothing was released\n"
        "hint: check that the database is intact, and repeat the batch: that costs nothing"
    )


def _is_linear(output: Output) -> bool:
    if isinstance(output, Stacked):
        return all(_is_linear(part) for _, part in output.parts)
    return isinstance(output, Linear)


def _linear_rows(queries: Sequence[Query]) -> NDArray[np.int64]:
    """The rows that ``error=`` speaks of; refuses AVG, whose error no plan can promise."""
    rows: set[int] = set()
    for index, query in enumerate(queries):
        if any(is_number(column.output) and not _is_linear(column.output) for column in query.columns):
            raise PrivacyParameterError(
                f"error= cannot be promised for query {index}: the error of AVG and of other computed figures depends "
                "on the released values\n"
                "hint: ask for SUM and COUNT in its place, or name epsilon= instead of error="
            )
        rows.update(rows_used(query))
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
