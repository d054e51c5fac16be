"""Random expressions out of the list of functions, over one column for each type."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp
from tacit.errors import SqlError
from tacit.sql import dialect
from tacit.sql.backends.duckdb.functions import BY_NAME, BY_NODE, CASTS
from tacit.sql.dialect import kind_of
from tacit.sql.signature import ConstantArgument, DatePart, Kinds, Signature, Value
from tacit.sql.total import Prover

FEW = ("BOOLEAN", "INTEGER", "VARCHAR", "DATE", "TIME", "TIMESTAMP", "INTERVAL", "UUID", "INTEGER[]")
"""One type of each kind."""
SOME = (
    "BOOLEAN", "INTEGER", "HUGEINT", "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL(4,1)", "DECIMAL(38,10)", "VARCHAR",
    "ENUM('b', 'a')", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NS", "INTERVAL", "TIMESTAMP WITH TIME ZONE", "UUID",
)  # fmt: skip
EVERY = (
    *SOME, "TINYINT", "SMALLINT", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UHUGEINT", "DECIMAL(18,3)",
    "DECIMAL(38,38)", "DECIMAL(38,0)", "TIMESTAMP_S", "TIMESTAMP_MS", "JSON", "BLOB", "INTEGER[]",
)  # fmt: skip
PATTERNS = [
    *("''", "'%'", "'a%'", "'['", "'('", "'a\\'", "'(a|b)*'", "'é'", "'%Y-%m %j'", "'i'", "'%q%'", "NULL", "TRUE", "1"),
    *("INTERVAL 15 minutes", "INTERVAL 1 month", "INTERVAL 0 days", "INTERVAL (-1) hours", "'\\1-\\2'"),
]


def column(type_: str) -> str:
    """The name of the column that holds the extremes of a type."""
    return "c_" + "".join(c if c.isalnum() else "_" for c in type_)


TYPE_OF = {column(type_): type_ for type_ in EVERY}


def refuse(kind: type[SqlError], node: exp.Expr, message: str, hint: str) -> SqlError:
    return kind(message, hint=hint)


def bound(node: exp.Expr) -> str | None:
    columns = {part.name for part in node.find_all(exp.Column)}
    return dialect.type_of(node.sql("duckdb"), tuple((name, TYPE_OF[name]) for name in columns))


PROVER = Prover(
    leaf=lambda node: Value(kind_of(TYPE_OF[node.name]), 1, 0, False),
    write=lambda node: node.sql("duckdb"),
    bind=bound,
    error=refuse,
)


def accepted(node: exp.Expr) -> Value | None:
    """What is known of an expression that may reach the scan; None for one that may not."""
    try:
        proven = PROVER.prove(node)
    except SqlError:
        return None
    return proven if bound(node) is not None else None


def columns(signature: Signature) -> dict[str, Kinds]:
    """The arguments that may be columns, and the kinds that each takes."""
    return {n: takes for n, takes in signature.takes.items() if not isinstance(takes, ConstantArgument | DatePart)}


def choices(signature: Signature, types: Sequence[str]) -> Iterator[dict[str, str]]:
    """Every way to give each argument one of the types that it takes; an optional one is also left out."""
    fitting = {
        name: [*(type_ for type_ in types if kind_of(type_) in kinds), *([""] if name in signature.optional else [])]
        for name, kinds in columns(signature).items()
    }
    for chosen in itertools.product(*fitting.values()):
        yield {name: type_ for name, type_ in zip(fitting, chosen, strict=True) if type_}


def built(node: type[exp.Expr] | str, signature: Signature, types: Mapping[str, str]) -> Iterator[exp.Expr]:
    """The function over columns of these types, with every kind of constant argument; optional ones also left out."""
    arguments: dict[str, list[exp.Expr | None]] = {}
    for name, takes in signature.takes.items():
        if isinstance(takes, DatePart):
            arguments[name] = [exp.Literal.string(part) if name == "0" else exp.Var(this=part) for part in takes.names]
        elif isinstance(takes, ConstantArgument):
            arguments[name] = [exp.maybe_parse(text, dialect="duckdb") for text in PATTERNS]
            arguments[name] += [None] if name in signature.optional else []
        elif name in types:
            arguments[name] = [exp.column(column(types[name]))]
    for chosen in itertools.product(*arguments.values()):
        named = {name: part.copy() for name, part in zip(arguments, chosen, strict=True) if part is not None}
        if isinstance(node, str):
            yield exp.Anonymous(this=node, expressions=[named[str(i)] for i in range(len(signature.takes))])
        else:
            yield node(**{name: [v, v.copy()] if name == "expressions" else v for name, v in named.items()})


ENTRIES: list[tuple[type[exp.Expr] | str, Signature]] = [*BY_NODE.items(), *BY_NAME.items()]


def nested(rng: random.Random, depth: int, types: tuple[str, ...]) -> exp.Expr:
    """A random tree of listed functions that may reach the scan."""
    if depth == 0:
        return exp.column(column(rng.choice(types)))
    inner = [nested(rng, depth - 1, types) for _ in range(3)]
    kinds = [PROVER.prove(part).kind for part in inner]
    for _ in range(60):
        grown = _grown(rng, inner, kinds)
        if grown is not None and accepted(grown) is not None:
            return grown
    return inner[0]


def _grown(rng: random.Random, inner: list[exp.Expr], kinds: list[str]) -> exp.Expr | None:
    """One random function over these arguments; None where it does not take their kinds."""
    form = rng.random()
    if form < 0.12:
        return exp.Cast(this=inner[0].copy(), to=exp.DataType(this=exp.DataType.Type(rng.choice(list(CASTS)))))
    if form < 0.24:
        asked = exp.Is(this=inner[2].copy(), expression=exp.Null())
        return exp.Case(ifs=[exp.If(this=asked, true=inner[0].copy())], default=inner[1].copy())
    node, signature = rng.choice(ENTRIES)
    given = columns(signature)
    if len(given) > len(kinds) or not all(kind in takes for kind, takes in zip(kinds, given.values(), strict=False)):
        return None
    chosen = rng.choice(list(built(node, signature, dict.fromkeys(given, "INTEGER"))))
    for place, part in zip(list(chosen.find_all(exp.Column)), inner, strict=False):
        if place.parent is not None:
            place.replace(part.copy())
    return chosen
