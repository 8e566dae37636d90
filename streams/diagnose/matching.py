"""The matcher for files of which nobody knows anything: all packs, and the general formats beside this module."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from streams.watch.examples import load_matcher
from streams.watch.matcher import Matcher
from streams.watch.packs import load_packs


@cache
def general_matcher(folders: tuple[Path, ...] = ()) -> Matcher:
    """Load the shipped packs, the general formats, and those of a site. Raises BadPack."""
    return load_matcher(load_packs((Path(str(files("streams.diagnose"))) / "packs", *folders)))
