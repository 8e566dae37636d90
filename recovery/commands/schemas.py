"""`recovery schemas`."""

import typer

from recovery.commands.common import TOOLS, Sections, fail, settings_of


def register(app: typer.Typer) -> None:
    """Add the group `schemas`."""
    group = typer.Typer(cls=Sections, no_args_is_help=True, rich_markup_mode=None, help="The events and their schemas.")
    group.command("list")(list_schemas)
    group.command("show")(show)
    group.command("register")(register_all)
    app.add_typer(group, name="schemas", rich_help_panel=TOOLS)


def list_schemas() -> None:
    """List each event with its topic and its newest schema version."""
    from schemas.catalogue import committed
    from schemas.topics import CATALOGUE, event_types

    for topic in CATALOGUE:
        for event in event_types(topic):
            newest = committed()[event.__name__][-1]
            typer.echo(f"{topic.name:20} {event.__name__:20} {newest.number:3}  {newest.fingerprint[:12]}")


def show(event: str) -> None:
    """Print the newest schema of an event, with what each field means."""
    from schemas.catalogue import committed

    history = committed().get(event)
    if history is None:
        fail(f"there is no event {event!r}; `recovery schemas list` names all")
    typer.echo(history[-1].text, nl=False)


def register_all(ctx: typer.Context) -> None:
    """Register every committed schema, and have the registry refuse what old or new readers could not read."""
    from schemas.registry import RegistryError, RegistryIds, require_compatibility

    url = settings_of(ctx).registry.url
    try:
        require_compatibility(url)
        RegistryIds(url)
    except RegistryError as error:
        fail(str(error))
    typer.echo(f"all schemas are registered at {url}")
