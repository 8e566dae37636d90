"""The matchers of files of which nobody knows anything. Compiled once in a process."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from streams.diagnose.rhythm import SIGNATURE as SLOW_STEPS
from streams.diagnose.saves import SIGNATURE as UNFINISHED_SAVE
from streams.watch.matching.examples import load_matcher
from streams.watch.matching.matcher import Matcher
from streams.watch.matching.packs import Packs, load_packs
from streams.watch.skipping import SKIPPED_STEPS

CONCLUDED = {
    SKIPPED_STEPS.id: "every step was skipped, up to the end: nothing was learned any more",
    UNFINISHED_SAVE: "a save began and was never done, and the ranks waited in vain",
    SLOW_STEPS: "steps took longer, for good, than the same run's steps did before",
}
"""What is told like a signature and is none: it follows from many steps."""


GENERAL = Path(str(files("streams.diagnose"))) / "packs"
"""The folder of general words and formats, which only diagnose knows."""


@cache
def general_matcher(folders: tuple[Path, ...] = ()) -> Matcher:
    """Load the shipped packs, the general ones, and those of a site. Raises BadPack."""
    return load_matcher(load_packs((GENERAL, *folders)))


@cache
def known_formats(folders: tuple[Path, ...] = ()) -> tuple[Packs, Matcher]:
    """Load the shipped packs and those of a site, without the general formats. Raises BadPack."""
    packs = load_packs(folders)
    return packs, load_matcher(packs)
