"""One log source beside files: from labelled records to facts, in order, and how far it has come."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

import pytest

from schemas.bookkeeping import RecordParked
from schemas.decisions import JobView
from schemas.facts import CheckpointSaved, ProgressObserved, SignatureMatched
from schemas.vocabulary import AttemptState
from streams.sources.lines import Batch, Cursor, Labels, SourceLine, SourceState
from streams.watch.events import LineFact
from streams.watch.store import LABELLESS_MS, MOST_PARKED, StoreReader
from streams.watch.whose.labelled import Directory
from tests.watch.parts import NODES, T0, attempt, attempt_view, job_view, reading

PATH = "/logs/slurm-7.out"
OWN = Labels("7", PATH)
XID = "NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus."
STEP = " iteration {n:8d}/  500000 | elapsed time per iteration (ms): 500.0 | lm loss: 2.4E+00 |"


class Given:
    """Batches of a test."""

    name = "kafka:raw"

    def __init__(self) -> None:
        self.batches: deque[Batch] = deque()
        self.offset = 0

    def add(self, *lines: tuple[str, Labels], at_ms: int = T0 + 1_000) -> None:
        records = []
        for text, labels in lines:
            records.append(
                SourceLine(
                    text=text.encode(),
                    at_ms=at_ms,
                    labels=labels,
                    source="kafka:raw/0",
                    epoch=0,
                    offset=self.offset,
                    index=0,
                    identity=f"topic:{self.offset}:0",
                    cursor="kafka:raw/0",
                    mark=self.offset,
                )
            )
            self.offset += 1
        self.batches.append(Batch(tuple(records), (Cursor("kafka:raw/0", "topic", 0, self.offset),)))

    def take(self) -> Batch | None:
        return self.batches.popleft() if self.batches else None

    def close(self) -> None:
        self.batches.clear()


class Told:
    """A reader, and what it told."""

    def __init__(self, *views: JobView, hold_ms: int = 60_000, zone: tzinfo = UTC) -> None:
        self.given = Given()
        self.reader = StoreReader(self.given, "local", reading(hold_ms=hold_ms, zone=zone))
        self.views: Sequence[JobView] = views or (job_view(attempt_view(0, PATH)),)
        self.now_ms = T0 + 2_000
        self.followed: set[str] = set()

    def turn(self) -> list[LineFact | RecordParked]:
        directory = Directory.of("local", self.views)
        return list(self.reader.turn(lambda: self.now_ms, directory, self.followed.__contains__))

    def position(self) -> int:
        [position] = self.reader.positions(self.now_ms)
        return position.offset


def test_lines_become_the_same_facts_as_those_of_files() -> None:
    told = Told()
    told.given.add((STEP.format(n=5), OWN), ("successfully saved checkpoint from iteration 5 to /ck", OWN), (XID, OWN))
    progress, saved, fault = told.turn()
    assert isinstance(progress, ProgressObserved)
    assert isinstance(saved, CheckpointSaved)
    assert isinstance(fault, SignatureMatched)
    assert (progress.step, saved.step, fault.signature) == (5, 5, "xid-off-the-bus")
    assert [fact.position.source for fact in (progress, saved, fault)] == ["kafka:raw/0"] * 3
    assert [fact.position.offset for fact in (progress, saved, fault)] == [0, 1, 2]
    assert fault.evidence.file == PATH
    assert fault.evidence.line_ms == T0 + 1_000
    assert told.position() == 3


def test_the_same_records_read_again_give_the_same_events() -> None:
    events = []
    for _ in range(2):
        told = Told()
        told.given.add((XID, OWN), (STEP.format(n=5), OWN))
        events.append([fact.event_id for fact in told.turn()])
    assert events[0] == events[1]
    assert len(set(events[0])) == 2


def test_labels_say_who_printed_it_where_the_line_does_not() -> None:
    told = Told()
    node2 = replace(OWN, node="node2", rank=5)
    told.given.add((XID, node2), (f"node1: {XID}", node2), (XID, replace(OWN, node="collector", rank=1)))
    origins = [(fact.evidence.node, fact.evidence.rank) for fact in told.turn() if isinstance(fact, SignatureMatched)]
    assert origins == [("node2", 5), ("node1", 5), (None, 1)]
    assert "collector" not in NODES


def test_a_record_of_several_lines_gives_each_its_own_fact() -> None:
    told = Told()
    told.given.add((f"{XID}\nnoise\n{XID.replace('79', '94')}", OWN), (XID, OWN))
    facts = told.turn()
    assert len(facts) == 3
    assert len({fact.event_id for fact in facts}) == 3
    assert [(f.position.offset, f.position.ordinal) for f in facts if not isinstance(f, RecordParked)] == sorted(
        (f.position.offset, f.position.ordinal) for f in facts if not isinstance(f, RecordParked)
    )


def test_a_traceback_spread_over_records_of_one_stream_is_seen_as_one() -> None:
    told = Told()
    other = Labels("7", PATH, rank=1)
    told.given.add(
        ("Traceback (most recent call last):", OWN),
        (XID, other),
        ('  File "/train.py", line 3, in <module>', OWN),
        ("ValueError: bad shape", OWN),
    )
    facts = [fact for fact in told.turn() if isinstance(fact, SignatureMatched)]
    assert [fact.position.offset for fact in facts] == [1, 3], "in the order of the records"


def test_lines_of_an_unknown_job_hold_the_position_and_nobody_else() -> None:
    told = Told()
    told.given.add((XID, OWN), (XID, Labels("8", "/logs/slurm-8.out")), (STEP.format(n=1), OWN))
    assert [fact.position.offset for fact in told.turn() if not isinstance(fact, RecordParked)] == [0, 2]
    assert told.position() == 1
    told.views = (*told.views, job_view(attempt_view(0, "/logs/slurm-8.out", job_id="8"), job_id="8"))
    [fact] = told.turn()
    assert not isinstance(fact, RecordParked)
    assert fact.attempt == attempt(0, "8")
    assert told.position() == 3


def test_a_job_that_stays_unknown_is_parked_once_and_not_waited_for_again() -> None:
    told = Told()
    stranger = Labels("8", "/logs/slurm-8.out")
    told.given.add(*[(XID, stranger)] * 3)
    assert told.turn() == []
    told.now_ms += 60_000
    [parked] = told.turn()
    assert isinstance(parked, RecordParked)
    assert "no job 8 is known" in parked.reason
    told.given.add((XID, stranger))
    assert told.turn() == []
    assert told.position() == 4, "nothing waits"
    assert told.reader.not_parked == 3


def test_lines_between_two_attempts_wait_and_are_then_parked_never_given_to_the_newest() -> None:
    ended = attempt_view(0, PATH, end_ms=T0 + 10_000, state=AttemptState.REQUEUED)
    told = Told(job_view(ended, attempt_view(1, PATH, start_ms=T0 + 60_000)))
    told.given.add(*[(XID, OWN)] * (MOST_PARKED + 5), at_ms=T0 + 30_000)
    told.now_ms = T0 + 61_000
    assert told.turn() == []
    assert told.position() == 0
    told.now_ms += 60_000
    parked = told.turn()
    assert len(parked) == MOST_PARKED
    assert all(isinstance(one, RecordParked) for one in parked)
    assert len({one.event_id for one in parked}) == MOST_PARKED
    assert told.position() == MOST_PARKED + 5


MINUTE = 60_000
BERLIN = ZoneInfo("Europe/Berlin")
TWO = job_view(
    attempt_view(0, PATH, end_ms=T0 + 180 * MINUTE, state=AttemptState.REQUEUED),
    attempt_view(1, PATH, start_ms=T0 + 185 * MINUTE, submit_time=T0 // 1000 + 180 * 60),
)


def owner(text: str, at_ms: int, *, label: int | None = None, zone: tzinfo = UTC) -> int:
    """Whose a line is of a record of this time."""
    told = Told(TWO, zone=zone)
    told.now_ms = at_ms + 1_000
    told.given.add((text, replace(OWN, attempt=label)), at_ms=at_ms)
    [fact] = told.turn()
    assert isinstance(fact, SignatureMatched)
    return fact.attempt.index


@pytest.mark.parametrize("label", [None, 1])
def test_a_time_without_a_zone_overrules_neither_the_label_nor_the_records_time(label: int | None) -> None:
    """The container prints UTC, and watch takes it for the local time of Berlin: two hours early."""
    assert owner(f"[2026-08-01 13:30:00] node2 rank 3: {XID}", T0 + 210 * MINUTE, label=label, zone=BERLIN) == 1


@pytest.mark.parametrize("label", [None, 0])
def test_a_line_that_names_its_zone_is_of_its_own_time_however_late_it_was_shipped(label: int | None) -> None:
    late = T0 + 210 * MINUTE
    assert owner(f"2026-08-01T10:30:00Z {XID}", late, label=label) == 0
    assert owner(f"2026-08-01T12:30:00+02:00 {XID}", late, label=label) == 0


def test_a_time_without_a_zone_counts_where_it_is_the_records_but_for_the_clocks() -> None:
    """Slurm says that attempt 0 ended at 13:00:00; attempt 1 began two seconds later."""
    soon = T0 + 180 * MINUTE + 2_000
    told = Told(replace(TWO, attempts=(TWO.attempts[0], replace(TWO.attempts[1], start_ms=soon))))
    told.now_ms = soon + 5_000
    told.given.add((f"[2026-08-01 13:00:00.900] node2: {XID}", OWN), (XID, OWN), at_ms=soon + 500)
    assert [fact.attempt.index for fact in told.turn() if not isinstance(fact, RecordParked)] == [0, 1]


def test_a_record_older_than_every_attempt_that_reports_its_file_is_not_waited_for() -> None:
    told = Told()
    told.given.add((XID, OWN), at_ms=T0 - 60 * MINUTE)
    [parked] = told.turn()
    assert isinstance(parked, RecordParked)


def test_a_file_that_watch_follows_itself_is_not_told_twice() -> None:
    told = Told()
    told.followed = {PATH}
    told.given.add((XID, OWN), (XID, Labels("7", "/logs/other.out", attempt=0)))
    assert [fact.position.offset for fact in told.turn() if not isinstance(fact, RecordParked)] == [1]
    assert told.reader.seen[attempt(0)].size > 0


def test_what_came_of_an_attempt_is_remembered_and_so_are_labels_that_fit_nothing() -> None:
    told = Told(job_view(attempt_view(0, PATH)), job_view(attempt_view(0, "/logs/9.out", job_id="9"), job_id="9"))
    told.given.add(("quiet line", OWN), ("quiet", Labels("9", "/mnt/9.out")), ("who am I", Labels()))
    assert told.turn() == []
    assert told.reader.seen[attempt(0)].at_ms == T0 + 1_000
    assert list(told.reader.mislabelled) == [attempt(0, "9")]
    assert told.reader.labelless(told.now_ms)
    told.given.add(("quiet", Labels("9", "/logs/9.out")))
    told.turn()
    assert told.reader.mislabelled == {}


def test_one_record_without_labels_is_forgotten_after_a_while() -> None:
    told = Told()
    told.given.add(("the collector is alive", Labels()))
    told.turn()
    assert told.reader.labelless(told.now_ms + LABELLESS_MS - 1)
    assert not told.reader.labelless(told.now_ms + LABELLESS_MS)


def test_a_wrong_job_id_beside_the_right_file_is_the_collectors_fault_and_waits_only_once() -> None:
    told = Told()
    wrong = Labels("job-7", PATH)
    told.given.add((XID, wrong))
    assert told.turn() == []
    assert "job-7" in told.reader.mislabelled[attempt(0)]
    assert PATH in told.reader.mislabelled[attempt(0)]
    told.now_ms += 60_000
    assert [type(one) for one in told.turn()] == [RecordParked]
    told.given.add((XID, wrong))
    assert told.turn() == []
    assert told.position() == 2, "nothing waits"


def test_a_source_that_is_down_is_a_state() -> None:
    told = Told()
    told.given.batches.append(Batch((), (), SourceState.DOWN, "kafka:raw does not answer"))
    assert told.turn() == []
    assert (told.reader.state, told.reader.problem) == (SourceState.DOWN, "kafka:raw does not answer")
