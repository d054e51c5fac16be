"""``tacit init``: a first policy for a database, from its schema and what its owner says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import tacit
import typer
from rich.text import Text
from tacit.errors import PolicyError

from .check import findings, print_findings
from .draft import Choices, guessed_rows, guessed_units, policy_text, toml_of, toml_value
from .exits import UsageProblem, show_error
from .opened import is_url, policy_place
from .outfile import Output
from .shared_options import Format, Quiet, number
from .terminal import Notes, console, is_watched

if TYPE_CHECKING:
    from tacit.sql import SourceTable

T = TypeVar("T")
_MOST_VALUES = 1000
"""Of a public list that is written into a policy."""


def init(
    db: Annotated[
        str,
        typer.Argument(
            metavar="DB", help="DuckDB, parquet or csv file, folder of parquet files, or postgresql:// URL."
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write here (- is stdout); else NAME.toml beside DB."),
    ] = None,
    epsilon: Annotated[
        Decimal | None, typer.Option(parser=number, metavar="ε", help="All that may ever be spent; 1 unless said.")
    ] = None,
    delta: Annotated[Decimal | None, typer.Option(parser=number, metavar="δ", help="Its δ; 0 unless said.")] = None,
    spend: Annotated[
        Decimal | None, typer.Option(parser=number, metavar="ε", help="What a batch costs when nobody says.")
    ] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(metavar="[TABLE=]COLUMN", help="Whose presence is hidden; none means each row. Repeatable."),
    ] = None,
    rows: Annotated[
        list[str] | None,
        typer.Option(metavar="[TABLE=]N", help="How many rows of a unit are counted at most. Repeatable."),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLE", help="A table that everybody may see, with its code lists. Repeatable."),
    ] = None,
    range_: Annotated[
        list[str] | None, typer.Option("--range", metavar="TABLE.COLUMN=LOW:HIGH", help="A range. Repeatable.")
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLE.COLUMN=A,B,…", help="A list, or PUBLIC.COLUMN that has it. Repeatable."),
    ] = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", metavar="COLUMN=TYPE", help="The type of a csv column. Repeatable.")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where the ledger is to be; a server's database needs it.")
    ] = None,
    trust_schema: Annotated[
        bool, typer.Option("--trust-schema", help="ENUM values and CHECK ranges of the schema are public.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a policy that is there.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; take the guesses.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write a first policy from a database's schema, and check it.

    Only the schema is read, and the rows of tables that --public names. In a terminal it asks for what no option
    says; elsewhere it guesses and marks the guesses.

    \b
    Example:
      tacit init clinic.duckdb
      tacit init clinic.duckdb --unit patient_id --rows visits=4 --epsilon 3
      tacit init clinic.duckdb --public hospitals --range visits.age=0:120
    """
    say = Notes(quiet)
    place = output if output is not None else str(policy_place(db))
    with Output(place, Format.table) as out:
        if not out.is_stdout and Path(place).exists() and not force:
            if yes or not is_watched():
                raise UsageProblem(
                    f"there is a file at {place} already\nhint: -o another.toml, or --force to overwrite it"
                )
            typer.confirm(f"Overwrite {place}?", abort=True, err=True)
        types = _types(db, type_ or [])
        tables = _schema(db, types)
        choices = _chosen(tables, epsilon, delta, spend, unit or [], rows or [], public or [], ledger, trust_schema)
        if is_watched() and not yes:
            choices = _asked(tables, choices, db, asks_budget=epsilon is None, asks_units=unit is None)
        if is_url(db) and choices.ledger is None:
            choices = replace(choices, ledger=f"{policy_place(db).stem}.ledger")
        choices = _with_domains(db, tables, choices, types, range_ or [], values or [])
        text = policy_text(tables, choices, "a PostgreSQL database" if is_url(db) else Path(db).name)
        folder = Path() if out.is_stdout else Path(place).parent
        found = findings(text, Path(place).name, db, folder)
        errors = [finding for finding in found if finding.level == "error"]
        if errors:
            print_findings(errors, Path(place).name)
            raise PolicyError("the policy would not hold, and was not written\nhint: change the options named above")
        out.write(text.encode())
    if not out.is_stdout:
        say(f"{place}: written and checked against the schema", style="green")
        screen = console(error=True)
        for finding in found if not quiet else ():
            screen.print(Text(f"  to decide: {finding.message}"))
        for name in sorted(choices.guessed) if not quiet else ():
            bound = f"at most {choices.rows[name]} row{'s' * (choices.rows[name] != 1)} of each"
            screen.print(Text(f"  guessed: {name} protects {choices.units[name]}, {bound}"))
        for table in tables if not quiet else ():
            if not table.view and table.name not in choices.public and table.name not in choices.units:
                screen.print(
                    Text(f"  to decide: {table.name} protects each row; --unit COLUMN if people can have several")
                )
        if any(kind == "VARCHAR" for kind in choices.types.values()) and not quiet:
            screen.print(Text("  to decide: columns of a csv file are text until their type says otherwise"))
        say(f"Next: read it, then tacit check {place} {_shown(db)}; tacit shell {_shown(db)}")


def _shown(db: str) -> str:
    return "DB" if is_url(db) else db  # a URL can hold a password


def _types(db: str, pairs: Sequence[str]) -> dict[str, dict[str, str]]:
    """The types of a csv file: text, but for the columns that the owner has named. Only the first line is read."""
    from tacit.sql.backends.duckdb.files import untyped_columns

    untyped = None if is_url(db) else untyped_columns(Path(db))
    if untyped is None:
        if pairs:
            raise UsageProblem("--type is for csv files: other files have types of their own\nhint: leave it out")
        return {}
    table, columns = untyped
    names = {name.lower(): name for name in columns}
    types = dict.fromkeys(names.values(), "VARCHAR")
    for pair in pairs:
        column, _, kind = pair.rpartition("=")
        column = column.removeprefix(f"{table}.")
        if column.lower() not in names:
            raise UsageProblem(f"--type {pair}: {table} has no column {column!r}\nhint: one of {', '.join(types)}")
        types[names[column.lower()]] = kind
    return {table: types}


def _schema(db: str, types: dict[str, dict[str, str]]) -> tuple[SourceTable, ...]:
    from tacit.sql import open_source

    with closing(open_source(db, types)) as source:
        tables = source.schema()
    if not tables:
        raise PolicyError("the database has no tables\nhint: load the data first")
    return tables


def _chosen(
    tables: Sequence[SourceTable],
    epsilon: Decimal | None,
    delta: Decimal | None,
    spend: Decimal | None,
    units: Sequence[str],
    rows: Sequence[str],
    public: Sequence[str],
    ledger: str | None,
    trust_schema: bool,
) -> Choices:
    """What the options say, with guesses where they say nothing."""
    shown = frozenset(_table(tables, name, "--public").name for name in public)
    private = [table for table in tables if table.name not in shown]
    named, common = _by_table(private, units, "--unit")
    guessed = {} if common == "none" else guessed_units(private, common)
    if common not in (None, "none") and not guessed:
        raise UsageProblem(f"--unit {common}: no table has that column\nhint: --unit TABLE=COLUMN")
    found = {**guessed, **named}
    found = {name: unit for name, unit in found.items() if unit != "none"}
    bounds, every = _by_table(private, rows, "--rows")
    by_name = {table.name: table for table in tables}
    counts = {}
    for name, unit in found.items():
        said = bounds.get(name, every)
        counts[name] = guessed_rows(by_name[name], unit) if said is None else _whole(said)
        if said is None or (name not in bounds and by_name[name].primary_key == (unit,)):
            counts[name] = guessed_rows(by_name[name], unit)
    return Choices(
        epsilon=Decimal(1) if epsilon is None else epsilon,
        delta=Decimal(0) if delta is None else delta,
        spend=spend,
        ledger=ledger,
        trust_schema=trust_schema,
        units=found,
        rows=counts,
        guessed=frozenset() if units else frozenset(found),
        public=shown,
    )


def _asked(tables: Sequence[SourceTable], choices: Choices, db: str, *, asks_budget: bool, asks_units: bool) -> Choices:
    """Ask the owner for what no option says."""
    names = ", ".join(table.name for table in tables)
    say = Notes(False)
    say(f"{len(tables)} table{'s' * (len(tables) != 1)}: {names}. Enter takes what stands in brackets.", style="")
    public = choices.public
    if not public and len(tables) > 1:
        public = _prompt(
            "Tables that everybody may see, such as code lists", "none", lambda said: _tables(tables, said)
        )
    units, rows = dict(choices.units), dict(choices.rows)
    if asks_units:
        say(
            "Whose presence is to be hidden? Name the column that tells whose a row is; none: each row is one person's."
        )
        say("Of somebody with many rows only some are counted, and the noise must cover those.")
    for table in tables:
        if table.name in public or table.view:
            units.pop(table.name, None)
        elif asks_units:
            unit = _prompt(f"{table.name}: whose?", units.get(table.name, "none"), lambda said: _unit(table, said))  # noqa: B023
            units.pop(table.name, None)
            if unit != "none":
                units[table.name] = unit
                default = rows.get(table.name, guessed_rows(table, unit))
                rows[table.name] = _prompt(f"{table.name}: rows of each, at most", str(default), _whole)
    epsilon = choices.epsilon
    if asks_budget:
        epsilon = _prompt("All that may ever be spent, ε", f"{choices.epsilon:f}", _positive)
    return replace(choices, public=public, units=units, rows=rows, epsilon=epsilon,
                 guessed=frozenset() if asks_units else choices.guessed)  # fmt: skip


def _prompt(question: str, default: str, read: Callable[[str], T]) -> T:
    """Ask until the answer can be read: a slip of the fingers costs one line, not the whole conversation."""
    while True:
        said = str(typer.prompt(question, default=default, err=True)).strip()
        try:
            return read(said)
        except UsageProblem as problem:
            show_error(str(problem))


def _tables(tables: Sequence[SourceTable], said: str) -> frozenset[str]:
    return frozenset(_table(tables, name.strip(), "public").name for name in said.split(",") if name.strip() != "none")


def _unit(table: SourceTable, said: str) -> str:
    """A column of the table, a path that leads on from one, or none."""
    from tacit.policy_section import suggestion

    names = {column.name.lower(): column.name for column in table.columns}
    if said == "none" or "->" in said:
        return said
    if said.lower() not in names:
        raise UsageProblem(f"{table.name} has no column {said!r}\nhint: {suggestion(said, names.values())}")
    return names[said.lower()]


def _positive(said: str) -> Decimal:
    try:
        amount = Decimal(said)
    except InvalidOperation:
        amount = Decimal(0)
    if not (amount.is_finite() and amount > 0):
        raise UsageProblem(f"{said!r} is not a number above 0\nhint: 1 protects well, 10 hardly")
    return amount


def _with_domains(
    db: str,
    tables: Sequence[SourceTable],
    choices: Choices,
    types: dict[str, dict[str, str]],
    ranges: Sequence[str],
    values: Sequence[str],
) -> Choices:
    """Ranges and lists that were given, and the lists of public tables under columns of the same name."""
    found_ranges: dict[tuple[str, str], tuple[str, str]] = {}
    for text in ranges:
        place, said = _column(tables, text, "--range")
        low, colon, high = said.partition(":")
        if not colon:
            raise UsageProblem(f"--range {text}: two ends are needed\nhint: --range visits.age=0:120")
        found_ranges[place] = toml_value(low.strip()), toml_value(high.strip())
    lists: dict[tuple[str, str], tuple[str, ...]] = {}
    origins: dict[tuple[str, str], str] = {}
    wanted: dict[tuple[str, str], tuple[str, str]] = {}
    for text in values:
        place, said = _column(tables, text, "--values")
        table, _, column = said.rpartition(".")
        if table.lower() in {name.lower() for name in choices.public}:
            wanted[place] = _column(tables, f"{table}.{column}=", "--values")[0]
        else:
            lists[place] = tuple(toml_value(value.strip()) for value in said.split(","))
    wanted |= _code_lists(tables, choices, {*lists, *wanted, *found_ranges})
    for place, source in wanted.items():
        listed = _public_values(db, types, source)
        if listed is not None:
            lists[place], origins[place] = listed, ".".join(source)
    declared = {(table, column): kind for table, columns in types.items() for column, kind in columns.items()}
    return replace(choices, ranges=found_ranges, values=lists, origins=origins, types=declared)


def _code_lists(
    tables: Sequence[SourceTable], choices: Choices, said: set[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, str]]:
    """The public column for each private one that has its name and its type."""
    public = {(c.name.lower(), c.type): (t.name, c.name) for t in tables if t.name in choices.public for c in t.columns}
    return {
        (t.name, c.name): public[c.name.lower(), c.type]
        for t in tables
        if t.name not in choices.public and not t.view
        for c in t.columns
        if (c.name.lower(), c.type) in public and (t.name, c.name) not in said and choices.units.get(t.name) != c.name
    }


def _public_values(db: str, types: dict[str, dict[str, str]], source: tuple[str, str]) -> tuple[str, ...] | None:
    """The values of a public column, read through tacit's own door: it refuses what the policy does not call public."""
    table, column = source
    policy: dict[str, Any] = {"tables": {table: {"public": True}}}
    for name, columns in types.items():
        policy["tables"].setdefault(name, {})["columns"] = {c: {"type": kind} for c, kind in columns.items()}
    quoted = '"' + column.replace('"', '""') + '"'
    # A ledger of its own, which is never made: one that is there may be bound to another policy.
    with tempfile.TemporaryDirectory() as folder, tacit.connect(db, policy=policy, ledger=Path(folder) / "none") as con:
        rows = con.answer(f"SELECT DISTINCT {quoted} FROM {table} WHERE {quoted} IS NOT NULL ORDER BY 1")[0].rows()  # noqa: S608
    if not 0 < len(rows) <= _MOST_VALUES:
        return None
    return tuple(toml_of(value) for (value,) in rows)


def _table(tables: Sequence[SourceTable], name: str, option: str) -> SourceTable:
    from tacit.policy_section import suggestion

    for table in tables:
        if table.name.lower() == name.lower():
            return table
    raise UsageProblem(f"{option} {name}: there is no such table\nhint: {suggestion(name, [t.name for t in tables])}")


def _column(tables: Sequence[SourceTable], text: str, option: str) -> tuple[tuple[str, str], str]:
    """(table, column) and what is said of it, from ``table.column=…``."""
    path, equals, said = text.partition("=")
    table_name, _, name = path.rpartition(".")
    if not equals or not table_name:
        raise UsageProblem(f"{option} {text}: a column is TABLE.COLUMN\nhint: {option} visits.age=…")
    table = _table(tables, table_name, option)
    for column in table.columns:
        if column.name.lower() == name.lower():
            return (table.name, column.name), said
    names = ", ".join(column.name for column in table.columns)
    raise UsageProblem(f"{option} {text}: {table.name} has no column {name!r}\nhint: one of {names}")


def _by_table(tables: Sequence[SourceTable], pairs: Sequence[str], option: str) -> tuple[dict[str, str], str | None]:
    """What was said of tables by name, and what was said of all."""
    named: dict[str, str] = {}
    common = None
    for pair in pairs:
        table, equals, value = pair.partition("=")
        if equals:
            named[_table(tables, table, option).name] = value.strip()
        else:
            common = pair
    return named, common


def _whole(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise UsageProblem(f"{text!r} is not a whole number of rows\nhint: at least 1, such as 4")
    return count
