"""Every example in a docstring is run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import tacit


def test_examples_in_docstrings() -> None:
    attempted = 0
    for found in pkgutil.walk_packages(tacit.__path__, "tacit."):
        result = doctest.testmod(importlib.import_module(found.name))
        assert result.failed == 0, found.name
        attempted += result.attempted
    assert attempted >= 5
