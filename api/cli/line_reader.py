"""What is typed into the shell: with history, completion and several lines in a terminal; line by line from a pipe."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .statements import is_complete

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from tacit.sql import Catalog

KEYWORDS = re.findall(
    r"\w+",
    """SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AND OR NOT IN BETWEEN LIKE IS NULL AS DISTINCT CASE WHEN THEN ELSE
    END COUNT SUM AVG MIN MAX MEDIAN QUANTILE STDDEV VARIANCE FILTER JOIN LEFT ON USING WITH UNION ALL ROLLUP CUBE
    TRUE FALSE""",
)
_WORD = re.compile(r"[\w.]+")
_PRIMARY, _MORE = "tacit> ", "  ...> "


class Reader(Protocol):
    """Gives one entry after the other: a dot command, or SQL up to its semicolon."""

    def entries(self) -> Iterator[str]: ...


class PipeReader:
    """Entries from stdin, where no person types."""

    def entries(self) -> Iterator[str]:
        text = ""
        for line in sys.stdin:
            if not text.strip() and line.lstrip().startswith("."):
                yield line.strip()
                continue
            text += line
            if is_complete(text):
                yield text.strip()
                text = ""
        if text.strip():
            yield text.strip()


class TerminalReader:
    """Entries from a terminal."""

    def __init__(self, catalog: Catalog, commands: Sequence[str]) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.filters import Condition
        from prompt_toolkit.history import FileHistory, InMemoryHistory
        from prompt_toolkit.key_binding import KeyBindings

        bindings = KeyBindings()

        @Condition
        def finished() -> bool:
            text = self._session.default_buffer.text
            return not text.strip() or text.lstrip().startswith(".") or is_complete(text)

        @bindings.add("enter", filter=finished)
        def _submit(event: Any) -> None:
            event.current_buffer.validate_and_handle()

        path = history_file()
        self._session: PromptSession[str] = PromptSession(
            history=InMemoryHistory() if path is None else FileHistory(str(path)),
            completer=completer(catalog, commands),
            complete_while_typing=False,
            multiline=True,
            key_bindings=bindings,
            prompt_continuation=_MORE,
            color_depth=None if "NO_COLOR" not in os.environ else _no_colours(),
        )

    def entries(self) -> Iterator[str]:
        while True:
            try:
                text = self._session.prompt(_PRIMARY).strip()
            except KeyboardInterrupt:  # what is typed so far is dropped, as in every shell
                continue
            except EOFError:
                return
            if text:
                yield text


def _no_colours() -> Any:
    from prompt_toolkit.output import ColorDepth

    return ColorDepth.DEPTH_1_BIT


def completer(catalog: Catalog, commands: Sequence[str]) -> Completer:
    """Completes names of tables and columns, keywords, and dot commands at the start of an entry."""
    from prompt_toolkit.completion import WordCompleter

    tables = [table.name for table in catalog.tables]
    columns = [column.name for table in catalog.tables for column in table.columns]
    dotted = [f"{table.name}.{column.name}" for table in catalog.tables for column in table.columns]
    names = list(dict.fromkeys([*tables, *columns, *dotted, *KEYWORDS, *commands]))
    kinds = {**dict.fromkeys(columns, "column"), **dict.fromkeys(dotted, "column"), **dict.fromkeys(tables, "table")}
    return WordCompleter(names, ignore_case=True, pattern=_WORD, meta_dict=kinds)


def history_file() -> Path | None:
    """The file of what was typed, for its owner alone; None where none can be made.

    SQL can hold a name or a number that the analyst knows: nobody else has to read it.
    """
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    folder = Path(base) / "tacit"
    path = folder / "history"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600))
    except OSError:
        return None
    with suppress(OSError):
        path.chmod(0o600)
    return path


Ask = Callable[[str], str]
"""Asks a question and gives the answer."""


def ask_terminal(question: str) -> str:
    """One line from the person at the terminal; empty when they press Ctrl-D or Ctrl-C."""
    from prompt_toolkit import prompt

    try:
        return prompt(question).strip()
    except (EOFError, KeyboardInterrupt):
        return ""
