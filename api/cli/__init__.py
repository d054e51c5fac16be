"""The command line: ``tacit``. One file for each command or small group, all of them listed in ``program.py``.

Nothing here is loaded but what the command needs: ``tacit --help`` imports neither pandas nor DuckDB.
"""
