"""``tacit serve`` and ``tacit token`` at the command line, and the demonstration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tacit.server.commands import app
from tacit.server.service import Place
from tacit.server.tokens import Tokens
from typer.testing import CliRunner

POLICY = '[budget]\nepsilon = 1\n[analysts.ana]\nepsilon = 0.5\n[server]\ndatabase = "clinic.duckdb"\n'


@pytest.fixture
def policy(clinic_file: Path, tmp_path: Path) -> Path:
    (tmp_path / "clinic.duckdb").write_bytes(clinic_file.read_bytes())
    file = tmp_path / "clinic.toml"
    file.write_text(POLICY)
    return file


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(arguments))
    return done.exit_code, done.stdout, done.stderr


def test_tokens(policy: Path) -> None:
    path = str(policy)
    code, printed, _ = run("token", "create", path, "ana", "--epsilon", "0.25", "--table", "VISITS", "--days", "2")
    assert code == 0
    tokens = Tokens(Place.of(policy).store())
    token = tokens.holder(printed.strip())
    assert (str(token.cap.epsilon), token.tables) == ("0.25", frozenset({"visits"}))
    assert token.id in run("token", "list", path)[1]
    assert "ε≤0.5" in run("token", "limit", path, token.id, "--epsilon", "0.5")[1]
    assert "revoked" in run("token", "revoke", path, token.id)[1]
    assert not tokens.still_valid(token)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("token", "create", "POLICY", "bob"), "[analysts]"),
        (("token", "create", "POLICY", "ana", "--epsilon", "much"), "no number"),
        (("token", "create", "POLICY", "ana", "--epsilon", "-1"), "greater than 0"),
        (("token", "create", "POLICY", "ana", "--table", "vists"), "did you mean visits"),
        (("token", "create", "POLICY", "ana", "--role", "king"), "analyst or curator"),
        (("token", "revoke", "POLICY", "nobody"), "no token"),
        (("token", "list", "missing.toml"), "cannot be read"),
        (("serve", "POLICY", "--host", "0.0.0.0"), "--behind-proxy"),
    ],
)
def test_refusals(policy: Path, arguments: tuple[str, ...], said: str) -> None:
    code, _, error = run(*(str(policy) if word == "POLICY" else word for word in arguments))
    assert code == 1
    assert said in error
    assert "hint: " in error or "missing.toml" in error or "greater than 0" in error or "role" in error


def test_keys_of_the_policy(policy: Path) -> None:
    for line, said in (("quantum_ms = -1", "whole number"), ('log_sql = "all"', "log_sql"), ("hosts = 3", "list")):
        policy.write_text(POLICY + line + "\n")
        code, _, error = run("token", "list", str(policy))
        assert (code, said in error, "hint: " in error) == (1, True, True)


def test_the_demonstration_answers() -> None:
    script = Path(__file__).parents[2] / "examples" / "serve_clinic.py"
    done = subprocess.run([sys.executable, str(script), "--check"], check=True, capture_output=True, text=True)
    assert "charged ε=0.1" in done.stdout
    assert "token    tacit_" in done.stdout
