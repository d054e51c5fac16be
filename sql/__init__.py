"""SQL text in, a workload matrix out; and the generated scan that builds the vector of unit counts."""

from .backends.duckdb.source import open_source
from .catalog import Catalog, Column, Range, Table, Values
from .compile import compile_batch
from .parse import Limits
from .scan import Scan
from .source import Source, SourceColumn, SourceTable
from .workload import Workload

__all__ = [
    "Catalog",
    "Column",
    "Limits",
    "Range",
    "Scan",
    "Source",
    "SourceColumn",
    "SourceTable",
    "Table",
    "Values",
    "Workload",
    "compile_batch",
    "open_source",
]
