"""Keys and ranges that nobody declared, bought on purpose: ``con.discover`` and ``discover=True``.

What is found is stored in the ledger as the release of its charge, and is public from then on: every connection has it
in its catalog. It counts against the cap of the whole and of the analyst who bought it, and against no other.

Guarantee. Charged before a row is read, then counted, drawn and stored in one sealed call, as every release is
(``pipeline.answer``). What passes is (ε, δ)-private by ``engine.mechanism.threshold``, whose counts are those of
``Source.values`` for keys and of ``Source.count`` for ranges. What can be refused is refused before the charge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, get_args

from tacit.engine import Amount, Charge, ChargeRequest, Ledger, MechanismRecord
from tacit.engine.accounting.amounts import exact_difference, exact_sum, to_delta, to_epsilon
from tacit.engine.accounting.composition import KEYS
from tacit.engine.accounting.description import StageRecord
from tacit.engine.mechanism.threshold import Threshold, bin_threshold, key_threshold
from tacit.sql import Catalog, Range, Source, Values, compile_batch
from tacit.sql.dialect import kind_of
from tacit.sql.named_column import named_column
from tacit.sql.scan import Scan
from tacit.sql.wanted import Wanted, What, wanted

from .budget import LedgerAccess, show
from .compiled_batch import units_of
from .discovery import SUBJECT, Discovery, read, with_found, write
from .errors import BudgetError, DomainError, NotSupportedError, PrivacyParameterError, ProgrammingError, SqlError
from .explain import Plan
from .request import Ask
from .sealed import sealed
from .session import Session

_SHARE = 4
"""Of a call with ``discover=True``, one part in so many of ε goes to what is missing; of δ, one half to lists."""
_DOWN = Context(prec=12, rounding=ROUND_FLOOR)
_NOTHING_PASSED = "nothing passed the level, so this is a default and no finding"
_NO_BUDGET = (
    "no budget was named for this discovery\n"
    "hint: write epsilon=0.1, or set con.spend = 0.1 or spend = 0.1 under [budget] in the policy"
)
_NO_DELTA = (
    "finding the values of a column needs a delta: a value that one unit alone holds may show, with that probability\n"
    "hint: write delta=1e-6, well below one in the number of units; or list the values in the policy"
)


@dataclass(frozen=True)
class FindingPurchase:
    """A wanted list or range, and what is paid for it."""

    wanted: Wanted
    amount: Amount

    @property
    def scan(self) -> Scan:
        """What is counted."""
        return self.wanted.scan()

    def threshold(self, epsilon: Decimal, delta: Decimal) -> Threshold:
        """The noise, and what passes it."""
        scan = self.scan
        if self.wanted.what == "range":
            return bin_threshold(scan.cells, scan.rows_per_unit, epsilon)
        return key_threshold(scan.rows_per_unit, epsilon, delta, self.wanted.table.minimum_frequency)

    @property
    def fingerprint(self) -> str:
        """Equal for purchases whose releases can stand in for each other.

        That of keys says so at its beginning: under zCDP their δ is one of failure (``composition.Event``).
        """
        parts = (self.wanted.what, self.wanted.column.type, self.wanted.table.minimum_frequency, self.scan.fingerprint)
        digest = hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
        return f"{KEYS if self.wanted.what == 'keys' else 'range:'}{digest}"

    def request(self, access: LedgerAccess) -> ChargeRequest:
        """What the ledger is asked to admit."""
        noise, fingerprint = self.threshold(*self.amount), self.fingerprint
        part = StageRecord(
            strategy="discover",
            stage=f"{self.wanted.what}, {noise.kind}",
            epsilon=str(Fraction(noise.epsilon)),
            scale=noise.scale,
            count=1,
            rows_per_unit=noise.touched,
            lattice=fingerprint,
        )
        privacy = "approximate" if self.amount.delta else "pure"
        mechanism = MechanismRecord(privacy, self.amount, (part,), units_of([self.scan]))
        asked = f"{self.wanted.what} of {self.wanted.name}"
        return access.request(fingerprint, self.amount, mechanism, noise.rho, scans=[self.scan], sql=[asked])


def discover(session: Session, column: str, what: What | None, epsilon: Any, delta: Any) -> Discovery:
    """Find the values or the range of one column, or say what is known of it already."""
    if not isinstance(column, str):
        raise ProgrammingError('discover takes a column, as text\nhint: con.discover("visits.city", epsilon=0.1)')
    if what is not None and what not in get_args(What):
        raise ProgrammingError('what= is neither "keys" nor "range"\nhint: leave it out: numbers have a range')
    target = _target(session, column, what)
    if isinstance(target, Discovery):
        return target
    if target.table.public:
        return _read_public(session, target)
    if epsilon is None:
        raise PrivacyParameterError(_NO_BUDGET)
    paid = Amount(to_epsilon(epsilon), Decimal(0) if delta is None else to_delta(delta))
    if target.what == "range":
        paid = Amount(paid.epsilon, Decimal(0))
    elif not paid.delta:
        raise PrivacyParameterError(_NO_DELTA)
    return _buy(session, FindingPurchase(target, paid))


def _target(session: Session, text: str, what: What | None) -> Wanted | Discovery:
    """What is to be found; a Discovery where the policy or the type tells it already."""
    table, column = named_column(text, session.declared, session.limits)
    kind = kind_of(column.type)
    chosen: What = what or ("range" if kind == "number" and not column.expression else "keys")
    target = wanted(chosen, table, column)
    if target is None:
        listed = chosen == "keys" and not (column.expression and (column.labels or not column.inputs))
        raise NotSupportedError(
            f"the {'values' if chosen == 'keys' else 'range'} of {text} cannot be found: "
            + (f"values of type {column.type} cannot be listed" if listed else "it is no column with such a thing")
            + "\nhint: name a column of text, numbers, days, moments or truth values; ranges are for stored columns of "
            "numbers, days and moments"
        )
    domain = column.domain
    if domain is None or table.public:
        return target
    if isinstance(domain, Values) == (chosen == "keys"):
        return Discovery.of(target, domain, Decimal(0), Decimal(0), 0)
    raise ProgrammingError(
        f"{'a range' if chosen == 'keys' else 'a list of values'} is declared for {text} already, and what is declared "
        "comes before what is found\nhint: leave it out of the policy, or ask for "
        f'what="{"range" if chosen == "keys" else "keys"}"'
    )


def _read_public(session: Session, target: Wanted) -> Discovery:
    """A public table is read as it is: free, and exact."""
    session.source.rehearse_values(target.scan())
    discovery = _counted(session.source, target, bytes(32))
    session.found.add_public(discovery)
    return discovery


def _buy(session: Session, purchase: FindingPurchase) -> Discovery:
    """What is stored already, if as much was paid for it; else charge, count, draw and store."""
    _rehearse(session.source, purchase)
    ledger = session.access.open()
    # The table's version is named by the ledger's salt, and another process may have begun the ledger meanwhile.
    target = purchase.wanted
    table = next(table for table in session.declared.tables if table.key == target.table.key)
    purchase = replace(purchase, wanted=replace(target, table=table))
    for stored in ledger.releases(purchase.fingerprint):
        if stored.epsilon >= purchase.amount.epsilon and stored.delta >= purchase.amount.delta:
            return read(stored.payload, stored.epsilon, stored.delta)
    paid = ledger.charge(purchase.request(session.access))
    payload = sealed(lambda: release(session.source, ledger, purchase, paid), session.source)
    return replace(read(payload, paid.epsilon, paid.delta), cost=paid.cost)


def _rehearse(source: Source, purchase: FindingPurchase) -> None:
    if purchase.wanted.what == "keys":
        source.rehearse_values(purchase.scan)
    else:
        source.rehearse(purchase.scan)


def release(source: Source, ledger: Ledger, purchase: FindingPurchase, paid: Charge) -> bytes:
    """Count, draw and store; what is returned was read back from the ledger. Called sealed.

    Guarantee: that of ``Threshold.passing`` at what was paid. Values are sorted, since the order of the rows is not
    paid for, and no count is kept.
    """
    target, scan = purchase.wanted, purchase.scan
    noise = purchase.threshold(paid.epsilon, paid.delta)
    found: Values | Range | None
    if target.what == "keys":
        found = Values(tuple(sorted(source.values(scan, ledger.salt, noise.passing))))
    else:
        found = target.range_of(noise.passing(source.count(scan, ledger.salt)))
    discovery = _discovery(target, found, paid.epsilon, paid.delta, noise.level)
    return ledger.store(paid.id, write(discovery), [SUBJECT])


def _discovery(
    target: Wanted, found: Values | Range | None, epsilon: Decimal, delta: Decimal, threshold: int
) -> Discovery:
    """A range that nothing was found of is [0, 1], or a year for days, and says so."""
    if found is not None:
        return Discovery.of(target, found, epsilon, delta, threshold)
    return replace(Discovery.of(target, target.default, epsilon, delta, threshold), warning=_NOTHING_PASSED)


@dataclass(frozen=True)
class Split:
    """How a call with ``discover=True`` spends: what must be found for it, and the rest."""

    purchases: tuple[FindingPurchase, ...]
    public: tuple[Wanted, ...]
    ask: Ask
    """The request for the answers, with what is left of its ε and δ."""


def split(session: Session, ask: Ask) -> Split:
    """What a batch lacks, and its share. Reads no private row.

    The share is set apart for all that the policy does not declare, found before or not: so the same call again asks
    for the same answers, and costs nothing.
    """
    try:
        lacking = _lacking(session, ask, session.declared)
    except SqlError:  # what was found of one column can make up for another, which cannot be found itself
        lacking = _lacking(session, ask, session.catalog)
    private = [w for w in lacking if not w.table.public]
    missing = _lacking(session, ask, session.catalog) if lacking else []
    public = tuple(w for w in missing if w.table.public)
    if not private:
        return Split((), public, replace(ask, discover=False))
    if ask.epsilon is None:
        raise PrivacyParameterError(
            "discover=True takes a part of epsilon=, and none was named\nhint: write epsilon=0.5 in place of error="
        )
    wanted_now = [w for w in missing if not w.table.public]
    lists = [w for w in (*private, *wanted_now) if w.what == "keys"]
    if lists and not ask.delta:
        raise PrivacyParameterError(_NO_DELTA)
    count = max(len(private), len(wanted_now))
    keys = max(sum(w.what == "keys" for w in private), sum(w.what == "keys" for w in wanted_now))
    epsilon = _DOWN.divide(ask.epsilon, Decimal(_SHARE * count))
    delta = _DOWN.divide(ask.delta, Decimal(2 * keys)) if keys else Decimal(0)
    rest = replace(
        ask,
        epsilon=exact_difference(ask.epsilon, exact_sum([epsilon] * count)),
        delta=exact_difference(ask.delta, exact_sum([delta] * keys)),
        discover=False,
    )
    purchases = (FindingPurchase(w, Amount(epsilon, delta if w.what == "keys" else Decimal(0))) for w in wanted_now)
    return Split(tuple(purchases), public, rest)


def exact_missing(session: Session, ask: Ask, salt: bytes) -> tuple[Discovery, ...]:
    """What a batch lacks, as the rows have it: every value, a range that clamps nothing. NOT PRIVATE: ``testing``."""
    found: list[Discovery] = []
    while missing := _lacking(session, ask, with_found(session.catalog, found)):
        found += [_counted(session.source, target, salt) for target in missing]
    return tuple(found)


def _counted(source: Source, target: Wanted, salt: bytes) -> Discovery:
    """The values or the range of a column from its counts without noise."""
    scan = target.scan()
    found: Values | Range | None
    if target.what == "keys":
        found = Values(tuple(sorted(source.values(scan, salt, lambda counts: counts > 0))))
    else:
        found = target.range_of(source.count(scan, salt) > 0)
    return _discovery(target, found, Decimal(0), Decimal(0), 1)


def _lacking(session: Session, ask: Ask, catalog: Catalog) -> list[Wanted]:
    """All lists and ranges that a batch needs and the catalog has not; raises what cannot be helped by finding any.

    Each query tells the first that it lacks, so stand-ins take their places until nothing is missing. Stored columns
    come first: the values of an expression may follow from theirs.
    """
    lacking: dict[tuple[What, tuple[str, ...], str], Wanted] = {}
    while True:
        stand_ins = [_stand_in(w) for w in lacking.values()]
        try:
            compile_batch(ask.batch, with_found(catalog, stand_ins), ask.params, session.limits)
        except SqlError as error:
            named = [e.wanted for e in error.errors if isinstance(e, DomainError)]
            new = {w.key: w for w in named if isinstance(w, Wanted) and w.key not in lacking}
            if len(named) < len(error.errors) or not new or not all(isinstance(w, Wanted) for w in named):
                raise
            lacking |= {key: w for key, w in new.items() if not w.column.expression} or new
        else:
            # As the catalog has them, without the stand-ins that others of them had meanwhile.
            tables = {table.key: table for table in catalog.tables}
            return [replace(w, table=tables[w.table.key]) for w in lacking.values()]


def _stand_in(target: Wanted) -> Discovery:
    return Discovery.of(target, target.stand_in, Decimal(0), Decimal(0), 0)


def find_missing(session: Session, ask: Ask) -> tuple[Ask, tuple[Discovery, ...]]:
    """Buy what a batch lacks: the request for its answers with what is left of ε and δ, and what was found.

    Guarantee: all purchases and the rest add up to no more than the ε and the δ of ``ask``.
    """
    parts = split(session, ask)
    found = [_read_public(session, target) for target in parts.public]
    if parts.purchases:
        _check_affordable(session, ask)
    for purchase in parts.purchases:
        _rehearse(session.source, purchase)  # all of them can be run before any is paid
    found += [_buy(session, purchase) for purchase in parts.purchases]
    return parts.ask, tuple(found)


def _check_affordable(session: Session, ask: Ask) -> None:
    """Refuse a call that would find something and then could not pay for its answers.

    Only where amounts add up as they are: under zCDP what the answers cost is known when they are planned.
    """
    budget, analyst = session.access.budget(), session.access.analyst
    left = budget.left if analyst is None else budget.analysts[analyst].left
    assert ask.epsilon is not None
    if session.access.rule == "sum" and ask.epsilon > left.epsilon:
        raise BudgetError(
            f"this costs epsilon {ask.epsilon:f}, and {left.epsilon:f} is left; nothing was charged",
            asked=Amount(ask.epsilon, ask.delta),
            left=left,
        )


def explain_missing(session: Session, ask: Ask, explain: Callable[[Session, Ask], Plan]) -> Plan:
    """The plan of ``answer`` with ``discover=True``: what it would find first, and a prediction with stand-ins."""
    parts = split(session, ask)
    for target in parts.public:
        _read_public(session, target)
    stand_ins = tuple(_stand_in(p.wanted) for p in parts.purchases)
    plan = explain(replace(session, stand_ins=stand_ins), parts.ask)
    if not parts.purchases:
        return plan
    costs = [plan.cost, *(_quote(session, purchase) for purchase in parts.purchases)]
    cost = Amount(exact_sum(c.epsilon for c in costs), exact_sum(c.delta for c in costs))
    why = f"{plan.why}; with what is found first, {show(cost)} in all"
    return replace(plan, cost=cost, why=why, discover=tuple(_lines(parts.purchases)))


def _quote(session: Session, purchase: FindingPurchase) -> Amount:
    request, ledger = purchase.request(session.access), session.access.peek()
    return session.access.first_cost(request) if ledger is None else ledger.quote(request)


def _lines(purchases: Sequence[FindingPurchase]) -> list[str]:
    lines = []
    for purchase in purchases:
        noise, target = purchase.threshold(*purchase.amount), purchase.wanted
        if target.what == "keys":
            lines.append(
                f"first finds the keys of {target.name} for {show(purchase.amount)}: "
                f"those of {noise.level} units or more, give or take the noise"
            )
        else:
            lines.append(
                f"first finds the range of {target.name} for {show(purchase.amount)}: "
                f"from bins of {noise.level} rows or more"
            )
    if any(p.wanted.what == "keys" for p in purchases):
        lines.append("one stand-in key takes the place of each list that is not known yet: there will be more groups")
    if any(p.wanted.what == "range" for p in purchases):
        lines.append("0 to 1 takes the place of each range that is not known yet: errors of sums grow with its width")
    return lines
