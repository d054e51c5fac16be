"""``tacit serve`` and ``tacit token``. The command line loads this when one of the two is called."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Annotated

import typer
from tacit.errors import Error, InterfaceError

from .service import Place
from .tokens import Token, Tokens

PolicyFile = Annotated[str, typer.Argument(help="The policy: a TOML file.", show_default=False)]
Database = Annotated[str | None, typer.Option("--db", help="The database; else [server] database of the policy.")]
Epsilon = Annotated[str | None, typer.Option(help="What the analyst may have been told in all, under this token.")]
Delta = Annotated[str | None, typer.Option(help="The same of δ.")]
Tables = Annotated[list[str] | None, typer.Option("--table", help="A private table that may be named; may repeat.")]
Days = Annotated[float | None, typer.Option(help="Days until the token expires.")]
TokenId = Annotated[str, typer.Argument(help="The token's name, as tacit token list shows it.")]

token_app = typer.Typer(
    rich_markup_mode=None, no_args_is_help=True, help="Tokens for a server: create, list, limit, revoke."
)
serve_app = typer.Typer(rich_markup_mode=None, help="Serve a database over HTTP.")


@serve_app.command()
def serve(
    policy: PolicyFile,
    db: Database = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 for any that is free.")] = 8321,
    cert: Annotated[str | None, typer.Option(help="The certificate, for HTTPS.")] = None,
    key: Annotated[str | None, typer.Option(help="Its key.")] = None,
    behind_proxy: Annotated[bool, typer.Option(help="A proxy ends HTTPS before the server.")] = False,
) -> None:
    """Hold the data; analysts hold tokens (tacit token create)."""
    with _stated_errors():
        from .listening import serve as run

        place = Place.of(policy, db)
        run(
            place,
            host=host,
            port=port,
            certificate=cert,
            key=key,
            behind_proxy=behind_proxy,
            on_start=lambda address: typer.echo(f"tacit serves {place.rules.origin} at {address}"),
        )


@token_app.command()
def create(
    policy: PolicyFile,
    analyst: Annotated[str, typer.Argument(help="Whom the ledger charges.")],
    db: Database = None,
    role: Annotated[str, typer.Option(help="analyst or curator.")] = "analyst",
    epsilon: Epsilon = None,
    delta: Delta = None,
    table: Tables = None,
    days: Days = None,
) -> None:
    """Make a token and print it, this once."""
    with _stated_errors():
        place = Place.of(policy, db)
        named = place.rules.analysts
        if role == "analyst" and named is not None and analyst not in named:
            raise InterfaceError(
                f"there is no analyst {analyst!r} under [analysts] in {place.rules.origin}\n"
                f"hint: one of {', '.join(sorted(named)) or 'none'}; or add [analysts.{analyst}] to the policy"
            )
        text, token = Tokens(place.store()).create(
            analyst,
            role=role,
            epsilon=_number(epsilon),
            delta=_number(delta),
            tables=_tables(place, db, table),
            days=days,
        )
        typer.echo(text)
        typer.echo(f"{_line(token)}\nShown this once: only its hash is kept.", err=True)


@token_app.command(name="list")
def list_tokens(policy: PolicyFile, db: Database = None) -> None:
    """Every token, its limits, and whether it is accepted."""
    with _stated_errors():
        for token in Tokens(Place.of(policy, db).store()).all():
            typer.echo(_line(token))


@token_app.command()
def limit(
    policy: PolicyFile,
    token: TokenId,
    db: Database = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    table: Tables = None,
    days: Days = None,
) -> None:
    """Set limits of a token; what is not given stays. They hold at once, for requests that are being planned too."""
    with _stated_errors():
        place = Place.of(policy, db)
        changed = Tokens(place.store()).limit(
            token, epsilon=_number(epsilon), delta=_number(delta), tables=_tables(place, db, table), days=days
        )
        typer.echo(_line(changed))


@token_app.command()
def revoke(policy: PolicyFile, token: TokenId, db: Database = None) -> None:
    """End a token: nothing more is charged or returned under it."""
    with _stated_errors():
        typer.echo(_line(Tokens(Place.of(policy, db).store()).revoke(token)))


def _line(token: Token) -> str:
    limits = [
        f"ε≤{token.cap.epsilon}" if token.cap.epsilon is not None else "",
        f"δ≤{token.cap.delta}" if token.cap.delta is not None else "",
        f"tables {', '.join(sorted(token.tables))}" if token.tables is not None else "",
        f"until {token.expires}" if token.expires is not None else "",
    ]
    state = "revoked" if token.revoked else "valid" if token.is_valid else "expired"
    return "  ".join(part for part in (token.id, token.analyst, token.role, state, *limits) if part)


def _number(text: str | None) -> Decimal | None:
    try:
        return None if text is None else Decimal(text)
    except InvalidOperation:
        raise InterfaceError(f"{text!r} is no number\nhint: --epsilon 0.5") from None


def _tables(place: Place, database: str | None, names: list[str] | None) -> list[str] | None:
    """The tables as the catalog spells them."""
    if not names:
        return None
    import tacit
    from tacit.policy_catalog import tables_meant
    from tacit.policy_section import suggestion

    with tacit.connect(place.database, policy=place.policy) as connection:
        tables = connection.catalog.tables
    found = []
    for name in names:
        meant = tables_meant(name, tables)
        if len(meant) != 1:
            raise InterfaceError(f"there is no table {name!r}\nhint: {suggestion(name, [t.name for t in tables])}")
        found += meant
    return found


class _stated_errors:
    """Errors of tacit's tree as one text on standard error, without a traceback."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Error):
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(1) from None


app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)
app.command(name="serve")(serve)
app.add_typer(token_app, name="token")


if __name__ == "__main__":
    app()
