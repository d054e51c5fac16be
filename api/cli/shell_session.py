"""What the shell does with an entry: a dot command, or a batch that is explained, agreed on and answered."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from rich.text import Text

from .batch_commands import cost_line, plan_text, write_answers
from .books import budget_table
from .exits import UsageProblem
from .opened import read_sql
from .outfile import Output
from .shared_options import Format
from .statements import is_empty
from .tables import cell, new_table
from .terminal import Notes, console, shortened

if TYPE_CHECKING:
    from tacit import Connection, Plan
    from tacit.sql import Column

HELP = {
    ".help": "this list",
    ".tables": "the tables, and whose presence each protects",
    ".schema [TABLE]": "columns, types, and what is declared of them",
    ".explain [SQL]": "what a batch would cost and be worth, in full; the last one without SQL",
    ".epsilon [ε|ask]": "spend this on each entry without asking; ask: ask again",
    ".delta [δ]": "the δ of each entry",
    ".batch": "collect statements from here on; .go asks them as one batch, .drop forgets them",
    ".read FILE": "ask the statements of a file as one batch",
    ".discover COLUMN": "buy the values or the range of a column that nobody declared",
    ".budget": "what was spent and what is left",
    ".format [F]": "table, csv, json or markdown",
    ".quit": "end",
}
COMMANDS = [name.partition(" ")[0] for name in HELP] + [".go", ".drop", ".exit"]
_SMALL = Decimal("0.1")
"""The ε that is shown first where nobody has named one."""


class Session:
    """One sitting at the shell."""

    def __init__(
        self,
        con: Connection,
        *,
        how: Format,
        say: Notes,
        epsilon: Decimal | None,
        delta: Decimal,
        agreed: bool,
        ask: Callable[[str], str] | None,
    ) -> None:
        """``agreed`` says that a price needs no question; ``ask`` is None where nobody can be asked."""
        self._con = con
        self._how = how
        self._say = say
        self._epsilon = epsilon
        self._delta = delta
        self._agreed = agreed
        self._ask = ask
        self._last = ""
        self._collected: list[str] | None = None

    def run(self, entry: str) -> bool:
        """Do what an entry says; False when it ends the shell."""
        if not entry.startswith("."):
            self._sql(entry)
            return True
        name, _, rest = entry.partition(" ")
        return self._command(name.lower(), rest.strip().rstrip(";").strip() if name != ".explain" else rest.strip())

    def end(self) -> None:
        """What is left to say when the input ends."""
        if self._collected:
            self._say(f"{len(self._collected)} collected statements were not asked: .go asks them", style="yellow")

    def _command(self, name: str, rest: str) -> bool:
        match name:
            case ".quit" | ".exit":
                return False
            case ".help":
                table = new_table(["", ""], left=2)
                table.show_header = False
                for command, text in HELP.items():
                    table.add_row(Text(command, style="bold"), text)
                console().print(table)
            case ".tables":
                self._tables()
            case ".schema":
                self._schema(rest)
            case ".budget":
                console().print(budget_table(self._con.budget))
            case ".epsilon":
                self._set_epsilon(rest)
            case ".delta":
                self._delta = _number(rest, ".delta 1e-9") if rest else self._delta
                self._say(f"δ={self._delta}")
            case ".format":
                self._set_format(rest)
            case ".explain":
                self._explain(rest or self._last)
            case ".batch":
                self._collected = []
                self._say("collecting; .go asks all of it as one batch")
            case ".go":
                batch, self._collected = "\n".join(self._collected or []), None
                self._sql(batch)
            case ".drop":
                self._collected = None
            case ".read":
                self._sql(read_sql(rest))
            case ".discover":
                self._discover(rest)
            case _:
                raise UsageProblem(f"there is no command {name}\nhint: .help lists them")
        return True

    def _sql(self, batch: str) -> None:
        if is_empty(batch):
            return
        if self._collected is not None:
            self._collected.append(batch if batch.rstrip().endswith(";") else f"{batch};")
            return
        self._last = batch
        price = self._price()
        plan = self._con.explain(batch, epsilon=price, delta=self._delta)
        while any(plan.cost) and not self._agreed:
            self._show_price(plan)
            if self._ask is None:
                raise UsageProblem(
                    "nobody can be asked here whether to pay\nhint: .epsilon 0.1 before it, --epsilon 0.1 or --yes"
                )
            reply = self._ask(f"Spend ε={plan.cost.epsilon:f}? [y/N, or another ε] ").lower()
            if reply in ("y", "yes"):
                break
            if reply in ("", "n", "no"):
                self._say("nothing was spent")
                return
            price = _number(reply, "y, n, or a number such as 0.2")
            plan = self._con.explain(batch, epsilon=price, delta=self._delta)
        answers = self._con.answer(batch, epsilon=price, delta=self._delta)
        with Output(None, self._how) as out:
            write_answers(answers, self._how, out, self._say)
        self._say(cost_line(self._con, answers))

    def _price(self) -> Decimal:
        """The ε that is asked for: the one that was set, the policy's, or a small one to look at."""
        if self._epsilon is not None:
            return self._epsilon
        return self._con.spend if self._con.spend is not None else _SMALL

    def _show_price(self, plan: Plan) -> None:
        text = plan_text(plan).split("\n\n")[0]
        console(error=True).print(Text(text), soft_wrap=True)

    def _explain(self, batch: str) -> None:
        if is_empty(batch):
            raise UsageProblem("there is nothing to explain yet\nhint: .explain SELECT count(*) FROM …;")
        self._last = batch
        plan = self._con.explain(batch, epsilon=self._price(), delta=self._delta)
        console().print(Text(plan_text(plan, everything=True)), soft_wrap=True)

    def _set_epsilon(self, rest: str) -> None:
        if rest == "ask":
            self._epsilon, self._agreed = None, False
        elif rest:
            value = _number(rest, ".epsilon 0.1")
            if not value > 0:
                raise UsageProblem("an ε is a positive number\nhint: .epsilon 0.1")
            self._epsilon, self._agreed = value, True
        state = "spent without asking" if self._agreed else "asked about before it is spent"
        self._say(f"ε={self._price():f} an entry, {state}")

    def _set_format(self, rest: str) -> None:
        if rest:
            if rest not in set(Format) - {Format.parquet}:
                raise UsageProblem(f"there is no format {rest!r} here\nhint: table, csv, json or markdown")
            self._how = Format(rest)
        self._say(f"format {self._how}")

    def _discover(self, column: str) -> None:
        price = self._price()
        if not self._agreed:
            if self._ask is None:
                raise UsageProblem("nobody can be asked here whether to pay\nhint: .epsilon 0.1 before it")
            if self._ask(f"Spend ε={price:f}, δ={self._delta} on {column}? [y/N] ").lower() not in ("y", "yes"):
                self._say("nothing was spent")
                return
        found = self._con.discover(column, epsilon=price, delta=self._delta or None)
        console().print(Text(str(found)), soft_wrap=True)

    def _tables(self) -> None:
        table = new_table(["table", "columns", "protects"], left=3)
        for entry in self._con.catalog.tables:
            if entry.public:
                protects = "nothing: public"
            elif entry.view:
                protects = "a view"
            elif entry.privacy_unit is None:
                protects = "each row"
            else:
                bound = entry.max_rows_per_unit
                protects = f"{entry.privacy_unit}, at most {bound} row{'s' * (bound != 1)} of each"
            table.add_row(Text(entry.name, style="bold"), str(len(entry.columns)), protects)
        console().print(table)

    def _schema(self, name: str) -> None:
        tables = (
            self._con.catalog.tables if not name else [t for t in (self._con.catalog.table(name),) if t is not None]
        )
        if not tables:
            raise UsageProblem(f"there is no table {name!r}\nhint: .tables lists them")
        for entry in tables:
            table = new_table([entry.name, "type", "declared"], left=3)
            for column in entry.columns:
                table.add_row(column.name, shortened(column.type, 24), shortened(declared(column), 44))
            console().print(table)


def declared(column: Column) -> str:
    """What is declared of a column, in words."""
    domain = column.domain
    values = getattr(domain, "values", None)
    if values is not None:
        other = getattr(domain, "other", None)
        return ", ".join(map(cell, values)) + (f", {other}" if other else "")
    if domain is not None:
        return f"{cell(getattr(domain, 'min', None))} to {cell(getattr(domain, 'max', None))}"
    return ""


def _number(text: str, example: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise UsageProblem(f"{text!r} is not a number\nhint: {example}") from None
