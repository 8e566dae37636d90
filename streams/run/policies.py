"""Policy documents by digest, read from `recovery.policies`; the shipped default is always there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import structlog
from confluent_kafka import Message

from schemas.bookkeeping import PolicyPublished
from schemas.codec import Codec
from schemas.policy import DEFAULT_POLICY, Policy, digest_of
from schemas.topics import POLICIES
from streams.kafka import TopicView, decode, reader

log = structlog.get_logger(__name__)


class PolicyDocuments(Mapping[str, Policy]):
    """All published documents. A digest that is missing is looked for in the topic once more before giving up."""

    def __init__(self, bootstrap: str, codec: Codec, client_id: str) -> None:
        self._codec = codec
        self._documents = {DEFAULT_POLICY.digest(): DEFAULT_POLICY}
        self._view = TopicView(reader(bootstrap, client_id), (POLICIES,), self._take)
        self._view.read_to_stable_end()

    def __getitem__(self, digest: str) -> Policy:
        if digest not in self._documents:
            self._view.read_to_stable_end()
        return self._documents[digest]

    def __iter__(self) -> Iterator[str]:
        return iter(self._documents)

    def __len__(self) -> int:
        return len(self._documents)

    def _take(self, message: Message) -> None:
        if message.value() is None:
            return
        event = decode(self._codec, message)
        if isinstance(event, PolicyPublished) and event.document:
            if digest_of(event.document) != event.digest:
                log.error("policy document does not match its digest", digest=event.digest, next="it is not used")
                return
            self._documents[event.digest] = Policy.parse(event.document)
