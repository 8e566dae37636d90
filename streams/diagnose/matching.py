"""The matchers of files of which nobody knows anything. Compiled once in a process."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from streams.watch.examples import load_matcher
from streams.watch.matcher import Matcher
from streams.watch.packs import Packs, load_packs


@cache
def general_matcher(folders: tuple[Path, ...] = ()) -> Matcher:
    """Load the shipped packs, the general formats, and those of a site. Raises BadPack."""
    return load_matcher(load_packs((Path(str(files("streams.diagnose"))) / "packs", *folders)))


@cache
def known_formats(folders: tuple[Path, ...] = ()) -> tuple[Packs, Matcher]:
    """Load the shipped packs and those of a site, without the general formats. Raises BadPack."""
    packs = load_packs(folders)
    return packs, load_matcher(packs)
