"""`recovery up`, `down` and `status`: the whole thing on this machine."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from recovery.commands.common import STACK, fail, settings_of

if TYPE_CHECKING:
    from infra.local.parts import Report

EXIT_NOT_WELL = 1


def register(app: typer.Typer) -> None:
    """Add the commands for a whole machine."""
    for command in (up, down, status):
        app.command(rich_help_panel=STACK)(command)


def up(ctx: typer.Context) -> None:
    """Start Kafka, the registry, PostgreSQL, Slurm and every process of ours; wait until all are ready."""
    settings_of(ctx)  # wrong settings are told before anything is loaded or started
    from recovery.bring_up import BringUpError, bring_up

    try:
        settings = bring_up(ctx.find_root().obj, _progress())
    except BringUpError as error:
        fail(f"{error}\nwhat started is left running: see `recovery status`; `recovery down` ends it")
    from recovery.overview import look
    from recovery.status_view import show

    show(look(settings.data))


def down(ctx: typer.Context) -> None:
    """End every process of ours and the stack. Data stays, for the next `recovery up`."""
    settings = settings_of(ctx)
    from recovery.bring_up import BringUpError, bring_down

    try:
        bring_down(settings.data, _progress())
    except BringUpError as error:
        fail(str(error))


def status(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")] = False,
) -> None:
    """Show what runs: pid, restarts, health, lag, addresses. Exits 1 unless everything is well."""
    settings = settings_of(ctx)
    from recovery.overview import look
    from recovery.status_view import as_document, show

    seen = look(settings.data)
    if as_json:
        typer.echo(as_document(seen))
    else:
        show(seen)
    if not seen.well:
        raise typer.Exit(EXIT_NOT_WELL)


def _progress() -> "Report":
    """Return what prints each sentence of progress with the seconds since now."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    began = time.monotonic()

    def report(sentence: str) -> None:
        console.print(Text.assemble((f"{time.monotonic() - began:6.1f} s  ", "dim"), sentence))

    return report
