"""A small shop, its policy, and the command line in its folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from tacit.cli.program import app
from typer.testing import CliRunner, Result

POLICY = """\
[budget]
epsilon = 2.0
delta = 1e-6

[tables.orders]
privacy_unit = "customer_id"
max_rows_per_unit = 2
[tables.orders.columns]
item = { values = ["rice", "tea"], other = true }
price = { min = 0, max = 100 }

[tables.items]
public = true
"""

Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a database, its policy, and a batch of two queries."""
    build(tmp_path / "shop.duckdb")
    (tmp_path / "shop.toml").write_text(POLICY)
    (tmp_path / "one.sql").write_text("SELECT item, count(*) AS n FROM orders GROUP BY item")
    (tmp_path / "two.sql").write_text(
        "SELECT count(*) AS dear FROM orders WHERE price > 50;\nSELECT item, count(*) AS n FROM orders GROUP BY item"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TACIT_PROGRESS", "0")  # --quiet sets it, and the next test must not find it
    for name in ("TACIT_DB", "TACIT_POLICY", "COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def build(path: Path, secret: str = "tea", customers: int = 300) -> None:
    with duckdb.connect(str(path)) as db:
        db.execute("CREATE TABLE orders (order_id INTEGER, customer_id INTEGER, day DATE, item VARCHAR, price INTEGER)")
        db.execute(
            "INSERT INTO orders SELECT i, i // 2, DATE '2025-01-01' + (i % 90)::INTEGER, "
            "CASE WHEN i % 3 = 0 THEN ? ELSE 'rice' END, i % 100 FROM range(?) r(i)",
            [secret, 2 * customers],
        )
        db.execute("CREATE TABLE items (item VARCHAR, shelf INTEGER)")
        db.execute("INSERT INTO items VALUES ('rice', 1), ('tea', 2)")


@pytest.fixture
def run(folder: Path) -> Run:
    """``tacit`` with these arguments, in the shop's folder."""

    def tacit(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=stdin, prog_name="tacit")

    return tacit
