"""What is known of the lines of one job alone: by patterns in its APS comment, or by a shape that was found in them.

They are looked for beside the known formats, in the lines of that job; no other pays for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from schemas.bookkeeping import SourceRead
from schemas.decisions import JobView
from schemas.identity import AttemptId, derived_id
from schemas.patterns import BadPattern, check_of_job, compiled
from streams.watch.matching.candidates import OWN_SAVED, OWN_STEP, Own
from streams.watch.matching.packs import Format, FormatPart
from streams.watch.matching.patterns import anchored, compile_pattern
from streams.watch.matching.progress import Checkpoint, Step, is_kept, read_checkpoint, read_step
from streams.watch.memories import is_proposal, of_proposal

CUSTOM = "custom"
"""What stands for the framework in facts of such lines."""
_Patterns = tuple[str | None, str | None]
"""Of steps and of saves."""


@dataclass(frozen=True)
class OwnFormat:
    """How the lines of one job are read."""

    form: Format | None
    saved: FormatPart | None
    searches: tuple[Own, ...] = field(repr=False, compare=False)
    """What finds its lines in a whole block."""

    def step(self, line: bytes) -> Step | None:
        return None if self.form is None else read_step(self.form, line)

    def checkpoint(self, line: bytes) -> Checkpoint | None:
        saved = None if self.saved is None else read_checkpoint(CUSTOM, self.saved, line)
        return saved if saved is not None and is_kept(saved) else None


def own_format(progress: str | None, checkpoint: str | None = None) -> OwnFormat:
    """Compile the patterns of a job. Raises BadPattern, which names the key in the APS comment."""
    step, saved = _part("log_based_progress_pattern", progress), _part("log_based_checkpoint_pattern", checkpoint)
    form = None
    if step is not None:
        form = Format(
            CUSTOM, step, None, None, None, None, None, None, (), "the job's own", "log_based_progress_pattern"
        )
    texts = [(kind, text) for kind, text in ((OWN_STEP, progress), (OWN_SAVED, checkpoint)) if text is not None]
    return OwnFormat(form, saved, tuple((kind, compiled(anchored(text), within_lines=True)) for kind, text in texts))


class OwnFormats:
    """The attempts whose lines have a format of their own. False where there are none: then nobody need ask."""

    def __init__(self, positions: Mapping[str, SourceRead] | None = None) -> None:
        """`positions`: where the site lets found shapes be used, what was remembered of them."""
        self._remembered = {name: read.identity for name, read in (positions or {}).items() if is_proposal(name)}
        self._compiled: dict[_Patterns, OwnFormat] = {}
        self._given: dict[AttemptId, OwnFormat] = {}
        self._found: dict[AttemptId, OwnFormat] = {}
        self.refused: dict[AttemptId, str] = {}
        """The attempts whose APS has a pattern that can't be used, and why."""

    def __bool__(self) -> bool:
        return bool(self._given or self._found)

    def learn(self, views: Collection[JobView]) -> None:
        """Take the patterns of all jobs that there are, and forget those of others."""
        self._given, self.refused = {}, {}
        before, self._compiled = self._compiled, {}
        for view in views:
            patterns = _patterns_of(view)
            if patterns == (None, None):
                continue
            attempts = [shown.attempt for shown in view.attempts]
            try:
                own = self._compiled.get(patterns) or before.get(patterns) or own_format(*patterns)
                self._compiled[patterns] = own
                self._given |= dict.fromkeys(attempts, own)
            except BadPattern as error:
                self.refused |= dict.fromkeys(attempts, str(error))
        if self._found or self._remembered:
            self._find_again({shown.attempt for view in views for shown in view.attempts})

    def use(self, attempt: AttemptId, pattern: str, now_ms: int) -> SourceRead:
        """Read the attempt's steps by a pattern that was found; return what is to be remembered of it."""
        self._found[attempt] = own_format(pattern)
        name = of_proposal(attempt)
        return SourceRead(derived_id("proposed", attempt.key, pattern), "", name, pattern, 0, 0, 0, None, now_ms)

    def of(self, attempt: AttemptId) -> OwnFormat | None:
        """How the attempt's lines are read: as its owner says, else as they seem to be."""
        given, found = self._given.get(attempt), self._found.get(attempt)
        if given is None or found is None or given.form is not None:
            return given or found
        return replace(given, form=found.form, searches=given.searches + found.searches)

    def is_given(self, attempt: AttemptId) -> bool:
        """Whether the attempt's owner says what its steps look like."""
        given = self._given.get(attempt)
        return given is not None and given.form is not None

    def searches(self, attempts: Iterable[AttemptId]) -> tuple[Own, ...]:
        """What finds the lines that are of interest for these attempts."""
        forms = [own for attempt in attempts if (own := self.of(attempt)) is not None]
        return tuple(dict.fromkeys(search for own in forms for search in own.searches))

    def _find_again(self, attempts: set[AttemptId]) -> None:
        self._found = {attempt: own for attempt, own in self._found.items() if attempt in attempts}
        if not self._remembered:
            return
        known = {attempt: name for attempt in attempts if (name := of_proposal(attempt)) in self._remembered}
        self._remembered = {name: self._remembered[name] for name in known.values()}
        for attempt in known.keys() - self._found.keys():
            with suppress(BadPattern):  # of another version of watch: it is looked for anew
                self._found[attempt] = own_format(self._remembered[known[attempt]])


def _patterns_of(view: JobView) -> _Patterns:
    aps = view.aps
    return (None, None) if aps is None else (aps.log_based_progress_pattern, aps.log_based_checkpoint_pattern)


def _part(key: str, text: str | None) -> FormatPart | None:
    if text is None:
        return None
    try:
        check_of_job(text)
    except BadPattern as error:
        raise BadPattern(f"{key} is refused: {error}") from error
    return FormatPart(compile_pattern(text, behind_launchers=True), ())
