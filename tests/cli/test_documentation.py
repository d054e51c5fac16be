"""docs/command-line.md: every command on it is run and prints what the page shows, up to the noise.

``python tests/cli/test_documentation.py`` writes what the commands print now into the page: read the diff.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import duckdb
import pytest
from tacit.cli.demo import build_clinic

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.pages import printed, shape

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)

REPORT = """\
SELECT state, count(*) AS n, avg(age) AS mean_age FROM patients GROUP BY state;
SELECT count(*) AS children FROM patients WHERE age < 18;
SELECT count(*) AS pensioners FROM patients WHERE age >= 65
"""
WRONG = """\
[budget]
epsilon = 40
[tables.orders]
privacy_unit = "customer"
max_rows_per_unit = 4
[tables.orders.columns]
price = { min = 0 }
item = { values = ["tea", "rice"], othr = true }
"""


def prepare(folder: Path) -> None:
    """What the page's commands find: the clinic, a report, a shop and a policy with mistakes."""
    build_clinic(folder)
    (folder / "report.sql").write_text(REPORT)
    (folder / "wrong.toml").write_text(WRONG)
    with duckdb.connect(str(folder / "shop.duckdb")) as db:
        db.execute("CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer_id INTEGER, day DATE, "
                   "item VARCHAR, price DECIMAL(9, 2), paid BOOLEAN)")  # fmt: skip
        db.execute("CREATE TABLE products (item VARCHAR, shelf INTEGER)")
        db.execute("INSERT INTO products VALUES ('rice', 1), ('tea', 2)")


def run_block(block: str) -> str:
    commands = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    return "\n".join(f"$ {command}\n{printed(command)}" for command in commands)


def test_the_page_shows_what_the_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TACIT_DB", "TACIT_POLICY", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TACIT_PROGRESS", "0")
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) >= 8
    for block in blocks:
        now = run_block(block)
        assert shape(now) == shape(block)
        if "--help" in block:
            assert now == block
    assert max(len(line) for block in blocks for line in block.splitlines() if not line.startswith(("$", "|"))) <= 80


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        prepare(Path(place))
        PAGE.write_text(BLOCK.sub(lambda found: f"```console\n{run_block(found[1])}```", text), encoding="utf-8")
        os.chdir(PAGE.parent)
    sys.stdout.write("written\n")
