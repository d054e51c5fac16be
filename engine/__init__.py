"""Matrix in, private answers out: strategies, exact noise, accounting, ledger. Knows no SQL."""

from tacit.engine.accounting.amounts import Amount, to_confidence, to_delta, to_epsilon, to_error
from tacit.engine.accounting.description import MechanismRecord
from tacit.engine.accounting.ledger import Charge, ChargeRequest, Ledger, StoredRelease, verify
from tacit.engine.inference.estimate import Estimate
from tacit.engine.inference.intervals import RatioAnswer, ratio
from tacit.engine.mechanism.baselines import baselines
from tacit.engine.mechanism.calibrate import least_error, total_error
from tacit.engine.mechanism.choose import PlanOptions, choose_plan, choose_plan_for_error, plan_release
from tacit.engine.mechanism.measure import measure
from tacit.engine.mechanism.measurement import Measurement, pack, unpack
from tacit.engine.mechanism.plan import JointPlan
from tacit.engine.mechanism.release import release
from tacit.engine.mechanism.stages import StagedPlan, measure_in_stages, plan_in_stages
from tacit.engine.mechanism.table_workload import TableWorkload, table_workload
from tacit.engine.mechanism.widths import half_widths
from tacit.engine.search.data_dependent import DataDependent
from tacit.engine.search.named import data_dependent_strategies, strategies, strategy_descriptions
from tacit.engine.search.optimize import optimize
from tacit.engine.search.watch import Progress
from tacit.engine.strategy import Privacy, Strategy

__all__ = [
    "Amount",
    "Charge",
    "ChargeRequest",
    "DataDependent",
    "Estimate",
    "JointPlan",
    "Ledger",
    "Measurement",
    "MechanismRecord",
    "PlanOptions",
    "Privacy",
    "Progress",
    "RatioAnswer",
    "StagedPlan",
    "StoredRelease",
    "Strategy",
    "TableWorkload",
    "baselines",
    "choose_plan",
    "choose_plan_for_error",
    "data_dependent_strategies",
    "half_widths",
    "least_error",
    "measure",
    "measure_in_stages",
    "optimize",
    "pack",
    "plan_in_stages",
    "plan_release",
    "ratio",
    "release",
    "strategies",
    "strategy_descriptions",
    "table_workload",
    "to_confidence",
    "to_delta",
    "to_epsilon",
    "to_error",
    "total_error",
    "unpack",
    "verify",
]
