"""`recovery formats`: which framework's lines are these?"""

import json
from typing import Annotated

import typer

from recovery.commands.common import TOOLS, Sections, fail, settings_of


def register(app: typer.Typer) -> None:
    """Add the group `formats`."""
    text = "How training steps and checkpoints are read. How to write a format of your own: docs/packs.md."
    group = typer.Typer(cls=Sections, no_args_is_help=True, rich_markup_mode=None, help=text)
    group.command("detect")(detect)
    app.add_typer(group, name="formats", rich_help_panel=TOOLS)


def detect(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(help="A run's log; - for standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say which framework's lines a log has, and what was read; for an unknown one, propose a format.

    Of a large file only the beginning and the end are read. Exits with 1 where there was nothing to read.
    """
    from recovery.commands.diagnose import EXIT_NOTHING_READ, Shown, readable
    from streams.diagnose.formats import detect as run
    from streams.diagnose.matching import known_formats
    from streams.diagnose.reading import NothingRead, Unreadable
    from streams.diagnose.report import detected_json, detected_text
    from streams.watch.matching.packs import BadPack

    shown = Shown()
    try:
        said = run(readable([file])[0], *known_formats(settings_of(ctx).watch.packs), shown.read)
    except NothingRead as error:
        shown.clear()
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(EXIT_NOTHING_READ) from error
    except (Unreadable, BadPack) as error:
        shown.clear()
        fail(str(error))
    shown.clear()
    typer.echo(json.dumps(detected_json(said), ensure_ascii=False) if as_json else "\n".join(detected_text(said)))
