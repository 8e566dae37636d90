"""`recovery demo`: see the whole idea work on this machine."""

import os
from typing import Annotated

import typer

from recovery.commands.common import STACK, fail, settings_of


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel=STACK)(demo)


def demo(
    ctx: typer.Context,
    scenario: Annotated[
        str,
        typer.Argument(help="restart, observe, user-error, oom, no-progress, hang, straggler or node-down."),
    ] = "restart",
    keep: Annotated[bool, typer.Option("--keep", help="Leave everything running, and print the addresses.")] = False,
) -> None:
    """Recover a failing training job on a real local stack, show what happened, and check it.

    Starts Kafka, a schema registry, PostgreSQL, a Slurm cluster of four virtual nodes and every process of ours, and
    ends them again. Exits 0 only if every check holds, by Slurm's own accounting and the API.
    """
    settings_of(ctx)
    from rich.console import Console

    from recovery.demo.run import Demo
    from recovery.demo.scenario import SCENARIOS
    from recovery.status_view import WIDTH_OF_FILES

    chosen = SCENARIOS.get(scenario)
    if chosen is None:
        fail(f"there is no scenario {scenario!r}; there are: {', '.join(SCENARIOS)}")
    kept = keep or bool(os.environ.get("KEEP"))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH_OF_FILES
    raise typer.Exit(Demo(console, chosen, ctx.find_root().obj, kept).run())
