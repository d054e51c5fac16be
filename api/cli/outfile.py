"""Where results go. Whether they can go there is found out before anything is paid for."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from .exits import UsageProblem
from .shared_options import Format


class Output:
    """Stdout, a file or a folder of files. Files are written beside their place and moved there when they are whole.

    Entering makes the unfinished file, so that a place that cannot be written is refused before the block runs.
    """

    def __init__(self, path: str | None, how: Format) -> None:
        self.is_folder = path is not None and (path.endswith(os.sep) or Path(path).is_dir())
        self._target = None if path in (None, "-") else Path(str(path))
        self._unfinished: Path | None = None
        if self.is_folder and how is Format.table:
            raise UsageProblem("a folder has a file for each query\nhint: --format csv, json, markdown or parquet")
        if self._target is None and how is Format.parquet and sys.stdout.isatty():
            raise UsageProblem("parquet is not for a terminal\nhint: -o answers.parquet")

    @property
    def is_stdout(self) -> bool:
        return self._target is None

    @property
    def _special(self) -> bool:
        """A pipe or a device, which cannot be replaced and is written as it is."""
        return self._target is not None and self._target.exists() and not self._target.is_file()

    def __enter__(self) -> Self:
        if self._target is None or (self._special and not self.is_folder):
            return self
        target = self._target.resolve()
        try:
            if self.is_folder:
                if target.is_dir() and any(target.iterdir()):
                    raise UsageProblem(f"the folder {str(self._target)!r} is not empty\nhint: name a new one")
                self._unfinished = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
            else:
                if target.exists() and not os.access(target, os.W_OK):
                    raise PermissionError(13, "permission denied")
                handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
                os.close(handle)
                self._unfinished = Path(name)
        except OSError as error:
            raise UsageProblem(
                f"{str(self._target)!r} cannot be written: {(error.strerror or '?').lower()}; nothing was spent\n"
                "hint: -o with a place that exists and is yours"
            ) from None
        return self

    def write(self, data: bytes | Mapping[str, bytes]) -> None:
        """Write it, whole or not at all: bytes to stdout or a file, named bytes to a folder."""
        if isinstance(data, Mapping):
            assert self._unfinished is not None and self._target is not None
            for name, content in data.items():
                (self._unfinished / name).write_bytes(content)
            self._unfinished.chmod(0o777 & ~_umask())
            self._unfinished.rename(self._target.resolve())
        elif self._target is None:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        elif self._unfinished is None:
            self._target.write_bytes(data)
        else:
            target = self._target.resolve()
            self._unfinished.write_bytes(data)
            self._unfinished.chmod(stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask())
            self._unfinished.replace(target)
        self._unfinished = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._unfinished is None:
            return
        if self._unfinished.is_dir():
            shutil.rmtree(self._unfinished, ignore_errors=True)
        else:
            self._unfinished.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
