"""What our own records say, read from Kafka: held against the truth, never taken for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Message

from schemas.bookkeeping import RecordParked
from schemas.decisions import (
    Advice,
    AdviceIssued,
    AdviceResolved,
    AnomalyDetected,
    AttributionMade,
    FactParked,
    TimerSet,
)
from schemas.facts import ActionEnded, ActionIntended, ActionRefused
from schemas.identity import AttemptId
from schemas.topics import ACTIONS, ADVICE, DECISION_LOG, JOURNAL, PARKED, TIMERS
from schemas.vocabulary import Disposition, TimerPurpose
from streams.kafka import TopicView, decode, reader, recorded_ms
from tests.chaos.world import World

READ_S = 60.0


@dataclass
class Records:
    """Decisions and actions, in the order of each topic."""

    anomalies: list[AnomalyDetected] = field(default_factory=list)
    attributions: list[AttributionMade] = field(default_factory=list)
    issued: list[AdviceIssued] = field(default_factory=list)
    resolved: list[AdviceResolved] = field(default_factory=list)
    parked: list[FactParked] = field(default_factory=list)
    intents: list[ActionIntended] = field(default_factory=list)
    outcomes: list[ActionEnded] = field(default_factory=list)
    refusals: list[ActionRefused] = field(default_factory=list)
    advice: dict[AttemptId, Advice] = field(default_factory=dict)
    timers: dict[str, TimerSet] = field(default_factory=dict)
    parked_records: list[RecordParked] = field(default_factory=list)
    story: list[tuple[int, str, Any]] = field(default_factory=list)
    """(time in ms, topic, event) of facts and decisions."""

    def open_advice(self) -> list[Advice]:
        return [one for one in self.advice.values() if one.disposition is Disposition.PENDING]

    def waiting(self) -> list[TimerSet]:
        """Timers that are pending, but for those that put away a job's state a day later."""
        return [timer for timer in self.timers.values() if timer.purpose is not TimerPurpose.JOB_CLOSE]


def read(world: World) -> Records:
    """Everything that is committed now. Raises KafkaUnavailable."""
    records, codec = Records(), world.codec
    lists: dict[type, list[Any]] = {
        AnomalyDetected: records.anomalies,
        AttributionMade: records.attributions,
        AdviceIssued: records.issued,
        AdviceResolved: records.resolved,
        FactParked: records.parked,
        ActionIntended: records.intents,
        ActionEnded: records.outcomes,
        ActionRefused: records.refusals,
    }

    def take(message: Message) -> None:
        topic, key = message.topic(), (message.key() or b"").decode()
        if topic == PARKED.name:
            records.parked_records.append(decode(codec, message))
        elif message.value() is None:
            records.timers.pop(key, None)
        else:
            event = decode(codec, message)
            if topic == TIMERS.name:
                records.timers[key] = event
            elif topic == ADVICE.name:
                records.advice[event.attempt] = event
            else:
                if topic != JOURNAL.name:  # actions come there a second time, from the relay
                    lists.get(type(event), []).append(event)
                at = recorded_ms(message) if topic == JOURNAL.name else message.timestamp()[1]
                records.story.append((at, str(topic), event))

    consumer = reader(world.settings.kafka.bootstrap, "chaos-records")
    try:
        topics = (JOURNAL, DECISION_LOG, ACTIONS, ADVICE, TIMERS, PARKED)
        TopicView(consumer, topics, take).read_to_stable_end(timeout_s=READ_S)
    finally:
        consumer.close()
    return records
