"""`recovery signatures`: the faults that are known, and what a line or a pack says."""

from pathlib import Path
from typing import Annotated

import typer

from recovery.commands.common import TOOLS, Sections, fail, settings_of

EXIT_BAD = 1
WIDTH = 160


def register(app: typer.Typer) -> None:
    """Add the group `signatures`."""
    group = typer.Typer(
        cls=Sections, no_args_is_help=True, rich_markup_mode=None, help="The patterns that faults are known by."
    )
    group.command("list")(list_all)
    group.command("test")(test)
    group.command("explain")(explain)
    app.add_typer(group, name="signatures", rich_help_panel=TOOLS)


def list_all(ctx: typer.Context) -> None:
    """List every signature: id, fault class, scope, what it advises, and its weight."""
    from streams.watch.packs import BadPack, load_packs

    try:
        signatures = load_packs(settings_of(ctx).watch.packs).signatures
    except BadPack as error:
        fail(str(error))
    for one in sorted(signatures, key=lambda signature: (signature.fault_class, -signature.precedence)):
        typer.echo(
            f"{one.id:30} {one.fault_class.value:18} {one.scope.value:8} {one.remedy.value:23}"
            f" {one.role.value:12} {one.precedence:>3}"
        )


def test(ctx: typer.Context, file: Annotated[Path, typer.Argument(help="A pack (.toml), or a log.")]) -> None:
    """Try a pack's own examples together with all others, or say what each line of a log matches.

    A pack that does not do what it says is refused with the place and the reason, and exit code 1.
    """
    from streams.diagnose.matching import general_matcher
    from streams.watch.packs import BadPack

    folders = settings_of(ctx).watch.packs
    if file.suffix == ".toml":
        _test_pack(file, folders)
        return
    try:
        matcher = general_matcher(folders)
        data = file.read_bytes()
    except BadPack as error:
        fail(str(error))
    except OSError as error:
        fail(f"{file} can't be read: {error.strerror}")
    for found in matcher.scan(data):
        line_no = data.count(b"\n", 0, found.start) + 1
        said = [] if found.fault is None else [f"{found.fault.signature.id} ({found.fault.detail})"]
        said += [] if found.progress is None else [f"step {found.progress.step} of {found.progress.framework}"]
        said += [] if found.saved is None else ["checkpoint saved"]
        said += [] if found.loaded is None else ["checkpoint loaded"]
        said += [] if found.phase is None else [f"phase {found.phase.value}"]
        typer.echo(f"{line_no}: {', '.join(said)}\n    {found.line.decode('utf-8', 'replace').strip()[:WIDTH]}")


def _test_pack(file: Path, folders: tuple[Path, ...]) -> None:
    """Load one pack after all others and try its examples."""
    from streams.watch.examples import problems
    from streams.watch.matcher import Matcher
    from streams.watch.packs import BadPack, load_packs

    try:
        packs = load_packs((*folders, file))
        wrong = list(problems(packs, Matcher(packs)))
    except BadPack as error:
        wrong = [str(error)]
    for problem in wrong:
        typer.echo(problem, err=True)
    if wrong:
        raise typer.Exit(EXIT_BAD)
    typer.echo(f"{file}: every example is found, and no counter-example")


def explain(
    ctx: typer.Context, signature_id: Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.")]
) -> None:
    """Say what a signature means, what it advises, and by which lines it is known."""
    from streams.watch.packs import BadPack, load_packs

    try:
        signatures = load_packs(settings_of(ctx).watch.packs).signatures
    except BadPack as error:
        fail(str(error))
    one = next((signature for signature in signatures if signature.id == signature_id), None)
    if one is None:
        near = [signature.id for signature in signatures if signature_id in signature.id]
        hint = f"did you mean {', '.join(near[:5])}?" if near else "`recovery signatures list` shows all"
        fail(f"there is no signature {signature_id!r}; {hint}")
    typer.echo(f"{one.id}: {one.detail}")
    typer.echo(f"fault class {one.fault_class.value}, scope {one.scope.value}, advises {one.remedy.value}")
    typer.echo(f"as a {one.role.value} of weight {one.precedence}; from {one.source}")
    typer.echo(f"{one.place}\n\npattern      {one.pattern.text}")
    for name, pattern in (
        ("unless", one.unless),
        ("context", one.context),
        ("unless before", one.unless_context),
        ("unless after", one.unless_after),
    ):
        if pattern is not None:
            typer.echo(f"{name:12} {pattern.text}")
    for heading, lines in (("finds", one.examples), ("not", one.counter_examples)):
        for line in lines:
            typer.echo(f"{heading:12} {line}")
