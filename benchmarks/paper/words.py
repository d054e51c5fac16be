"""The comparison in words: what each paper says of a figure, what this run shows, and whether the two agree.

A claim is judged by thresholds that stand next to it, so that another run may judge otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.paper import words_coa, words_data, words_lrm, words_talk
from benchmarks.paper.curves import Curves, Unmeasured
from benchmarks.paper.figures import Row

CLAIMS = (*words_lrm.CLAIMS, *words_coa.CLAIMS, *words_data.CLAIMS, *words_talk.CLAIMS)


def compare(rows: Iterable[Row]) -> str:
    """A Markdown table of the claims whose figures were run. A run that was stopped may lack what a claim needs."""
    curves = Curves(rows)
    lines = ["| figure | the paper says | this run | verdict |", "|---|---|---|---|"]
    for figures, statement, judge in CLAIMS:
        if curves.has(figures):
            try:
                verdict, numbers = judge(curves)
            except Unmeasured:
                verdict, numbers = "open", "not all of it is measured"
            lines.append(f"| {_where(figures)} | {statement} | {numbers} | {verdict} |")
    return "\n".join(lines) + "\n"


def _where(figures: tuple[str, ...]) -> str:
    numbers = [figure.split()[1] for figure in figures]
    shown = numbers[0] if numbers[0] == numbers[-1] else f"{numbers[0]}–{numbers[-1]}"
    return f"{figures[0].split()[0]} {shown}"
