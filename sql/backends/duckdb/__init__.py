"""All that tacit knows of DuckDB.

Two doors lead here. ``tacit.sql.source.Source`` is where the rows are; ``tacit.sql.dialect`` is what the compiler asks
before it may write SQL at all. A second engine (PostgreSQL, Spark) is a folder beside this one that provides, in the
same files:

- ``text``: sqlglot's dialect, so that text is read as the engine reads it; how names, constants and expressions are
  written; ``guarded``, which turns an error of a value into NULL;
- ``types``: the kind of each type, and which types are equal exactly when their hashes are;
- ``lines``: the order of each type, where a constant sits in it, and the type that two sides of a comparison meet in.
  Texts must be compared by code points, whatever collation a column declares;
- ``functions``: the list of functions that fail on no row once they are guarded. It is measured for this engine and
  holds for no other;
- ``extremes``: values that would show where that list is wrong;
- ``scratch``: a database without tables, or another oracle, for the value of a constant, the type of an expression and
  the name of a column. What is computed *after* the release stays here whatever engine holds the rows;
- ``settings``: the settings that change what SQL means, and how a statement is protected from them;
- ``scan_sql``, ``regions_sql`` and ``numbers_sql``: the aggregate scan, made of total functions;
- ``database``, ``files``, ``instance``: opening a database, its schema, its state, and the one read of private rows.

``tacit.sql.dialect`` names one engine for the whole process. The engine that is added second makes it a choice: what is
listed there becomes an object that the catalog carries.
"""
