"""What all commands share: reading the settings, saying what is wrong, and help in sections."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from recovery.settings import Settings
    from schemas.codec import Codec

EXIT_USAGE = 2

STACK = "The whole thing on this machine"
PROCESSES = "Processes, each to be run by a supervisor (or all by `recovery up`)"
TOOLS = "Tools"


class Sections(TyperGroup):
    """Help that lists commands under headings, without loading a terminal library to do so."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each heading once, in the order in which its first command was added."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None) or "Commands"
                sections.setdefault(panel, []).append((name, command.get_short_help_str(limit=100)))
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


def fail(text: str) -> NoReturn:
    """Print `error: …` and end with the exit code for what only the operator can correct."""
    typer.echo(f"error: {text}", err=True)
    raise typer.Exit(EXIT_USAGE)


def settings_of(ctx: typer.Context) -> "Settings":
    """Return the settings for this command line; ends the command when they are wrong."""
    from recovery.settings import SettingsError, load_settings

    config: Path | None = ctx.find_root().obj
    try:
        return load_settings(config)
    except SettingsError as error:
        fail(str(error))


def codec_of(ctx: typer.Context) -> "tuple[Settings, Codec]":
    """Return the settings and the codec for a command that reads or writes events; ends the command without one."""
    settings = settings_of(ctx)
    from schemas.codec import Codec
    from schemas.registry import RegistryError, RegistryIds

    try:
        return settings, Codec(RegistryIds(settings.registry.url))
    except RegistryError as error:
        fail(str(error))
