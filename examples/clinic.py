"""Answer a batch of queries over a generated clinic, and show what each alternative would have cost in accuracy.

make demo        or        python examples/clinic.py [epsilon]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import tacit
from clinic_data import build
from rich import box
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
ALTERNATIVES = {
    "split": "budget split\nper query",
    "results": "noise on\nevery result",
    "histogram": "noisy\nhistogram",
}


def main(epsilon: float = 1.0) -> None:
    """Build the clinic, explain the batch, answer it, and print both side by side."""
    console = Console(width=None if sys.stdout.isatty() else 110)
    batch = (HERE / "clinic.sql").read_text()
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "clinic.duckdb"
        build(database)
        with tacit.connect(database, policy=HERE / "clinic.toml") as con:
            plan = con.explain(batch, epsilon=epsilon)
            answers = con.answer(batch, epsilon=epsilon)
            left = con.budget.left.epsilon
    predicted = plan.df()
    table = Table(box=box.SIMPLE_HEAD, title=f"{len(answers)} queries, ε = {epsilon}, strategy: {answers.strategy}")
    for name in ("query", "answer", "± 95%"):
        table.add_column(name, justify="left" if name == "query" else "right", no_wrap=True)
    for words in ALTERNATIVES.values():
        table.add_column("± with\n" + words, justify="right", style="dim")
    ratio = (predicted["half_width"] / predicted["stderr"]).fillna(1.0)
    for i, row in enumerate(answers.df().itertuples()):
        label = f"{row.column}  {row.group}" if row.group else str(row.column)
        others = [_number(predicted[name][i] * ratio[i]) for name in ALTERNATIVES]
        table.add_row(label, _number(row.value), _number((row.high - row.low) / 2), *others)
    console.print(table)
    console.print(
        f"{len(plan.cells):,} cells; squared error at most {1 + plan.gap:.2f} times the least with this noise."
    )
    for name, words in ALTERNATIVES.items():
        times = (plan.alternatives[name] / plan.error) ** 0.5
        console.print(f"  {words.replace(chr(10), ' '):24} {times:8.2f} times the error of tacit's plan")
    console.print(f"Spent ε = {answers.cost.epsilon}; left for ever: ε = {left}. The same batch again costs nothing.")


def _number(value: float) -> str:
    if value != value:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}"


if __name__ == "__main__":
    main(*(float(argument) for argument in sys.argv[1:2]))
