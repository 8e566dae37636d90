"""`recovery topics`."""

import typer

from recovery.commands.common import TOOLS, Sections, fail, settings_of


def register(app: typer.Typer) -> None:
    """Add the group `topics`."""
    group = typer.Typer(
        cls=Sections, no_args_is_help=True, rich_markup_mode=None, help="Kafka topics of the catalogue."
    )
    group.command("create")(create)
    group.command("check")(check)
    app.add_typer(group, name="topics", rich_help_panel=TOOLS)


def create(ctx: typer.Context) -> None:
    """Create the topics that are missing; refuse those that differ from the catalogue."""
    from recovery.topics import TopicsError, create_topics

    try:
        created = create_topics(settings_of(ctx).kafka.bootstrap)
    except TopicsError as error:
        fail(str(error))
    typer.echo(f"created {', '.join(created)}" if created else "all topics are there")


def check(ctx: typer.Context) -> None:
    """Say whether the topics are as the catalogue has them."""
    from recovery.topics import TopicsError, check_topics

    try:
        check_topics(settings_of(ctx).kafka.bootstrap)
    except TopicsError as error:
        fail(str(error))
    typer.echo("all topics are as the catalogue has them")
