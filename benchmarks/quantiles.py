"""What quantiles cost, and how exact they are: two tables.

    python benchmarks/quantiles.py            # some minutes on an idle core
    python benchmarks/quantiles.py --tiny     # at toy sizes, in seconds

``together``: the root mean squared error of a column's counts at or below each value (its CDF), asked alone, and asked
together with its median and nine deciles, at the same ε.

``deciles``: the mean error in rank of nine deciles, as a share of the rows, by three ways that spend the same ε:

- tacit, which answers all nine from one release;
- a noisy binary search for each decile, with ε/9 for each, split over its steps, Laplace noise on every count;
- OpenDP's quantile for each decile (``make_quantile_score_candidates`` and its report-noisy-max), with ε/9 for each.

A rank error is how far the share of rows below the answer is from the share that was asked for, where the rows equal to
the answer count for either side.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import opendp.prelude as dp
import tacit
from numpy.typing import NDArray

Values = NDArray[np.int64]
SHARES = [i / 10 for i in range(1, 10)]
DECILES = ", ".join(f"quantile_disc(x, {share})" for share in SHARES)


def column(rows: int, top: int, shape: str, seed: int) -> Values:
    """Whole numbers from 0 to ``top``: even, or like incomes."""
    stream = np.random.default_rng(seed)
    if shape == "even":
        return stream.integers(0, top + 1, size=rows)
    return np.clip(stream.lognormal(np.log(top / 8), 0.8, size=rows).astype(np.int64), 0, top)


def connection(folder: Path, values: Values, top: int) -> tacit.Connection:
    path = folder / f"{len(list(folder.iterdir()))}.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE t AS SELECT unnest($1)::INTEGER AS x", [values.tolist()])
    policy = {"budget": {"epsilon": 1000.0}, "tables": {"t": {"columns": {"x": {"min": 0, "max": top}}}}}
    return tacit.connect(path, policy=policy)


def rank_error(values: Values, answers: list[float]) -> float:
    """The mean distance from the asked share to the shares that an answer stands for."""
    errors = []
    for share, answer in zip(SHARES, answers, strict=True):
        below, at_most = float(np.mean(values < answer)), float(np.mean(values <= answer))
        errors.append(max(below - share, share - at_most, 0.0))
    return float(np.mean(errors))


def by_search(values: Values, top: int, epsilon: float, stream: np.random.Generator) -> list[float]:
    """Each decile by halving the range; one more count, of all rows, would be needed and is given for free."""
    steps = int(np.ceil(np.log2(top + 1)))
    scale = steps / (epsilon / len(SHARES))
    answers = []
    for share in SHARES:
        low, high = 0, top
        while low < high:
            middle = (low + high) // 2
            enough = np.sum(values <= middle) + stream.laplace(scale=scale) >= share * len(values)
            low, high = (low, middle) if enough else (middle + 1, high)
        answers.append(float(low))
    return answers


def by_opendp(top: int, epsilon: float) -> list[Callable[[list[int]], int]]:
    """OpenDP's private quantile for each decile, over the same candidates; the least score is the best."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i32")), dp.symmetric_distance()
    candidates = list(range(top + 1))

    def one(share: float) -> Callable[[list[int]], int]:
        def measurement(scale: float) -> Any:
            return (
                space
                >> dp.t.then_quantile_score_candidates(candidates, alpha=share)
                >> dp.m.then_noisy_max(dp.max_divergence(), scale=scale, negate=True)
            )

        scale = dp.binary_search_param(measurement, d_in=1, d_out=epsilon / len(SHARES))
        release = measurement(scale)
        return lambda values: candidates[release(values)]

    return [one(share) for share in SHARES]


def together(folder: Path, top: int, rows: int) -> None:
    print("the error of a CDF, alone and with its median and nine deciles, ε = 1")
    con = connection(folder, column(rows, top, "even", 0), top)
    cdf = [f"SELECT count(*) FROM t WHERE x <= {value}" for value in range(top)]
    alone = con.explain(cdf, epsilon=1.0)
    both = con.explain([*cdf, f"SELECT median(x), {DECILES} FROM t"], epsilon=1.0)
    errors = [np.sqrt(np.mean(plan.stderr[: len(cdf)] ** 2)) for plan in (alone, both)]
    print(f"  {top + 1:>5} values: alone {errors[0]:.3f}, together {errors[1]:.3f}, ratio {errors[1] / errors[0]:.3f}")


def deciles(folder: Path, top: int, rows: int, draws: int) -> None:
    print(f"mean rank error of nine deciles, in 1/1000 of {rows:,} rows, over {draws} draws")
    print(f"  {'column':>8} {'ε':>5} {'tacit':>8} {'search':>8} {'OpenDP':>8}   ratio to search, to OpenDP")
    stream = np.random.default_rng(1)
    for shape in ("even", "income"):
        values = column(rows, top, shape, 3)
        con = connection(folder, values, top)
        for epsilon in (0.1, 1.0):
            score = by_opendp(top, epsilon)
            found: dict[str, list[float]] = {"tacit": [], "search": [], "OpenDP": []}
            for _ in range(draws):
                answer = con.answer(f"SELECT {DECILES} FROM t", epsilon=epsilon, refresh=True)
                con = _fresh(con, folder, values, top)
                found["tacit"].append(rank_error(values, list(map(float, answer[0].df.iloc[0]))))
                found["search"].append(rank_error(values, by_search(values, top, epsilon, stream)))
                found["OpenDP"].append(rank_error(values, [float(one(values.tolist())) for one in score]))
            mean = {name: 1000 * float(np.mean(errors)) for name, errors in found.items()}
            ratios = "  ".join(f"{mean['tacit'] / mean[name]:.3f}" for name in ("search", "OpenDP"))
            print(f"  {shape:>8} {epsilon:>5} " + " ".join(f"{e:>8.3f}" for e in mean.values()) + f"   {ratios}")


def _fresh(con: tacit.Connection, folder: Path, values: Values, top: int) -> tacit.Connection:
    """Another ledger: releases of one would be combined, and each draw would be better than the one before."""
    con.close()
    return connection(folder, values, top)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    tiny = parser.parse_args().tiny
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as plans:
        os.environ["TACIT_CACHE"] = plans  # one search for all draws
        together(Path(folder), 15 if tiny else 255, 1000)
        deciles(Path(folder), 15 if tiny else 255, 1000 if tiny else 10_000, 2 if tiny else 20)


if __name__ == "__main__":
    main()
