"""Writes docs/reference-policy.md and docs/reference-errors.md from the code itself.

    python docs/make_reference.py

The keys of the policy are the tables and dataclasses that it is read into, with the texts that stand beside them. The
errors are found in the source: every call that makes one, with its message and its hint. A part that is only known when
it happens is shown as "…". tests/test_docs.py fails when a page is not what this would write.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
import textwrap
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from tacit import errors, policy
from tacit.policy_column import ColumnPolicy
from tacit.policy_server import ServerPolicy
from tacit.policy_table import TablePolicy
from tacit.sql import Limits

sys.path.insert(0, str(Path(__file__).parent))
from error_search import Found, error_classes, found_errors

DOCS = Path(__file__).parent
ROOT = DOCS.parent
MADE = "<!-- Made by docs/make_reference.py from the code: change it there. -->\n"
NOT_LISTED = ("InternalError",)
"""Defects of tacit: what they say is for whoever mends it."""


def main() -> None:
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """The texts of both pages, by file name."""
    found = found_errors(ROOT)
    return {"reference-policy.md": policy_page(found), "reference-errors.md": errors_page(found)}


# The policy


def policy_page(found: Found) -> str:
    lines = [
        MADE + "# The policy: every key",
        "A policy is a TOML file, or a Python dictionary of the same shape. `tacit init DB` drafts one from a schema,",
        "and `tacit check POLICY DB` finds what is wrong with it. A key that is not on this page is refused. What the",
        "keys mean for your data is in [for the data owner](how-to-owner.md).",
        "",
        "```toml",
        (ROOT / "api" / "cli" / "clinic.toml").read_text(encoding="utf-8").strip(),
        "```",
        "",
    ]
    lines += _table("The whole", "", "key", [(key, "", text) for key, text in policy.SECTIONS.items()])
    lines += _table("`[budget]`", "", "key", [(key, "", text) for key, text in policy.BUDGET.items()])
    lines += _table("`[analysts.NAME]`", "One section for each person who may ask.", "key",
                    [(key, "", text) for key, text in policy.ANALYST.items()])  # fmt: skip
    lines += _table(
        "`[tables.NAME]`", 'A name with a dot is quoted, as in `[tables."sales.orders"]`.', "key", _fields(TablePolicy)
    )
    lines += _table("`[tables.NAME.columns]`", 'One line for each column: `age = { min = 0, max = 120 }`.', "key",
                    _fields(ColumnPolicy))  # fmt: skip
    lines += _table("`[limits]`", "What lies beyond is refused before anything is paid for.", "key", _fields(Limits))
    lines += _table("`[log]`", "", "key", [(key, "", text) for key, text in policy.LOG.items()])
    lines += _table("`[server]`", "See [the server](server.md).", "key", _fields(ServerPolicy))
    lines += ["## What is refused", "", "Every refusal names the key and says what to write instead.", ""]
    lines += _messages(found["PolicyError"])
    return "\n".join(lines)


def _table(title: str, words: str, first: str, rows: list[tuple[str, str, str]]) -> list[str]:
    missing = [key for key, _, text in rows if not text]
    assert not missing, f"{title}: no text beside {', '.join(missing)} in the code"
    lines = [f"## {title}", ""] + ([words, ""] if words else [])
    if any(default for _, default, _ in rows):
        lines += [f"| {first} | default | what it says |", "|---|---|---|"]
        return [*lines, *(f"| `{key}` | {default} | {_cell(text)} |" for key, default, text in rows), ""]
    return [
        *lines,
        f"| {first} | what it says |",
        "|---|---|",
        *(f"| `{k}` | {_cell(text)} |" for k, _, text in rows),
        "",
    ]


def _fields(of: Any) -> list[tuple[str, str, str]]:
    """The fields of a dataclass with their defaults and the texts that stand under them in the source."""
    body = ast.parse(inspect.getsource(of)).body[0]
    assert isinstance(body, ast.ClassDef)
    texts = {}
    for node, after in itertools.pairwise(body.body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            texts[node.target.id] = " ".join(str(text).replace("``", "`").split())
    return [(field.name, _default(field.default), texts.get(field.name, "")) for field in fields(of)]


def _default(value: object) -> str:
    if value is None or value is MISSING or value == ():
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"{value:,}" if isinstance(value, int) else f'`"{value}"`'


# The errors


def errors_page(found: Found) -> str:
    drawn = textwrap.dedent(inspect.cleandoc(errors.__doc__ or "").split("\n\n")[1]).replace("``", "")
    lines = [
        MADE + "# Every error, and its hint",
        "All errors are in one tree, `tacit.errors`, under that of Python's database interface (PEP 249). Whoever",
        "catches `tacit.Error` catches them all. An error is one sentence and, after `hint:`, what to write instead;",
        "one about SQL also underlines the place. No error depends on a private row, and what is refused is not",
        "charged, unless the error says so. The exit codes of the command are on [its page](command-line.md).",
        "",
        "```text",
        drawn,
        "```",
        "",
        "Below, … stands for what is known only when it happens: a name, a number, the place in the policy.",
        "",
    ]
    for name, kind in error_classes().items():
        # PolicyError's are beside the keys, and the classes that only stand in the tree have none of their own
        if name in NOT_LISTED or name == "PolicyError" or not found.get(name):
            continue
        lines += [f"## {name}", "", (kind.__doc__ or "").strip().splitlines()[0], ""]
        lines += _messages(found[name])
    lines += [
        *("## PolicyError", "", (errors.PolicyError.__doc__ or "").strip(), ""),
        *("These are listed beside [the keys of the policy](reference-policy.md#what-is-refused).", ""),
        *(
            "## InternalError",
            "",
            "A defect of tacit, never your fault. Please report it; it tells nothing of a row.",
            "",
        ),
    ]
    return "\n".join(lines)


def _messages(found: set[tuple[str, str]]) -> list[str]:
    ordered = sorted(found, key=lambda pair: re.sub(r"[^a-zA-Z0-9 ]", "", pair[0]).strip().lower() + pair[0] + pair[1])
    return ["| it says | hint |", "|---|---|", *(f"| {_text(said)} | {_text(hint)} |" for said, hint in ordered), ""]


def _text(words: str) -> str:
    """A message as markdown that shows exactly its characters."""
    return re.sub(r"([*_`<>\[\]{}#$])", r"\\\1", _cell(words))


def _cell(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|")


if __name__ == "__main__":
    main()
