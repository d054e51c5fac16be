"""SQL text in, a workload out, as a matrix or as products; and the generated scan that counts units for it.

The files in the order in which a batch meets them:

    parse, statement            the text cut into statements; spans and errors
    query, select               a statement, and one SELECT of it
    probe                       a statement that asks for the columns of a table and for no row
    outer, public               what a statement computes from released frames and public tables
    from_clause, level, joins   which rows it reads, under which names (relation: the result)
    unit_rows, subqueries       tables of one row for each unit; IN and EXISTS (derived: what is handed over)
    distinct, public_groups     distinct values as rows; groups that a public table lists
    kept_rows                   what an outer join keeps of a public table, which is not counted
    selection, grouping         what its clauses share, and its groups (group_list: without a list of them)
    linear, aggregate           COUNT and SUM as rows of the workload
    quantile                    MEDIAN, QUANTILE, MIN, MAX and MODE as counts, which are such rows too
    released, arrangement       what is computed and sorted after the release
    predicate, regions          conditions as questions that cut columns
    scalar, total, signature    expressions over one row, proven to fail on none
    constants, literals         constants and parameters
    domains, declared, steps    what the declared domains imply
    wanted, named_column        what nobody declared and can be found
    batch, compile, cells       all questions collected; cells and matrix
    conjunction, products       conditions taken apart; products of small matrices where the cells cannot be listed
    computed_axes, parts        conditions and keys as columns of their own, where not even that fits
    workload, scan, refine      what is handed over, counted and compared
    product_scan, scan_sets     a few columns of a table as a scan, and many such scans in one pass
    present, ranks              frames from released values
    dialect, backends           the engine: its SQL, its types, its rows (source)
"""

from .backends.opening import open_source
from .catalog import Catalog, Column, Range, Table, Values
from .compile import compile_batch
from .parse import Limits
from .product_scan import ProductScan
from .products import ProductRows, ProductTable
from .scan import Scan
from .source import Source, SourceColumn, SourceTable
from .workload import TablePart, Workload

__all__ = [
    "Catalog",
    "Column",
    "Limits",
    "ProductRows",
    "ProductScan",
    "ProductTable",
    "Range",
    "Scan",
    "Source",
    "SourceColumn",
    "SourceTable",
    "Table",
    "TablePart",
    "Values",
    "Workload",
    "compile_batch",
    "open_source",
]
