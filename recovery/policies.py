"""The policy in force: published by a person, document first, then the pointer that puts it in force."""

from dataclasses import dataclass

from confluent_kafka import Message

from recovery.writing import write_now
from schemas.bookkeeping import PolicyPublished
from schemas.codec import Codec, Encoded
from schemas.identity import derived_id
from schemas.policy import DEFAULT_POLICY, LOGIC, InvalidPolicy, Policy
from schemas.topics import POLICIES
from streams.kafka import TopicView, decode, reader

CLIENT = "recovery-policy"
SOURCE = "recovery/policy"
READ_TIMEOUT_S = 30.0


class PolicyError(Exception):
    """The policy in force can't be told; the text says why and what to do."""


@dataclass(frozen=True)
class InForce:
    """What a cluster's attempts are decided by. `published` is false where it is the shipped default."""

    digest: str
    logic: int
    policy: Policy
    published: bool


def publish(bootstrap: str, codec: Codec, cluster: str, document: bytes, *, now_ms: int) -> InForce:
    """Publish a policy document and put it in force for a cluster; the pointer only once the document is delivered.

    Raises InvalidPolicy and recovery.writing.WriteError.
    """
    policy = Policy.parse(document)
    digest = policy.digest()
    body = PolicyPublished(derived_id("policy", digest), "", digest, 0, policy.document())
    pointer = PolicyPublished(derived_id("in force", cluster, digest, LOGIC, now_ms), body.event_id, digest, LOGIC, b"")

    def encoded(event: PolicyPublished, key: str) -> Encoded:
        return codec.encode(event, source=SOURCE, time_ms=now_ms, subject=key)

    current = f"current/{cluster}"
    write_now(
        bootstrap, CLIENT, [(POLICIES, digest, encoded(body, digest)), (POLICIES, current, encoded(pointer, current))]
    )
    return InForce(digest, LOGIC, policy, published=True)


def in_force(bootstrap: str, codec: Codec, cluster: str) -> InForce:
    """Return the policy in force for a cluster. Raises PolicyError, and streams.kafka.KafkaUnavailable."""
    held: dict[str, PolicyPublished] = {}

    def take(message: Message) -> None:
        if message.value() is not None:
            held[(message.key() or b"").decode("utf-8", "replace")] = decode(codec, message)

    consumer = reader(bootstrap, CLIENT)
    try:
        TopicView(consumer, (POLICIES,), take).read_to_stable_end(timeout_s=READ_TIMEOUT_S)
    finally:
        consumer.close()
    pointer = held.get(f"current/{cluster}")
    if pointer is None:
        return InForce(DEFAULT_POLICY.digest(), LOGIC, DEFAULT_POLICY, published=False)
    body = held.get(pointer.digest)
    if body is None:
        raise PolicyError(f"{pointer.digest} is in force for {cluster}, but its document is missing: publish it again")
    try:
        return InForce(pointer.digest, pointer.logic, Policy.parse(body.document), published=True)
    except InvalidPolicy as error:
        raise PolicyError(
            f"the document of {pointer.digest} is of another version of this software: {error}"
        ) from error
