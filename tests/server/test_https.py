"""HTTPS from end to end: ``tacit serve --cert``, a client that verifies it, SQLAlchemy and pandas over it."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pandas as pd
import pytest
import sqlalchemy as sa
import tacit
from sqlalchemy import exc
from support.serving import Serving
from tacit.server.commands import app
from typer.testing import CliRunner

COUNT = "SELECT state, count(*) AS n FROM visits GROUP BY state"
openssl = shutil.which("openssl")
pytestmark = pytest.mark.skipif(openssl is None, reason="certificates are made by the openssl command")


def certificate(folder: Path, name: str, *, host: str = "localhost", days: int = 2) -> tuple[Path, Path]:
    """A self-signed certificate and its key."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    names = f"subjectAltName=DNS:{host}" + (",IP:127.0.0.1" if host == "localhost" else "")
    command = f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days {days} -subj /CN={host} -addext"
    subprocess.run([openssl, *command.split(), names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("https")


@pytest.fixture(scope="module")
def secure(folder: Path, clinic_file: Path, policy_text: str) -> Iterator[Serving]:
    cert, key = certificate(folder, "own")
    database, file = folder / "clinic.duckdb", folder / "clinic.toml"
    database.write_bytes(clinic_file.read_bytes())
    file.write_text(policy_text)
    serving = Serving(file, database, "--cert", str(cert), "--key", str(key))
    yield serving
    serving.stop()


def test_a_verified_connection(secure: Serving, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = secure.token()
    assert secure.address.startswith("https://")
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "own.pem"))
    for address in (secure.address, secure.address.replace("127.0.0.1", "localhost")):
        with tacit.connect(address, token=token) as con:
            assert con.answer(COUNT, epsilon=0.5).cost.epsilon in (0, tacit.engine.to_epsilon(0.5))
    port = urlsplit(secure.address).port
    engine = sa.create_engine(f"tacit+https://:{token}@localhost:{port}?spend=0.25")
    assert token not in repr(engine)
    with engine.connect() as con:
        frame = pd.read_sql(COUNT, con)
        assert list(frame.columns) == ["state", "n"]
        assert len(frame) == 5
        assert sa.inspect(con).get_table_names() == ["hospitals", "labs", "visits"]
        columns = sa.inspect(con).get_columns("visits")
        assert [str(column["type"]) for column in columns][:3] == ["BIGINT", "VARCHAR", "BIGINT"]
        small = con.execution_options(epsilon=0.125)
        assert pd.read_sql(
            sa.text("SELECT count(*) AS m FROM labs WHERE kind = :kind"), small, params={"kind": "x"}
        ).shape
    engine.dispose()
    with tacit.connect(secure.address, token=token) as direct:
        assert direct.budget.analysts["ana"].spent.epsilon == tacit.engine.to_epsilon(0.5 + 0.125)


def test_a_bad_certificate_is_refused_at_once(secure: Serving, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token, started = secure.token(), time.monotonic()
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(tacit.OperationalError, match=r"cannot be verified: self.signed.*\nhint: SSL_CERT_FILE"):
        tacit.connect(secure.address, token=token)
    other, _ = certificate(folder, "other")
    monkeypatch.setenv("SSL_CERT_FILE", str(other))
    with pytest.raises(tacit.OperationalError, match="cannot be verified"):
        tacit.connect(secure.address, token=token)
    elsewhere, key = certificate(folder, "elsewhere", host="elsewhere.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(elsewhere))
    with listening(elsewhere, key) as port, pytest.raises(tacit.OperationalError, match=r"verified: .*[Mm]ismatch"):
        tacit.connect(f"https://localhost:{port}", token=token)
    assert time.monotonic() - started < 10


@contextmanager
def listening(cert: Path, key: Path) -> Iterator[int]:
    """Somebody else, who has a certificate of another name; gives the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def shake_hands() -> None:
            line, _ = listener.accept()
            with line, suppress(OSError):
                context.wrap_socket(line, server_side=True).close()

        thread = threading.Thread(target=shake_hands)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def test_the_wrong_scheme_is_said(server: Serving, secure: Serving) -> None:
    with pytest.raises(tacit.OperationalError, match="no HTTPS at this address"):
        tacit.connect(server.address.replace("http", "https"), token=server.token())
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    started = time.monotonic()
    with pytest.raises(tacit.OperationalError, match=r"cannot be reached\nhint: check the address"):
        tacit.connect(f"http://127.0.0.1:{port}", token=server.token())
    assert time.monotonic() - started < 15
    with pytest.raises(tacit.OperationalError, match="wants https"):
        tacit.connect(secure.address.replace("https", "http"), token=secure.token())


def test_a_handshake_that_does_not_come_is_not_waited_for(secure: Serving) -> None:
    parts = urlsplit(secure.address)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as line:
        line.sendall(b"\x16\x03\x01")  # a record begins, and no more
        started = time.monotonic()
        try:
            while line.recv(4096):
                pass
        except ConnectionResetError:
            pass
        assert time.monotonic() - started < 10
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((parts.hostname, parts.port), timeout=20) as line,
        context.wrap_socket(line, server_hostname="localhost") as tls,
    ):
        assert tls.version() in ("TLSv1.2", "TLSv1.3")


def test_certificates_that_cannot_be_used(folder: Path, secure: Serving) -> None:
    (folder / "broken.pem").write_text("no certificate")
    own, other = certificate(folder, "third"), certificate(folder, "fourth")
    for options, said in (
        (["--cert", str(folder / "missing.pem")], "No such file"),
        (["--cert", str(folder / "broken.pem")], "cannot be used"),
        (["--cert", str(own[0]), "--key", str(other[1])], "cannot be used"),
        (["--key", str(own[1])], "--key was given without --cert"),
    ):
        done = CliRunner().invoke(app, ["serve", str(secure.place.policy), "--db", secure.place.database, *options])
        assert (done.exit_code, said in done.stderr, "hint: " in done.stderr) == (1, True, True), done.stderr


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("tacit+https://:t@host?policy=x", "knows no policy="),
        ("tacit+https://ana:t@host", "is the address of a server"),
        ("tacit+https:///clinic.duckdb", "is the address of a server"),
    ],
)
def test_addresses_of_sqlalchemy(url: str, said: str) -> None:
    with pytest.raises(exc.ArgumentError, match=said):
        sa.create_engine(url).connect()
    with pytest.raises(exc.InterfaceError, match="in the clear"):
        sa.create_engine("tacit+http://:t@example.org").connect()
