"""`recovery signatures`: the faults that are known, and what a line or a pack says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recovery.commands.common import TOOLS, Sections, fail, settings_of

if TYPE_CHECKING:
    from streams.watch.matching.matcher import Found
    from streams.watch.matching.packs import Packs, Signature

EXIT_BAD = 1
WIDTH = 160


def register(app: typer.Typer) -> None:
    """Add the group `signatures`."""
    text = "The patterns that faults are known by. What a pack is and how to write one: docs/packs.md."
    group = typer.Typer(cls=Sections, no_args_is_help=True, rich_markup_mode=None, help=text)
    group.command("list")(list_all)
    group.command("test")(test)
    group.command("explain")(explain)
    app.add_typer(group, name="signatures", rich_help_panel=TOOLS)


def list_all(ctx: typer.Context) -> None:
    """List every signature: id, fault class, scope, what it advises, its weight, and what a site's own replaces.

    Those by which only `recovery diagnose` judges are marked as such; those without a pattern stand last.
    """
    from streams.diagnose.matching import CONCLUDED, GENERAL

    packs = _loaded((GENERAL, *settings_of(ctx).watch.packs))
    replaced = dict(packs.replaced)
    for one in sorted(packs.signatures, key=lambda signature: (signature.fault_class, -signature.precedence)):
        typer.echo(
            f"{one.id:30} {one.fault_class.value:18} {one.scope.value:8} {one.remedy.value:23}"
            f" {one.role.value:12} {one.precedence:>3}"
            + (f"  {one.place} replaces {replaced[one.place]}" if one.place in replaced else "")
            + ("  of `recovery diagnose` alone" if _is_general(one) else "")
        )
    for name, meaning in CONCLUDED.items():
        typer.echo(f"{name:30} concluded from many lines: {meaning}")


def _is_general(one: Signature) -> bool:
    from streams.diagnose.matching import GENERAL

    return one.place.startswith(f"{GENERAL}/")


def _loaded(folders: tuple[Path, ...]) -> Packs:
    from streams.watch.matching.packs import BadPack, load_packs

    try:
        return load_packs(folders)
    except BadPack as error:
        fail(str(error))


def test(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(help="A pack (.toml, or a folder of them), or a log; - for standard input.")],
) -> None:
    """Try a pack's own examples together with all others, or say what each line of a log matches.

    A pack that does not do what it says is refused with the place and the reason, and exit code 1. docs/packs.md tells
    what stands in a pack.
    """
    folders = settings_of(ctx).watch.packs
    path = Path(file)
    if path.suffix == ".toml" or path.is_dir():
        _test_pack(path, folders)
    else:
        _test_log(file, folders)


def _test_log(file: str, folders: tuple[Path, ...]) -> None:
    """Say what each line matches."""
    from recovery.commands.diagnose import Shown, readable
    from streams.diagnose.matching import general_matcher
    from streams.diagnose.reading import NothingRead, Unreadable, pieces
    from streams.watch.masking import kept_text
    from streams.watch.matching.packs import BadPack
    from streams.watch.matching.surroundings import tail_of

    shown, tail, matched = Shown(), b"", False
    try:
        matcher = general_matcher(folders)
        for piece in pieces(readable([file])[0], shown.read):
            for found in matcher.scan(piece.data, tail):
                line_no = piece.line_no + piece.data.count(b"\n", 0, found.start)
                typer.echo(f"{line_no}: {_said(found)}\n    {kept_text(found.line, 0)[:WIDTH]}")
                matched = True
            tail = tail_of(piece.data)
    except NothingRead as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(EXIT_BAD) from error
    except (Unreadable, BadPack) as error:
        fail(str(error))
    finally:
        shown.clear()
    if not matched:
        typer.echo("no line matches anything", err=True)


def _said(found: Found) -> str:
    said = [] if found.fault is None else [f"{found.fault.signature.id} ({found.fault.detail})"]
    said += [] if found.progress is None else [f"step {found.progress.step} of {found.progress.framework}"]
    said += [] if found.saved is None else ["checkpoint saved"]
    said += [] if found.loaded is None else ["checkpoint loaded"]
    said += [] if found.phase is None else [f"phase {found.phase.value}"]
    return ", ".join(said)


def _test_pack(path: Path, folders: tuple[Path, ...]) -> None:
    """Load a pack after all others and try its examples."""
    from streams.watch.matching.examples import problems
    from streams.watch.matching.matcher import Matcher
    from streams.watch.matching.packs import BadPack, load_packs

    there = path.absolute()
    known = there in folders or there.parent in folders
    try:
        packs = load_packs(folders if known else (*folders, path))
        own = [(name, count) for name, count in packs.files if there in (file := Path(name).absolute(), file.parent)]
        wrong = [f"{name}: it is empty: there is no [[signature]], [[format]] or [[phase]]" for name, n in own if not n]
        wrong += [f"{path}: it is empty: there is no file *.toml"] if not own else []
        wrong += problems(packs, Matcher(packs))
    except BadPack as error:
        wrong = [str(error)]
    for problem in wrong:
        typer.echo(problem, err=True)
    if wrong:
        raise typer.Exit(EXIT_BAD)
    for new, old in packs.replaced:
        typer.echo(f"{new} replaces {old}")
    for name, count in own:
        entries = "1 entry" if count == 1 else f"{count} entries"
        typer.echo(f"{name}: {entries}; every example is found, and no counter-example")


def explain(
    ctx: typer.Context, signature_id: Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.")]
) -> None:
    """Say what a signature means, what it advises, and by which lines it is known."""
    from streams.diagnose.matching import CONCLUDED, GENERAL

    if signature_id in CONCLUDED:
        typer.echo(f"{signature_id}: {CONCLUDED[signature_id]}\nno pattern: it is concluded from many lines")
        return
    signatures = _loaded((GENERAL, *settings_of(ctx).watch.packs)).signatures
    one = next((signature for signature in signatures if signature.id == signature_id), None)
    if one is None:
        near = [signature.id for signature in signatures if signature_id in signature.id]
        hint = f"did you mean {', '.join(near[:5])}?" if near else "`recovery signatures list` shows all"
        fail(f"there is no signature {signature_id!r}; {hint}")
    typer.echo(f"{one.id}: {one.detail}")
    typer.echo(f"fault class {one.fault_class.value}, scope {one.scope.value}, advises {one.remedy.value}")
    typer.echo(f"as a {one.role.value} of weight {one.precedence}; from {one.source}")
    if _is_general(one):
        typer.echo("only `recovery diagnose` judges by it: general words, where no pattern knows better")
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
