"""How a command ends: its exit code, and an error in tacit's own words on stderr, never a traceback."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.text import Text
from tacit.errors import (
    BudgetError,
    Error,
    InterfaceError,
    InternalError,
    PrivacyParameterError,
)

from .terminal import console

REFUSED = 1
"""The request was understood and refused, or a check has found something."""
USAGE = 2
"""An option or argument is wrong or missing."""
BUDGET = 3
"""It costs more than is left; nothing was charged."""
DEFECT = 4
"""tacit itself failed."""
INTERRUPTED = 130
"""Ctrl-C, as shells count it: 128 and the signal's number."""
BROKEN_PIPE = 141
"""Whoever read the output stopped reading."""

_WORDS = (
    "epsilon delta error confidence analyst policy ledger discover refresh nonnegative integer strategy plan_seconds "
    "size"
)
_ARGUMENT = re.compile(rf"""\b({"|".join(_WORDS.split())})=(True\b|[\w.]+|"\w+")?""")
_CARETS = re.compile(r" *\^+")
_PHRASES = (
    (r", or connect\(…, epsilon=1\.0\)", "; tacit init DB writes such a policy"),
    (r"(; for calls that cannot say, set|, or set) con\.spend = 0\.1 or spend", "; or write spend"),
    (r" or in connect\(…\)", ""),
    (r", or connect\(…, delta=1e-9\)", ""),
    (r"tacit\.ledger\.change_policy", "tacit ledger policy"),
    (r"tacit\.ledger\.raise_cap", "tacit ledger raise"),
    (r"con\.discover\(…, epsilon=…, delta=…\)", "--discover, with a larger --epsilon or --delta"),
    (r"connect without analyst=", "leave --analyst out"),
    (r"with error=\{0: 50\} for the others", "with - in its place, as in --error 50,-"),
    (
        r"error=\[50, 10\], error=\{0: 50\}, or error=\"5%\" with sizes=\[2000, 300\]",
        "--error 50,10, --error 50,-, or --error 5% with --size 2000,300",
    ),
    (r"connect\(…, policy=…\)", "--policy FILE"),
)
"""What the Python interface advises, and what does the same on the command line."""


class UsageProblem(Error):
    """Something that only the command line asks for is missing or wrong."""


def code_of(error: Error) -> int:
    """The exit code of an error."""
    if isinstance(error, BudgetError):
        return BUDGET
    if isinstance(error, UsageProblem | InterfaceError | PrivacyParameterError):
        return USAGE
    return DEFECT if isinstance(error, InternalError) else REFUSED


@contextmanager
def reported() -> Iterator[None]:
    """Turn whatever ends a command into words on stderr and an exit code."""
    try:
        yield
        sys.stdout.flush()
    except Error as error:
        show_error(str(error))
        raise typer.Exit(code_of(error)) from None
    except BrokenPipeError:
        # Python flushes once more when it ends, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(BROKEN_PIPE) from None
    except (KeyboardInterrupt, typer.Abort):
        console(error=True).print("stopped; what was paid for and not shown costs nothing when asked again")
        raise typer.Exit(INTERRUPTED) from None
    except ModuleNotFoundError as error:
        show_error(f"this needs {error.name}, which is not installed\nhint: pip install 'tacit[cli]'")
        raise typer.Exit(USAGE) from None
    except OSError as error:
        show_error(f"{error.strerror or 'a file cannot be used'}: {error.filename or ''}".rstrip(": "))
        raise typer.Exit(REFUSED) from None
    except Exception as error:
        if hasattr(error, "exit_code"):  # typer's own: wrong options, and exits that were meant
            if hasattr(error, "message"):
                error.message = error.message.replace("Value error, ", "")  # what typer checks options with adds it
            raise
        show_error(
            f"tacit failed ({type(error).__name__} in {_place(error)}): a defect of tacit, not of what you typed\n"
            "hint: report it, with the command and the policy"
        )
        raise typer.Exit(DEFECT) from None


def show_error(message: str, label: str = "error") -> None:
    """Print an error as wide as the terminal; lines of SQL keep their carets in place."""
    screen = console(error=True)
    screen.print(styled(message, label, screen.width), soft_wrap=True)


def styled(message: str, label: str, width: int) -> Text:
    """An error in colours: its label, its sentence, SQL with carets, its hint."""
    lines = as_options(message).splitlines() or [""]
    text = Text()
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if index:
            text.append("\n")
        if line.startswith("  ") and _CARETS.fullmatch(following):
            text.append(_window(line, following, width)[0])
        elif index and _CARETS.fullmatch(line):
            text.append(_window(lines[index - 1], line, width)[1], style="red")
        elif line.startswith("hint: "):
            text.append("hint: ", style="cyan").append(_wrapped(line, width).removeprefix("hint: "))
        elif index == 0:
            words = _wrapped(f"{label}: {line}", width)
            text.append(f"{label}: ", style="bold yellow" if label == "warning" else "bold red")
            text.append(words.removeprefix(f"{label}: "))
        else:
            text.append(_wrapped(line, width))
    return text


def _wrapped(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()))
    pieces = textwrap.wrap(line, width, subsequent_indent=indent + "  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(pieces)


def _window(line: str, carets: str, width: int) -> tuple[str, str]:
    """A line and the carets under it, cut around them where it is wider than the terminal."""
    if len(line) <= width:
        return line, carets
    column = len(carets) - len(carets.lstrip())
    start = max(2, min(column - width // 3, len(line) - width + 4))
    shown = ("  …" if start > 2 else "  ") + line[start:]
    moved = " " * (column - start + (3 if start > 2 else 2)) + carets.lstrip()
    return (shown[: width - 1] + "…" if len(shown) > width else shown), moved[:width]


def as_options(message: str) -> str:
    """An error of the Python interface in the words of the command line; quoted SQL is left as it is.

    >>> as_options("epsilon= and error= were both given")
    '--epsilon and --error were both given'
    >>> as_options("hint: discover=True buys it, with epsilon=0.5")
    'hint: --discover buys it, with --epsilon 0.5'
    """
    lines = []
    for line in message.splitlines():
        if not line.startswith("  "):
            for python, words in _PHRASES:
                line = re.sub(python, words, line)
            line = _ARGUMENT.sub(_option, line)
        lines.append(line)
    return "\n".join(lines)


def _option(found: re.Match[str]) -> str:
    name, value = found[1].replace("_", "-"), found[2]
    return f"--{name}" + (f" {value.strip(chr(34))}" if value not in (None, "True") else "")


def _place(error: BaseException) -> str:
    """The last line of tacit that was reached; file and number, and nothing of what it held."""
    trace, place = error.__traceback__, "tacit"
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if "tacit" in path.parts or "api" in path.parts:
            place = f"{path.name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place
