"""What a user of Quix Streams writes without any rules: exactly once, the same state and output bytes, no decision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.history import Step
from schemas.topics import JOURNAL, PARTITIONER, Cleanup, Topic
from streams.records import Outgoing
from streams.run.decide import OUTPUTS
from streams.run.quix import COMMIT_LATE_S, POLL_S, BytesSerializer, PlainApplication, Serializer
from streams.run.shell import LINGER_MS
from streams.run.worker import Store

GROUP = "bench-passthrough"
CHANGELOG = Topic(
    f"changelog__{GROUP}--{JOURNAL.name}--default", "job", Cleanup.COMPACTED, JOURNAL.partitions, "the state's copy"
)


class _Value(Serializer):
    def __call__(self, value: Outgoing, ctx: Any) -> bytes | None:  # type: ignore[override]  # noqa: ARG002
        return value.value


def application(bootstrap: str, state_dir: Path, plan: Mapping[bytes, list[Step]]) -> PlainApplication:
    """The stream. `plan` has what each record of a key leaves, in the key's order."""
    app = PlainApplication(
        broker_address=bootstrap,
        consumer_group=GROUP,
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        commit_interval=COMMIT_LATE_S,
        consumer_poll_timeout=POLL_S,
        auto_create_topics=False,
        state_dir=state_dir,
        loglevel="WARNING",
        producer_extra_config={"transactional.id": GROUP, "partitioner": PARTITIONER, "linger.ms": LINGER_MS},
        consumer_extra_config={"group.instance.id": GROUP, "fetch.wait.max.ms": 20},
    )
    journal = app.topic(JOURNAL.name, key_deserializer="bytes", value_deserializer="bytes")
    outputs = {
        topic.name: app.topic(topic.name, key_serializer=BytesSerializer(), value_serializer=_Value())
        for topic in OUTPUTS
    }
    taken: dict[bytes, int] = defaultdict(int)

    def leave(_value: bytes, key: bytes, _timestamp: int, _headers: Any, state: Store) -> list[Outgoing]:
        state.get_bytes("job")
        step = plan[key][taken[key]]
        taken[key] += 1
        state.set_bytes("job", step.state)
        return list(step.outgoing)

    stream = app.dataframe(journal)
    stream = stream.apply(leave, stateful=True, expand=True, metadata=True)
    stream = stream.set_headers(lambda value, *_: list(value.headers))
    stream.to_topic(lambda value, *_: outputs[value.topic.name], key=lambda value: value.key)
    return app
