"""Spark as an engine: everything that tacit knows of it, beside what it knows of DuckDB.

A batch is written in DuckDB's SQL and compiled for it. Its scans are counted by one of three ways, and all give the
same integers:

- Spark's own GROUP BY, where a scan only cuts and sums stored columns and needs no bound on the rows of a unit;
- DuckDB in Spark's workers, part by part, where rows that belong together can be brought together;
- DuckDB in this process, to which the columns are streamed, for everything else.

The files:

- ``spark_types``: which type of Spark is which of DuckDB's, and how its values travel: all of them, without an error;
- ``relations``: tables and views as the catalog and the plans of Spark show them;
- ``native``: scans that Spark counts;
- ``split_scans``: scans that workers count, and the statements that they run;
- ``spark_worker``: the function that is sent to them;
- ``spark_jobs``: frames, jobs, and what is told of one that fails;
- ``cluster``: all of it as a ``tacit.sql.source.Source``.
"""
