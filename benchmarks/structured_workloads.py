"""The workloads of ``benchmarks.structure``: SQL batches over empty tables, and products too long to write as SQL.

A prefix over n values is ``count(*) … WHERE a <= k`` for all values but the last, and ``count(*)`` without a condition
for that one: exactly n regions of an INTEGER column that is NOT NULL.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import duckdb
import numpy as np
import tacit
from numpy.typing import NDArray
from tacit.compiled_batch import CompiledBatch
from tacit.engine import PlanOptions, Privacy, plan_release
from tacit.engine.product_workload import ProductRows, ProductWorkload
from tacit.engine.search.structured.structured import optimize_products
from tacit.request import ask

ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
ADULT_8 = (9, 16, 7, 15, 6, 5, 2, 2)


@dataclass(frozen=True)
class Planned:
    """What is compared of a plan."""

    strategy: str
    error: float
    lower_bound: float

    @property
    def gap(self) -> float:
        return self.error / self.lower_bound - 1


@dataclass(frozen=True)
class SqlBatch:
    """A batch over an empty table t: what is planned depends on the schema alone."""

    columns: tuple[str, ...]
    batch: tuple[str, ...]
    weights: tuple[float, ...] | None = None
    """One for each statement."""
    twice: int | None = None
    """The number of a row that two statements ask for: compiled it is one, in the tables of others it counts twice."""

    origin = "SQL"

    @cached_property
    def compiled(self) -> CompiledBatch:
        database = duckdb.connect()
        database.execute(f"CREATE TABLE t ({', '.join(self.columns)})")
        with tacit.connect(database, epsilon=1.0) as connection:
            return connection._session.compile(ask(list(self.batch), epsilon=1.0, weights=self.weights))

    @property
    def queries(self) -> int:
        return self.compiled.row_count + (self.twice is not None)

    @property
    def cells(self) -> int:
        """The cells that are listed; 0 where they are not."""
        return sum(table.matrix.shape[1] for table in self.compiled.listed)

    def plan(self, privacy: Privacy) -> Planned:
        weights = self.compiled.weights
        if self.twice is not None:
            weights = np.ones(self.compiled.row_count)
            weights[self.twice] = 2.0
        options = PlanOptions(weights=weights, rows=self.compiled.row_count)
        (part,) = plan_release(self.compiled.tables, privacy=privacy, options=options).parts
        return Planned(part.strategy.name, part.strategy.error, part.strategy.lower_bound)


@dataclass(frozen=True)
class Products:
    """A workload without SQL."""

    workload: ProductWorkload

    origin = "engine"

    @property
    def queries(self) -> int:
        return sum(len(group.rows) for group in self.workload.groups)

    def plan(self, privacy: Privacy) -> Planned:
        strategy = optimize_products(self.workload, privacy=privacy)
        return Planned(strategy.name, strategy.error, strategy.lower_bound)


Source = SqlBatch | Products


def enum(name: str, size: int) -> str:
    return f"{name} ENUM ({', '.join(repr(f'v{i}') for i in range(size))}) NOT NULL"


def integer(name: str) -> str:
    return f"{name} INTEGER NOT NULL"


def enums(sizes: Sequence[int]) -> tuple[str, ...]:
    return tuple(enum(f"c{i}", size) for i, size in enumerate(sizes))


def cube(sizes: Sequence[int]) -> SqlBatch:
    keys = ", ".join(f"c{i}" for i in range(len(sizes)))
    return SqlBatch(enums(sizes), (f"SELECT {keys}, count(*) FROM t GROUP BY CUBE ({keys})",))


def marginals_sql(columns: int, ways: int) -> tuple[str, ...]:
    """A statement for every so many of the columns c0, c1, …."""
    sets = itertools.combinations([f"c{i}" for i in range(columns)], ways)
    return tuple(f"SELECT {', '.join(keys)}, count(*) FROM t GROUP BY ALL" for keys in sets)


def marginals(sizes: Sequence[int], ways: int, weights: Sequence[float] | None = None) -> SqlBatch:
    statements = marginals_sql(len(sizes), ways)
    return SqlBatch(enums(sizes), statements, None if weights is None else tuple(weights))


def prefixes(sizes: dict[str, int], select: str = "count(*)", tail: str = "") -> tuple[str, ...]:
    """A statement for every combination of one prefix of each column."""
    statements = []
    for ends in itertools.product(*(range(n) for n in sizes.values())):
        below = [f"{name} <= {k}" for (name, n), k in zip(sizes.items(), ends, strict=True) if k < n - 1]
        where = f" WHERE {' AND '.join(below)}" if below else ""
        statements.append(f"SELECT {select} FROM t{where}{tail}")
    return tuple(statements)


def product_of_prefixes(n: int) -> SqlBatch:
    return SqlBatch((integer("a"), integer("b")), prefixes({"a": n, "b": n}))


_CLINIC = (integer("age"), enum("sex", 2), enum("ward", 5))
_CUBE = " GROUP BY CUBE (sex, ward)"


def prefixes_by_cube(ages: int) -> SqlBatch:
    return SqlBatch(_CLINIC, prefixes({"age": ages}, "sex, ward, count(*)", _CUBE))


def prefixes_beside_cube(ages: int) -> SqlBatch:
    counts = prefixes({"age": ages})
    return SqlBatch(_CLINIC, (*counts, f"SELECT sex, ward, count(*) FROM t{_CUBE}"), twice=ages - 1)


def states_and_ages(states: int, ages: int) -> tuple[SqlBatch, SqlBatch, SqlBatch]:
    """Counts of states, counts below ages, and both in one batch. Nothing is declared to be NOT NULL."""
    columns = (f"state ENUM ({', '.join(repr(f's{i}') for i in range(states))})", "age INTEGER")
    by_state = ("SELECT state, count(*) FROM t GROUP BY state",)
    below = tuple(f"SELECT count(*) FROM t WHERE age < {k}" for k in range(ages))
    return SqlBatch(columns, by_state), SqlBatch(columns, below), SqlBatch(columns, (*by_state, *below))


def prefix_matrix(n: int) -> NDArray[np.float64]:
    return np.tril(np.ones((n, n)))


def products(sizes: Sequence[int], ways: Sequence[int], ranges: Sequence[int] = ()) -> Products:
    """All sets of so many columns; the points of each column, or the prefixes of those in ``ranges``."""
    factors = [prefix_matrix(n) if axis in ranges else np.eye(n) for axis, n in enumerate(sizes)]
    groups = []
    for axes in itertools.chain.from_iterable(itertools.combinations(range(len(sizes)), k) for k in ways):
        rows: Any = np.broadcast_to(np.int64(0), int(np.prod([sizes[a] for a in axes])))  # no weights: none is read
        groups.append(ProductRows(axes, tuple(factors[a] for a in axes), rows))
    return Products(ProductWorkload(tuple(sizes), tuple(groups)))
