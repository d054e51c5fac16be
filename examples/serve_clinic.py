"""Serve a generated clinic: print an address and a token, answer one query through them, and keep running.

make demo-server        or        python examples/serve_clinic.py [--check]

With --check it stops after the query, for tests.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import tacit
from tacit.cli import clinic
from tacit.server.service import Place
from tacit.server.tokens import Tokens

POLICY = Path(clinic.__file__).parent / "clinic.toml"
QUERY = "SELECT state, count(*) AS patients FROM patients GROUP BY state"


def main(*, check: bool = False) -> None:
    """Build the clinic, start the server on a free port, and ask it."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "clinic.duckdb"
        clinic.build(database, 4_000 if check else 40_000)
        place = Place.of(POLICY, str(database))
        token, _ = Tokens(place.store()).create("ana")
        command = [sys.executable, "-m", "tacit.server.commands", "serve", str(place.policy)]
        server = subprocess.Popen(
            [*command, "--db", str(database), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if check else (Path(folder) / "log").open("wb"),
            text=True,
        )
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            if " at http" not in line:
                raise SystemExit("the server did not start")
            address = line.split(" at ")[1].strip()
            print(f"address  {address}\ntoken    {token}\n")
            print(f"{QUERY}\n")
            with tacit.connect(address, token=token) as con:
                answers = con.answer(QUERY, epsilon=0.1)
                print(answers[0].df.to_string(index=False))
                print(f"\ncharged ε={answers.cost.epsilon}; left ε={con.budget.left.epsilon}\n")
            body = '{"id": "my-first-request", "sql": "SELECT count(*) FROM visits", "epsilon": 0.1}'
            print("The same from a shell:\n")
            print(f"  curl -s {address}/api/answer -H 'Authorization: Bearer {token}' \\")
            print(f"       -H 'Content-Type: application/json' -d '{body}'\n")
            if not check:
                print("Serving until Ctrl-C; the clinic, its ledger and the token are gone after that.", flush=True)
                server.wait()
        except KeyboardInterrupt:
            pass
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main(check="--check" in sys.argv[1:])
