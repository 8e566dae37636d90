"""What a person does about records that could not be handled, on a real Kafka."""

from dataclasses import dataclass, replace
from uuid import uuid4

import pytest
from confluent_kafka import Message

from infra.local.endpoints import Endpoints
from recovery.parked import Parked, ParkedError, lift, read_parked
from recovery.topics import create_topics
from schemas.bookkeeping import RecordParked
from schemas.codec import Codec, FixedIds
from schemas.decisions import FactParked, QuarantineEnded
from schemas.facts import CheckpointSaved, QuarantineLifted
from schemas.identity import AttemptId, Position
from schemas.topics import DECISION_LOG, JOURNAL, PARKED, Topic
from streams.kafka import TopicView, producer, reader, send

pytestmark = pytest.mark.stack

BAD = b"\x00\x00\x00\x00\x01no event"
HEADERS = ("ce_type=recovery.JobObserved", "ce_id=a=b")


@dataclass(frozen=True)
class Kafka:
    """The shared Kafka, and a job of this test's own."""

    bootstrap: str
    codec: Codec
    job_id: str

    @property
    def key(self) -> str:
        return f"test/{self.job_id}"

    def write(self, topic: Topic, key: str, event: object) -> None:
        to = producer(self.bootstrap, "test")
        send(to, topic, key, self.codec.encode(event, source="test", time_ms=1, subject=key))
        assert to.flush(10) == 0

    def park(self, *, topic: str = JOURNAL.name, key: str | None = None, value: bytes = BAD) -> str:
        """Write what the decider writes when it parks a record; return the reason, by which it is found again."""
        reason, key = f"ValueError: {uuid4()}", key or self.key
        record = RecordParked(str(uuid4()), "", topic, 0, 7, key.encode(), value, HEADERS, reason, 1)
        self.write(PARKED, f"{topic}/0/7", record)
        if topic == JOURNAL.name:
            self.write(DECISION_LOG, key, FactParked(str(uuid4()), "", key, 1, topic, 0, 7, reason))
        return reason

    def parked(self, reason: str) -> Parked:
        [found] = [one for one in read_parked(self.bootstrap, self.codec) if one.record.reason == reason]
        return found

    def journal(self) -> list[Message]:
        """Return the records of this test's job."""
        seen: list[Message] = []
        consumer = reader(self.bootstrap, "test")
        TopicView(consumer, (JOURNAL,), seen.append).read_to_stable_end()
        consumer.close()
        return [message for message in seen if message.key() == self.key.encode()]


@pytest.fixture
def kafka(stack: Endpoints) -> Kafka:
    create_topics(stack.kafka)
    return Kafka(stack.kafka, Codec(FixedIds()), str(uuid4().int % 10**9))


def test_a_parked_fact_is_open_until_its_quarantine_has_ended(kafka: Kafka) -> None:
    reason = kafka.park()
    assert kafka.parked(reason).open
    kafka.write(DECISION_LOG, kafka.key, QuarantineEnded(str(uuid4()), "", "test", kafka.job_id, 2, "me", "seen"))
    assert not kafka.parked(reason).open


def test_reappending_lifts_the_quarantine_first_and_gives_the_fact_as_of_a_source_where_it_is_not_late(
    kafka: Kafka,
) -> None:
    attempt = AttemptId("test", kafka.job_id, 1_700_000_000, 0)
    position = Position("file:/x", 2, 100, 1)
    saved = CheckpointSaved("id", "", attempt, position, "megatron", 7, None, None, 5)
    parked = kafka.parked(kafka.park(value=kafka.codec.encode_value(saved)))
    lift(kafka.bootstrap, kafka.codec, parked, by="me", reason="fixed", again=True)
    lifted, again = kafka.journal()
    fact = kafka.codec.decode(lifted.value() or b"", lifted.headers())
    assert isinstance(fact, QuarantineLifted)
    assert (fact.job_id, fact.by, fact.reason, fact.cause) == (kafka.job_id, "me", "fixed", parked.record.event_id)
    as_before = kafka.codec.decode(again.value() or b"", again.headers())
    assert as_before == replace(saved, position=Position("parked:file:/x", 2, 100, 1))
    assert lifted.partition() == again.partition()


def test_what_still_can_not_be_read_is_not_appended_and_stays_quarantined(kafka: Kafka) -> None:
    with pytest.raises(ParkedError, match="still can't be read"):
        lift(kafka.bootstrap, kafka.codec, kafka.parked(kafka.park()), by="me", reason="hope", again=True)
    assert kafka.journal() == []


def test_dismissing_lifts_the_quarantine_alone(kafka: Kafka) -> None:
    lift(kafka.bootstrap, kafka.codec, kafka.parked(kafka.park()), by="me", reason="noise", again=False)
    [lifted] = kafka.journal()
    assert isinstance(kafka.codec.decode(lifted.value() or b"", lifted.headers()), QuarantineLifted)


def test_a_line_that_watch_parked_is_listed_and_no_job_waits_for_it(kafka: Kafka) -> None:
    parked = kafka.parked(kafka.park(topic="file:/x/out.log"))
    assert not parked.open
    with pytest.raises(ParkedError, match=r"came from file:/x/out.log, not from the journal: no job waits for it"):
        lift(kafka.bootstrap, kafka.codec, parked, by="me", reason="noise", again=False)


def test_a_key_that_names_no_job_is_said_and_nothing_is_written(kafka: Kafka) -> None:
    parked = kafka.parked(kafka.park(key="nobody"))
    with pytest.raises(ParkedError, match=r"'nobody', names no job"):
        lift(kafka.bootstrap, kafka.codec, parked, by="me", reason="noise", again=True)
    assert kafka.journal() == []
