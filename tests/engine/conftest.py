"""Hypothesis keeps nothing between runs: its folder in the root would be collected as tests."""

from __future__ import annotations

import tempfile

from hypothesis.configuration import set_hypothesis_home_dir

_home = tempfile.TemporaryDirectory()
set_hypothesis_home_dir(_home.name)
