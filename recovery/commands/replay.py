"""`recovery replay`: prove that history leads to the decisions that were made."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recovery.commands.common import TOOLS, Sections, fail, settings_of

if TYPE_CHECKING:
    from streams.replay.verify import Report

EXIT_DIFFERENT = 1


def register(app: typer.Typer) -> None:
    """Add the group `replay`."""
    group = typer.Typer(
        cls=Sections, no_args_is_help=True, rich_markup_mode=None, help="Decide history again and compare."
    )
    group.command("verify")(verify)
    group.command("export")(export)
    app.add_typer(group, name="replay", rich_help_panel=TOOLS)


def verify(
    ctx: typer.Context,
    file: Annotated[Path | None, typer.Option(help="An exported file, instead of the topics in Kafka.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Derive every decision again, of jobs and of nodes; exit 1 and name the first that differs.

    Needs the deciders' topics or an exported file (which holds jobs alone), and changes nothing.
    """
    from confluent_kafka import KafkaException

    from schemas.codec import Codec, FixedIds, UnknownSchema
    from schemas.registry import RegistryError, RegistryIds
    from schemas.topics import NODE_DECISIONS, NODES
    from streams.decide.decide import MissingPolicy
    from streams.kafka import KafkaUnavailable
    from streams.replay.export import FileHistory
    from streams.replay.history import HistoryUnreadable, TopicHistory
    from streams.replay.verify import verify as run
    from streams.replay.verify import verify_nodes
    from streams.run.policies import PolicyDocuments
    from streams.run.slots import GROUP, NODE_CREW

    nodes: Report | None = None

    def progress(facts: int) -> None:
        typer.echo(f"{facts} facts verified so far", err=True)

    try:
        if file is not None:
            exported = FileHistory(file)
            report = run(exported, Codec(FixedIds()), exported.policies, progress)
        else:
            settings = settings_of(ctx)
            codec = Codec(RegistryIds(settings.registry.url))
            policies = PolicyDocuments(settings.kafka.bootstrap, codec, "replay-policies")
            report = run(TopicHistory(settings.kafka.bootstrap, GROUP), codec, policies, progress)
            of_nodes = TopicHistory(settings.kafka.bootstrap, NODE_CREW.group, NODES, NODE_DECISIONS)
            nodes = verify_nodes(of_nodes, codec, progress)
    except (HistoryUnreadable, RegistryError, UnknownSchema, MissingPolicy) as error:
        fail(str(error))
    except KafkaUnavailable as error:
        fail(f"Kafka does not answer ({error}); is it up? `recovery up` starts one here")
    except KafkaException as error:
        fail(f"Kafka does not answer ({error.args[0]}); is it up?")
    _print(report, nodes, as_json=as_json)
    if report.difference is not None or (nodes is not None and nodes.difference is not None):
        raise typer.Exit(EXIT_DIFFERENT)


def export(ctx: typer.Context, file: Annotated[Path, typer.Argument(help="The file to write.")]) -> None:
    """Write the journal, the decisions and the policies to one file that `verify --file` reads without Kafka."""
    from schemas.codec import Codec
    from schemas.registry import RegistryError, RegistryIds
    from streams.kafka import KafkaUnavailable
    from streams.replay.export import export as run
    from streams.replay.history import HistoryUnreadable, TopicHistory
    from streams.run.policies import PolicyDocuments
    from streams.run.slots import GROUP

    settings = settings_of(ctx)
    try:
        codec = Codec(RegistryIds(settings.registry.url))
        policies = PolicyDocuments(settings.kafka.bootstrap, codec, "replay-policies")
        history = TopicHistory(settings.kafka.bootstrap, GROUP)
        count = run(history, dict(policies), file, lambda text: typer.echo(text, err=True))
    except (HistoryUnreadable, RegistryError, KafkaUnavailable) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{file} can't be written: {error.strerror}")
    typer.echo(f"{count} records in {file}")


def _print(report: "Report", nodes: "Report | None", *, as_json: bool) -> None:
    import json
    from dataclasses import asdict

    if as_json:
        typer.echo(json.dumps(asdict(report) | {"nodes": None if nodes is None else asdict(nodes)}))
        return
    _print_one(report, "jobs")
    if nodes is not None:
        _print_one(nodes, "nodes")


def _print_one(report: "Report", of: str) -> None:
    typer.echo(
        f"{report.facts} facts of {report.jobs} {of}, {report.decisions} decisions derived again,"
        f" {report.parked} facts parked, {report.undecided} not yet decided"
    )
    found = report.difference
    if found is None:
        typer.echo("none differs")
        return
    typer.echo(f"first difference at {found.fact}: {found.why}")
    typer.echo(f"  recorded: {found.recorded}")
    typer.echo(f"  derived:  {found.derived}")
