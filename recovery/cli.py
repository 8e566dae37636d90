"""The command `recovery`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from recovery.commands import (
    demo,
    diagnose,
    doctor,
    formats,
    job,
    parked,
    policy,
    processes,
    projections,
    replay,
    schemas,
    settings,
    signatures,
    stack,
    topics,
)
from recovery.commands.common import Sections

app = typer.Typer(
    name="recovery",
    cls=Sections,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


@app.callback(epilog="`recovery settings` explains every setting; each can be set as RECOVERY_<SECTION>__<KEY>.")
def front_door(
    ctx: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(help="Settings file (TOML). Default: RECOVERY_CONFIG, else recovery.toml here, if there is one."),
    ] = None,
) -> None:
    """Keep AI training jobs alive on Slurm: notice that an attempt failed, decide, act, and be able to prove why."""
    ctx.obj = config


stack.register(app)
demo.register(app)
processes.register(app)
parked.register(app)
job.register(app)
diagnose.register(app)
signatures.register(app)
formats.register(app)
doctor.register(app)
policy.register(app)
topics.register(app)
projections.register(app)
replay.register(app)
schemas.register(app)
settings.register(app)


def main() -> None:
    """Run the command line of this process."""
    app(prog_name="recovery", args=sys.argv[1:])
