"""`recovery projections`."""

from typing import Annotated

import typer

from recovery.commands.common import TOOLS, Sections, fail, settings_of


def register(app: typer.Typer) -> None:
    """Add the group `projections`."""
    group = typer.Typer(cls=Sections, no_args_is_help=True, rich_markup_mode=None, help="PostgreSQL tables.")
    group.callback()(_tables)
    group.command("rebuild")(rebuild)
    app.add_typer(group, name="projections", rich_help_panel=TOOLS)


def _tables() -> None:
    """The tables that `recovery project` keeps in step with the events."""


def rebuild(
    ctx: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Empty the tables and have them made anew from Kafka, by the projectors that run (or are started next)."""
    from sqlalchemy.exc import OperationalError

    from projections.rebuild import rebuild as empty

    url = settings_of(ctx).postgres.url
    if not yes:
        typer.confirm("Until the projectors have caught up the API shows a part of history only. Go on?", abort=True)
    try:
        empty(url)
    except OperationalError as error:
        fail(f"PostgreSQL does not answer ({error.orig}); is it up?")
    typer.echo("the tables are empty; `recovery project` fills them from the beginning")
