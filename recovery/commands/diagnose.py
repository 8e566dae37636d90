"""`recovery diagnose`: say what happened to a dead run, from its files alone."""

import json
import sys
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from recovery.commands.common import TOOLS, fail, settings_of

EXIT_NOTHING_READ = 1
SHOW_EVERY_S = 0.2
TELL_EVERY_S = 10.0
"""On a terminal one line is written over a few times a second; elsewhere each takes a new line."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("diagnose", rich_help_panel=TOOLS)(diagnose)


def diagnose(
    ctx: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="A run's logs; - for standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what happened to a run, where, and what to do, from its logs and its nodes' kernel logs.

    Needs neither a cluster nor Kafka. Reads files that gzip, bzip2 or xz compressed, too. A file that can't be read is
    named on standard error, and the others are diagnosed. Exits with 0 whenever a diagnosis was made, also when nothing
    is wrong; with 1 where there was nothing to read, since all files are empty or no text; and with 2 where none could
    be read, or where the command's words, its settings or a pack are wrong.
    """
    from streams.diagnose.matching import general_matcher
    from streams.diagnose.reading import NothingRead, Unreadable
    from streams.diagnose.report import diagnosis_json, diagnosis_text
    from streams.diagnose.verdict import diagnose as run
    from streams.watch.matching.packs import BadPack

    shown = Shown()
    try:
        names = readable(files)
        matcher = general_matcher(settings_of(ctx).watch.packs)
        said = run(names, matcher, int(time.time() * 1000), shown.read, shown.warn)
    except NothingRead as error:
        shown.clear()
        typer.echo(f"error: {error}; no diagnosis was made", err=True)
        raise typer.Exit(EXIT_NOTHING_READ) from error
    except (Unreadable, BadPack) as error:
        shown.clear()
        fail(str(error))
    shown.clear()
    if as_json:
        typer.echo(json.dumps(diagnosis_json(said), ensure_ascii=False))
    else:
        typer.echo("\n".join(diagnosis_text(said)))


def readable(names: Sequence[str]) -> list[str]:
    """Those of the files that hold text; tells of each other one. Raises NothingRead or Unreadable if none is left."""
    from streams.diagnose.reading import none_of, nothing_in

    wrong = {name: nothing_in(name) for name in names}
    kept = [name for name, reason in wrong.items() if reason is None]
    unread = [reason for reason in wrong.values() if reason is not None]
    if not kept:
        raise none_of(unread)
    for reason in unread:
        _warn(str(reason))
    return kept


def _warn(text: str) -> None:
    typer.echo(f"warning: {text}", err=True)


class Shown:
    """How far reading came: on a terminal in one line, elsewhere a line now and then."""

    def __init__(self, every_s: float = SHOW_EVERY_S) -> None:
        self._on = sys.stderr.isatty()
        self._every_s = every_s if self._on else max(every_s, TELL_EVERY_S)
        self._last = time.monotonic()
        self._width = 0

    def read(self, name: str, read: int, size: int) -> None:
        """Show it, unless it was shown just before."""
        now = time.monotonic()
        if now - self._last < self._every_s:
            return
        self._last = now
        text = f"reading {name}: {read >> 20} MB" + (f" of {size >> 20}" if size else "")
        if not self._on:
            typer.echo(text, err=True)
            return
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def warn(self, text: str) -> None:
        """Tell of a file that was left out, on a line of its own."""
        self.clear()
        _warn(text)

    def clear(self) -> None:
        """Leave no trace."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
