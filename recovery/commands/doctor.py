"""`recovery doctor`: why does watch not see what it should?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recovery.commands.common import TOOLS, Sections, fail, settings_of

if TYPE_CHECKING:
    from recovery.settings import Settings
    from schemas.bookkeeping import SourceRead
    from schemas.decisions import AttemptView, JobView
    from streams.watch.checkup import Check

EXIT_FOUND = 1


def register(app: typer.Typer) -> None:
    """Add the group `doctor`."""
    group = typer.Typer(
        cls=Sections, no_args_is_help=True, rich_markup_mode=None, help="Find out why something is not seen."
    )
    group.callback()(_group)
    group.command("logs")(logs)
    app.add_typer(group, name="doctor", rich_help_panel=TOOLS)


def _group() -> None:
    """Find out why something is not seen."""


def logs(
    ctx: typer.Context,
    job: Annotated[str, typer.Option(help="The job: 123, 123_4, 200+1, or Slurm's raw id.")],
    attempt: Annotated[int | None, typer.Option(min=0, help="Which attempt; none: the last one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Follow the path of a job's output step by step, from its file to a line that watch knows.

    Looks from here with this user's rights and changes nothing: run it where, and as whom, `recovery watch` runs.
    Exit 1 where a step fails.
    """
    from schemas.identity import JOB_ID

    settings = settings_of(ctx)
    if not JOB_ID.fullmatch(job):
        fail(f"{job!r} is no Slurm job id: expected 123, 123_4 (array), 200+1 (heterogeneous) or the raw id")
    view, positions = _known(settings, job)
    shown = _attempt(view, attempt)
    checks = _checks(settings, view, shown, positions)
    told = sorted(kind for kind, attempt_key in _blind(positions) if attempt_key == shown.attempt.key)
    _print(view, shown, checks, told, as_json=as_json)
    if any(check.state == "bad" for check in checks):
        raise typer.Exit(EXIT_FOUND)


def _known(settings: Settings, job: str) -> tuple[JobView, dict[str, SourceRead]]:
    """The view of the job, and what watch remembers."""
    from confluent_kafka import KafkaException

    from schemas.codec import Codec, UnknownSchema
    from schemas.registry import RegistryError, RegistryIds
    from streams.kafka import KafkaUnavailable
    from streams.watch.jobs import Jobs, read_positions

    try:
        codec = Codec(RegistryIds(settings.registry.url))
        jobs = Jobs(settings.kafka.bootstrap, codec)
        try:
            jobs.read_to_stable_end()
            found = [view for view in jobs.views if job in (view.job_id, str(view.raw_job_id))]
        finally:
            jobs.close()
        positions = read_positions(settings.kafka.bootstrap, codec)
    except (RegistryError, KafkaUnavailable, UnknownSchema) as error:
        fail(str(error))
    except KafkaException as error:
        fail(f"Kafka does not answer ({error.args[0]}); is it up?")
    own = [view for view in found if view.cluster == settings.slurm.cluster] or found
    if not own:
        fail(
            f"no job {job} is known: it is closed, or the scheduler controller has not seen it."
            " Is `recovery sac` running for its cluster, and does `recovery decide`? (`recovery status` shows both)"
        )
    return own[0], positions


def _blind(positions: dict[str, SourceRead]) -> list[tuple[str, str]]:
    """What watch told, as the kind of its blindness and the key of the attempt."""
    from streams.watch.memories import blindness_of

    open_now = (blindness_of(name) for name, read in positions.items() if read.offset == 0)
    return [told for told in open_now if told is not None]


def _attempt(view: JobView, index: int | None) -> AttemptView:
    fitting = [shown for shown in view.attempts if index in (None, shown.attempt.index)]
    if not fitting:
        known = ", ".join(str(shown.attempt.index) for shown in view.attempts) or "none"
        fail(f"job {view.job_id} has no attempt {index}; known: {known}")
    return fitting[-1]


def _checks(settings: Settings, view: JobView, shown: AttemptView, positions: dict[str, SourceRead]) -> list[Check]:
    import time

    from recovery.settings import SettingsError
    from streams.sources.configured import sources_of
    from streams.watch.checkup import checkup
    from streams.watch.matching.examples import load_matcher
    from streams.watch.matching.packs import BadPack, load_packs
    from streams.watch.own import OwnFormats

    try:
        matcher, sources = load_matcher(load_packs(settings.watch.packs)), sources_of(settings)
    except (BadPack, SettingsError) as error:
        fail(str(error))
    skew_ms = int(settings.watch.clock_skew_s * 1000)
    try:
        formats = OwnFormats(positions if settings.watch.arm_on_proposed else None)
        return checkup(view, shown, sources, matcher, formats, skew_ms, time.time_ns() // 1_000_000)
    finally:
        for one in sources:
            one.source.close()


def _print(view: JobView, shown: AttemptView, checks: list[Check], told: list[str], *, as_json: bool) -> None:
    import json
    from dataclasses import asdict

    if as_json:
        document = {
            "job": view.job_id,
            "attempt": shown.attempt.index,
            "state": shown.state,
            "logPaths": list(shown.log_paths),
            "blind": told,
            "checks": [asdict(check) for check in checks],
        }
        typer.echo(json.dumps(document))
        return
    typer.echo(f"job {view.job_id} of cluster {view.cluster}, attempt {shown.attempt.index}, {shown.state}")
    if told:
        typer.echo(f"watch has told that it is blind: {', '.join(told)}")
    for number, check in enumerate(checks, start=1):
        typer.echo(f"{number:2}. {check.state:4}  {check.step}: {check.found}")
        if check.advice and check.state != "ok":
            typer.echo(f"          do: {check.advice}")
