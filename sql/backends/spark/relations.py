"""Tables, temporary views and views of a Spark session, as its catalog and its plans show them; no row is read.

A table or a registered folder is read as it is. A view that only picks and renames columns of a table is read as if its
text stood in its place. Any other view could compute something that fails on a row, or be a second name of a table's
rows, which the policy says nothing of: it is in the catalog, and a query that uses it is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit.errors import OperationalError

from ...names import MAIN, folded, spelled
from ...source import SourceColumn, SourceTable
from ..duckdb.text import quote
from .spark_types import Passage, identifier, passage

DEFAULT = "default"
"""The database whose tables go by their bare name."""
CATALOG = "spark_catalog"
UNREADABLE = "CREATE VIEW"
"""In place of a text that cannot be read. It is no SELECT, so a query that uses the view is refused."""
FORMATS = ("parquet", "orc")
"""Files that say themselves what their columns are."""

_NODE = re.compile(r"^ *(?:\+- )?(?=\S)(.*)$")
_RELATION = re.compile(r"Relation ([^\[\]]*)\[[^\[\]]*\] (\w+)")
_IN_PLAN = re.compile(r"(?:LocalRelation|Range) .*")
_NAMING = re.compile(r"SubqueryAlias .*|View \(.*")
_COLUMN = r"(\w+)#\d+L?"
_PICKED = re.compile(rf"{_COLUMN}(?: AS {_COLUMN})?")
_CALL = re.compile(r"(\w+) ?\(")
_FREE = re.compile(r"[\w\s.,:()=<>]|-(?=\d)")
_TOTAL = {"AND", "OR", "NOT", "IN", "AS", "WHEN", "THEN", "ELSE", "isnotnull", "isnull"}
_ANALYZED = _TOTAL | {"cast", "between"}


@dataclass(frozen=True)
class RelationColumn:
    """A column that can be read."""

    name: str
    passage: Passage


@dataclass(frozen=True)
class Relation:
    """A table or view of the session. ``columns`` are those with a faithful type."""

    path: tuple[str, str]
    """Where a batch finds it."""
    place: str
    """What Spark calls it, quoted."""
    columns: tuple[RelationColumn, ...]
    temporary: bool
    stored: bool
    """Whether the catalog has it as a table, and not as a view."""
    view: str = ""
    """The text of a view in DuckDB's SQL; empty for what is read as it is."""

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(map(folded, self.path))

    @property
    def shape(self) -> tuple[tuple[str, str], ...]:
        """Names and types of the columns."""
        return tuple((column.name, column.passage.type) for column in self.columns)

    def column(self, name: str) -> RelationColumn:
        return next(column for column in self.columns if column.name == name)


@dataclass(frozen=True)
class Plan:
    """What Spark would do to read a relation."""

    nodes: tuple[str, ...]
    """From the relation's name down to what is stored, as it was written."""
    optimized: tuple[str, ...]
    named: str | None = None
    """The table that it reads, where that has a name in the catalog."""
    files: bool = False
    frame: str = ""
    """Of rows that are part of the plan: equal for all plans that hold the same ones."""

    @property
    def plain(self) -> bool:
        """Whether it is what is stored, and nothing is done with it."""
        return len(self.nodes) == 1


def read_relations(session: Any) -> dict[tuple[str, ...], Relation]:
    """All tables and views, by ``Relation.key``. A temporary view hides a table of the same name, as in Spark."""
    found: dict[tuple[str, ...], Relation] = {}
    listed: list[Relation] = []
    if session.catalog.currentCatalog() != CATALOG:
        raise OperationalError(
            f"the session's current catalog is not {CATALOG}\nhint: session.catalog.setCurrentCatalog({CATALOG!r})"
        )
    seen: set[str] = set()
    for database in session.catalog.listDatabases():
        for entry in session.catalog.listTables(identifier(database.name)):
            if entry.isTemporary and entry.name in seen:  # listed once for every database
                continue
            if entry.isTemporary:
                seen.add(entry.name)
            elif folded(database.name) == MAIN:
                continue
            relation = _read(session, database.name, entry)
            if relation is not None:
                listed.append(relation)
    for temporary in (False, True):
        own = [relation for relation in listed if relation.temporary is temporary]
        times = Counter(relation.key for relation in own)
        found |= {relation.key: relation for relation in own if times[relation.key] == 1}
        for key in (key for key, count in times.items() if count > 1):  # neither hides the other
            found.pop(key, None)
    return found


def _read(session: Any, database: str, entry: Any) -> Relation | None:
    parts = (entry.name,) if entry.isTemporary else (CATALOG, database, entry.name)
    schema = MAIN if entry.isTemporary or folded(database) == DEFAULT else database
    stored = not entry.isTemporary and entry.tableType in ("MANAGED", "EXTERNAL")
    named = Relation((schema, entry.name), ".".join(map(identifier, parts)), (), bool(entry.isTemporary), stored)
    return read_again(session, named)


def read_again(session: Any, relation: Relation) -> Relation | None:
    """What a relation is now; None where it is gone."""
    try:
        fields = session.table(relation.place).schema.fields
    except Exception:  # of a view whose table is gone, say
        return None
    columns = [(field.name, passage(field.dataType.simpleString())) for field in fields]
    times = Counter(folded(name) for name, _ in columns)
    kept = tuple(RelationColumn(name, p) for name, p in columns if p is not None and times[folded(name)] == 1)
    present = replace(relation, columns=kept)
    return present if relation.stored else replace(present, view=_view(session, present))


def source_tables(relations: Mapping[tuple[str, ...], Relation]) -> tuple[SourceTable, ...]:
    """The schema as tacit has it. Spark does not enforce NOT NULL, so every column may hold NULL."""
    return tuple(
        SourceTable(
            spelled(relation.path),
            tuple(SourceColumn(c.name, c.passage.type, True) for c in relation.columns),
            relation.view,
            relation.path,
        )
        for relation in relations.values()
    )


def read_plan(session: Any, place: str) -> Plan | None:
    """How Spark reads a relation; None where that may fail on a row, or is not understood.

    Rows that are part of the plan are computed with while Spark plans. So a plan that computes is told by its text as
    it was written, whatever became of it, and is refused in either case.
    """
    try:
        text = str(session.sql(f"EXPLAIN EXTENDED TABLE {place}").collect()[0][0])
    except Exception:
        return None
    sections = dict(re.findall(r"^== (\w+) (?:Logical )?Plan ==\n(.*?)(?=\n== |\Z)", text, re.MULTILINE | re.DOTALL))
    written = _nodes(sections.get("Analyzed", "").partition("\n")[2])
    optimized = _nodes(sections.get("Optimized", ""))
    if not written or not optimized:
        return None
    nodes = tuple(node for node in written if not _NAMING.fullmatch(node))
    leaf = nodes[-1] if nodes else ""
    if _IN_PLAN.fullmatch(leaf):
        if all(_picked(node) is not None for node in nodes[:-1]):
            return Plan(nodes, optimized, frame=_frame(nodes, remote=is_remote(session)))
        return None
    match = _RELATION.fullmatch(leaf)
    if match is None or match[2].lower() not in FORMATS:
        return None
    if not all(_passes(node, _ANALYZED) for node in nodes[:-1]):
        return None
    if not all(_passes(node, _TOTAL) for node in optimized[:-1]):
        return None
    if any(node.startswith("Filter ") for node in optimized) and not _reads_every_row(session, place):
        return None
    return Plan(nodes, optimized, match[1] or None, True)


def is_remote(session: Any) -> bool:
    """Whether the session is one of a server."""
    return ".connect." in type(session).__module__


def _frame(nodes: Sequence[str], *, remote: bool) -> str:
    """What rows that are part of a plan are told from others by.

    In this process by the numbers of their columns, which no other frame has. A server gives them anew for each view,
    and its frames have columns without names: there, frames whose first names are the same count as one.
    """
    return re.sub(r"#\d+", "", " ".join(nodes[-2:])) if remote else nodes[-1]


def _reads_every_row(session: Any, place: str) -> bool:
    """Whether no part of a file is left out for what the file says of the least and greatest FLOAT or DOUBLE in it.

    Writers leave NaN out of that, so one row would decide whether the rows with NaN in the same part pass a filter.
    """
    try:
        text = str(session.sql(f"EXPLAIN FORMATTED TABLE {place}").collect()[0][0])
    except Exception:
        return False
    read = re.findall(r"^ReadSchema: struct<(.*)>$", text, re.MULTILINE)
    pushed = re.findall(r"^PushedFilters: \[(.*)\]$", text, re.MULTILINE)
    if len(read) != 1 or len(pushed) > 1 or text.count("PushedFilters:") != len(pushed):
        return False
    tested = re.sub(r"\bIs(?:Not)?Null\(\w+\)", "", "".join(pushed))
    return not any(re.search(rf"\b{name}\b", tested) for name in re.findall(r"(\w+):(?:float|double)\b", read[0]))


def _nodes(section: str) -> tuple[str, ...]:
    """The nodes of a plan in which each has one below it; none where one has several, or a name breaks the lines."""
    lines = section.strip("\n").split("\n")
    nodes: list[str] = []
    for depth, line in enumerate(lines):
        match = _NODE.match(line)
        if match is None or (depth and not line.startswith("   " * (depth - 1) + "+- ")):
            return ()
        nodes.append(match[1])
    return tuple(nodes)


def _passes(node: str, calls: set[str]) -> bool:
    """Whether a node only picks columns and compares them, by operators that fail on no row.

    Everything that can fail is written as a call, or with a sign that is not let through; a constant's text can look
    like one of these, and never hides one.
    """
    kind, _, rest = node.partition(" ")
    if kind not in ("Project", "Filter") or "more fields" in rest:
        return False
    text = rest[1:-1] if kind == "Project" and rest.startswith("[") and rest.endswith("]") else rest
    text = re.sub(_COLUMN, r"\1", text)
    return all(call[1] in calls for call in _CALL.finditer(text)) and not _FREE.sub("", text)


def _picked(node: str) -> list[tuple[str, str]] | None:
    """(stored name, name) of the columns that a node picks; None where it does more."""
    if not node.startswith("Project [") or not node.endswith("]"):
        return None
    picked = [_PICKED.fullmatch(item) for item in node.removeprefix("Project [")[:-1].split(", ")]
    if any(match is None for match in picked):
        return None
    return [(match[1], match[2] or match[1]) for match in picked if match is not None]


def _view(session: Any, relation: Relation) -> str:
    """The text that stands for a view; empty for a registered folder, which is read as a table is."""
    plan = read_plan(session, relation.place)
    if plan is None:
        return UNREADABLE
    if plan.named is None:
        return ""
    parts = plan.named.split(".")
    names = _names(plan.optimized)
    if len(parts) != 3 or parts[0] != CATALOG or names is None or len(names) != len(relation.columns):
        return UNREADABLE
    table = ".".join(map(quote, (MAIN if folded(parts[1]) == DEFAULT else parts[1], parts[2])))
    shown = ", ".join(f"{quote(name)} AS {quote(c.name)}" for name, c in zip(names, relation.columns, strict=True))
    return f"SELECT {shown} FROM {table}"  # noqa: S608


def _names(nodes: Sequence[str]) -> list[str] | None:
    """The stored columns that a plan shows, in order; None where it does more than that."""
    if len(nodes) == 2:
        picked = _picked(nodes[0])
        return None if picked is None else [name for name, _ in picked]
    if len(nodes) != 1:
        return None
    shown = re.findall(_COLUMN, nodes[0])
    return None if "more fields" in nodes[0] else shown
