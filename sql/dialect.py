"""The SQL that batches are written in and compiled for: everything that the compiler asks of DuckDB, in one list.

No other module of the compiler knows the engine (``tests/sql/test_dialect.py``). What a second engine must provide is
listed in ``backends/duckdb/__init__.py``.
"""

from .backends.duckdb.functions import (
    BY_NAME,
    BY_NODE,
    EXPRESSIONS,
    INTERVAL_UNITS,
    NUMBER,
    PLAIN,
    TRUTH,
    WORDS,
    cast_kind,
)
from .backends.duckdb.lines import comparison_type, ordering, to_double
from .backends.duckdb.numbers_sql import chosen, first_of, greatest, least, opposite, place_of
from .backends.duckdb.regions_sql import number_sql
from .backends.duckdb.scratch import (
    REFUSALS,
    RelationShape,
    argument_counts,
    describe,
    display_name,
    distinct,
    evaluate,
    fold,
    frame,
    has_dtype,
    map_values,
    type_of,
)
from .backends.duckdb.text import DUCKDB, double, guarded, parse, quote, short, tokenize, write
from .backends.duckdb.types import is_joinable, is_key, is_numeric, kind_of, without_enums

__all__ = [
    "BY_NAME",
    "BY_NODE",
    "DUCKDB",
    "EXPRESSIONS",
    "INTERVAL_UNITS",
    "NUMBER",
    "PLAIN",
    "REFUSALS",
    "TRUTH",
    "WORDS",
    "RelationShape",
    "argument_counts",
    "cast_kind",
    "chosen",
    "comparison_type",
    "describe",
    "display_name",
    "distinct",
    "double",
    "evaluate",
    "first_of",
    "fold",
    "frame",
    "greatest",
    "guarded",
    "has_dtype",
    "is_joinable",
    "is_key",
    "is_numeric",
    "kind_of",
    "least",
    "map_values",
    "number_sql",
    "opposite",
    "ordering",
    "parse",
    "place_of",
    "quote",
    "short",
    "to_double",
    "tokenize",
    "type_of",
    "without_enums",
    "write",
]
