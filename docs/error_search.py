"""Finds every error that the source can raise, with its message and its hint, by reading the source.

What an expression is as a text is followed through constants, local names, conditions and functions that return a text;
what is known only when it happens becomes "…". A function that passes its caller's message on to an error is a maker,
and calls of it count as errors too. tests/sql/test_refusals.py holds what is found against errors that do occur.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit import errors

Found = dict[str, set[tuple[str, str]]]
"""Message and hint of every error, by class."""
_MOST = 12
"""Variants of one text that are listed."""


def error_classes() -> dict[str, type[BaseException]]:
    return {
        name: kind
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.Error) and kind.__module__ == errors.__name__
    }


def found_errors(root: Path) -> Found:
    """Every error that a call in the source makes."""
    known = Known()
    functions = []
    for path in sorted(path for room in ("api", "sql", "engine") for path in (root / room).rglob("*.py")):
        functions += _functions(path, known)
    for _ in range(3):  # a maker may call a maker
        for function in functions:
            function.find_makers()
    found: Found = defaultdict(set)
    for function in functions:
        for kind, message, hint in function.errors():
            said, _, told = message.partition("\nhint: ")
            if re.search(r"\w{3}", said):
                found[kind].add((said, hint or told))
    return found


@dataclass(frozen=True)
class Maker:
    """A function that makes an error of what it is given: the places of message and hint among its arguments.

    A hint that the function writes itself is a text.
    """

    kind: str
    message: int
    hint: int | str


@dataclass
class Known:
    """What the whole source tells of its functions, by name."""

    makers: dict[str, set[Maker]] = field(default_factory=lambda: defaultdict(set))
    texts: dict[str, list[tuple[Function, ast.expr]]] = field(default_factory=lambda: defaultdict(list))
    """What functions that return a text return; those whose name begins with _ under the name of their file too."""


def _functions(path: Path, known: Known) -> list[Function]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {
        target.id: [node.value]
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    of_policy = path.name.startswith(("policy", "unit_path"))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    functions = [Function(node, constants, of_policy, known, str(path)) for node in nodes]
    outside = [
        node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    return [*functions, Function(ast.Module(outside, []), constants, of_policy, known, str(path))]


class Function:
    """One function of the source, or what a file has outside of functions."""

    def __init__(
        self, node: Any, constants: dict[str, list[ast.expr]], of_policy: bool, known: Known, home: str
    ) -> None:
        self.known, self.of_policy, self.home = known, of_policy, home
        self.name = getattr(node, "name", "")
        arguments = [argument.arg for argument in node.args.args] if self.name else []
        self.parameters = [name for name in arguments if name != "self"]
        inside = list(_own(node))
        self.calls = [part for part in inside if isinstance(part, ast.Call)]
        self.values = dict(constants)
        for part in inside:
            if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
                name = part.targets[0].id
                self.values[name] = [*(self.values.get(name, []) if name not in constants else []), part.value]
        if getattr(getattr(node, "returns", None), "id", "") == "str":
            returned = [part.value for part in inside if isinstance(part, ast.Return) and part.value is not None]
            known.texts[self._key(self.name)] += [(self, value) for value in returned]

    def _key(self, name: str) -> str:
        """A function that is private to its file has namesakes in others."""
        return f"{self.home} {name}" if name.startswith("_") else name

    def find_makers(self) -> None:
        """Whether it passes a message of its caller on."""
        if self.name == "error":
            return
        for call in self.calls:
            for kind, message, hint in self._made(call):
                if isinstance(message, ast.Name) and message.id in self.parameters:
                    own = isinstance(hint, ast.Name) and hint.id in self.parameters
                    hints: list[int | str] = [self.parameters.index(hint.id)] if own else [*self._texts(hint)]
                    for told in hints:
                        self.known.makers[self.name].add(Maker(kind, self.parameters.index(message.id), told))

    def errors(self) -> Iterator[tuple[str, str, str]]:
        """Class, message and hint of each error that its calls make."""
        for call in self.calls:
            for kind, message, hint in self._made(call):
                if not (isinstance(message, ast.Name) and message.id in self.parameters):
                    for said, told in itertools.product(self._texts(message), self._texts(hint)):
                        yield kind, said, told

    def _made(self, call: ast.Call) -> Iterator[tuple[str, Any, Any]]:
        """The class, the message and the hint of the error that a call makes, as expressions; mostly none."""
        name, given = _called(call), call.args
        first = getattr(given[0], "id", "") if given else ""
        if name in error_classes() and given:
            yield name, given[0], next((k.value for k in call.keywords if k.arg == "hint"), None)
        elif name in ("error", "_error") and len(given) >= 3 and first in error_classes():
            yield first, given[-2], given[-1]
        elif self.of_policy and name == "refuse" and len(given) == 3:
            yield "PolicyError", _joined(given[0], given[1]), given[2]
        elif name == "policy_error" and len(given) == 4 and not isinstance(given[2], ast.Name):
            yield "PolicyError", _joined(given[1], given[2]), given[3]
        else:
            for maker in self.known.makers.get(name, ()):
                if maker.message < len(given):
                    at = maker.hint
                    hint = given[at] if isinstance(at, int) and at < len(given) else ast.Constant(at)
                    yield maker.kind, given[maker.message], hint

    def _texts(self, node: Any, depth: int = 0) -> list[str]:
        """What an expression can be as a text, with … for what is not known before it happens."""
        found: list[str] = ["…"]
        if node is None:
            found = [""]
        elif depth > 8:
            pass
        elif isinstance(node, ast.Constant):
            found = [node.value if isinstance(node.value, str) else "…"]
        elif isinstance(node, ast.JoinedStr):
            found = _product([self._texts(part, depth + 1) for part in node.values])
        elif isinstance(node, ast.FormattedValue):
            found = self._texts(node.value, depth + 1) if isinstance(node.value, ast.IfExp | ast.Name) else found
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            found = _product([self._texts(node.left, depth + 1), self._texts(node.right, depth + 1)])
        elif isinstance(node, ast.IfExp):
            found = self._texts(node.body, depth + 1) + self._texts(node.orelse, depth + 1)
        elif isinstance(node, ast.BoolOp):
            found = [text for part in node.values for text in self._texts(part, depth + 1)]
        elif isinstance(node, ast.Name) and node.id in self.values:
            found = [text for value in self.values[node.id] for text in self._texts(value, depth + 1)]
        elif isinstance(node, ast.Call) and self._key(_called(node)) in self.known.texts:
            returned = self.known.texts[self._key(_called(node))]
            found = [text for function, value in returned for text in function._texts(value, depth + 1)]
        return list(dict.fromkeys(found))[:_MOST]


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """What a function has inside, without the functions inside it, which are looked at by themselves."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _own(child)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else str(getattr(call.func, "id", ""))


def _joined(key: ast.expr, what: ast.expr) -> ast.expr:
    """The key, a blank and what is wrong with it, as one expression."""
    return ast.BinOp(ast.BinOp(key, ast.Add(), ast.Constant(" ")), ast.Add(), what)


def _product(parts: list[list[str]]) -> list[str]:
    return ["".join(texts) for texts in itertools.islice(itertools.product(*parts), _MOST)]
