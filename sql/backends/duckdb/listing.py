"""Which files a path means: one file, all data files of a folder, or those whose names a pattern describes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tacit.errors import OperationalError

_KINDS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".csv.gz": "csv.gz", ".tsv": "tsv", ".tsv.gz": "tsv.gz",
}  # fmt: skip
_SIGNS = frozenset("*?[")


@dataclass(frozen=True)
class Listing:
    """Files of one kind that are read as one table."""

    given: Path
    """What was asked for, as an absolute path."""
    name: str
    """Of the table: the file's, or the folder's."""
    kind: str
    paths: tuple[Path, ...]
    keys: tuple[str, ...] = ()
    """The names in ``key=value`` folders on the way to the files, the same for all of them."""
    one: bool = False
    """Whether it is one file that was named."""

    @property
    def place(self) -> Path:
        """The file, or the folder: the ledger lies beside it."""
        return self.paths[0] if self.one else _root(self.given)[0]


def kind_of(path: Path) -> str | None:
    """The kind of a data file, by the end of its name.

    >>> kind_of(Path("a.CSV.gz")), kind_of(Path("a.pq")), kind_of(Path("notes.txt"))
    ('csv.gz', 'parquet', None)
    """
    ending = _ending(path)
    return None if ending is None else _KINDS[ending]


def _ending(path: Path) -> str | None:
    name = path.name.lower()
    return max((ending for ending in _KINDS if name.endswith(ending) and name != ending), key=len, default=None)


def means_files(path: Path) -> bool:
    """Whether a path is a folder, a data file, or a pattern; a file comes first, whatever signs its name has."""
    if path.exists():
        return path.is_dir() or (path.is_file() and kind_of(path) is not None)
    return any(_SIGNS & set(part) for part in path.parts) and kind_of(path) is not None


def listed(given: Path) -> Listing:
    """The files that a path means now. Only names are looked at; raises OperationalError where they make no table.

    As elsewhere, names that begin with a dot or an underscore are left out (a writer keeps what is not finished under
    such names), unless the pattern asks for them. Links to files are followed and links to folders are not. A file
    under two names is refused: its rows would count twice.
    """
    given = given.absolute()
    if given.is_file():
        kind, ending = kind_of(given), _ending(given)
        assert kind is not None and ending is not None
        path = given.resolve()
        return Listing(path, given.resolve().name[: -len(_ending(path) or ending)], kind, (path,), one=True)
    folder, pattern = _root(given)
    try:
        matched = sorted(path for path in folder.glob(pattern or "**/*") if path.is_file())
        paths = [path for path in matched if not _is_hidden(path.relative_to(folder), pattern)]
        files = {(stat.st_dev, stat.st_ino) for stat in map(Path.stat, paths)}
    except OSError:
        raise OperationalError(f"{str(given)!r} cannot be listed") from None
    data = [path for path in paths if pattern or kind_of(path) is not None]
    kinds = {kind_of(path) or "other" for path in data}
    if not data:
        what = f"no file {pattern}" if pattern else "no parquet, csv or tsv file"
        raise OperationalError(f"there is {what} in {str(folder)!r}")
    if len(kinds) > 1 or "other" in kinds:
        raise OperationalError(
            f"{str(given)!r} means files of several kinds: {', '.join(sorted(kinds))}\n"
            'hint: name one kind by a pattern, as in "folder/**/*.parquet"'
        )
    if len(files) < len(paths):
        raise OperationalError(
            f"{str(given)!r} means one file under several names, so that its rows would count twice\n"
            "hint: name the files by a pattern that leaves the links out"
        )
    keys = {_keys(path.relative_to(folder)) for path in data}
    if len(keys) > 1:
        raise OperationalError(
            f"the files of {str(folder)!r} have different columns: not all lie under the same key=value folders\n"
            "hint: write them alike, or name those that are"
        )
    if not folder.name:
        raise OperationalError("the root of all folders is no table\nhint: name a folder below it")
    return Listing(given, folder.name, kinds.pop(), tuple(data), keys.pop())


def _root(given: Path) -> tuple[Path, str]:
    """The folder that a path begins with, without links, and the pattern below it; none for the folder itself."""
    if given.is_dir():
        return given.resolve(), ""
    first = next(i for i, part in enumerate(given.parts) if _SIGNS & set(part))
    return Path(*given.parts[:first]).resolve(), str(Path(*given.parts[first:]))


def _is_hidden(relative: Path, pattern: str) -> bool:
    """Whether a part of a name says that the file is not meant for readers; ``_year=2024`` is a key."""
    asked = {part[0] for part in Path(pattern).parts} if pattern else set()
    return any(part[0] in {".", "_"} - asked and not (part[0] == "_" and "=" in part) for part in relative.parts)


def _keys(relative: Path) -> tuple[str, ...]:
    return tuple(part.partition("=")[0] for part in relative.parts[:-1] if "=" in part)
