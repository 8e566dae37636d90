"""Decide all of history again and compare, byte for byte, with what was decided then.

The comparison is of Avro payloads, partition by partition, in order. A fact whose decision was to park it is parked
again, not decided. A missing fact is a difference: without it the rest could verify, and the record be half of it.
Facts beyond the deciders' committed position need no decision yet; what there is must agree.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from schemas.catalogue import committed
from schemas.codec import PREFIX, Codec, UnknownSchema, UnreadableRecord
from schemas.decisions import Advice, FactParked, JobView, TimerCleared, TimerSet
from schemas.nodes import NodeAllocated, NodeFreed
from schemas.policy import Policy
from schemas.topics import JOURNAL
from streams.decide.decide import conclude, park
from streams.decide.nodes import decide_node, park_node
from streams.replay.history import History, HistoryUnreadable, StoredRecord

# What was decided, told to others; each is in full, or in effect, in a decision as well.
NOT_LOGGED = frozenset({Advice, JobView, TimerSet, TimerCleared, NodeAllocated, NodeFreed})
PROGRESS_EVERY = 10_000
READ_AHEAD = 256
"""Facts that are decoded in a row: decoding and deciding push each other's code out of the processor's caches."""
COLLECT_AFTER = 100_000
"""Objects made before Python looks for cycles; 700 by default."""
PARKED_FINGERPRINTS = frozenset(version.fingerprint for version in committed()["FactParked"])


Outcome = tuple[Any, tuple[Any, ...]]


@dataclass(frozen=True)
class Rules:
    """One kind of decider, as its worker runs it."""

    decide: Callable[[Any, Any, int], Outcome]
    """State, fact and the record's timestamp."""
    park: Callable[[Any, str, tuple[str, int, int], str, int], Outcome]
    gapless: bool
    """Whether the offsets of the facts follow one another: not in a topic written in transactions, whose markers have
    offsets too."""


@dataclass(frozen=True)
class Difference:
    """The first place where deciding again gave something else."""

    fact: str
    why: str
    recorded: str
    derived: str


@dataclass
class Report:
    """What a verification found. It is clean when `difference` is None. `jobs` counts keys: jobs, or nodes."""

    facts: int = 0
    jobs: int = 0
    decisions: int = 0
    parked: int = 0
    undecided: int = 0
    difference: Difference | None = None


def verify(
    history: History, codec: Codec, policies: Mapping[str, Policy], progress: Callable[[int], None] = lambda _: None
) -> Report:
    """Verify all that the attempt decider concluded. It stops at the first difference."""
    rules = Rules(lambda state, fact, recorded_ms: conclude(state, fact, recorded_ms, policies), park, gapless=True)
    return verify_by(rules, history, codec, progress)


def verify_nodes(history: History, codec: Codec, progress: Callable[[int], None] = lambda _: None) -> Report:
    """Verify all that the node decider concluded. It stops at the first difference."""
    return verify_by(Rules(decide_node, park_node, gapless=False), history, codec, progress)


def verify_by(rules: Rules, history: History, codec: Codec, progress: Callable[[int], None] = lambda _: None) -> Report:
    """Verify what deciders of these rules concluded. It stops at the first difference."""
    report = Report()
    with _few_collections():
        for partition in range(history.partitions()):
            _Partition(history, partition, codec, rules, report, progress).verify()
            if report.difference is not None:
                break
    return report


@contextmanager
def _few_collections() -> Iterator[None]:
    """Look for garbage cycles rarely: states make none, and there are as many as jobs, looked through each time."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Partition:
    """One partition of facts, replayed beside its decisions."""

    def __init__(
        self,
        history: History,
        partition: int,
        codec: Codec,
        rules: Rules,
        report: Report,
        progress: Callable[[int], None],
    ) -> None:
        self._journal = history.journal(partition)
        self._recorded = _Lookahead(history.decisions(partition))
        self._decided_up_to = history.decided_up_to(partition)
        self._codec = codec
        self._rules = rules
        self._report = report
        self._progress = progress
        self._states: dict[bytes, Any] = {}
        self._partition = partition
        self._next = 0

    def verify(self) -> None:
        for record, fact in self._read():
            if not self._follows(record.topic, record.offset):
                break
            self._report.facts += 1
            if self._report.facts % PROGRESS_EVERY == 0:
                self._progress(self._report.facts)
            must = record.offset < self._decided_up_to
            if not must:
                self._report.undecided += 1
            if not self._compare(record, self._derive(record, fact), must=must):
                break
        if self._report.difference is None:
            self._follows(JOURNAL.name, max(self._next, self._decided_up_to))
        extra = self._recorded.peek()
        if extra is not None and self._report.difference is None:
            self._differ(extra, "a decision is on record that no fact leads to", extra, None)
        self._report.jobs += len(self._states)

    def _follows(self, topic: str, offset: int) -> bool:
        """Whether no fact is missing before this offset."""
        first, self._next = self._next, offset + 1
        if offset == first or not self._rules.gapless:
            return True
        self._report.difference = Difference(
            fact=f"{topic}/{self._partition}/{first}",
            why=f"{offset - first} facts are missing here from the record, before offset {offset}",
            recorded="None",
            derived="None",
        )
        return False

    def _read(self) -> Iterator[tuple[StoredRecord, Any]]:
        """Each record with its fact, or with the error that decoding it gives, which counts unless it was parked.

        Where the history can't be read on, what was read before is given first.
        """
        ahead: list[StoredRecord] = []
        try:
            for record in self._journal:
                ahead.append(record)
                if len(ahead) == READ_AHEAD:
                    yield from self._facts(ahead)
                    ahead = []
        except HistoryUnreadable:
            yield from self._facts(ahead)
            raise
        yield from self._facts(ahead)

    def _facts(self, records: Sequence[StoredRecord]) -> list[tuple[StoredRecord, Any]]:
        return [(record, self._fact(record)) for record in records]

    def _fact(self, record: StoredRecord) -> Any:
        try:
            return self._event(record)
        except (UnknownSchema, UnreadableRecord) as error:
            return error

    def _derive(self, record: StoredRecord, fact: Any) -> tuple[Any, ...]:
        state = self._states.get(record.key)
        parked = self._parked_here(record)
        if parked is not None:
            self._report.parked += 1
            place = (record.topic, record.partition, record.offset)
            key = record.key.decode("utf-8", "replace")
            state, events = self._rules.park(state, key, place, parked.reason, record.timestamp_ms)
        elif isinstance(fact, UnknownSchema):
            raise fact
        elif isinstance(fact, UnreadableRecord):
            self._differ(record, f"the fact can't be read and was not parked: {fact}", None, None)
            return ()
        else:
            state, events = self._rules.decide(state, fact, record.timestamp_ms)
        self._states[record.key] = state
        return events

    def _parked_here(self, record: StoredRecord) -> FactParked | None:
        """The recorded decision to park this very record, if that is what comes next."""
        recorded = self._recorded.peek()
        if recorded is None or recorded.fingerprint not in PARKED_FINGERPRINTS:
            return None
        event = self._event(recorded)
        if isinstance(event, FactParked) and (event.partition, event.offset) == (record.partition, record.offset):
            return event
        return None

    def _compare(self, fact: StoredRecord, events: tuple[Any, ...], *, must: bool) -> bool:
        """Hold the derived decisions against the recorded ones; return whether to go on."""
        if self._report.difference is not None:
            return False
        for event in events:
            if type(event) in NOT_LOGGED:
                continue
            recorded = self._recorded.peek()
            if recorded is None:
                if must:
                    self._differ(fact, "a decision is missing from the record", None, event)
                return not must
            if (recorded.value or b"")[PREFIX.size :] != self._codec.payload(event):
                self._differ(fact, "the decision differs", recorded, event)
                return False
            self._recorded.take()
            self._report.decisions += 1
        return True

    def _differ(self, fact: StoredRecord, why: str, recorded: StoredRecord | None, derived: Any) -> None:
        then = None if recorded is None else self._event(recorded)
        self._report.difference = Difference(
            fact=f"{fact.topic}/{fact.partition}/{fact.offset} ({fact.key.decode('utf-8', 'replace')})",
            why=_explain(why, then, derived),
            recorded=repr(then),
            derived=repr(derived),
        )

    def _event(self, record: StoredRecord) -> Any:
        return self._codec.decode(record.value or b"", record.headers)


class _Lookahead:
    """An iterator whose next record can be looked at first."""

    def __init__(self, records: Iterator[StoredRecord]) -> None:
        self._records = records
        self._next = next(records, None)

    def peek(self) -> StoredRecord | None:
        return self._next

    def take(self) -> None:
        self._next = next(self._records, None)


def _explain(why: str, then: Any, now: Any) -> str:
    """Name the fields that differ, where both sides are of one type."""
    if then is None or now is None or type(then) is not type(now) or not is_dataclass(then):
        return why
    changed = [f.name for f in fields(then) if getattr(then, f.name) != getattr(now, f.name)]
    return f"{why} in {', '.join(changed)}" if changed else f"{why} in its bytes alone"
