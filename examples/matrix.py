"""Without SQL: a workload matrix of one's own, its best strategy, and one release.

    python examples/matrix.py

``tacit.engine`` imports neither DuckDB, sqlglot nor pandas. It keeps no ledger: whoever calls ``release`` adds up what
was spent.
"""

from __future__ import annotations

import numpy as np
from tacit.engine import optimize, release


def main() -> None:
    cells = 64
    W = np.tril(np.ones((cells, cells)))  # "at most 0", "at most 1", …
    x = np.random.default_rng(1).integers(0, 100, cells)  # counts of units, one per cell
    for privacy, delta in (("pure", 0.0), ("approximate", 1e-6)):
        s = optimize(W, privacy=privacy)
        y = release(s, x, epsilon=1.0, delta=delta)
        rms = np.sqrt(np.mean(np.square(y - W @ x)))
        gap = s.error / s.lower_bound
        print(f"{privacy}: {s.name}, {s.L.shape[0]} questions, at most {gap:.2f} times the least error")
        print(f"  this time {rms:.1f} off on average")


if __name__ == "__main__":
    main()

# It prints, up to the noise:
# pure: p-identity, 68 questions, at most 3.21 times the least error
#   this time 4.3 off on average
# approximate: dual, 64 questions, at most 1.00 times the least error
#   this time 6.6 off on average
