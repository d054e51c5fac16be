"""The README's Python blocks run, and print what the README shows, up to the noise."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", README, flags=re.DOTALL)


def shape(text: str) -> list[str]:
    """The words and the layout: numbers differ from run to run, and so do the widths of their columns."""
    masked = re.sub(r"-?\d[\d,]*(\.\d+)?(e[+-]?\d+)?", "#", text)
    return [" ".join(line.split()) for line in masked.strip().splitlines()]


def figures(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", text)]


def test_blocks_run_and_print_what_they_show() -> None:
    assert len(BLOCKS) >= 6
    names: dict[str, object] = {}
    for code, shown in BLOCKS:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), names)
        assert shape(printed.getvalue()) == shape(shown), code
        if not re.search(r"print\(answers\)|\.df\b|read_sql", code):  # no noise in it
            assert figures(printed.getvalue()) == pytest.approx(figures(shown), rel=0.02), code
