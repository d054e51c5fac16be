"""SQL text in, a workload matrix out; and the generated scan that builds the vector of unit counts.

The files in the order in which a batch meets them:

    parse, statement            the text cut into statements; spans and errors
    query, select               a statement, and one SELECT of it
    from_clause, joins          which rows it reads (relation: the result)
    selection, grouping         what its clauses share, and its groups
    linear, aggregate           COUNT and SUM as rows of the workload
    released, arrangement       what is computed and sorted after the release
    predicate, regions          conditions as questions that cut columns
    scalar, total, signature    expressions over one row, proven to fail on none
    constants, literals         constants and parameters
    domains, declared           what the declared domains imply
    batch, compile, cells       all questions collected; cells and matrix
    workload, scan, refine      what is handed over, counted and compared
    present                     frames from released values
    dialect, backends           the engine: its SQL, its types, its rows (source)
"""

from .backends.duckdb.database import open_source
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
