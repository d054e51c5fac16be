"""Matrix in, private answers out: strategies, exact noise, accounting, ledger. Knows no SQL."""

from tacit.engine.amounts import Amount, to_confidence, to_delta, to_epsilon, to_error
from tacit.engine.baselines import baselines
from tacit.engine.calibrate import total_error
from tacit.engine.inference import Estimate, covered, estimate, estimate_batch
from tacit.engine.intervals import RatioAnswer, half_widths, ratio
from tacit.engine.ledger import Charge, Ledger, Request, StoredRelease, verify
from tacit.engine.measurement import Measurement, pack, unpack
from tacit.engine.mechanism import choose_plan, choose_plan_for_error, measure, plan_release
from tacit.engine.optimize import optimize, strategies
from tacit.engine.plan import Block, JointPlan, block_of
from tacit.engine.release import release
from tacit.engine.strategy import Privacy, Strategy

__all__ = [
    "Amount",
    "Block",
    "Charge",
    "Estimate",
    "JointPlan",
    "Ledger",
    "Measurement",
    "Privacy",
    "RatioAnswer",
    "Request",
    "StoredRelease",
    "Strategy",
    "baselines",
    "block_of",
    "choose_plan",
    "choose_plan_for_error",
    "covered",
    "estimate",
    "estimate_batch",
    "half_widths",
    "measure",
    "optimize",
    "pack",
    "plan_release",
    "ratio",
    "release",
    "strategies",
    "to_confidence",
    "to_delta",
    "to_epsilon",
    "to_error",
    "total_error",
    "unpack",
    "verify",
]
