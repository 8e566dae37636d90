"""What a log ends with: for a process that does not run, mostly why."""

import json
from pathlib import Path

LONGEST = 300
TAIL_BYTES = 8192


def last_words(log: Path) -> str | None:
    """Return the last line of a log: of our own lines what happened, and the error. None where there is nothing."""
    if not log.is_file():
        return None
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return _plain(lines[-1])[:LONGEST] if lines else None


def _plain(line: str) -> str:
    try:
        said = json.loads(line)
    except ValueError:
        return line
    words = [str(said[key]) for key in ("event", "error") if said.get(key)] if isinstance(said, dict) else []
    return ": ".join(words) or line
