"""The examples run, and print what their files show, up to the noise; so does the notebook."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SHOWN = "# It prints, up to the noise:\n"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py") if SHOWN in path.read_text())
NOTEBOOK = json.loads((EXAMPLES / "tutorial.ipynb").read_text())


def shape(text: str) -> list[str]:
    """The words and the layout: numbers differ from run to run, and so do the widths of their columns."""
    masked = re.sub(r"-?\d[\d,]*(\.\d+)?%?", "#", text)
    return [" ".join(line.split()) for line in masked.strip().splitlines()]


def numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*(?:\.\d+)?", text)]


def same(printed: str, shown: str) -> None:
    """The same words; and numbers that are large, such as counts and sums, are nearly the same."""
    assert shape(printed) == shape(shown)
    for here, there in zip(numbers(printed), numbers(shown), strict=True):
        if there >= 1000:
            assert here == pytest.approx(there, rel=0.03)


def test_every_example_is_run() -> None:
    assert SCRIPTS == ["census", "from_smartnoise", "matrix", "quantiles", "report", "weblog"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    shown = (EXAMPLES / f"{name}.py").read_text().split(SHOWN)[1]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    same(printed.getvalue(), re.sub(r"^# ?", "", shown, flags=re.MULTILINE))


def test_notebook() -> None:
    names: dict[str, Any] = {}
    cells = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 6
    for cell in cells:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), "tutorial.ipynb", "exec"), names)
        (output,) = cell["outputs"]
        same(printed.getvalue(), "".join(output["text"]))


def test_the_notebook_holds_nothing_of_the_machine_it_ran_on() -> None:
    assert NOTEBOOK["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(NOTEBOOK["cells"]):
        assert (cell["id"], cell["metadata"]) == (f"cell-{number}", {})
        for output in cell.get("outputs", []):
            assert set(output) == {"name", "output_type", "text"}
    counts = [cell["execution_count"] for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1)), "run once, from top to bottom"
