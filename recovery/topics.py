"""Make the topics of the catalogue, and refuse a Kafka whose topics are not what the catalogue says.

Another partition count is another order of facts, and compaction of a topic that is to be kept destroys history: so
both are checked at the start of whatever relies on them, not discovered later.
"""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from schemas.topics import CATALOGUE, Topic

TIMEOUT_S = 10.0
REPLICATION = 3
_FIXED = ("cleanup.policy", "message.timestamp.type")
_ADJUSTED = ("segment.bytes", "max.message.bytes")


class TopicsError(Exception):
    """Kafka does not answer, or a topic differs from the catalogue. The text says which, how, and what to do."""


def create_topics(bootstrap: str, topics: Iterable[Topic] = CATALOGUE) -> list[str]:
    """Create what is missing, check the rest and give it the catalogue's sizes; return the names of those created.

    Topics have 3 replicas, or as many as there are brokers. Raises TopicsError.
    """
    wanted = list(topics)
    admin = _admin(bootstrap)
    metadata = _list_topics(admin, bootstrap)
    missing = [topic for topic in wanted if topic.name not in metadata.topics]
    replication = min(REPLICATION, len(metadata.brokers))
    new = [
        NewTopic(topic.name, topic.partitions, replication, config=topic.config(replication=replication))
        for topic in missing
    ]
    created = []
    if new:
        futures = admin.create_topics(new, operation_timeout=TIMEOUT_S).items()
        created = [name for name, future in futures if _is_created(name, future)]
        _await_topics(admin, bootstrap, {topic.name for topic in missing})
    _adjust(admin, wanted, _checked(admin, bootstrap, wanted))
    return created


def check_topics(bootstrap: str, topics: Iterable[Topic] = CATALOGUE) -> None:
    """Raise TopicsError unless each topic is there with the partitions, cleanup and time stamps of the catalogue."""
    _checked(_admin(bootstrap), bootstrap, list(topics))


def _checked(admin: AdminClient, bootstrap: str, wanted: Sequence[Topic]) -> dict[str, Any]:
    """The topics' configurations by name, once all are as they must be."""
    present = _list_topics(admin, bootstrap).topics
    absent = [topic.name for topic in wanted if topic.name not in present]
    if absent:
        raise TopicsError(f"Kafka at {bootstrap} lacks {', '.join(absent)}; run `recovery topics create`")
    resources = [ConfigResource(ResourceType.TOPIC, topic.name) for topic in wanted]
    configs = {
        resource.name: _result(future, f"the configuration of {resource.name} could not be read")
        for resource, future in admin.describe_configs(resources, request_timeout=TIMEOUT_S).items()
    }
    for topic in wanted:
        count = len(present[topic.name].partitions)
        if count != topic.partitions:
            raise TopicsError(
                f"{topic.name} has {count} partitions, not {topic.partitions}: its keys have another order there; "
                "use another Kafka, or export the topic and make it anew"
            )
        expected = topic.config(replication=REPLICATION)
        for key in _FIXED:
            value = configs[topic.name][key].value
            if value != expected[key]:
                raise TopicsError(f"{topic.name} has {key}={value}, not {expected[key]}; correct it with kafka-configs")
    return configs


def _adjust(admin: AdminClient, topics: Sequence[Topic], configs: dict[str, Any]) -> None:
    """Change what an earlier catalogue gave a topic and may be changed at any time."""
    changes = []
    for topic in topics:
        wanted = topic.config(replication=REPLICATION)
        entries = [
            ConfigEntry(key, wanted[key], incremental_operation=AlterConfigOpType.SET)
            for key in _ADJUSTED
            if key in wanted and configs[topic.name][key].value != wanted[key]
        ]
        if entries:
            changes.append(ConfigResource(ResourceType.TOPIC, topic.name, incremental_configs=entries))
    if changes:
        for resource, future in admin.incremental_alter_configs(changes, request_timeout=TIMEOUT_S).items():
            _result(future, f"the configuration of {resource.name} could not be changed")


def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def _list_topics(admin: AdminClient, bootstrap: str) -> Any:
    try:
        return admin.list_topics(timeout=TIMEOUT_S)
    except KafkaException as error:
        raise TopicsError(
            f"Kafka at {bootstrap} does not answer ({error.args[0].str()}); is it up? `recovery up` starts one here"
        ) from error


def _is_created(name: str, future: "Future[Any]") -> bool:
    """False where another process, which started at the same time, was quicker."""
    try:
        _result(future, f"topic {name} could not be created")
    except TopicsError as error:
        cause = error.__cause__
        if isinstance(cause, KafkaException) and cause.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise
    return True


def _await_topics(admin: AdminClient, bootstrap: str, names: set[str]) -> None:
    """Brokers learn of new topics one after the other: wait until the one that we ask knows them all."""
    deadline = time.monotonic() + TIMEOUT_S
    while absent := names - _list_topics(admin, bootstrap).topics.keys():
        if time.monotonic() > deadline:
            raise TopicsError(f"{', '.join(sorted(absent))} did not appear within {TIMEOUT_S:g} s; ask again")
        time.sleep(0.05)


def _result(future: "Future[Any]", what: str) -> Any:
    try:
        return future.result(timeout=TIMEOUT_S)
    except (KafkaException, TimeoutError) as error:
        raise TopicsError(f"{what}: {error}") from error
