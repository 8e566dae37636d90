"""Writes a history decided by the rules of today, unless there is one: `python -m tests.corpus.make_history`.

`logic-<n>.avro` is an export as `recovery replay export` writes it: what the rules of logic n made of the published
cases, failing twice, of attempts that run on, hang or slow down (from logic 2 on), and of the benchmark's mix. Once it
is published it never changes: the rules of n must verify it for ever.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.mix import facts as mix
from bench.stories import POLICIES
from schemas.codec import FINGERPRINT, Codec, FixedIds
from schemas.facts import Fact, JobObserved, QuarantineLifted, SignatureMatched, job_of
from schemas.policy import LOGIC
from schemas.topics import DECISION_LOG, JOURNAL
from schemas.vocabulary import AttemptState
from streams.records import Incoming
from streams.replay.export import export
from streams.replay.history import StoredRecord
from streams.run.worker import Worker
from tests.corpus.running import RUNNING, STRAGGLERS
from tests.decide.story import Story
from tests.replay.memory import MemoryHistory, Store
from tests.watch.test_cases_decided import told
from tests.watch.test_cases_score import DATA

KNOWN = POLICIES | {STRAGGLERS.digest(): STRAGGLERS}
FOLDER = Path(__file__).parent
CODEC = Codec(FixedIds())


def path_of(logic: int) -> Path:
    return FOLDER / f"logic-{logic}.avro"


def stories() -> Iterator[list[tuple[Fact, int]]]:
    """A job of each published case, which fails, is restarted and fails again; attempts that run on; and the mix."""
    for text in (DATA / "cases.jsonl").read_text(encoding="utf-8").splitlines():
        story = told(json.loads(text))
        nodes = story.state.attempts[0].nodes if story.state is not None else ()
        story.observe(AttemptState.FAILED, nodes=nodes)
        story.wait(600)
        again(story, nodes)
        yield story.facts
    for live in RUNNING:
        yield live().facts
    yield [(timed.fact, timed.recorded_ms) for timed in mix(1)]


def again(story: Story, nodes: tuple[str, ...]) -> None:
    """The next attempt prints the first line that the one before printed."""
    printed = next((fact for fact, _ in story.facts if isinstance(fact, SignatureMatched)), None)
    story.observe(AttemptState.RUNNING, 1, nodes=nodes)
    story.progress(10, 1)
    if printed is not None:
        story.take(
            replace(
                printed,
                event_id=f"again-{printed.event_id}",
                attempt=replace(printed.attempt, index=1),
                position=replace(printed.position, source="file:/logs/again", epoch=0),
            )
        )
    story.observe(AttemptState.FAILED, 1, nodes=nodes)
    story.wait(600)


def renamed(fact: Fact, job_id: str) -> Fact:
    if isinstance(fact, JobObserved | QuarantineLifted):
        return replace(fact, job_id=job_id)
    return replace(fact, attempt=replace(fact.attempt, job_id=job_id))


def journal() -> list[StoredRecord]:
    records: list[StoredRecord] = []
    for number, facts in enumerate(stories(), start=100_000):
        several = len({job_of(fact) for fact, _ in facts}) > 1
        for fact, recorded_ms in facts:
            own = fact if several else renamed(fact, str(number))
            encoded = CODEC.encode(own, source="corpus", time_ms=recorded_ms, subject=job_of(own))
            place = (JOURNAL.name, 0, len(records), recorded_ms, job_of(own).encode())
            records.append(StoredRecord(*place, encoded.value, _fingerprint(encoded.headers)))
    return records


def decided(facts: list[StoredRecord]) -> list[StoredRecord]:
    worker, stores = Worker(CODEC, KNOWN, "corpus"), defaultdict[bytes, Store](Store)
    records: list[StoredRecord] = []
    for one in facts:
        record = Incoming(one.topic, 0, one.offset, one.key, one.value, [], one.timestamp_ms)
        for out in worker.handle(record, stores[one.key]):
            if out.topic is DECISION_LOG:
                place = (DECISION_LOG.name, 0, len(records), one.timestamp_ms, out.key)
                records.append(StoredRecord(*place, out.value, _fingerprint(out.headers)))
    return records


def _fingerprint(headers: list[tuple[str, bytes]]) -> str:
    return dict(headers)[FINGERPRINT].decode()


def main() -> None:
    path = path_of(LOGIC)
    if path.exists():
        print(f"{path.name} is there already, and stays as it is")
        return
    facts = journal()
    count = export(MemoryHistory(facts, decided(facts)), KNOWN, path, lambda _: None)
    print(f"{path.name}: {count} records, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
