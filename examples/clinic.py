"""Answer a batch of queries over a generated clinic, and show what each alternative would have cost in accuracy.

make demo        or        tacit demo        or        python examples/clinic.py [epsilon]

The clinic is part of the package: ``api/cli/clinic.py`` generates it, ``clinic.toml`` beside it is its policy and
``clinic.sql`` the batch.
"""

from __future__ import annotations

import sys
from decimal import Decimal

from tacit.cli.demo import demo

if __name__ == "__main__":
    demo(*(Decimal(argument) for argument in sys.argv[1:2]))
