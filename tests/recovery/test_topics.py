"""Topics on a real Kafka: made as the catalogue has them, and refused where they differ."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from infra.local.endpoints import Endpoints
from recovery.topics import TopicsError, check_topics, create_topics
from schemas.topics import ADVICE, CATALOGUE, JOURNAL, Topic

pytestmark = pytest.mark.stack


@pytest.fixture
def named() -> Callable[[Topic], Topic]:
    """Give topics names of this test's own: the Kafka is shared."""
    mark = uuid4().hex[:8]
    return lambda topic: replace(topic, name=f"{mark}.{topic.name}")


def test_missing_topics_are_made_once(stack: Endpoints, named: Callable[[Topic], Topic]) -> None:
    topics = [named(topic) for topic in CATALOGUE]
    assert create_topics(stack.kafka, topics[:2]) == [topic.name for topic in topics[:2]]
    assert create_topics(stack.kafka, topics) == [topic.name for topic in topics[2:]]
    assert create_topics(stack.kafka, topics) == []
    check_topics(stack.kafka, topics)


def test_of_several_that_make_a_topic_at_once_one_has_made_it(
    stack: Endpoints, named: Callable[[Topic], Topic]
) -> None:
    topics, starters = [named(JOURNAL)], 8
    together = Barrier(starters)

    def start(_: int) -> list[str]:
        together.wait()
        return create_topics(stack.kafka, topics)

    with ThreadPoolExecutor(starters) as pool:
        created = list(pool.map(start, range(starters)))
    assert sorted(created) == [[]] * (starters - 1) + [[topics[0].name]]


def test_a_topic_that_is_not_there_is_named(stack: Endpoints, named: Callable[[Topic], Topic]) -> None:
    absent = named(JOURNAL)
    with pytest.raises(TopicsError, match=f"lacks {absent.name}; run `recovery topics create`"):
        check_topics(stack.kafka, [absent])


def test_another_partition_count_is_refused(stack: Endpoints, named: Callable[[Topic], Topic]) -> None:
    topic = named(JOURNAL)
    create_topics(stack.kafka, [replace(topic, partitions=3)])
    with pytest.raises(TopicsError, match=f"{topic.name} has 3 partitions, not 8"):
        create_topics(stack.kafka, [topic])


def test_a_journal_whose_clock_is_the_producers_is_refused(stack: Endpoints, named: Callable[[Topic], Topic]) -> None:
    topic = named(JOURNAL)
    create_topics(stack.kafka, [replace(topic, log_append_time=False)])
    with pytest.raises(TopicsError, match=r"message.timestamp.type=CreateTime, not LogAppendTime"):
        check_topics(stack.kafka, [topic])


def test_a_topic_that_would_forget_what_it_should_keep_is_refused(
    stack: Endpoints, named: Callable[[Topic], Topic]
) -> None:
    compacted = named(ADVICE)
    create_topics(stack.kafka, [compacted])
    with pytest.raises(TopicsError, match=r"cleanup.policy=compact, not delete"):
        check_topics(stack.kafka, [replace(named(JOURNAL), name=compacted.name)])


def test_a_topic_of_an_earlier_catalogue_gets_the_sizes_of_this_one(
    stack: Endpoints, named: Callable[[Topic], Topic]
) -> None:
    earlier, now = replace(named(ADVICE), most_bytes=1_000_000), named(ADVICE)
    create_topics(stack.kafka, [earlier])
    assert create_topics(stack.kafka, [now]) == []
    resource = ConfigResource(ResourceType.TOPIC, now.name)
    admin = AdminClient({"bootstrap.servers": stack.kafka})
    [found] = admin.describe_configs([resource]).values()
    assert found.result(10)["max.message.bytes"].value == str(now.most_bytes)
