"""One pattern, two engines: hyperscan finds candidate lines in whole chunks, RE2 decides and extracts on the line.

Both are linear-time, so that a pattern of an operator can't stall the watch. A pattern has RE2's syntax, matches
bytes, and is refused if either engine can't take it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import hyperscan
import re2

from schemas.patterns import QUOTED, BadPattern, compiled
from streams.watch.matching.compiled import database as kept_database
from streams.watch.matching.widened import widened

# What stands before a program's own words: srun -l (`3: `), torchrun (`[rank3]:`, `[default3]:`), DeepSpeed and pdsh
# (`node2: `), mpirun (`[1,0]<stdout>:`), Ray and vLLM (`(Worker pid=3) `, `(EngineCore) `), containers (`stderr F `), a
# time, level and logger (`- root - ERROR - `, `ERROR:root:`, `E0601 10:00:00.1 3 a.cc:1] `, loguru's `| ERROR    |
# a.b:main:3 - `, Composer's `rank0[23][MainThread]: ERROR: a.b: `), ts (`Aug 01 10:00:00 `), a program's own
# (`[Rank 3] `, `rank 3: `), and what was exported with tabs (`2026-08-01 10:00:00 CET\t`).
_LEVEL = "(?:ERROR|CRITICAL|FATAL)"
# RE2 is linear whatever the bounds, and takes less memory without them.
_ZONE = r"(?:Z|[+-]\d\d:?\d\d| (?:UTC|GMT|MSK|[CEW]ES?T|[ACEMP][SD]T|A[CEW][SD]T|NZ[SD]T|[BIJK]ST|HKT|SGT))"
_LAUNCHERS = (
    r"\[\d+,[\w,:-]+\]<std(?:out|err)>: ?",
    r"\d+ ?[:|>] ",
    rf"\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[0-9.,]*{_ZONE}?[ \t]",
    r"\d\d:\d\d:\d\d(?:[.,]\d+)?[ \t]",
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?[ \t](?:[\w.-]+ )?",
    r"\w[\w.]*:[\w.<>]+:\d+ - ",
    r"std(?:out|err) [FP] ",
    r"(?i:rank|worker|task|node|process)[ -]\d+ ?[:|] ",
    r"\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?: ",
    r"[|>] ",
    r"\[\d{1,3}(?:;\d+)*m ?",
    r"\{[^{}]*\"(?:msg|message|log|event|error|exception)\": ?\"",
)
_PREFIXES = (
    *_LAUNCHERS,
    r"\[[^\[\]]+\]:? ?",
    r"\([A-Za-z_][^()]*\) ?",
    rf"{_LEVEL}(?: \d\d-\d\d \d\d:\d\d:\d\d)? ",
    rf"{_LEVEL}:[\w.]*:? ?",
    rf"(?:- )?(?:[\w.]+ )?- {_LEVEL} - ",
    r"[EF]\d{3,4} [\d:.]+ +(?:\d+ +)?[\w./-]+:\d+\] ",
    r"E +",
    r" what\(\): +",
    r"what\(\): +",
    r"[A-Za-z][\w./-]*(?:\[\d+\](?:\[\w+\])?)?(?: rank \d+)?(?:: | +\| ?|> )",
    r"[\w.:/-]+\t",
)
LAUNCHER_PREFIX = rf"^\s*(?:{'|'.join(_PREFIXES)})*"
# Before a step no mere word, of which bars have many (`Map: 41%|`, `[eval] `, `[shard 3] `): in brackets a level, a
# rank or a time, before a colon a node or process, whose name has its number at the end and not in the middle
# (`gpu-a100-07`, `n07.site.org`, `train[123]`, not `train-00000-of-00010`).
_HOST = r"[A-Za-z]+(?:[_-][A-Za-z]+)*(?:[_-]?[A-Za-z]*\d+)+(?:(?:\.[A-Za-z][\w-]*){2,})?"
_BEFORE_STEPS = (
    *_LAUNCHERS,
    r"\[(?:DEBUG|INFO|WARNING|ERROR|(?i:rank|default|task|worker)[ _:=-]*\d+|\d+,\d+|[\w/ -]*\d\d:\d\d:\d\d[^\[\]]*"
    r"|\d{4}-\d\d-\d\d)\]:? ?",
    r"\([A-Za-z_][^()]*\bpid=\d[^()]*\) ?",
    r"(?:DEBUG|INFO|SUCCESS|WARNING|ERROR)(?: *\| |\t)",
    rf"(?:{_HOST}|[A-Za-z][\w./-]*\[\d+\](?:\[\w+\])?)(?: rank \d+)?(?:: | +\| ?|> )",
)
# Ray names a process by what it does, before its number.
_STAGE = re.compile(rb"(?i)\([^()]{0,60}(?:map|tokeni[sz]|preproc|eval|download)[^()]{0,60}\bpid=\d")
# As little of them as can be: what looks like one may be the program's own (`[epoch=1]`).
LINE_START = rf"^\s*(?:{'|'.join(_BEFORE_STEPS)})*?"
_ANCHOR = re.compile(rf"(?P<other>{QUOTED})|\^(?P<indent>(?:\\s|\[ \\t\]| )(?:\*|\{{0?,\d*\}}))?", re.DOTALL)
# RE2 may take so much for many patterns at once; with too little it finds nothing.
SET_BYTES = 64 << 20
FLAGS = hyperscan.HS_FLAG_MULTILINE


@dataclass(frozen=True)
class Captured:
    """Where in the line a match begins, and what its groups hold (only those that took part)."""

    start: int
    groups: dict[str, str]


@dataclass(frozen=True)
class Pattern:
    """A pattern that RE2 took, as it stands in the pack."""

    text: str
    groups: tuple[str, ...]
    compiled: Any = field(repr=False, compare=False)
    behind_launchers: bool = False
    """Whether `^` is where the line begins behind what launchers put before it: for hyperscan that is anywhere."""
    of_no_stage: bool = False
    """Whether it begins so, and not by itself with a process of Ray's: that may be one of another stage."""

    @property
    def expression(self) -> bytes:
        """For hyperscan, which only finds candidates."""
        return widened(_ANCHOR.sub(r"\g<other>", self.text) if self.behind_launchers else self.text).encode()

    def search(self, line: bytes) -> Captured | None:
        """Find it in one line; None where it does not match."""
        match = self.compiled.search(line)
        if match is None or (self.of_no_stage and b"pid=" in line and _STAGE.search(line[: match.end()])):
            return None
        groups = {
            name.decode(): text.decode("utf-8", "replace")
            for name, text in match.groupdict().items()
            if text is not None
        }
        return Captured(match.start(), groups)


def compile_pattern(text: str, *, at_start: bool = False, behind_launchers: bool = False) -> Pattern:
    """Compile for RE2; `database` does so for hyperscan, all patterns at once. Raises BadPattern.

    `at_start`: the match begins where the line does, after what launchers put before it. `behind_launchers`: each `^`
    means that place. Only RE2 checks either.
    """
    whole = f"{LAUNCHER_PREFIX}(?:{text})" if at_start else text
    if behind_launchers:
        whole = anchored(text)
    pattern = compiled(whole)
    of_no_stage = behind_launchers and whole != text and "pid=" not in text
    return Pattern(text, tuple(name.decode() for name in pattern.groupindex), pattern, behind_launchers, of_no_stage)


def anchored(text: str) -> str:
    """The pattern, each `^` of which is behind what launchers put before a line."""
    return _ANCHOR.sub(lambda found: found["other"] or LINE_START + (found["indent"] or ""), text)


def together(patterns: Sequence[Pattern]) -> Callable[[bytes], Sequence[int]]:
    """Return what says which of these patterns a line matches, in one pass."""
    if not patterns:
        return lambda _line: ()
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = SET_BYTES
    all_of_them = re2.Set.SearchSet(options)
    for pattern in patterns:
        all_of_them.Add(pattern.compiled.pattern)
    all_of_them.Compile()
    return lambda line: all_of_them.Match(line) or ()


def database(expressions: list[bytes]) -> Any:
    """Compile expressions to one database; a match reports the index of its expression. Raises BadPattern."""
    try:
        return kept_database(expressions, FLAGS)
    except hyperscan.error as error:
        raise BadPattern(f"hyperscan can't search for it: {error}") from error
