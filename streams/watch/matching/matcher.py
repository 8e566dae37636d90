"""Finds faults, steps and checkpoints in a block of lines.

hyperscan looks at the whole block with all patterns at once and says where candidates end; only those lines are cut
out and given to RE2. A quiet block costs one pass of hyperscan and nothing else. Linear in the block's size whatever
it holds: NULs, bytes that are not UTF-8, one endless line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from hyperscan import ScanTerminated

from schemas.patterns import BadPattern
from schemas.vocabulary import FaultClass, Phase
from streams.watch.masking import masker
from streams.watch.matching.candidates import OWN_STEP, Candidate, Hit, Own, candidates, thinned, with_own
from streams.watch.matching.packs import BadPack, Format, FormatPart, Packs, PhaseSign, Signature
from streams.watch.matching.patterns import Captured, Pattern, database, together
from streams.watch.matching.progress import MOST_DIGITS, Checkpoint, Step, read_checkpoint, read_saved, read_step
from streams.watch.matching.surroundings import Surroundings

# RE2 is given at most this much of a line, around the first candidate.
LINE_BYTES = 64 * 1024
MOST_REPEATED = 10_000
"""Ends of matches in one line that tell nothing new, after which the rest of the line is skipped: ten ms."""
MOST_SILENT = 100
"""Of this precedence is what silences loud signatures, too: words of the data that the program works on."""
_LOCAL_RANK = re.compile(rb"(?i)\blocal[_ -]rank['\"]?[ :=]{0,3}(\d{1,7})\b")
ANSI = re.compile(rb"\x1b\[[0-9;?]{0,32}[A-Za-z]")


@dataclass(frozen=True)
class Fault:
    """A signature that a line matches, what its captures say, and where in the line the match begins."""

    signature: Signature
    line: bytes
    captured: Mapping[str, str]
    """What the pattern's groups hold, as it stands in the line: there may be secrets in it."""
    node: str | None
    """What the pattern's group `node` holds: the line names the node that failed, whoever prints it."""
    at: int
    peer: str | None
    """Group `peer`: the node or address at the other end, which the line blames."""
    blamed_rank: int | None
    """Group `rank`: the rank that the line blames."""
    sequence: int | None
    """Group `seq`: the number of a collective."""

    @property
    def detail(self) -> str:
        """The signature's words with what was captured, secrets masked. Made when asked for: few are kept."""
        mask = masker(self.line, self.at) if self.captured else str
        shown = {name: mask(text) for name, text in self.captured.items()}
        words = self.signature.detail.format_map(defaultdict(str, shown))
        return " ".join(words.split()).rstrip(": ")


@dataclass(frozen=True)
class Found:
    """A line of a block that says something, perhaps in the job's own format alone."""

    start: int
    """Byte offset of the line in the block."""
    line: bytes
    """Without its end and without colours, at most LINE_BYTES of it."""
    fault: Fault | None
    progress: Step | None
    saved: Checkpoint | None
    loaded: Checkpoint | None
    phase: Phase | None

    @property
    def at(self) -> int:
        """Where in `line` the first match begins."""
        parts = (self.fault, self.progress, self.saved, self.loaded)
        return min((part.at for part in parts if part is not None), default=0)


class Matcher:
    """All patterns of all packs, compiled once; raises BadPack for one that hyperscan can't search for."""

    def __init__(self, packs: Packs) -> None:
        by_weight = sorted(packs.signatures, key=lambda signature: -signature.precedence)
        self._signatures = [one for one in by_weight if one.fault_class is not FaultClass.BENIGN_NOISE]
        # Looked for only in lines that would mean a fault.
        self._silent = [one for one in by_weight if one.fault_class is FaultClass.BENIGN_NOISE]
        self._silent_patterns = together([one.pattern for one in self._silent])
        patterns = [(signature.pattern, signature.place) for signature in self._signatures]
        self._marks = [(known.framework, known.mark.pattern) for known in packs.formats if known.mark is not None]
        self._parts: dict[int, tuple[Format, FormatPart]] = {}
        steps = set()
        for known in packs.formats:
            steps.add(len(patterns))
            for part in (known.step, known.saved, known.loaded):
                if part is not None:
                    self._parts[len(patterns)] = known, part
                    patterns.append((part.pattern, known.place))
        self._phases = {len(patterns) + number: sign for number, sign in enumerate(packs.phases)}
        patterns += [(sign.pattern, sign.place) for sign in packs.phases]
        self._database, self._meant = _database(patterns)
        self._steps = frozenset(n for n, meant in enumerate(self._meant) if steps.issuperset(meant))

    def scan(
        self,
        block: bytes,
        before: bytes | None = b"",
        step_interval_ms: int = 0,
        step_stride: int = 0,
        own: Sequence[Own] = (),
    ) -> list[Found]:
        """Return the lines of a block that say something, in their order.

        `before`: the last lines of the block before it, which some signatures need to see; None where nobody knows
        them: then what those would tell is left open. `step_interval_ms`: one step
        in this time is enough, and with `step_stride` one in so many bytes; of steps in a row that are closer the ones
        between may be left out. `own`: what finds lines of the job's own format; they are returned, whatever they say.
        """
        text = block.replace(b"\r", b"\n") if b"\r" in block else block
        removed: list[tuple[int, int]] = []
        if b"\x1b" in text:
            text, removed = _without_colours(text)
        found = []
        for start, end, to, patterns in self._candidates(text, step_interval_ms, step_stride, own):
            low = max(start, min(to - LINE_BYTES // 2, end - LINE_BYTES))
            line = text[low : min(end, low + LINE_BYTES)]
            around = Surroundings(before, text, start, line)
            if removed:
                start += removed[bisect_right(removed, start, key=lambda cut: cut[0]) - 1][1]
            one = self._read(start, line, patterns, around)
            if one is not None:
                found.append(one)
        return found

    def marked(self, block: bytes) -> str | None:
        """The framework whose mark the first marked line of a block bears. Slow: each line is looked at."""
        text, _removed = _without_colours(block.replace(b"\r", b"\n"))
        named = (name for line in text.split(b"\n") for name, mark in self._marks if mark.search(line) is not None)
        return next(named, None)

    def _candidates(
        self, text: bytes, step_interval_ms: int, step_stride: int, own: Sequence[Own]
    ) -> Iterator[Candidate]:
        """The lines in which hyperscan, or a pattern of the job's own, found something that must be read."""
        hits: list[Hit] = []
        position: int | None = 0
        while position is not None:
            position = self._search(text, position, hits)
        hits.sort()
        found, steps = candidates(text, hits), self._steps
        if own:
            found, steps = with_own(found, text, own), steps | {OWN_STEP}
        return thinned(text, found, steps, step_interval_ms, step_stride)

    def _search(self, text: bytes, start: int, hits: list[Hit]) -> int | None:
        """Add what is found from `start` on, once a line for each expression; return where to go on, None at the end.

        hyperscan tells every place at which a match may end: a hostile line of a megabyte has a million. Where it tells
        nothing new for long, the rest of the line is skipped.
        """
        told = [-2] * len(self._meant)  # for each expression the end of the line in which it was found last
        repeated, skip_to = 0, None

        def hit(number: int, _low: int, to: int, _flags: int, _context: object) -> bool:
            nonlocal repeated, skip_to
            to += start
            if to > told[number] + 1:
                end = text.find(b"\n", to - 1)
                told[number] = end = end if end >= 0 else len(text)
                hits.append((to, end, number))
                repeated = 0
            else:
                repeated += 1
                if repeated >= MOST_REPEATED:
                    skip_to = told[number]
            return skip_to is not None

        with suppress(ScanTerminated):  # by `hit`
            self._database.scan(text[start:] if start else text, match_event_handler=hit)
        return skip_to

    def _read(self, start: int, line: bytes, patterns: tuple[int, ...], around: Surroundings) -> Found | None:
        progress: Step | None = None
        saved: Checkpoint | None = None
        loaded: Checkpoint | None = None
        numbers = sorted({number for one in patterns if one >= 0 for number in self._meant[one]})
        for known, part in [self._parts[n] for n in numbers if n in self._parts]:
            if part is known.step:
                progress = progress or _step(known, line, around)
            elif part is known.saved:
                saved = saved or read_saved(known, part, line)
            else:
                loaded = loaded or read_checkpoint(known.framework, part, line)
        phase = self._phase(line, [self._phases[n] for n in numbers if n in self._phases])
        fault = self._fault(line, [self._signatures[n] for n in numbers if n < len(self._signatures)], around)
        if (fault, progress, saved, loaded, phase) == (None, None, None, None, None) and min(patterns) >= 0:
            return None
        return Found(start, line, fault, progress, saved, loaded, phase)

    @staticmethod
    def _phase(line: bytes, signs: list[PhaseSign]) -> Phase | None:
        for sign in signs:
            if sign.pattern.search(line) and not (sign.unless and sign.unless.search(line)):
                return sign.phase
        return None

    def _fault(self, line: bytes, signatures: list[Signature], around: Surroundings) -> Fault | None:
        """The weightiest signature that matches; none if a weightier one says that the line means nothing."""
        for signature in signatures:
            captured = matched(signature, line, around) if _is_judged(signature, around) else None
            if captured is not None and not self._silenced(signature, line, around):
                return _fault_of(signature, captured, line)
        return None

    def _silenced(self, signature: Signature, line: bytes, around: Surroundings) -> bool:
        least = MOST_SILENT if signature.loud else signature.precedence + 1
        found = [self._silent[number] for number in self._silent_patterns(line)]
        weighty = (one for one in found if one.precedence >= least)
        return any(not _is_judged(one, around) or matched(one, line, around) for one in weighty)


def matched(signature: Signature, line: bytes, around: Surroundings) -> Captured | None:
    """What a signature's groups hold in this line and the lines before it; None where it does not match."""
    captured = signature.pattern.search(line)
    if captured is None or (signature.unless is not None and signature.unless.search(line) is not None):
        return None
    if signature.unless_context is not None and signature.unless_context.search(around.before) is not None:
        return None
    if signature.unless_after is not None and signature.unless_after.search(around.after) is not None:
        return None
    if signature.context is None:
        return captured
    frame = signature.context.search(around.before)
    return None if frame is None else Captured(captured.start, frame.groups | captured.groups)


def _is_judged(signature: Signature, around: Surroundings) -> bool:
    """Whether all is known that the signature looks at."""
    return around.knows_before or (signature.context is None and signature.unless_context is None)


def _step(known: Format, line: bytes, around: Surroundings) -> Step | None:
    step = read_step(known, line)
    return replace(step, below=around.below) if step is not None and known.time_below else step


def _fault_of(signature: Signature, captured: Captured, line: bytes) -> Fault:
    groups = captured.groups
    return Fault(
        signature=signature,
        line=line,
        captured=groups,
        node=_named(groups, "node"),
        at=captured.start,
        peer=_named(groups, "peer"),
        blamed_rank=_rank_of_job(_number(_named(groups, "rank")), line),
        sequence=_number(groups.get("seq")),
    )


def _named(groups: Mapping[str, str], name: str) -> str | None:
    """What a group of this name holds, or one that is numbered: each form of a line has its own."""
    return next((groups[one] for one in (name, *(f"{name}{n}" for n in range(2, 10))) if groups.get(one)), None)


def _rank_of_job(rank: int | None, line: bytes) -> int | None:
    """None for a rank that the line calls local: each node has one of that number."""
    local = None if rank is None else _LOCAL_RANK.search(line)
    return None if local is not None and int(local.group(1)) == rank else rank


def _number(digits: str | None) -> int | None:
    return int(digits) if digits and digits.isdigit() and len(digits) <= MOST_DIGITS else None


def _database(patterns: list[tuple[Pattern, str]]) -> tuple[Any, tuple[tuple[int, ...], ...]]:
    """What hyperscan looks for, each expression once, and for each the numbers of the patterns that it stands for."""
    meant: dict[bytes, list[int]] = {}
    for number, (pattern, _place) in enumerate(patterns):
        meant.setdefault(pattern.expression, []).append(number)
    try:
        return database(list(meant)), tuple(map(tuple, meant.values()))
    except BadPattern as error:
        for pattern, place in patterns:  # which of them is it?
            try:
                database([pattern.expression])
            except BadPattern as refused:
                raise BadPack(f"{place}: a pattern is refused: {refused}") from refused
        raise BadPack(f"all packs together are refused: {error}") from error


def _without_colours(text: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """Return the text without colour codes, and (offset in it, bytes removed before) for each piece."""
    pieces: list[bytes] = []
    removed: list[tuple[int, int]] = [(0, 0)]
    low = kept = 0
    for code in ANSI.finditer(text):
        pieces.append(text[low : code.start()])
        kept += code.start() - low
        low = code.end()
        removed.append((kept, low - kept))
    pieces.append(text[low:])
    return b"".join(pieces), removed
