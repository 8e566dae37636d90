"""`recovery diagnose`: say what happened to a dead run, from its files alone."""

import json
import sys
import time
from typing import Annotated

import typer

from recovery.commands.common import TOOLS, fail, settings_of

SHOW_EVERY_S = 0.2


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("diagnose", rich_help_panel=TOOLS)(diagnose)


def diagnose(
    ctx: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="A run's logs; - for standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what happened to a run, where, and what to do, from its logs and its nodes' kernel logs.

    Needs neither a cluster nor Kafka. Exits with 0 whenever a diagnosis was made, also when nothing is wrong.
    """
    from streams.diagnose.matching import general_matcher
    from streams.diagnose.reading import Unreadable
    from streams.diagnose.report import diagnosis_json, diagnosis_text
    from streams.diagnose.verdict import diagnose as run
    from streams.watch.packs import BadPack

    shown = Shown()
    try:
        said = run(files, general_matcher(settings_of(ctx).watch.packs), int(time.time() * 1000), shown.read)
    except (Unreadable, BadPack) as error:
        shown.clear()
        fail(str(error))
    shown.clear()
    if as_json:
        typer.echo(json.dumps(diagnosis_json(said), ensure_ascii=False))
    else:
        typer.echo("\n".join(diagnosis_text(said)))


class Shown:
    """How far reading came, on a terminal; nothing elsewhere."""

    def __init__(self, every_s: float = SHOW_EVERY_S) -> None:
        self._every_s = every_s
        self._on = sys.stderr.isatty()
        self._last = time.monotonic()
        self._width = 0

    def read(self, name: str, read: int, size: int) -> None:
        """Show it, a few times a second."""
        now = time.monotonic()
        if not self._on or now - self._last < self._every_s:
            return
        self._last = now
        text = f"reading {name}: {read >> 20} MB" + (f" of {size >> 20}" if size else "")
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def clear(self) -> None:
        """Leave no trace."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
