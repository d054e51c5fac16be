"""All that tacit knows of DuckDB.

Two doors lead here. ``tacit.sql.source.Source`` is where the rows are; ``tacit.sql.dialect`` is what the compiler asks
before it may write SQL at all.

A batch is written in DuckDB's SQL whatever engine holds the rows, and a compiled scan is DuckDB's SQL: there is one
meaning of an expression, one list of functions that fail on no row, one hash that decides which rows of a unit are
kept. An engine is a folder beside this one with a source that derives from ``scanner.Scanner``. It says what its
columns are in DuckDB's types, and hands rows over as those; the scan then runs here, so that counts are equal to the
last digit by construction. What the engine can count by itself, with a meaning that is proven to be the same, it may
count there: cuts of stored columns by comparisons, rows whose units need no bound.

- ``text``: sqlglot's dialect; how names, constants and expressions are written; ``guarded``, which turns an error of a
  value into NULL;
- ``types``: the kind of each type, and which types are equal exactly when their hashes are;
- ``lines``: the order of each type, where a constant sits in it, and the type that two sides of a comparison meet in;
- ``functions``: the list of functions that fail on no row once they are guarded, measured for this engine;
- ``extremes``: values that would show where that list is wrong;
- ``scratch``: a database without tables for the value of a constant, the type of an expression, the name of a column;
- ``settings``: the settings that change what SQL means, and how a statement is protected from them;
- ``scan_sql``, ``regions_sql`` and ``numbers_sql``: the aggregate scan, made of total functions;
- ``scanner``: runs scans, and queries over public tables, for any source that says where its rows are;
- ``database``, ``files``, ``instance``: DuckDB as such a source.
"""
