"""The process `recovery watch`: follows the output of jobs that run, and writes what it says as facts.

It reads `recovery.jobs` for what to follow and `recovery.positions` for where it was; both to their end before the
first line. Facts go to the journal, then the positions: after any crash the lines since are read again and give the
same events.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TypeVar
from zoneinfo import ZoneInfo

import structlog
from confluent_kafka import KafkaException

from recovery.metrics import counter, gauge
from recovery.process import ProcessContext, run_process
from recovery.settings import Settings, SettingsError
from recovery.topics import TopicsError, check_topics
from schemas.bookkeeping import RecordParked, SourceRead
from schemas.codec import Codec
from schemas.decisions import OutputAsked
from schemas.identity import Position
from schemas.registry import RegistryError, RegistryIds
from schemas.topics import JOBS, JOURNAL, NODES, PARKED, POSITIONS, REQUESTS, Topic
from streams.kafka import KafkaUnavailable
from streams.sources.configured import node_sources_of, sources_of
from streams.sources.files import FileState
from streams.watch.answers import Questions, StoreSaid, answer
from streams.watch.blind import BlindWatch
from streams.watch.events import LineFact, source_of
from streams.watch.jobs import FRESH_S, Jobs, read_positions
from streams.watch.matching.examples import load_matcher
from streams.watch.matching.packs import BadPack, load_packs
from streams.watch.memories import Memories
from streams.watch.nodes.watching import NodeWatch
from streams.watch.own import OwnFormats
from streams.watch.publisher import Publisher
from streams.watch.source import Source
from streams.watch.stores import Stores
from streams.watch.telling import Reading
from streams.watch.throttle import Throttle
from streams.watch.whose.claims import Claim

log = structlog.get_logger(__name__)
T = TypeVar("T")

TOPICS = (JOURNAL, JOBS, NODES, POSITIONS, REQUESTS, PARKED)
RETRY_S = (0.5, 1, 2, 5, 10)
# A finished attempt's files are followed for this long after we saw its end: launchers write last words late.
LINGER_MS = 120_000
# Positions are written so often, and not more of them: after a crash a little more is read again.
POSITION_MS, POSITIONS_A_SECOND = 1_000, 100
# The wait between two turns is so many times what a turn took of the CPU, within this bound, which is less than news of
# jobs stay fresh: many files are looked at less often, rather than taking the machine from those who share it.
WAIT_TIMES, MOST_WAIT_S = 9, 0.9
FLUSH_S = 2.0
STOP_FLUSH_S = 10.0
BEAT_S = 30.0

SOURCES = gauge("watch_sources", "Files that are followed, by state; waiting: held back for news of its job.", "state")
BYTES = counter("watch_read_bytes", "Bytes of job output read.")
NOT_PARKED = counter("watch_lines_not_parked", "Lines of nobody past the first ones of a run, which were parked.")
_STATES = (*FileState, "waiting")


def run(settings: Settings) -> int:
    """Run until told to stop; return the exit code."""
    return run_process("watch", settings, _body)


def _body(context: ProcessContext) -> None:
    settings = context.settings
    try:
        matcher = load_matcher(load_packs(settings.watch.packs))
    except BadPack as error:
        raise SettingsError(str(error)) from error
    sources, node_sources = sources_of(settings), node_sources_of(settings)
    bootstrap = settings.kafka.bootstrap
    if _retried(context, "Kafka", lambda: _checked(bootstrap)) is None:
        return
    ids = _retried(context, "the schema registry", lambda: RegistryIds(settings.registry.url))
    codec = None if ids is None else Codec(ids)
    positions = None if codec is None else _retried(context, "Kafka", lambda: read_positions(bootstrap, codec))
    if codec is None or positions is None:
        return
    reading = Reading(
        matcher=matcher,
        throttle=Throttle(),
        zone=ZoneInfo(settings.watch.time_zone) if settings.watch.time_zone else None,
        skew_ms=int(settings.watch.clock_skew_s * 1000),
        hold_ms=int(settings.watch.hold_back_s * 1000),
        own=OwnFormats(positions if settings.watch.arm_on_proposed else None),
    )
    with closing(Jobs(bootstrap, codec)) as jobs:
        if _retried(context, "Kafka", jobs.read_to_stable_end) is None:
            return
        questions = _retried(context, "Kafka", lambda: Questions(bootstrap, codec))
        if questions is None:
            return
        with (
            closing(questions),
            closing(NodeWatch(settings, node_sources, reading, positions, _now_ms())) as nodes,
            closing(Stores(sources, reading, positions, jobs.views, _now_ms())) as stores,
        ):
            _Watch(context, jobs, questions, nodes, stores, Publisher(bootstrap, codec), reading, positions).follow()


def _checked(bootstrap: str) -> tuple[Topic, ...]:
    check_topics(bootstrap, TOPICS)
    return TOPICS


def _retried(context: ProcessContext, what: str, attempt: Callable[[], T]) -> T | None:
    """Try until it succeeds, with back-off; None once the process is told to stop."""
    tried = 0
    while not context.stop.requested:
        context.health.beat(BEAT_S * 4)
        try:
            return attempt()
        except (KafkaUnavailable, KafkaException, RegistryError, TopicsError) as error:
            wait_s = RETRY_S[min(tried, len(RETRY_S) - 1)]
            tried += 1
            context.health.not_ready(str(error))
            log.warning("not ready to start", waiting_for=what, error=str(error), next=f"again in {wait_s:g} s")
            context.stop.wait(wait_s)
    return None


class _Watch:
    """The loop over all followed files."""

    def __init__(
        self,
        context: ProcessContext,
        jobs: Jobs,
        questions: Questions,
        nodes: NodeWatch,
        stores: Stores,
        publisher: Publisher,
        reading: Reading,
        positions: dict[str, SourceRead],
    ) -> None:
        self._context = context
        self._jobs = jobs
        self._questions = questions
        self._nodes = nodes
        self._stores = stores
        self._publisher = publisher
        self._reading = reading
        self._positions = positions
        self._memories = Memories(positions)
        watch = context.settings.watch
        self._blind = BlindWatch(
            watch.missing_after_s,
            watch.unknown_after_s,
            positions,
            reading.own,
            arm_on_proposed=watch.arm_on_proposed,
        )
        self._sources: dict[str, Source] = {}
        self._over_since_ms: dict[str, int] = {}
        self._left: dict[str, Claim] = {}
        self._reported: dict[str, str] = {}
        self._positions_ms = 0
        self._learnt = -1

    def follow(self) -> None:
        """Turn until the process is told to stop; then write what is read and how far."""
        context = self._context
        while not context.stop.requested:
            context.health.beat(BEAT_S)
            began_s = time.thread_time()
            if not self._turn():
                self._wait(wait_s(context.settings.watch.poll_s, time.thread_time() - began_s))
        if not (self._write_positions(STOP_FLUSH_S) and self._publisher.delivered(STOP_FLUSH_S)):
            log.warning("facts not delivered", next="their lines are read again at the next start")
        for source in self._sources.values():
            source.close()

    def _wait(self, seconds: float) -> None:
        """Wait, and take news of jobs meanwhile: when they grow old, all of them must be read before any line is."""
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0 and not self._context.stop.requested:
            self._context.stop.wait(min(left_s, FRESH_S / 4))
            if left_s > FRESH_S / 4:
                self._know_claims()

    def _turn(self) -> bool:
        """Look at every file once; return whether there is more to read at once."""
        now_ms = _now_ms()
        self._publisher.poll()
        if not self._know_claims():
            return False
        self._choose(now_ms)
        if self._publisher.full:
            self._write_positions(FLUSH_S)
            return False
        for path, source in self._sources.items():
            if self._jobs.old and not self._know_claims():
                return False
            claim = self._claims.get(path)
            if claim is not None:
                for event in source.turn(_now_ms(), claim):
                    self._write(event)
                self._report(path, source)
                if source.more:
                    self._context.health.beat(BEAT_S)
        for event in self._stores.turn(self._jobs.views, self._jobs.version, self._is_told):
            self._write(event)
        self._context.health.beat(BEAT_S)
        for fact in self._nodes.turn(_now_ms()):
            self._publisher.write_of_node(fact)
        reports = list(self._blind.look(now_ms, self._jobs.views, self._sources, self._stores.readers))
        for report in reports:
            self._publisher.write(report)
            log.warning("blind", attempt=str(report.attempt), kind=report.kind, ended=report.ended, found=report.detail)
        self._answer()
        more = self._stores.more or any(source.more for source in self._sources.values())
        wait_ms = max(POSITION_MS, 1000 * len(self._sources) // POSITIONS_A_SECOND)
        if reports or now_ms - self._positions_ms >= wait_ms:  # no step may be told of a shape that could be forgotten
            self._write_positions(FLUSH_S)
        self._count()
        return more

    def _know_claims(self) -> bool:
        """Learn who claims what now; False while Kafka can't tell, and then nothing is read."""
        try:
            self._claims = self._jobs.claims()
            if self._jobs.version != self._learnt:
                self._reading.own.learn(self._jobs.views)
                self._forget()
                self._learnt = self._jobs.version
        except KafkaUnavailable as error:
            self._context.health.not_ready(f"{error}; files are read on when Kafka answers")
            return False
        return True

    def _forget(self) -> None:
        """Take out what is remembered of attempts whose jobs are closed."""
        for name in self._memories.forget(self._jobs.views):
            self._publisher.forget_position(name)
            self._positions.pop(name, None)

    def _write(self, event: LineFact | RecordParked) -> None:
        if not isinstance(event, RecordParked):
            self._blind.heard(event, _now_ms())
        self._publisher.write(event)

    def _is_told(self, path: str) -> bool:
        """Whether watch reads this file itself and knows whose each line is: then no store need tell it."""
        source, claim = self._sources.get(path), self._claims.get(path)
        followed = source is not None and source.state is FileState.FOLLOWED
        return followed and claim is not None and not claim.shared

    def _answer(self) -> None:
        """Look at the output that deciders ask about, and say what is seen; stores are asked in between."""
        for asked, position in self._questions.new():
            if self._stores.ask(asked, position, _now_ms()):
                continue
            self._say(asked, position, ())
        for asked, position, said in self._stores.answered(_now_ms()):
            self._say(asked, position, said)

    def _say(self, asked: OutputAsked, position: Position, said: Sequence[StoreSaid]) -> None:
        checked = answer(asked, position, self._grew_ms, _now_ms(), said)
        self._publisher.write(checked)
        log.info("output looked at", attempt=str(asked.attempt), grew_ms=checked.last_output_ms, error=checked.error)

    def _grew_ms(self, path: str) -> int | None:
        source = self._sources.get(path)
        return None if source is None else source.grew_ms(_now_ms())

    def _choose(self, now_ms: int) -> None:
        """Follow what is claimed; leave what is over, read and quiet, and what nobody claims any more."""
        for path, claim in self._claims.items():
            if path not in self._sources and self._left.get(path) != claim:
                self._sources[path] = Source(path, self._reading, self._positions.get(source_of(path)))
                log.info("following", path=path, attempts=[str(writer.attempt) for writer in claim.writers])
        for path, source in list(self._sources.items()):
            known = self._claims.get(path)
            if known is None or (known.over and self._lingered(path, now_ms) and source.finished(now_ms)):
                self._leave(path, source, known)
            elif not known.over:
                self._over_since_ms.pop(path, None)
        self._left = {path: claim for path, claim in self._left.items() if path in self._claims}

    def _lingered(self, path: str, now_ms: int) -> bool:
        return now_ms - self._over_since_ms.setdefault(path, now_ms) >= LINGER_MS

    def _leave(self, path: str, source: Source, claim: Claim | None) -> None:
        """Stop following, unless what was read can't be written down now: then at a later turn."""
        if not self._write_positions(FLUSH_S):
            return
        source.close()
        del self._sources[path]
        self._over_since_ms.pop(path, None)
        self._reported.pop(path, None)
        if claim is not None:
            self._left[path] = claim
        self._reading.throttle.forget({writer.attempt for known in self._claims.values() for writer in known.writers})
        log.info("left", path=path, offset=source.read_to[1])

    def _write_positions(self, timeout_s: float) -> bool:
        """Once all facts are delivered, write how far each source was read; return whether they are."""
        now_ms = _now_ms()
        moved = [source for source in self._sources.values() if source.read_to != self._written_to(source)]
        if not self._publisher.delivered(timeout_s):
            self._context.health.not_ready(
                "Kafka does not take what was read; it is kept, and reading stops at a limit"
            )
            return False
        self._context.health.ready()
        for source in moved:
            position = source.position(now_ms)
            self._publisher.write_position(position)
            self._positions[position.source] = position
        for position in (*self._nodes.moved(now_ms), *self._stores.moved(now_ms), *self._blind.moved()):
            self._publisher.write_position(position)
            self._positions[position.source] = position
            self._memories.wrote(position.source)
        self._positions_ms = now_ms
        return True

    def _written_to(self, source: Source) -> tuple[int, int]:
        known = self._positions.get(source_of(source.path))
        return (0, 0) if known is None else (known.epoch, known.offset)

    def _report(self, path: str, source: Source) -> None:
        """Say once that something is wrong with a file, and once that it is well again."""
        says = source.waiting or source.problem
        if says == self._reported.get(path, ""):
            return
        self._reported[path] = says
        if source.waiting:
            log.warning("line waits for its owner", path=path, reason=says, next="parked after watch.hold_back_s")
        elif source.problem:
            log.warning("file can't be read", path=path, state=source.state, problem=says, next="look again")
        else:
            log.info("file is read", path=path)

    def _count(self) -> None:
        states = Counter("waiting" if source.waiting else source.state for source in self._sources.values())
        for state in _STATES:
            SOURCES.labels(state).set(states.get(state, 0))
        for source in self._sources.values():
            BYTES.inc(source.bytes_read)
            NOT_PARKED.inc(source.not_parked)
            source.bytes_read = source.not_parked = 0


def wait_s(least_s: float, worked_s: float) -> float:
    """How long to wait after a turn that took so many CPU seconds."""
    return max(least_s, min(WAIT_TIMES * worked_s, MOST_WAIT_S))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
