"""Which tests one worker runs together.

A mark of pytest-xdist would say it beside the tests, but pytest 9.2 no longer shows the marks' groups to its scheduler:
every worker started every server.
"""

from __future__ import annotations

from typing import Any

import pytest

GROUPS = {
    "tests/engines/test_spark_": "one Spark session",
    "tests/server/": "one server and one browser",
    "tests/test_paper.py": "one run of the experiments",
    "tests/api/test_structure.py": "plans of products, each searched for once and kept",
    "tests/api/test_wide_columns.py": "plans of wide columns, each searched for once and kept",
}
"""What the tests of a file or folder share. The largest groups begin first; all other tests are spread one by one."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((group for prefix, group in GROUPS.items() if nodeid.startswith(prefix)), nodeid)

    return ByGroup(config, log)
