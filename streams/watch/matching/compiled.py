"""hyperscan's databases, kept on disk: to compile all packs takes a second, to read what was compiled a millisecond.

A file is named by what it was made of. One that can't be read (another processor, another hyperscan, cut off) is made
again, and a folder that can't be written costs nothing but the second.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hyperscan

from recovery.cache import cache_folder

MOST_KEPT = 32

log = logging.getLogger(__name__)


def database(expressions: Sequence[bytes], flags: int) -> Any:
    """A database for whole blocks; a match reports the index of its expression. Raises hyperscan.error."""
    try:
        path = cache_folder() / "hyperscan" / f"{_name(expressions, flags)}.db"
    except RuntimeError:  # a user without a home
        return _compile(expressions, flags)
    found = _read(path)
    if found is None:
        found = _compile(expressions, flags)
        _keep(path, found)
    return found


def _name(expressions: Sequence[bytes], flags: int) -> str:
    parts = (version("hyperscan").encode(), str(flags).encode(), *expressions)
    return sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).hexdigest()


def _read(path: Path) -> Any:
    try:
        known = hyperscan.loadb(path.read_bytes(), mode=hyperscan.HS_MODE_BLOCK)
        known.scratch = hyperscan.Scratch(known)
        path.touch()  # the ones used last are kept
    except (OSError, hyperscan.error):
        return None
    return known


def _compile(expressions: Sequence[bytes], flags: int) -> Any:
    known = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    known.compile(
        expressions=list(expressions),
        ids=list(range(len(expressions))),
        elements=len(expressions),
        flags=[flags] * len(expressions),
    )
    return known


def _keep(path: Path, known: Any) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as draft:
            draft.write(hyperscan.dumpb(known))
        Path(draft.name).replace(path)
        for old in sorted(path.parent.glob("*.db"), key=os.path.getmtime)[:-MOST_KEPT]:
            old.unlink(missing_ok=True)
    except OSError as error:
        log.debug("compiled patterns not kept in %s, and compiled each time: %s", path.parent, error)
