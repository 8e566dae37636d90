"""`recovery job`."""

from typing import TYPE_CHECKING, Annotated

import typer

from recovery.commands.common import TOOLS, Sections, codec_of, fail

if TYPE_CHECKING:
    from schemas.vocabulary import CommandKind

Target = Annotated[str, typer.Argument(metavar="JOB[/ATTEMPT]", help="123, 123_4, or 123/1; default: the latest.")]
Reason = Annotated[str, typer.Option(help="Why; it is recorded.")]
By = Annotated[str, typer.Option(help="Who asks; default: your user name.")]
Cluster = Annotated[str, typer.Option(help="Whose job; default: slurm.cluster of the settings.")]


def register(app: typer.Typer) -> None:
    """Add the group `job`."""
    text = "Ask for something to be done to one attempt: mode, environment and partition count, retry limits do not."
    group = typer.Typer(cls=Sections, no_args_is_help=True, rich_markup_mode=None, help=text)
    group.command("restart")(restart)
    group.command("terminate")(terminate)
    group.command("release")(release)
    app.add_typer(group, name="job", rich_help_panel=TOOLS)


def restart(ctx: typer.Context, job: Target, reason: Reason, by: By = "", cluster: Cluster = "") -> None:
    """Ask that the attempt is requeued, and its successor started."""
    from schemas.vocabulary import CommandKind

    _give(ctx, CommandKind.RESTART, job, reason, by, cluster)


def terminate(ctx: typer.Context, job: Target, reason: Reason, by: By = "", cluster: Cluster = "") -> None:
    """Ask that the attempt is cancelled, and not restarted."""
    from schemas.vocabulary import CommandKind

    _give(ctx, CommandKind.TERMINATE, job, reason, by, cluster)


def release(ctx: typer.Context, job: Target, reason: Reason, by: By = "", cluster: Cluster = "") -> None:
    """Ask that the attempt, held by us, is released."""
    from schemas.vocabulary import CommandKind

    _give(ctx, CommandKind.RELEASE, job, reason, by, cluster)


def _give(ctx: typer.Context, kind: "CommandKind", job: str, reason: str, by: str, cluster: str) -> None:
    from getpass import getuser

    from recovery.job_commands import CommandError, command, find, parse_target
    from recovery.writing import WriteError
    from streams.kafka import KafkaUnavailable

    if not reason.strip():
        fail("--reason is empty; say why: it is recorded, and whoever reads the job's story sees it")
    settings, codec = codec_of(ctx)
    bootstrap = settings.kafka.bootstrap
    try:
        key, index = parse_target(job, cluster or settings.slurm.cluster)
        attempt = find(bootstrap, codec, key, index)
        fact = command(bootstrap, codec, attempt, kind, by or getuser(), reason)
    except (CommandError, WriteError, KafkaUnavailable) as error:
        fail(str(error))
    typer.echo(f"{fact.by} asked to {fact.kind} attempt {attempt.index} of job {key} ({fact.event_id}): {fact.reason}")
