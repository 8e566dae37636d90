"""Finished saves of programs that no format knows, by their words: what was saved, in the past tense."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from streams.watch.matching.matcher import ANSI, Found
from streams.watch.matching.progress import DRY_RUN, read_step
from streams.watch.whose.neighbours import NEAR_BYTES

_KEPT = r"(?:check-?points?|ckpts?|model|state(?:[ _]dict)?|snapshots?|weights|parameters|params|adapters?)"
_SAVED = re.compile(
    rf"(?i)\b(?:saved|wrote|written|stored|finish(?:ed)? sav(?:ing|e)|save(?: of)? complete[d]?)\b.{{0,60}}?\b{_KEPT}\b"
    rf"|\b{_KEPT}\b.{{0,80}}?\b(?:(?:was |is |been )?(?:successfully )?(?:saved|written|stored)|save complete[d]?)\b"
    rf"|\bsave (?:ckpt|checkpoint) (?:use|took)\b"
)
_NO_SAVE = re.compile(
    r"(?i)\b(?:will|to be|being|not|fail\w*|could|can|would|unable|error|if|when|started|pending|in progress|previous"
    r"|config\w*|tokenizer|metadata|meta_\w+|vocab\w*|load\w*|restor\w*|resum\w*|summary|metrics|images?"
    r"|best (?:metric|score) (?:so far|yet)|host memory|cpu buffer|(?:last|latest|newest) saved"
    r"|skip\w*|deleted|removed|pruned|evicted|corrupt\w*|damaged|incomplete|partial\w*|truncated"
    r"|(?:shard|part|chunk)s?[ #_]{0,2}\d{1,6} ?(?:/|of) ?\d)\b|dataset|prediction"
    rf"|{DRY_RUN}"
    r"|/dev/shm\b|\.(?:tmp|partial|incomplete)\b|\bsaved['\"]?\s{0,2}[:=]\s{0,2}(?:false|no|none)\b"
)
_STEP = re.compile(r"(?i)(?<![a-z])(?:global[_ -]?)?(?:step|iteration|iter|update|it)s?[\s_:=#[-]{0,3}(\d{1,12})\b")
_AT = re.compile(r"@ ?(\d{1,12})\b")
_IN_NAME = re.compile(
    r"(?i)(?:check-?point|ckpt|model|weights|state)\w*[-_](\d{2,12})(?:\.\w{1,12})?[.,\"')]*(?:\s|$)"
    r"|(?:check-?point|ckpt)[-_](\d{2,12})/"
)
_WORDS = re.compile(rb"[Ss]av|ritten|rote |stored")
MOST_CHARACTERS = 400
MOST_LINES = 256
"""So many lines of a piece that may tell of a save are looked at, from the last one backwards."""


@dataclass(frozen=True)
class Save:
    """A save that is done, the step that its line names, and where that line begins."""

    step: int | None
    start: int


def last_save(data: bytes) -> Save | None:
    """The last save of which some lines tell."""
    high = len(data)
    for word in islice(reversed([match.start() for match in _WORDS.finditer(data)]), MOST_LINES):
        if word < high:
            high, end = data.rfind(b"\n", 0, word) + 1, data.find(b"\n", word)
            done, step = saved_step(ANSI.sub(b"", data[high : end if end >= 0 else len(data)]))
            if done:
                return Save(step, high)
    return None


def saved_step(line: bytes) -> tuple[bool, int | None]:
    """Whether a line says that a save is done, and the step that it names."""
    if _WORDS.search(line) is None:
        return False, None
    text = line[:MOST_CHARACTERS].decode("utf-8", "replace")
    if _SAVED.search(text) is None or _NO_SAVE.search(text) is not None:
        return False, None
    named = _STEP.search(text) or _AT.search(text) or _IN_NAME.search(text)
    return True, None if named is None else int(named[named.lastindex or 0])


def step_before(data: bytes, start: int, found: Sequence[Found]) -> int | None:
    """The last step that stands before a line; None where none does.

    Of steps in a row the matcher has left out some: those near the line are read here.
    """
    forms = list(dict.fromkeys(one.progress.form for one in found if one.progress is not None))
    for line in reversed(data[max(0, start - NEAR_BYTES) : start].splitlines() if forms else []):
        for form in forms:
            step = read_step(form, ANSI.sub(b"", line))
            if step is not None:
                return step.of_run
    known = (one.progress.of_run for one in reversed(found) if one.progress is not None and one.start < start)
    return next(known, None)
