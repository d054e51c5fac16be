"""Rules of composition: exact sums, zCDP that is never too cheap, and the curator's operations."""

from __future__ import annotations

import math
import stat
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian
from tacit.engine.accounting import curator
from tacit.engine.accounting.amounts import Amount
from tacit.engine.accounting.composition import (
    Balance,
    Event,
    Rule,
    Total,
    realised,
    rho_of_gaussian,
    rho_of_pure,
    rule_named,
)
from tacit.engine.accounting.ledger import ChargeRequest, Ledger, verify
from tacit.engine.mechanism.choose import PlanOptions, plan_release
from tacit.engine.mechanism.table_workload import table_workload
from tacit.errors import BudgetError, InternalError, LedgerError, PrivacyParameterError

from .workloads import prefix

CAP = Amount(Decimal(3), Decimal("1e-6"))


def event(epsilon: str, delta: str = "0", rho: str | None = None) -> Event:
    return Event(Amount(Decimal(epsilon), Decimal(delta)), None if rho is None else Decimal(rho))


@pytest.mark.parametrize("name", ["sum", "zcdp"])
def test_a_rule_grows_by_its_prices_and_never_shrinks(name: str) -> None:
    rule: Rule = rule_named(name)
    charged = Total()
    total = Amount(Decimal(0), Decimal(0))
    for i in range(1, 12):
        new = event(f"0.0{i}", "1e-9", f"0.000{i}")
        cost = Balance(rule, CAP, charged).price([new])
        assert cost.epsilon > 0
        total = Amount(total.epsilon + cost.epsilon, total.delta + cost.delta)
        charged = charged.plus([new])
        spent, rest = rule.spent(charged, CAP), Balance(rule, CAP, charged).left
        assert abs(spent.epsilon - total.epsilon) < Decimal("1e-25")
        assert spent.epsilon + rest.epsilon == pytest.approx(CAP.epsilon)


def test_rho() -> None:
    assert rho_of_pure(Decimal("0.1")) == Decimal("0.005")
    assert rho_of_gaussian([(3, 6.0), (1, 2.0)]) == Decimal("0.25")
    third = rho_of_gaussian([(1, math.sqrt(1.5))])
    assert third >= 1 / Decimal(3) - Decimal("1e-15")
    assert rho_of_gaussian([(1, 3.0)]) * 18 >= 1, "rounded up"


def test_zcdp_states_epsilon_rounded_up() -> None:
    rule = rule_named("zcdp")
    for rho in ("0.000001", "0.01", "0.5"):
        exact = float(rho) + 2 * math.sqrt(float(rho) * math.log(1e6))
        stated = rule.spent(Total().plus([event("1", "0", rho)]), CAP)
        assert float(stated.epsilon) == pytest.approx(exact, rel=1e-12)
        assert stated.delta == CAP.delta
    assert rule.spent(Total(), CAP) == (0, 0)
    with pytest.raises(PrivacyParameterError):
        rule.spent(Total().plus([event("1", "0", "0.5")]), Amount(Decimal(1), Decimal(0)))
    with pytest.raises(InternalError):
        rule.spent(Total().plus([event("1")]), CAP)


def test_ten_gaussian_batches_cost_far_less_under_zcdp(tmp_path: Path) -> None:
    plan = plan_release([table_workload(prefix(8))], privacy="approximate", options=PlanOptions(strategy="identity"))
    cost = {"epsilon": Decimal("0.3"), "delta": Decimal("1e-8"), "rho": plan.rho(0.3, 1e-8)}
    summed = Ledger.create(tmp_path / "sum.ledger", 3, 1e-6)
    zcdp = Ledger.create(tmp_path / "zcdp.ledger", 3, 1e-6, rule="zcdp")
    for i in range(10):
        for ledger in (summed, zcdp):
            ledger.charge(ChargeRequest(f"f{i}", **cost))
    assert summed.spent().epsilon == 3
    assert zcdp.spent().epsilon < Decimal("1.1")
    assert Ledger.open(zcdp.path or "").rule == "zcdp"
    with pytest.raises(BudgetError):
        summed.charge(ChargeRequest("more", **cost))
    granted = 10
    with pytest.raises(BudgetError) as caught:
        while True:
            zcdp.charge(ChargeRequest(f"f{granted}", **cost))
            granted += 1
    assert granted > 50
    assert zcdp.spent().epsilon <= 3
    assert caught.value.asked.epsilon > caught.value.left.epsilon
    # What was really spent is less than either rule says, and is only shown.
    assert zcdp.realised(1e-6) < float(zcdp.spent().epsilon)
    assert summed.realised(1e-6) < 1.1


def test_a_zcdp_ledger_needs_delta_and_rho(tmp_path: Path) -> None:
    with pytest.raises(PrivacyParameterError, match="delta"):
        Ledger.create(tmp_path / "x.ledger", 3, rule="zcdp")
    ledger = Ledger.create(tmp_path / "x.ledger", 3, 1e-6, rule="zcdp")
    with pytest.raises(InternalError):
        ledger.charge(ChargeRequest("a", 0.1))
    assert ledger.spent().epsilon == 0
    ledger.charge(ChargeRequest("a", 0.1, rho=rho_of_pure(Decimal("0.1"))))
    unused = ledger.charge(ChargeRequest("a", 0.1, rho=rho_of_pure(Decimal("0.1"))))
    assert unused.cost.epsilon == 0
    dearer = ledger.charge(ChargeRequest("a", 0.1, rho=Decimal("0.1")))
    assert dearer.id != unused.id, "an unused charge covers no more rho than it paid"


def test_plans_state_their_rho() -> None:
    workloads = [table_workload(prefix(4))]
    pure, gaussian = (
        plan_release(workloads, privacy=p, options=PlanOptions(strategy="identity")) for p in ("pure", "approximate")
    )
    assert pure.rho(0.2) == Decimal("0.02")
    (noise,) = gaussian.calibrate(1, 1e-6)
    assert float(gaussian.rho(1, 1e-6)) == pytest.approx(
        noise.resolution.sensitivity**2 / noise.scale**2 / 2, rel=1e-12
    )
    assert float(gaussian.rho(1, 1e-6)) == pytest.approx(0.5 / 4.224678889**2, rel=1e-3)


def test_realised_agrees_with_the_accountant() -> None:
    gaussians = [event("0.5", "1e-6", "0.005")] * 10  # σ = 10
    assert realised(gaussians, 1e-6) == pytest.approx(get_epsilon_gaussian(10 / math.sqrt(10), 1e-6), rel=1e-3)
    assert realised([*gaussians, event("0.2")], 1e-6) == pytest.approx(1.526, abs=0.01)
    assert realised([event("0.5")], 1e-9) == pytest.approx(0.5, rel=1e-3)
    assert realised([], 1e-9) == 0


def test_the_cap_can_be_raised_and_not_lowered(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "x.ledger", 1, 1e-9)
    ledger.charge(ChargeRequest("a", 1))
    assert curator.raise_cap(ledger, 2, 1e-9) == ledger.cap == (2, Decimal("1e-9"))
    assert Ledger.open(tmp_path / "x.ledger").left().epsilon == 1
    for lower in ((1.5, 1e-9), (2, 0)):
        with pytest.raises(PrivacyParameterError, match="lowered"):
            curator.raise_cap(ledger, *lower)
    assert [e.kind for e in ledger.entries()] == ["cap", "charge", "cap"]


def test_versions(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "x.ledger", 1)
    assert ledger.versions() == {}
    curator.declare_version(ledger, "visits", "2026-01")
    curator.declare_version(ledger, "other", "7")
    curator.declare_version(ledger, "visits", "2026-02")
    assert ledger.versions() == Ledger.open(tmp_path / "x.ledger").versions() == {"visits": "2026-02", "other": "7"}
    assert verify(tmp_path / "x.ledger") == 4


def test_a_backup_is_a_sound_ledger(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "x.ledger", 1)
    ledger.store(ledger.charge(ChargeRequest("a", 0.5)).id, b"z")
    copy = tmp_path / "copy.ledger"
    curator.backup(ledger, copy)
    assert verify(copy) == verify(tmp_path / "x.ledger") == 4
    assert Ledger.open(copy).releases("a") == ledger.releases("a")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with pytest.raises(LedgerError, match="already"):
        curator.backup(ledger, copy)
    with pytest.raises(LedgerError):
        curator.backup(ledger, tmp_path / "missing" / "copy.ledger")


def test_curated_memory_ledger() -> None:
    ledger = Ledger.create(None, 1)
    curator.raise_cap(ledger, 5)
    assert ledger.cap.epsilon == 5
    assert np.isclose(float(ledger.left().epsilon), 5)
