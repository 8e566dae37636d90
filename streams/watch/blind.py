"""Says when watch is blind for a running attempt, and when it sees again.

Only jobs with a policy of their own (APS) are an alarm: nobody asked for the others to be watched. A finding has to
last before it is told, once; its end is told once, too. What was told is remembered among the positions, so that a
restart neither repeats it nor forgets to say that it ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from recovery.metrics import gauge
from schemas.bookkeeping import SourceRead
from schemas.decisions import AttemptView, JobView
from schemas.facts import BlindReported, CheckpointLoaded, CheckpointSaved, PhaseEntered, ProgressObserved
from schemas.identity import AttemptId, Position, derived_id
from schemas.vocabulary import AttemptState, BlindKind, Mode
from streams.sources.files import FileState
from streams.watch.events import LineFact
from streams.watch.guessing import LOOKED_AT, Guess, guess
from streams.watch.memories import of_blindness
from streams.watch.own import OwnFormats
from streams.watch.sight import FileSight, Finding, StoreSight, findings, unknown_format
from streams.watch.source import Source
from streams.watch.store import StoreReader

BLIND = gauge("watch_blind", "Running attempts that watch can't see, by why.", "kind")

# Between two looks: so much of the time after which something is an alarm, and not less than the least.
LOOKS, LEAST_MS = 60, 100
# An end is believed only after sources and files had this long to be looked at.
SETTLED_MS = 5_000
# Output must have grown at so many looks since the last known line before its format counts as unknown.
GROWN_LOOKS = 3
MOST_EPISODES = 20
# So many attempts that fall silent in a source at the same time, for so long, mean the source.
SILENT_TOGETHER, SILENT_MS = 2, 300_000
# Attempts in whose lines a shape is looked for at one look: each takes some ten milliseconds.
MOST_GUESSED = 4
# From this part of the time after which it is an alarm, a source keeps the last lines of the attempt.
WANTED_FROM = 0.5


@dataclass
class _Sight:
    """What is remembered of one running attempt."""

    since_ms: int
    known_ms: int | None = None
    size: int = 0
    grown: int = 0
    guess: Guess | None = None
    guessed_ms: int | None = None
    begun: dict[BlindKind, int] = field(default_factory=dict)
    told: dict[BlindKind, SourceRead] = field(default_factory=dict)

    def open(self) -> tuple[BlindKind, ...]:
        """The kinds that were told and have not ended."""
        return tuple(kind for kind in BlindKind if kind in self.told and self.told[kind].offset == 0)


class BlindWatch:
    """Have everything that `look` gives delivered before `moved` is asked for."""

    def __init__(
        self,
        missing_after_s: float,
        unknown_after_s: float,
        positions: Mapping[str, SourceRead],
        own: OwnFormats,
        *,
        arm_on_proposed: bool,
    ) -> None:
        self._own = own
        self._arms = arm_on_proposed
        self._guesses = 0
        self._missing_ms = int(missing_after_s * 1000)
        self._unknown_ms = int(unknown_after_s * 1000)
        self._positions = positions
        self._sights: dict[AttemptId, _Sight] = {}
        self._moved: list[SourceRead] = []
        self._looked_ms = 0

    def heard(self, fact: LineFact, now_ms: int) -> None:
        """A line was told: where it is of progress, the attempt's format is known."""
        sight = self._sights.get(fact.attempt)
        if sight is not None and isinstance(fact, ProgressObserved | CheckpointSaved | CheckpointLoaded | PhaseEntered):
            sight.known_ms, sight.grown = now_ms, 0
            sight.guess = sight.guessed_ms = None

    def look(
        self, now_ms: int, views: Collection[JobView], sources: Mapping[str, Source], readers: Sequence[StoreReader]
    ) -> Iterator[BlindReported]:
        """Look at every running attempt, if it is time to; give what has begun or ended."""
        if now_ms - self._looked_ms < max(self._missing_ms // LOOKS, LEAST_MS):
            return
        self._looked_ms, self._guesses = now_ms, 0
        running = {
            attempt.attempt: (view, attempt)
            for view in views
            if view.aps is not None and view.mode is not Mode.DISABLED
            for attempt in view.attempts
            if attempt.state is AttemptState.RUNNING
        }
        self._sights = {attempt: sight for attempt, sight in self._sights.items() if attempt in running}
        silent = self._silent(readers, now_ms)
        for attempt, (view, shown) in running.items():
            sight = self._sights.get(attempt) or self._new(attempt, now_ms)
            now = self._now(sight, now_ms, view, shown, sources, readers, silent)
            yield from self._tell(attempt, sight, now, now_ms)
        quiet = {
            attempt
            for attempt, sight in self._sights.items()
            if self._unknown(sight, running[attempt][0], now_ms) > WANTED_FROM
        }
        for reader in readers:
            reader.want(frozenset(quiet))
        counts = Counter(kind for sight in self._sights.values() for kind in sight.open())
        for kind in BlindKind:
            BLIND.labels(kind).set(counts[kind])

    def moved(self) -> list[SourceRead]:
        """What was told since the last call, to be remembered."""
        moved, self._moved = self._moved, []
        return moved

    def _new(self, attempt: AttemptId, now_ms: int) -> _Sight:
        sight = self._sights[attempt] = _Sight(now_ms)
        for kind in BlindKind:
            known = self._positions.get(of_blindness(attempt, kind))
            if known is not None:
                sight.told[kind] = known
        return sight

    def _now(
        self,
        sight: _Sight,
        now_ms: int,
        view: JobView,
        shown: AttemptView,
        sources: Mapping[str, Source],
        readers: Sequence[StoreReader],
        silent: Mapping[str, str],
    ) -> dict[BlindKind, Finding]:
        """What is found at this look, long enough or not."""
        followed = [(path, sources[path]) for path in dict.fromkeys(shown.log_paths) if path in sources]
        files = [FileSight(path, source.state, source.problem) for path, source in followed]
        missing = [path for path in dict.fromkeys(shown.log_paths) if path not in sources]
        files += [FileSight(path, FileState.ABSENT, f"not followed: {path}") for path in missing]
        own = [reader for reader in readers if reader.cluster == view.cluster]
        stores = [
            StoreSight(
                name=reader.name,
                problem=reader.problem or reader.dead.get(shown.attempt, "") or silent.get(reader.name, ""),
                gives=shown.attempt in reader.seen,
                mislabelled=reader.mislabelled.get(shown.attempt, ""),
                labelless=reader.labelless(now_ms),
            )
            for reader in own
        ]
        now = dict(findings(view.job_id, files, stores))
        size = sum(sum(source.read_to) for _path, source in followed)
        size += sum(reader.seen[shown.attempt].size for reader in own if shown.attempt in reader.seen)
        sight.grown += size > sight.size
        sight.size = size
        if sight.grown >= GROWN_LOOKS and self._unknown(sight, view, now_ms) >= 1:
            if self._may_guess(sight, now_ms):
                texts = [source.recent(LOOKED_AT) for _path, source in followed]
                texts += [reader.recent.get(shown.attempt, b"") for reader in own]
                self._guess(sight, shown.attempt, texts, now_ms)
            where = ", ".join(shown.log_paths) or ", ".join(store.name for store in stores)
            now[BlindKind.UNKNOWN_FORMAT] = self._unknown_format(sight, shown.attempt, where, now_ms)
        return now

    def _unknown_format(self, sight: _Sight, attempt: AttemptId, where: str, now_ms: int) -> Finding:
        return unknown_format(
            where,
            (now_ms - (sight.known_ms or sight.since_ms)) // 1000,
            sight.guess,
            used=self._may_use(sight.guess, attempt),
            given=self._own.is_given(attempt),
            refused=self._own.refused.get(attempt, ""),
        )

    def _silent(self, readers: Sequence[StoreReader], now_ms: int) -> dict[str, str]:
        """The sources of which several running attempts had lines, and none has any more: that is no hang of them."""
        found = {}
        for reader in readers:
            quiet_ms = 0 if reader.took_ms is None else now_ms - reader.took_ms
            served = sum(attempt in reader.seen for attempt in self._sights)
            if served >= SILENT_TOGETHER and quiet_ms >= max(self._missing_ms, SILENT_MS):
                words = (
                    f"{reader.name} gave lines of {served} running attempts, and for {quiet_ms // 1000} s none of any"
                )
                found[reader.name] = f"{words}: its collector may have died"
        return found

    def _unknown(self, sight: _Sight, view: JobView, now_ms: int) -> float:
        """For how much of the time after which it is an alarm no line was known."""
        aps = view.aps
        if aps is None or not aps.log_based_timeout_enabled:
            return 0
        bound_ms = max(self._unknown_ms, 4 * aps.progress_kept_every_ms) if sight.known_ms else self._unknown_ms
        return (now_ms - (sight.known_ms or sight.since_ms)) / bound_ms

    def _may_guess(self, sight: _Sight, now_ms: int) -> bool:
        """A program may say something else for long before it counts steps: so it is looked for again, but seldom."""
        if self._guesses >= MOST_GUESSED or (sight.guess is not None and sight.guess.certain):
            return False
        return sight.guessed_ms is None or now_ms - sight.guessed_ms >= self._unknown_ms

    def _guess(self, sight: _Sight, attempt: AttemptId, texts: Sequence[bytes], now_ms: int) -> None:
        """Look for a line that counts, and have the attempt read by it where the site allows that."""
        self._guesses, sight.guessed_ms = self._guesses + 1, now_ms
        found = [one for text in texts if (one := guess(text)) is not None]
        sight.guess = max(found, key=lambda one: one.certain, default=sight.guess)
        if sight.guess is not None and self._may_use(sight.guess, attempt):
            self._moved.append(self._own.use(attempt, sight.guess.pattern, now_ms))

    def _may_use(self, found: Guess | None, attempt: AttemptId) -> bool:
        return self._arms and found is not None and found.certain and not self._own.is_given(attempt)

    def _tell(
        self, attempt: AttemptId, sight: _Sight, now: Mapping[BlindKind, Finding], now_ms: int
    ) -> Iterator[BlindReported]:
        for kind in BlindKind:
            told = sight.told.get(kind)
            is_open = told is not None and told.offset == 0
            if kind not in now:
                since_ms = sight.begun.pop(kind, now_ms)
                if is_open and self._has_ended(kind, sight, now_ms):
                    yield self._report(attempt, sight, kind, None, since_ms, now_ms)
                continue
            since_ms = sight.begun.setdefault(kind, now_ms)
            lasts = kind is BlindKind.UNKNOWN_FORMAT or now_ms - since_ms >= self._missing_ms
            says_more = kind is BlindKind.UNKNOWN_FORMAT and told is not None and _says_more(sight.guess, told.identity)
            if lasts and (not is_open or says_more) and (told is None or told.epoch < MOST_EPISODES):
                yield self._report(attempt, sight, kind, now[kind], since_ms, now_ms)

    def _has_ended(self, kind: BlindKind, sight: _Sight, now_ms: int) -> bool:
        """After a restart nothing is known for a moment: that is no end."""
        if kind is BlindKind.UNKNOWN_FORMAT:
            return sight.known_ms is not None
        return now_ms - sight.since_ms >= min(SETTLED_MS, self._missing_ms)

    def _report(
        self, attempt: AttemptId, sight: _Sight, kind: BlindKind, finding: Finding | None, since_ms: int, now_ms: int
    ) -> BlindReported:
        """The report, remembered. Without a finding it is the end."""
        before, ended = sight.told.get(kind), int(finding is None)
        epoch = 0 if before is None else before.epoch + (1 - ended)
        event_id = derived_id("blind", attempt.key, kind, epoch, ended)
        proposed = sight.guess.pattern if sight.guess is not None and kind is BlindKind.UNKNOWN_FORMAT else ""
        memory = SourceRead(event_id, "", of_blindness(attempt, kind), proposed, epoch, ended, 0, None, now_ms)
        sight.told[kind] = memory
        self._moved.append(memory)
        return BlindReported(
            event_id=event_id,
            cause="",
            attempt=attempt,
            position=Position(f"blind:{kind}", epoch, ended),
            kind=kind,
            ended=finding is None,
            detail="its output is read and understood" if finding is None else finding.detail,
            advice="" if finding is None else finding.advice,
            kinds=sight.open(),
            since_ms=since_ms,
            reported_ms=now_ms,
        )


def _says_more(found: Guess | None, proposed: str) -> bool:
    """Whether a line that counts was found after it was told that none is known, or after one that may be none."""
    return found is not None and found.pattern != proposed and (found.certain or not proposed)
