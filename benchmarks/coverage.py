"""How much of the SQL that people write is answered, and whether what is answered is right.

python benchmarks/coverage.py                    every corpus of benchmarks/coverage/
python benchmarks/coverage.py --corpus tpch      one of them (may be repeated)
python benchmarks/coverage.py --list-todo        each query that a user would expect to work and that is refused
python benchmarks/coverage.py -v                 what became of each query

The queries are written after the questions of published benchmarks and of the manuals of privacy tools. Each says what
a user would expect of it, an answer or a refusal, decided from the question and not from what tacit does. ``explain``
says what tacit does; what it answers is then computed without noise and compared with DuckDB's own result.
"""

from __future__ import annotations

import argparse
import copy
import datetime as dt
import inspect
import math
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import sqlglot
import tacit
import tacit.testing
from sqlglot import exp

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks import coverage_rows as rows
from benchmarks.coverage_rows import Corpus, Query

EPSILON, DELTA = 1.0, 1e-6
PLAN_SECONDS = 0.3
"""A good plan is not what is asked for here."""
RELATIVE = 1e-5
"""How far a figure may be from DuckDB's: sums are rounded to a 2³⁰th of their column's range for every row."""
TINY = 1e-4

OUTCOMES = ("answered", "rightly refused", "to do", "wrongly answered")


@dataclass
class Result:
    """What became of one query."""

    query: Query
    refusal: str | None = None
    """The error's class and first line."""
    reason: str = ""
    """The same, without the names that stand in it."""
    unchecked: str | None = None
    """Why there was nothing to compare with DuckDB's result."""
    wrong: list[str] = field(default_factory=list)
    """Where an answer differs from DuckDB's, or with what tacit failed."""

    @property
    def outcome(self) -> str:
        if self.query.refuse is None:
            return "answered" if self.refusal is None else "to do"
        return "wrongly answered" if self.refusal is None else "rightly refused"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--corpus", action="append", choices=rows.names(), help="only this one; may be repeated")
    options.add_argument("--list-todo", action="store_true", help="name the queries behind each reason")
    options.add_argument("-v", "--verbose", action="store_true", help="what became of each query")
    given = options.parse_args()
    started = time.perf_counter()
    if not reads_key_paths():
        print(
            'privacy_unit = "key -> table.column" is not read: each row of such a table counts as a unit of its own\n'
        )
    results = [result for name in given.corpus or rows.names() for result in run(rows.read(name))]
    if given.verbose:
        show_all(results)
    show_table(results)
    show_todo(results, given.list_todo)
    wrong = show_wrong(results)
    print(f"\n{len(results)} queries in {time.perf_counter() - started:.0f} s")
    return int(wrong)


# one corpus


def run(corpus: Corpus) -> list[Result]:
    """Explain every query of a corpus, and compare what would be answered with DuckDB."""
    con = tacit.connect(rows.database(corpus), policy=readable(corpus.policy))
    truth = rows.database(corpus)
    names = identifiers(truth)
    try:
        return [one(query, con, truth, names) for query in corpus.queries]
    finally:
        con.close()
        truth.close()


def one(query: Query, con: tacit.Connection, truth: duckdb.DuckDBPyConnection, names: frozenset[str]) -> Result:
    result = Result(query)
    refused = explained(con, query.sql, **discovery(con.explain))
    if refused is not None:
        line = str(refused).partition("\n")[0]
        result.refusal = f"{type(refused).__name__}: {line}"
        result.reason = f"{type(refused).__name__}: {normalised(line, names | names_in(query.sql))}"
        if isinstance(refused, tacit.InternalError) or not isinstance(refused, tacit.Error):
            result.wrong = [f"fails with {result.refusal}"]
        return result
    try:
        (ours,) = tacit.testing.exact_answers(con, query.sql, None, **discovery(tacit.testing.exact_answers))
    except Exception as error:  # listed in the report, whatever it is
        result.unchecked = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        return result
    theirs = truth.execute(query.sql).df()
    result.wrong = differences(query, ours, theirs)
    if result.wrong and discovery(con.explain) and explained(con, query.sql) is not None:
        result.wrong = differences(query, ours, theirs, bought=True)
    return result


def explained(con: tacit.Connection, sql: str, **more: Any) -> Exception | None:
    """Why a query is refused; ``None`` where it would be answered."""
    try:
        con.explain(sql, epsilon=EPSILON, delta=DELTA, plan_seconds=PLAN_SECONDS, **more)
    except Exception as error:  # what is not of tacit's tree is reported as a failure
        return error
    return None


def discovery(function: Callable[..., Any]) -> dict[str, bool]:
    """``discover=True`` where a function takes it: undeclared keys and ranges are then bought."""
    return {"discover": True} if "discover" in inspect.signature(function).parameters else {}


@cache
def reads_key_paths() -> bool:
    """Whether a policy may say ``privacy_unit = "key -> table.column"``."""
    with duckdb.connect() as database:
        database.execute(
            "CREATE TABLE a (k INTEGER PRIMARY KEY, u INTEGER NOT NULL); CREATE TABLE b (k INTEGER NOT NULL)"
        )
        unit = {"max_rows_per_unit": 1}
        tables = {"a": {"privacy_unit": "u", **unit}, "b": {"privacy_unit": "k -> a.u", **unit}}
        try:
            tacit.connect(database, policy={"budget": {"epsilon": 1}, "tables": tables}).close()
        except tacit.PolicyError:
            return False
    return True


def readable(policy: Mapping[str, Any]) -> dict[str, Any]:
    """The policy, without key paths where they are not read yet."""
    readable = copy.deepcopy(dict(policy))
    if not reads_key_paths():
        for table in readable["tables"].values():
            if "->" in table.get("privacy_unit", ""):
                del table["privacy_unit"], table["max_rows_per_unit"]
    return readable


# reasons


def identifiers(database: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """The names of all tables and columns."""
    listed = database.execute("SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal").fetchall()
    return frozenset(name.lower() for row in listed for name in row)


def names_in(sql: str) -> frozenset[str]:
    """The aliases and names that a query itself makes up."""
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    return frozenset(node.name.lower() for node in tree.find_all(exp.Identifier))


def normalised(line: str, names: frozenset[str]) -> str:
    """The first sentence of a message, without what it quotes from the query."""
    sentence = re.split(r"(?<=[a-z)]): |; ", line)[0]
    sentence = re.sub(r"'[^']*'|\"[^\"]*\"", "…", sentence)
    sentence = re.sub(r"\b[A-Za-z_]\w*\b", lambda m: "…" if m[0].lower() in names - _WORDS else m[0], sentence)
    sentence = re.sub(r"…(\.…)+", "…", re.sub(r"\b\d[\d,.]*\b", "#", sentence))
    sentence = re.sub(r"GROUP BY \w+ needs", "GROUP BY … needs", sentence)
    return re.sub(r"GROUP BY \S*[^\w…]\S*.* needs", "GROUP BY an expression needs", sentence)


_WORDS = frozenset({"a", "by", "group", "groups", "in", "is", "joined", "name", "of", "on", "rows", "table", "unit"})
"""Words of messages that some query uses as a name."""


# comparing


def differences(query: Query, ours: pd.DataFrame, theirs: pd.DataFrame, *, bought: bool = False) -> list[str]:
    """Where an answer without noise differs from DuckDB's.

    Groups without rows come back too, and then with counts and sums of zero. Under LIMIT, ties and empty groups decide
    which groups are shown. Of keys that were ``bought``, rare ones are missing by design.
    """
    if list(ours.columns) != list(theirs.columns):
        return [f"columns {list(ours.columns)}, DuckDB has {list(theirs.columns)}"]
    tree = sqlglot.parse_one(query.sql, dialect="duckdb")
    assert isinstance(tree, exp.Query)
    projections = columns_of(tree)
    figures = [is_figure(p, tree) for p in projections] or [True] * ours.shape[1]
    keys = [i for i, figure in enumerate(figures) if not figure]
    groups: defaultdict[tuple[Hashable, ...], list[tuple[Hashable, ...]]] = defaultdict(list)
    for row in plain_rows(ours):
        groups[tuple(row[i] for i in keys)].append(row)
    cut = tree.args.get("limit") is not None
    wrong = []
    for row in plain_rows(theirs):
        same = groups.get(tuple(row[i] for i in keys), [])
        answer = next((a for a in same if all(map(close, a, row, [query.approx] * len(row)))), None)
        if answer is not None:
            same.remove(answer)
        elif same:
            wrong.append(f"answers {same.pop(0)}, DuckDB {row}")
        elif not cut and not bought:
            wrong.append(f"has no row {row}")
    left = [row for same in groups.values() for row in same]
    counted = [i for i, p in enumerate(projections) if isinstance(p.unalias(), exp.Count | exp.Sum)]
    if not cut:
        extra = [row for row in left if not keys or any(row[i] not in (0, None) for i in counted)]
        wrong += [f"has a row too many: {row}" for row in extra]
    return wrong


def columns_of(query: exp.Query) -> list[exp.Expr]:
    """What the columns of a result are made of; the star of one derived table is that table's columns.

    Empty for any other star: then all columns are compared as figures.
    """
    selects: list[exp.Expr] = list(query.selects)
    if not any(p.is_star and not p.find(exp.AggFunc) for p in selects):
        return selects
    source = query.args.get("from_")
    inner = source.this.this if source is not None and not query.args.get("joins") else None
    return columns_of(inner) if isinstance(inner, exp.Query) and len(selects) == 1 else []


def is_figure(node: exp.Expr, query: exp.Query) -> bool:
    """Whether a column of a result is aggregated, in the query itself or in one that it reads, and no key here."""
    if node.find(exp.AggFunc, exp.Window, exp.Subquery):
        return True
    group = query.args.get("group")
    if group is not None and node.unalias() in group.expressions:
        return False
    inner = [source.this for source in query.find_all(exp.Subquery, exp.CTE) if isinstance(source.this, exp.Query)]
    for column in node.find_all(exp.Column):
        made = [p for q in inner for p in q.selects if p.alias_or_name.lower() == column.name.lower()]
        if any(p.find(exp.AggFunc, exp.Window) for p in made):
            return True
    return False


def plain_rows(frame: pd.DataFrame) -> list[tuple[Hashable, ...]]:
    return [tuple(map(plain, row)) for row in frame.itertuples(index=False, name=None)]


def plain(value: Any) -> Hashable:
    """A value as both sides write it: NaN and NULL are one, and so are a date and its midnight."""
    if isinstance(value, Decimal):
        value = float(value)
    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, dt.date):
        return pd.Timestamp(value).isoformat()
    value = value.item() if hasattr(value, "item") else value
    return float(value) if isinstance(value, bool | int) else str(value) if isinstance(value, list) else value


def close(answer: Hashable, expected: Hashable, approx: float | None) -> bool:
    if expected is None:  # the sum of no rows is NULL in DuckDB, 0 here
        return answer is None or answer == 0
    if not isinstance(answer, float) or not isinstance(expected, float):
        if approx is not None and isinstance(answer, str) and isinstance(expected, str) and answer != expected:
            return abs(pd.Timestamp(answer) - pd.Timestamp(expected)) <= pd.Timedelta(days=approx)
        return answer == expected
    allowed = TINY + RELATIVE * max(abs(answer), abs(expected)) if approx is None else approx
    return abs(answer - expected) <= allowed or answer == expected


# what is printed


def show_all(results: list[Result]) -> None:
    for result in results:
        print(f"{result.query.id:20} {result.outcome:17} {result.refusal or result.unchecked or ''}")
    print()


def show_table(results: list[Result]) -> None:
    by_corpus: defaultdict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_corpus[result.query.corpus].append(result)
    heads = ("queries", *OUTCOMES, "compared", "wrong")
    print(f"{'corpus':12}" + "".join(f"{head:>{len(head) + 3}}" for head in heads))
    for name, part in [*by_corpus.items(), ("all", results)]:
        counts = Counter(result.outcome for result in part)
        compared = sum(result.refusal is None and result.unchecked is None for result in part)
        figures = (len(part), *(counts[o] for o in OUTCOMES), compared, sum(bool(r.wrong) for r in part))
        print(f"{name:12}" + "".join(f"{n:>{len(head) + 3}}" for head, n in zip(heads, figures, strict=True)))


def show_todo(results: list[Result], each: bool) -> None:
    reasons: defaultdict[str, list[Result]] = defaultdict(list)
    for result in results:
        if result.outcome == "to do":
            reasons[result.reason].append(result)
    print(f"\nto do, by reason ({len(reasons)})")
    for reason, part in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(part):5}  {reason}")
        for result in part if each else []:
            print(f"         {result.query.id}: {result.refusal}")
    unchecked = [result for result in results if result.unchecked is not None]
    if unchecked:
        print(f"\nanswered, and not compared ({len(unchecked)})")
    for result in unchecked:
        print(f"  {result.query.id}: {result.unchecked}")


def show_wrong(results: list[Result]) -> bool:
    answered = [result for result in results if result.outcome == "wrongly answered"]
    wrong = [result for result in results if result.wrong]
    for result in answered:
        print(f"\n{result.query.id} must be refused ({result.query.refuse})\n{result.query.sql}")
    for result in wrong:
        print(f"\n{result.query.id} is wrong in {len(result.wrong)} places; the first:")
        print("\n".join(f"  {line}" for line in result.wrong[:3]) + f"\n{result.query.sql}")
    return bool(answered or wrong)


if __name__ == "__main__":
    sys.exit(main())
