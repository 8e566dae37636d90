"""One partitioner: a job's facts must lie on one partition, whoever writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.topics import CATALOGUE, Cleanup, event_types, murmur2, partition_of
from streams.run.slots import ATTEMPT_CREW, NODE_CREW


# Published test vectors of Kafka's own Utils.murmur2.
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected & 0xFFFFFFFF


@given(st.binary(max_size=64), st.integers(1, 64))
def test_every_key_has_a_partition(key: bytes, partitions: int) -> None:
    assert 0 <= partition_of(key, partitions) < partitions


def test_history_is_never_deleted_and_views_are_compacted() -> None:
    for topic in CATALOGUE:
        config = topic.config(replication=3)
        assert config["min.insync.replicas"] == "2"
        if topic.cleanup is Cleanup.KEPT:
            assert config["retention.ms"] == "-1"
        assert (config["cleanup.policy"] == "compact") == (topic.cleanup is Cleanup.COMPACTED)


def test_what_is_read_whole_at_a_start_is_compacted_before_it_is_much() -> None:
    for topic in (*CATALOGUE, *(crew.changelog for crew in (ATTEMPT_CREW, NODE_CREW))):
        config = topic.config(replication=1)
        assert ("segment.bytes" in config) == (topic.cleanup is Cleanup.COMPACTED)
        assert int(config.get("segment.bytes", "0")) <= 8 << 20


def test_only_the_inputs_of_deciders_get_the_brokers_time() -> None:
    stamped = [t.name for t in CATALOGUE if t.config(replication=1)["message.timestamp.type"] == "LogAppendTime"]
    assert stamped == ["recovery.journal", "recovery.nodes"]


def test_every_topic_but_the_lease_says_what_it_may_hold() -> None:
    assert [topic.name for topic in CATALOGUE if not event_types(topic)] == ["recovery.sac-lease"]
