"""`recovery formats`: which framework's lines are these?"""

import json
from typing import Annotated

import typer

from recovery.commands.common import TOOLS, Sections, fail, settings_of


def register(app: typer.Typer) -> None:
    """Add the group `formats`."""
    group = typer.Typer(
        cls=Sections, no_args_is_help=True, rich_markup_mode=None, help="How training steps and checkpoints are read."
    )
    group.command("detect")(detect)
    app.add_typer(group, name="formats", rich_help_panel=TOOLS)


def detect(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(help="A run's log; - for standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say which framework's lines a log has, and what was read; for an unknown one, propose a format."""
    from recovery.commands.diagnose import Shown
    from streams.diagnose.formats import detect as run
    from streams.diagnose.matching import known_formats
    from streams.diagnose.reading import Unreadable
    from streams.diagnose.report import detected_json, detected_text
    from streams.watch.packs import BadPack

    shown = Shown()
    try:
        said = run(file, *known_formats(settings_of(ctx).watch.packs), shown.read)
    except (Unreadable, BadPack) as error:
        shown.clear()
        fail(str(error))
    shown.clear()
    typer.echo(json.dumps(detected_json(said), ensure_ascii=False) if as_json else "\n".join(detected_text(said)))
