"""The long-running processes. Each room has a module with `run(settings) -> int` that returns an exit code."""

from collections.abc import Callable
from importlib import import_module
from typing import Annotated

import typer

from recovery.commands.common import PROCESSES, settings_of

ROOMS = {
    "watch": ("streams.watch.process", "Read job output and node logs; record what they show."),
    "decide": ("streams.run.decide", "Derive attempt state, incidents and Advice from the journal, exactly once."),
    "nodes": ("streams.run.nodes", "Tell each job of the faults of the nodes it runs on, exactly once."),
    "ask": ("streams.ask.process", "Ask attribution providers for causes; record their answers."),
    "relay": ("streams.run.relay", "Carry what is decided or intended to the journal; fire due timers."),
    "project": ("projections.process", "Keep the PostgreSQL tables in step with the events."),
    "gateway": ("gateway.process", "Serve the HTTP interface."),
    "sac": ("sac.process", "Look at Slurm; have it do what current Advice says (observes unless told to act)."),
    "watchdog": ("sac.watchdog", "Release held jobs when everything else is down (observes unless told to act)."),
}

SLOTTED = ("decide", "nodes")


def register(app: typer.Typer) -> None:
    """Add a command for each process."""
    for name, (module, text) in ROOMS.items():
        start = _starter_of_slot(module) if name in SLOTTED else _starter(module)
        app.command(name, help=text, rich_help_panel=PROCESSES)(start)


def _starter(module: str) -> Callable[[typer.Context], None]:
    def start(ctx: typer.Context) -> None:
        settings = settings_of(ctx)
        raise typer.Exit(import_module(module).run(settings))

    return start


def _starter_of_slot(module: str) -> Callable[[typer.Context, int], None]:
    def start(
        ctx: typer.Context,
        slot: Annotated[int, typer.Option(min=0, help="Which worker this is; one in use is refused.")] = 0,
    ) -> None:
        settings = settings_of(ctx)
        raise typer.Exit(import_module(module).run(settings, slot))

    return start
