"""``tacit budget`` and ``tacit ledger``: what was spent, and the curator's tools for the books."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tacit
import typer
from tacit.errors import LedgerError

from .exits import UsageProblem
from .formats import frame_bytes
from .opened import connected, database_named, is_url, policy_for
from .outfile import Output
from .shared_options import Analyst, Db, Format, OutputFormat, PolicyFile, Quiet, number
from .tables import new_table
from .terminal import Notes, console

if TYPE_CHECKING:
    from tacit import Account, Budget

Books = Annotated[
    str | None,
    typer.Argument(metavar="[LEDGER]", help="The ledger, or the database that it lies beside; else that of --db."),
]

_SQLITE = b"SQLite format 3"
"""What a ledger's file begins with, whatever it is called."""

ledger = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="The books: show, verify, raise the cap, back up.",
    epilog="Example: tacit ledger show clinic.duckdb",
)


def budget(
    db: Db = None,
    policy: PolicyFile = None,
    analyst: Analyst = None,
    realised: Annotated[
        bool, typer.Option("--realised", help="Also the ε that all charges really come to (seconds).")
    ] = False,
    how: OutputFormat = Format.table,
    quiet: Quiet = False,
) -> None:
    """Show what may be spent, what was, and what is left.

    \b
    Example:
      tacit budget --db clinic.duckdb
    """
    with connected(db, policy, analyst, Notes(quiet)) as con:
        now = con.budget
        lines = [_line("everyone", now), *(_line(name, account) for name, account in now.analysts.items())]
        if realised:
            lines.append({"who": "really spent", "epsilon_spent": f"{now.realised:.4g}"})
    write_rows(lines, how, budget_table(now) if not realised else budget_table(now, now.realised))


def budget_table(now: Budget, realised: float | None = None) -> Any:
    """The budget for people."""
    table = new_table(["", "ε spent", "of", "left", "δ spent", "of", "left"], left=1)
    for name, account in {"everyone": now, **now.analysts}.items():
        spent, cap, left = account.spent, account.cap, account.left
        table.add_row(
            name,
            *(f"{amount.epsilon:f}" for amount in (spent, cap, left)),
            *(f"{float(amount.delta):g}" for amount in (spent, cap, left)),
        )
    if realised is not None:
        table.add_row("really", f"{realised:.4g}", *[""] * 5)
    return table


def _line(who: str, account: Account) -> dict[str, Any]:
    amounts = {"spent": account.spent, "cap": account.cap, "left": account.left}
    return {
        "who": who,
        **{f"epsilon_{name}": f"{amount.epsilon:f}" for name, amount in amounts.items()},
        **{f"delta_{name}": f"{float(amount.delta):g}" for name, amount in amounts.items()},
    }


def write_rows(lines: Sequence[dict[str, Any]], how: Format, table: Any) -> None:
    """Some lines of facts on stdout."""
    if how is Format.table:
        console().print(table)
        return
    import pandas as pd

    with Output(None, how) as out:
        out.write(frame_bytes(pd.DataFrame(list(lines)), how))


@ledger.command()
def show(
    books: Books = None,
    db: Db = None,
    policy: PolicyFile = None,
    how: OutputFormat = Format.table,
    quiet: Quiet = False,
) -> None:
    """Every entry: what was charged, released, read by whom, declared.

    No data, and no answers.

    \b
    Example:
      tacit ledger show clinic.duckdb
    """
    log = tacit.ledger.log(_ledger(books, db, policy, Notes(quiet)))
    if how is not Format.table:
        with Output(None, how) as out:
            out.write(frame_bytes(log, how))
        return
    table = new_table(["", "at", "what", "analyst", "ε", "δ", "of entry"], left=4)
    rows: Any = log.itertuples(index=False)
    for row in rows:
        refers = str(row.refers).replace("<NA>", "")
        amount = row.epsilon or row.delta
        table.add_row(
            str(row.id),
            str(row.at)[:19].replace("T", " "),
            row.kind,
            row.analyst or "",
            f"{row.epsilon:f}" if amount else "",
            f"{float(row.delta):g}" if row.delta else "",
            refers,
        )
    console().print(table)


@ledger.command()
def verify(books: Books = None, db: Db = None, policy: PolicyFile = None, quiet: Quiet = False) -> None:
    """Check that the ledger is sound.

    Its schema, its pages, its chain of digests and its releases.

    \b
    Example:
      tacit ledger verify clinic.duckdb
    """
    say = Notes(quiet)
    path = _ledger(books, db, policy, say)
    entries = tacit.ledger.verify(path)
    say(f"{path}: sound, {entries:,} {'entry' if entries == 1 else 'entries'}", style="green")


@ledger.command("raise")
def raise_(
    books: Books = None,
    epsilon: Annotated[
        Decimal | None,
        typer.Option(parser=number, metavar="ε", help="The new cap of everything; as it is unless said."),
    ] = None,
    delta: Annotated[
        Decimal | None, typer.Option(parser=number, metavar="δ", help="Its δ; as it is unless said.")
    ] = None,
    db: Db = None,
    policy: PolicyFile = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    quiet: Quiet = False,
) -> None:
    """Raise the cap for everyone, on record. It is never lowered.

    The policy's own [budget] still binds whoever connects with it: raise it there as well.

    \b
    Example:
      tacit ledger raise clinic.duckdb --epsilon 5
    """
    from tacit.budget import show as shown
    from tacit.engine import Amount, Ledger

    if epsilon is None and delta is None:
        raise UsageProblem("the new cap is missing\nhint: --epsilon ε, --delta δ, or both")
    path = _ledger(books, db, policy, Notes(quiet))
    now = Ledger.open(path).cap
    new = Amount(now.epsilon if epsilon is None else epsilon, now.delta if delta is None else delta)
    if not yes:
        confirm(f"Raise the cap of {path} from {shown(now)} to {shown(new)}, for good?")
    cap = tacit.ledger.raise_cap(path, new.epsilon, new.delta)
    Notes(quiet)(f"the cap is now ε={cap.epsilon:f}, δ={float(cap.delta):g}; write it into the policy's [budget] too")


@ledger.command()
def backup(
    to: Annotated[Path, typer.Argument(metavar="TO", help="The copy; never overwritten.")],
    books: Books = None,
    db: Db = None,
    policy: PolicyFile = None,
    quiet: Quiet = False,
) -> None:
    """Copy the ledger, soundly, while others may be spending.

    The copy is for reading and for disasters: spending from it beside the original would spend the budget twice.

    \b
    Example:
      tacit ledger backup /safe/clinic.ledger clinic.duckdb
    """
    say = Notes(quiet)
    path = _ledger(books, db, policy, say)
    if to.exists():
        raise LedgerError(f"there is a file at {to} already\nhint: name a new one")
    tacit.ledger.backup(path, to)
    say(f"{path} copied to {to}", style="green")


@ledger.command("policy")
def change_policy(
    file: Annotated[Path, typer.Argument(metavar="POLICY", help="The policy that holds from now on.")],
    books: Books = None,
    db: Db = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    quiet: Quiet = False,
) -> None:
    """Bind the ledger to another policy from now on, on record.

    \b
    Example:
      tacit ledger policy clinic.toml clinic.duckdb
    """
    path = _ledger(books, db, str(file), Notes(quiet))
    if not yes:
        confirm(f"Bind {path} to {file} from now on? Whoever connects with the old policy is refused.")
    tacit.ledger.change_policy(path, file)
    Notes(quiet)(f"{path} is bound to {file}", style="green")


def confirm(question: str) -> None:
    """Ask before something that cannot be undone; where nobody can be asked, refuse."""
    from .terminal import is_watched

    if not is_watched():
        raise UsageProblem(f"nobody can be asked here: {question[:1].lower()}{question[1:]}\nhint: say --yes")
    typer.confirm(question, abort=True, err=True)


def _ledger(books: str | None, db: str | None, policy: str | None, say: Notes) -> Path:
    """The file of the ledger: the one that was named, or the one of a database."""
    named = books or db
    if books is not None and not is_url(books) and (_is_ledger(Path(books)) or books.endswith(".ledger")):
        return _existing(Path(books))
    from tacit.connecting import ledger_path

    database = database_named(named)
    return _existing(ledger_path(database, policy_for(database, policy, say)))


def _is_ledger(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _existing(path: Path) -> Path:
    if not path.exists():
        raise LedgerError(
            f"there is no ledger at {str(path)!r}\n"
            "hint: it is made when the first answer is paid for; nothing was spent yet"
        )
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
