"""`recovery parked`."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from recovery.commands.common import TOOLS, Sections, codec_of, fail

if TYPE_CHECKING:
    from recovery.parked import Parked
    from recovery.settings import Settings
    from schemas.codec import Codec

Number = Annotated[int, typer.Argument(help="The record's number, from `recovery parked list`.")]


def register(app: typer.Typer) -> None:
    """Add the group `parked`."""
    text = "Records that could not be handled; their jobs get no new Advice until somebody has looked."
    group = typer.Typer(cls=Sections, no_args_is_help=True, rich_markup_mode=None, help=text)
    group.command("list")(list_parked)
    group.command("reappend")(reappend)
    group.command("dismiss")(dismiss)
    app.add_typer(group, name="parked", rich_help_panel=TOOLS)


def list_parked(
    ctx: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Show also those that no job waits for.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a record a line.")] = False,
) -> None:
    """List parked records whose job waits for a person."""
    parked = [one for one in _read(*codec_of(ctx)) if every or one.open]
    for one in parked:
        record = one.record
        place = f"{record.topic}/{record.partition}/{record.offset}"
        if as_json:
            row = {"number": one.number, "open": one.open, "key": one.key, "place": place, "reason": record.reason}
            typer.echo(json.dumps(row | {"parked_ms": record.parked_ms}))
        else:
            typer.echo(f"{one.number:5}  {'waits' if one.open else '-':5}  {one.key}  {place}  {record.reason}")
    if not parked and not as_json:
        typer.echo("nothing is parked" if every else "no job waits for a parked record")


def reappend(
    ctx: typer.Context,
    number: Number,
    reason: Annotated[str, typer.Option(help="Why it can be handled now; it is recorded.")] = "appended again",
) -> None:
    """Lift the job's quarantine and give the record once more."""
    _lift(ctx, number, reason, again=True)


def dismiss(
    ctx: typer.Context,
    number: Number,
    reason: Annotated[str, typer.Option(help="Why nothing is lost without it; it is recorded.")],
) -> None:
    """Lift the job's quarantine without the record."""
    _lift(ctx, number, reason, again=False)


def _lift(ctx: typer.Context, number: int, reason: str, *, again: bool) -> None:
    from getpass import getuser

    from recovery.parked import ParkedError, lift

    settings, codec = codec_of(ctx)
    chosen = next((one for one in _read(settings, codec) if one.number == number), None)
    if chosen is None:
        fail(f"there is no parked record {number}; `recovery parked list --all` shows all")
    try:
        lift(settings.kafka.bootstrap, codec, chosen, by=getuser(), reason=reason, again=again)
    except ParkedError as error:
        fail(str(error))
    typer.echo(f"job {chosen.key} may have new Advice again{'; the record was given once more' if again else ''}")


def _read(settings: "Settings", codec: "Codec") -> "list[Parked]":
    from recovery.parked import read_parked
    from streams.kafka import KafkaUnavailable

    try:
        return read_parked(settings.kafka.bootstrap, codec)
    except KafkaUnavailable as error:
        fail(f"Kafka at {settings.kafka.bootstrap} does not answer: {error}")
