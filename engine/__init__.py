"""Matrix in, private answers out: strategies, exact noise, accounting, ledger. Knows no SQL."""

from tacit.engine.optimize import optimize, strategies
from tacit.engine.strategy import Privacy, Strategy

__all__ = ["Privacy", "Strategy", "optimize", "strategies"]
