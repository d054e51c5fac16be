"""PostgreSQL as an engine: everything that tacit knows of it, beside what it knows of DuckDB.

A batch is written in DuckDB's SQL and compiled for it. The stored rows come from PostgreSQL by one of two ways, and
both give the same integers:

- the general one: the columns that a scan reads are streamed into a DuckDB of the connection's own, as the types that
  the catalog shows, and the scan runs there;
- the short one: a scan that only cuts stored columns by comparisons, and needs no bound on the rows of a unit, is
  counted by PostgreSQL itself, and only its cells travel.

The files:

- ``travel``: which type of PostgreSQL is which of DuckDB's, and how its values travel: all of them, without an error;
- ``stored_tables``: tables, columns, constraints and views as ``pg_catalog`` has them;
- ``views``: the text of a view in DuckDB's SQL, where it means the same;
- ``sessions``: connections, the settings that change what SQL means, transactions that only read;
- ``rows``: moving rows into a DuckDB, and the scans that run there;
- ``pushdown``: scans that PostgreSQL counts;
- ``server``: all of it as a ``tacit.sql.source.Source``.
"""
