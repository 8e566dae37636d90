"""What the controller knows from Kafka: jobs, Advice, its own actions and the policy in force, read whole.

It is read to the stable end before every action. Bytes of a job or an Advice that can't be read are as if that job or
Advice were not there (nothing is done for it); of an action or a policy, they stop the process: it would forget what
it has done.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from confluent_kafka import Message

from sac.ledger import Ledger
from sac.steps import open_advice
from schemas.bookkeeping import PolicyPublished
from schemas.codec import Codec, UnreadableRecord
from schemas.decisions import Advice, JobView
from schemas.facts import ActionEnded, ActionIntended, ActionRefused
from schemas.identity import AttemptId, InvalidIdentity
from schemas.policy import DEFAULT_POLICY, LOGIC, Policy
from schemas.topics import ACTIONS, ADVICE, JOBS, POLICIES
from streams.kafka import TopicView, decode, reader

log = structlog.get_logger(__name__)
TOPICS = (JOBS, ADVICE, ACTIONS, POLICIES)


@dataclass(frozen=True)
class InForce:
    """The policy and the deciding rules of this cluster; the document is None while it is not in view."""

    digest: str
    logic: int
    policy: Policy | None


class Known:
    """The content of those topics for one cluster; fed record by record."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.ledger = Ledger()
        self.jobs: dict[str, JobView] = {}
        self.last_action_ms = 0
        self._advice: dict[str, dict[str, Advice]] = {}
        self._documents: dict[str, Policy] = {DEFAULT_POLICY.digest(): DEFAULT_POLICY}
        self._pointer: tuple[str, int] | None = None

    @property
    def in_force(self) -> InForce:
        digest, logic = self._pointer or (DEFAULT_POLICY.digest(), LOGIC)
        return InForce(digest, logic, self._documents.get(digest))

    def advice_of(self, job_id: str) -> tuple[Advice, ...]:
        """Every Advice on record for a job."""
        return tuple(self._advice.get(job_id, {}).values())

    def open_advice(self, job_id: str) -> Advice | None:
        """The pending Advice of the latest attempt that has one."""
        return open_advice(self.advice_of(job_id))

    def attempt(self, job_id: str, restart_count: int, submit_time: int) -> AttemptId | None:
        """What the decider calls the attempt that Slurm shows so."""
        view = self.jobs.get(job_id)
        for known in view.attempts if view is not None else ():
            if known.attempt.index == restart_count and known.submit_time == submit_time:
                return known.attempt
        return None

    def job(self, key: str, view: JobView | None) -> None:
        cluster, _, job_id = key.partition("/")
        if cluster != self.cluster:
            return
        if view is None:
            self.jobs.pop(job_id, None)
        else:
            self.jobs[job_id] = view

    def advise(self, key: str, advice: Advice | None) -> None:
        try:
            attempt = AttemptId.parse(key)
        except InvalidIdentity as error:
            log.error("advice under no attempt's key", key=key, error=str(error), next="it is not acted on")
            return
        if attempt.cluster != self.cluster:
            return
        known = self._advice.setdefault(attempt.job_id, {})
        if advice is None:
            known.pop(key, None)
        else:
            known[key] = advice

    def action(self, record: ActionIntended | ActionEnded | ActionRefused) -> None:
        if record.attempt.cluster == self.cluster:
            self.ledger.add(record)
            self.last_action_ms = max(self.last_action_ms, record.position.offset)

    def policy(self, key: str, published: PolicyPublished) -> None:
        if key == f"current/{self.cluster}":
            self._pointer = (published.digest, published.logic)
        elif not key.startswith("current/"):
            self._documents[published.digest] = Policy.parse(published.document)


class KafkaView:
    """Reads the topics into `known`, to the stable end on demand and on from there."""

    def __init__(self, bootstrap: str, codec: Codec, cluster: str) -> None:
        self.known = Known(cluster)
        self._codec = codec
        self._consumer = reader(bootstrap, f"sac-view-{cluster}")
        self._view = TopicView(self._consumer, TOPICS, self._take, reader="recovery-sac")

    def follow(self) -> None:
        """Take what has come meanwhile, without waiting."""
        self._view.poll(0)

    def read_to_stable_end(self, timeout_s: float) -> None:
        """Read all that was committed before this call. Raises KafkaUnavailable."""
        self._view.read_to_stable_end(timeout_s=timeout_s)

    def close(self) -> None:
        self._consumer.close()

    def _take(self, message: Message) -> None:
        topic, key = message.topic(), (message.key() or b"").decode("utf-8", "replace")
        event = None
        if message.value() is not None:
            try:
                event = decode(self._codec, message)
            except UnreadableRecord as error:
                if topic not in (JOBS.name, ADVICE.name):
                    raise
                log.error("unreadable record", topic=topic, key=key, offset=message.offset(), error=str(error))
        if topic == JOBS.name:
            self.known.job(key, event)
        elif topic == ADVICE.name:
            self.known.advise(key, event)
        elif topic == ACTIONS.name and event is not None:
            self.known.action(event)
        elif topic == POLICIES.name and event is not None:
            self.known.policy(key, event)
