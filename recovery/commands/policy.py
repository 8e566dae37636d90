"""`recovery policy`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recovery.commands.common import TOOLS, Sections, codec_of, fail, settings_of

if TYPE_CHECKING:
    from schemas.policy import Policy

Cluster = Annotated[str, typer.Option(help="Whose policy; default: slurm.cluster of the settings.")]


def register(app: typer.Typer) -> None:
    """Add the group `policy`."""
    text = "The limits and delays by which attempts are decided."
    group = typer.Typer(cls=Sections, no_args_is_help=True, rich_markup_mode=None, help=text)
    group.command("show")(show)
    group.command("publish")(publish)
    app.add_typer(group, name="policy", rich_help_panel=TOOLS)


def show(
    ctx: typer.Context,
    cluster: Cluster = "",
    defaults: Annotated[bool, typer.Option("--defaults", help="The shipped policy; asks nobody.")] = False,
) -> None:
    """Print the policy in force, as JSON that can be edited and published."""
    import json
    from dataclasses import asdict

    from schemas.policy import DEFAULT_POLICY

    policy = DEFAULT_POLICY if defaults else _in_force(ctx, cluster)
    typer.echo(json.dumps(asdict(policy), indent=2))


def _in_force(ctx: typer.Context, cluster: str) -> "Policy":
    from recovery.policies import PolicyError, in_force
    from schemas.codec import Codec
    from schemas.registry import RegistryError, RegistryIds
    from streams.kafka import KafkaUnavailable

    settings = settings_of(ctx)
    name = cluster or settings.slurm.cluster
    try:
        current = in_force(settings.kafka.bootstrap, Codec(RegistryIds(settings.registry.url)), name)
    except (RegistryError, KafkaUnavailable) as error:
        fail(f"{error}; `recovery policy show --defaults` prints the shipped policy without asking")
    except PolicyError as error:
        fail(str(error))
    origin = "published" if current.published else "the shipped default; none was published"
    typer.echo(f"{current.digest} logic {current.logic} for {name} ({origin})", err=True)
    return current.policy


def publish(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="JSON; what it leaves out has its default.")],
    cluster: Cluster = "",
) -> None:
    """Put a policy in force. Attempts seen from now on are decided by it; history keeps the one of its day."""
    import time

    from recovery.policies import publish as put_in_force
    from recovery.writing import WriteError
    from schemas.policy import InvalidPolicy

    try:
        document = file.read_bytes()
    except OSError as error:
        fail(f"{file} can't be read: {error.strerror}")
    settings, codec = codec_of(ctx)
    name = cluster or settings.slurm.cluster
    now_ms = time.time_ns() // 1_000_000
    try:
        done = put_in_force(settings.kafka.bootstrap, codec, name, document, now_ms=now_ms)
    except InvalidPolicy as error:
        fail(f"{file}: {error}; nothing was published")
    except WriteError as error:
        fail(str(error))
    typer.echo(f"{done.digest} logic {done.logic} is in force for {name}")
