"""Pictures of answers, plans, strategies and ledgers, with matplotlib (``pip install "tacit[plot]"``).

    answers[0].plot()                 figures with their intervals: bars, a line over ordered groups, or a heat map
    plan.plot()                       each query's error, beside what other ways would give
    plan.plot_curve()                 the error that each ε buys
    plan.plot_workload()              W: which query counts which cell
    plan.plot_strategy()              L: the questions that are asked with noise
    tacit.plot.trace(strategy)        a search of ``tacit.engine.optimize``, with its bound
    tacit.plot.ledger(con)            what was charged over time, and the cap

Each takes ``ax=`` and returns the axes. Everything is drawn from released or data-free values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from . import answer_frames
from .display import TOTAL, cut_inside, number, odds, one_line, percent, query_name
from .errors import InterfaceError, ProgrammingError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from tacit.engine import Strategy

    from .answers import Answer, Answers
    from .explain import Plan
    from .ledger import Books

__all__ = ["answer", "answers", "curve", "ledger", "matrix", "plan", "strategy", "trace", "workload"]

_BLUE, _ORANGE, _GREEN, _PURPLE, _GREY = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#666666"
"""Okabe and Ito's colours, which the colour-blind tell apart."""
_ONE_SIDED, _TWO_SIDED = "cividis", "PuOr"
_MOST_BARS = 60
_MOST_LABELS = 40
"""Rows or columns of a heat map up to which each has its label."""
_LABEL = 34
"""Characters of a label."""
_WRITTEN = 80
"""Fields of a heat map up to which their values are written in them."""


def answer(answer: Answer, *, column: str | None = None, simultaneous: bool = False, ax: Axes | None = None) -> Axes:
    """One query's figures with their intervals.

    A line with a band over one key that is a number or a date, a heat map over two keys, bars for everything else.
    ``column`` names the figures where there are several. Totals are left out where there are groups, and so is NULL
    where groups have an order.
    """
    position = _position(answer, column)
    figures, name = answer.figures[position], answer.names[position]
    low, high = answer.joint_ends(position) if simultaneous else (figures.low, figures.high)
    keys = [i for i in range(len(answer.names)) if i not in answer.figures]
    frame = pd.DataFrame({"value": figures.value, "low": low, "high": high})
    is_total = np.zeros(len(frame), dtype=np.bool_)
    for i in keys:
        is_total |= answer.totals.get(i, False)
    held = _held(answer.confidence, simultaneous)
    if len(keys) == 2 and not _repeats(answer, keys, ~is_total):
        return _heat(answer, keys, frame, ~is_total, name, held, ax)
    if len(keys) == 1 and _is_ordered(answer.columns[keys[0]]):
        kept = ~is_total & answer.columns[keys[0]].notna().to_numpy(np.bool_)
        if kept.sum() > 1:
            return _line(answer.columns[keys[0]][kept], frame[kept], answer.names[keys[0]], name, held, ax)
    if not keys and len(answer.figures) > 1 and column is None:
        every = [(answer.names[i], f) for i, f in answer.figures.items()]
        frame = pd.DataFrame({e: np.concatenate([getattr(f, e) for _, f in every]) for e in ("value", "low", "high")})
        return _bars([n for n, _ in every], frame, "", cut_inside(one_line(answer.sql), 60), held, ax)
    kept = ~is_total if (~is_total).any() else is_total
    labels = [_group_label(answer, keys, row) for row in np.flatnonzero(kept).tolist()]
    return _bars(labels, frame[kept], name, cut_inside(one_line(answer.sql), 60), held, ax)


def answers(answers: Answers, *, simultaneous: bool = False, ax: Axes | None = None) -> Axes:
    """Every figure of a batch as a bar with its interval: for batches of a few dozen figures in one unit."""
    frame = answers.df(simultaneous=simultaneous)
    if simultaneous:
        frame = frame.assign(low=frame["low_all"], high=frame["high_all"])
    labels = []
    for row in frame.itertuples():
        answer = answers[int(row.query)]  # type: ignore[arg-type]
        if len(answer.labels) == 1:
            labels.append(query_name(int(row.query), answer.sql, str(row.column)))  # type: ignore[arg-type]
        else:
            labels.append(f"{row.query}: {row.group}" + (f" · {row.column}" if len(answer.figures) > 1 else ""))
    held = _held(answers.confidence, simultaneous)
    return _bars(labels, frame, "", f"{len(answers)} queries, ε = {answers.epsilon:f}", held, ax)


def plan(plan: Plan, *, ax: Axes | None = None) -> Axes:
    """The largest standard error of each query, beside those of the ways that need no search."""
    frame = plan.figures()
    ways = {"stderr": f"this plan (strategy {plan.strategy})", "histogram": "noisy histogram",
            "results": "noise on results", "split": "budget split per query"}  # fmt: skip
    grouped = frame.groupby("query")[[way for way in ways if way in frame]].max().dropna(how="all")
    if grouped.empty:
        raise ProgrammingError("no figure of this batch has a predicted error to draw")
    grouped = grouped.iloc[:_MOST_BARS]
    labels = [cut_inside(query_name(int(i), plan.queries[int(i)].sql), _LABEL) for i in grouped.index]
    ax = _axes(ax, height=1.6 + 0.24 * len(grouped))
    places = np.arange(len(grouped))
    marks = zip(("o", "s", "^", "D"), (_BLUE, _ORANGE, _GREEN, _PURPLE), ways.items(), strict=True)
    for mark, colour, (way, words) in marks:
        if way in grouped:
            filled = colour if way == "stderr" else "none"
            ax.plot(grouped[way], places, mark, color=colour, markerfacecolor=filled, label=words)
    ax.set_yticks(places, labels)
    ax.invert_yaxis()
    ax.set_xscale("log")
    _plain_ticks(ax.xaxis)
    ax.set_xlabel(f"standard error at ε = {plan.epsilon:f} (in units of the answers)")
    ax.grid(axis="x", alpha=0.3)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return ax


def curve(frame: pd.DataFrame, *, epsilon: float | None = None, cap: float | None = None, confidence: float = 0.95,
          ax: Axes | None = None) -> Axes:  # fmt: skip
    """The half-widths that each ε buys: what ``plan.curve()`` or ``con.curve(batch)`` returns."""
    ax = _axes(ax)
    ax.plot(frame["epsilon"], frame["median"], "-o", color=_BLUE, label="median figure", markersize=4)
    ax.fill_between(frame["epsilon"], frame["smallest"], frame["largest"], color=_BLUE, alpha=0.2,
                    label="from the most exact to the least exact figure")  # fmt: skip
    if epsilon is not None:
        ax.axvline(epsilon, color=_ORANGE, linestyle="--", label=f"this plan, ε = {epsilon:g}")
    if cap is not None and cap <= 1.5 * frame["epsilon"].max():
        ax.axvline(cap, color=_GREY, linestyle=":", label=f"the whole budget, ε = {cap:g}")
    ax.set_xscale("log")
    ax.set_yscale("log")
    _plain_ticks(ax.xaxis)
    _plain_ticks(ax.yaxis)
    ax.set_xlabel("ε of the batch")
    ax.set_ylabel(f"within ±, {odds(confidence)}")
    ax.grid(which="both", alpha=0.2)
    ax.legend(frameon=False)
    return ax


def matrix(
    values: Any,
    *,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    title: str = "",
    names: tuple[str, str] = ("row", "column"),
    ax: Axes | None = None,
) -> Axes:
    """A matrix as a heat map; white is zero where it has both signs."""
    dense = np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)
    if dense.ndim != 2 or not dense.size:
        raise ProgrammingError("a heat map needs a matrix with at least one row and one column")
    m, n = dense.shape
    wide = min(max(4.0, 2.4 + 0.26 * min(n, _MOST_LABELS)), 11.0)
    tall = min(max(2.6, 1.8 + 0.2 * min(m, _MOST_LABELS)), 9.0)
    ax = _axes(ax, width=wide + (2.0 if rows else 0.0), height=tall + (1.2 if columns else 0.0))
    peak = float(np.abs(dense).max()) or 1.0
    signed = bool((dense < 0).any())
    image = ax.imshow(dense, aspect="auto", interpolation="nearest", cmap=_TWO_SIDED if signed else _ONE_SIDED,
                      vmin=-peak if signed else 0.0, vmax=peak)  # fmt: skip
    ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03)
    ax.set_ylabel(f"{names[0]} (of {m:,})")
    ax.set_xlabel(f"{names[1]} (of {n:,})")
    ax.locator_params(integer=True)
    if rows and m <= _MOST_LABELS:
        ax.set_yticks(np.arange(m), [cut_inside(label, _LABEL) for label in rows], fontsize="small")
    if columns and n <= _MOST_LABELS:
        ax.set_xticks(np.arange(n), [cut_inside(label, _LABEL) for label in columns], rotation=90, fontsize="small")
    if title:
        ax.set_title(title)
    return ax


def workload(plan: Plan, *, ax: Axes | None = None) -> Axes:
    """W of a plan: a row for each figure that is measured, a column for each cell."""
    found = plan._matrices()
    return matrix(found.W, rows=found.rows, columns=found.cells, title="workload W: what each figure counts",
                  names=("figure", "cell"), ax=ax)  # fmt: skip


def strategy(of: Plan | Strategy, *, ax: Axes | None = None) -> Axes:
    """L of a plan, or of ``tacit.engine.optimize``: a row for each question that is asked with noise."""
    L, name = getattr(of, "L", None), getattr(of, "name", "")
    cells: Sequence[str] = ()
    if L is None:
        found = of._matrices()  # type: ignore[union-attr]
        L, name, cells = found.L, found.strategy, found.cells
    return matrix(
        L, columns=cells, title=f"strategy {name}: what is asked with noise", names=("question", "cell"), ax=ax
    )


def trace(strategy: Strategy, *, ax: Axes | None = None) -> Axes:
    """How a search went: the error of the best strategy so far, and the proven bound below it."""
    if not strategy.trace:
        raise ProgrammingError("this strategy has no trace: it was not searched for")
    seconds, error, bound = (np.array(part, dtype=np.float64) for part in zip(*strategy.trace, strict=True))
    ax = _axes(ax)
    end = max(float(strategy.seconds), float(seconds[-1]))
    seconds, error, bound = (
        np.append(seconds, end),
        np.append(error, strategy.error),
        np.append(bound, strategy.lower_bound),
    )
    ax.step(seconds, np.minimum.accumulate(error), where="post", color=_BLUE, label="error of the best so far")
    above = np.where(bound > 0, bound, np.nan)
    ax.step(seconds, np.fmax.accumulate(above), where="post", color=_ORANGE, linestyle="--",
            label="no strategy has less than this")  # fmt: skip
    ax.set_yscale("log")
    ax.set_xlabel("seconds of search")
    ax.set_ylabel("error: sensitivity² · ‖B‖²")
    ax.set_title(f"{strategy.name}: at most {percent(strategy.gap)} above the least")
    ax.grid(alpha=0.2, which="both")
    ax.legend(frameon=False)
    return ax


def ledger(books: Books | pd.DataFrame, *, cap: float | None = None, ax: Axes | None = None) -> Axes:
    """What was charged over time, by analyst, and the cap; for the curator, from a ledger or from its log."""
    log = books if isinstance(books, pd.DataFrame) else _log(books)
    charges = log[log["kind"] == "charge"]
    if charges.empty:
        raise ProgrammingError("nothing was charged yet, so there is nothing to draw")
    if cap is None and (log["kind"] == "cap").any():
        cap = float(log.loc[log["kind"] == "cap", "epsilon"].iloc[-1])
    ax = _axes(ax)
    at = pd.to_datetime(charges["at"])
    amounts = charges["epsilon"].astype(float)
    ax.step(at, amounts.cumsum(), where="post", color="black", marker="o", markersize=4, label="all charges")
    names = charges["analyst"].fillna("curator")
    styles = [(_BLUE, "--"), (_ORANGE, "-."), (_GREEN, ":"), (_PURPLE, "--")]
    for (colour, line), (name, own) in zip(styles, amounts.groupby(names, sort=False), strict=False):
        if names.nunique() > 1:
            ax.step(
                at[own.index], own.cumsum(), where="post", color=colour, linestyle=line, marker=".", label=str(name)
            )
    if cap is not None:
        ax.axhline(cap, color=_GREY, linestyle=":", label=f"cap, ε = {cap:g}")
    ax.set_ylim(bottom=0)
    ax.set_ylabel("ε charged so far, added up")
    ax.set_xlabel("time")
    ax.figure.autofmt_xdate()
    ax.grid(alpha=0.2)
    ax.legend(frameon=False)
    return ax


def _log(books: Books) -> pd.DataFrame:
    from .ledger import log

    return log(books)


def _axes(ax: Axes | None, *, width: float = 6.4, height: float = 4.0) -> Axes:
    """The axes to draw on: the caller's, or those of a new figure that makes room for its labels."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise InterfaceError('pictures need matplotlib\nhint: pip install "tacit[plot]"') from None
    if ax is None:
        _, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    return ax


def _held(confidence: float, simultaneous: bool) -> str:
    return f"hold {'every' if simultaneous else 'the'} exact answer {odds(confidence)}"


def _plain_ticks(axis: Any) -> None:
    """Numbers in place of powers on a logarithmic axis, few enough to be read."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 200 * low else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axis.set_minor_formatter(NullFormatter())


def _position(answer: Answer, column: str | None) -> int:
    names = {answer.names[i]: i for i in answer.figures}
    if not names:
        raise ProgrammingError("this query has no released numbers to draw")
    if column is None:
        return next(iter(names.values()))
    if column not in names:
        raise ProgrammingError(f"this query has no figures {column!r}\nhint: one of {', '.join(names)}")
    return names[column]


def _is_ordered(column: pd.Series) -> bool:
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    return numeric or pd.api.types.is_datetime64_any_dtype(column)


def _repeats(answer: Answer, keys: Sequence[int], kept: NDArray[np.bool_]) -> bool:
    """Whether two rows have the same keys, as those of a UNION ALL may: a heat map has one field for both."""
    rows = list(zip(*(answer.columns[i][kept].astype("object").fillna("") for i in keys), strict=True))
    return len(set(rows)) < len(rows) or not rows


def _group_label(answer: Answer, keys: Sequence[int], row: int) -> str:
    if not keys:
        return answer.labels[row] or cut_inside(one_line(answer.sql), _LABEL)
    return ", ".join(_words(answer, i)[row] for i in keys)


def _words(answer: Answer, position: int) -> list[str]:
    type_ = answer.types[position][1]
    column = answer_frames.labelled(answer.columns[position], type_, answer.totals.get(position))
    return [answer_frames.word(value, type_) for value in column]


def _errors(frame: pd.DataFrame) -> NDArray[np.float64]:
    below, above = frame["value"] - frame["low"], frame["high"] - frame["value"]
    return np.nan_to_num(np.maximum(np.array([below, above], dtype=np.float64), 0.0))


def _bars(labels: Sequence[str], frame: pd.DataFrame, name: str, title: str, held: str, ax: Axes | None) -> Axes:
    if len(labels) > _MOST_BARS:
        raise ProgrammingError(
            f"{len(labels):,} bars would not be readable; {_MOST_BARS} are\n"
            "hint: choose with ORDER BY and LIMIT, or draw df_with_errors yourself"
        )
    ax = _axes(ax, height=1.4 + 0.28 * len(labels))
    places = np.arange(len(labels))
    ax.barh(places, frame["value"], color=_BLUE, alpha=0.55, height=0.7)
    ax.errorbar(frame["value"], places, xerr=_errors(frame), fmt="none", ecolor="black", capsize=3, linewidth=1.2)
    ax.set_yticks(places, [cut_inside(label, _LABEL) for label in labels])
    ax.set_ylim(len(labels) - 0.5, -0.5)  # also where the last bar has no value
    ax.set_xlabel(f"{name or 'answer'}\n(error bars {held})")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    ax.set_title(title, fontsize="medium")
    ax.grid(axis="x", alpha=0.3)
    return ax


def _line(keys: pd.Series, frame: pd.DataFrame, key: str, name: str, held: str, ax: Axes | None) -> Axes:
    order = np.argsort(keys.to_numpy(), kind="stable")
    keys, frame = keys.iloc[order], frame.iloc[order]
    ax = _axes(ax)
    band = f"interval that {held.replace('hold', 'holds', 1)}"
    ax.fill_between(keys, frame["low"], frame["high"], color=_BLUE, alpha=0.25, linewidth=0, label=band)
    ax.plot(keys, frame["value"], color=_BLUE, marker="." if len(keys) <= 60 else None, label=name)
    if pd.api.types.is_datetime64_any_dtype(keys):
        ax.figure.autofmt_xdate()
    ax.set_xlabel(key)
    ax.set_ylabel(name)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    ax.grid(alpha=0.3)
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False)
    return ax


def _heat(
    answer: Answer,
    keys: Sequence[int],
    frame: pd.DataFrame,
    kept: NDArray[np.bool_],
    name: str,
    held: str,
    ax: Axes | None,
) -> Axes:
    first, second = (_words(answer, i) for i in keys)
    down = list(dict.fromkeys(word for word, k in zip(first, kept, strict=True) if k and word != TOTAL))
    across = list(dict.fromkeys(word for word, k in zip(second, kept, strict=True) if k and word != TOTAL))
    field, half = np.full((len(down), len(across)), np.nan), np.full((len(down), len(across)), np.nan)
    for row in np.flatnonzero(kept):
        place = down.index(first[row]), across.index(second[row])
        field[place] = frame["value"].iloc[row]
        half[place] = (frame["high"].iloc[row] - frame["low"].iloc[row]) / 2
    ax = _axes(ax, width=min(3.2 + 0.85 * len(across), 12.0), height=min(1.8 + 0.42 * len(down), 10.0))
    image = ax.imshow(field, aspect="auto", cmap=_ONE_SIDED)
    ax.figure.colorbar(image, ax=ax, label=name)
    if len(down) <= _MOST_LABELS:
        ax.set_yticks(np.arange(len(down)), [cut_inside(word, _LABEL) for word in down])
    if len(across) <= _MOST_LABELS:
        ax.set_xticks(np.arange(len(across)), [cut_inside(word, _LABEL) for word in across],
                      rotation=0 if max(map(len, across)) <= 6 else 90)  # fmt: skip
    if field.size <= _WRITTEN:
        middle = np.nanmean([np.nanmin(field), np.nanmax(field)])
        for (i, j), value in np.ndenumerate(field):
            if np.isfinite(value):
                words = f"{number(float(value))}\n±{number(float(half[i, j]))}"
                colour = "black" if value > middle else "white"
                ax.text(j, i, words, ha="center", va="center", fontsize="small", color=colour)
        ax.set_title(f"{name} ± what {held.replace('hold', 'holds', 1)}", fontsize="medium")
    ax.set_ylabel(answer.names[keys[0]])
    ax.set_xlabel(answer.names[keys[1]])
    return ax
