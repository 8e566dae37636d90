"""The topic catalogue: names, keys, retention, what goes where, and the one partitioner.

All producers use murmur2 on the record key, as Kafka's Java clients and Quix do. librdkafka's default is CRC32: with
it a job's facts would be spread over partitions and lose their order without a word.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from schemas.bookkeeping import ClusterSeen, PolicyPublished, RecordParked, SourceRead
from schemas.catalogue import DECISIONS, FACTS, NODE_FACTS
from schemas.decisions import (
    Advice,
    Emitted,
    FactParked,
    JobView,
    OutputAsked,
    RequestMade,
    TimerCleared,
    TimerSet,
    job_of_decision,
    timer_key,
)
from schemas.facts import ActionEnded, ActionIntended, ActionRefused, Fact, job_of
from schemas.nodes import NodeAllocated, NodeFact, NodeFaultTold, NodeFreed, node_of

PARTITIONER = "murmur2_random"
"""librdkafka's name for what Kafka's own clients do with a key."""

DAY_MS = 86_400_000
COMPACTED_SEGMENT_BYTES = 4 << 20
"""Whoever starts reads a compacted topic whole, with all that was overwritten in the segment that is being written:
Kafka compacts only what is behind that one. Its own gigabyte would be minutes of reading."""

FACT_BYTES, DERIVED_BYTES = 1_048_588, 4 << 20
"""The largest record of a topic that facts come in by, Kafka's own limit, and of one to which deciders write: what they
say of a record repeats its key up to three times, and a state is larger than any one fact."""


class Cleanup(StrEnum):
    KEPT = "kept"
    COMPACTED = "compacted"
    DAYS = "days"


@dataclass(frozen=True)
class Topic:
    """One topic. The partition count is fixed at creation: another count means another order."""

    name: str
    key: str
    cleanup: Cleanup
    partitions: int
    about: str
    log_append_time: bool = False
    compression: str = "producer"
    most_bytes: int = DERIVED_BYTES

    def config(self, *, replication: int) -> dict[str, str]:
        """Kafka's topic configuration. `replication` decides min.insync.replicas."""
        config = {
            "min.insync.replicas": "2" if replication >= 3 else "1",
            "message.timestamp.type": "LogAppendTime" if self.log_append_time else "CreateTime",
            "compression.type": self.compression,
            "max.message.bytes": str(self.most_bytes),
        }
        if self.cleanup is Cleanup.KEPT:
            return config | {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
        if self.cleanup is Cleanup.COMPACTED:
            return config | {
                "cleanup.policy": "compact",
                "min.cleanable.dirty.ratio": "0.1",
                "segment.bytes": str(COMPACTED_SEGMENT_BYTES),
            }
        return config | {"cleanup.policy": "delete", "retention.ms": str(7 * DAY_MS)}


JOURNAL = Topic(
    "recovery.journal",
    "job",
    Cleanup.KEPT,
    8,
    "all facts, one order a job",
    log_append_time=True,
    most_bytes=FACT_BYTES,
)
ACTIONS = Topic("recovery.actions", "action", Cleanup.COMPACTED, 1, "the scheduler controller's intents and outcomes")
DECISION_LOG = Topic("recovery.decisions", "job", Cleanup.KEPT, 8, "all that the attempt decider concluded")
JOBS = Topic("recovery.jobs", "job", Cleanup.COMPACTED, 8, "current view of a job, for watch and the controller")
ADVICE = Topic("recovery.advice", "attempt", Cleanup.COMPACTED, 8, "current Advice of an attempt")
# Uncompressed by the broker, whatever the producer does: ask reads it with a client that has no codecs of its own.
REQUESTS = Topic(
    "recovery.requests", "job", Cleanup.DAYS, 4, "questions for attribution providers", compression="uncompressed"
)
TIMERS = Topic("recovery.timers", "timer", Cleanup.COMPACTED, 8, "pending deadlines")
FLEET = Topic("recovery.fleet", "cluster", Cleanup.DAYS, 1, "the scheduler controllers' heartbeats")
NODES = Topic(
    "recovery.nodes",
    "node",
    Cleanup.KEPT,
    8,
    "node faults and allocations",
    log_append_time=True,
    most_bytes=FACT_BYTES,
)
NODE_DECISIONS = Topic("recovery.node-decisions", "node", Cleanup.KEPT, 8, "which attempt was told of which node fault")
POLICIES = Topic(
    "recovery.policies", "digest or current/<cluster>", Cleanup.COMPACTED, 1, "policy documents and which is in force"
)
POSITIONS = Topic("recovery.positions", "source", Cleanup.COMPACTED, 4, "how far watch has read each source")
PARKED = Topic("recovery.parked", "source", Cleanup.KEPT, 1, "records that could not be handled")
SAC_LEASE = Topic(
    "recovery.sac-lease", "none", Cleanup.DAYS, 1, "its one partition's owner leads the cluster's controllers"
)

CATALOGUE: tuple[Topic, ...] = (
    JOURNAL,
    DECISION_LOG,
    JOBS,
    ADVICE,
    REQUESTS,
    ACTIONS,
    TIMERS,
    FLEET,
    NODES,
    NODE_DECISIONS,
    POLICIES,
    POSITIONS,
    PARKED,
    SAC_LEASE,
)

NodeDecision = NodeFaultTold | FactParked
Written = Fact | Emitted | NodeFact | NodeDecision | PolicyPublished | SourceRead | RecordParked | ClusterSeen


def fact_route(fact: Fact) -> tuple[Topic, str]:
    """Where a fact is recorded, and under which key."""
    return JOURNAL, job_of(fact)


def node_fact_route(fact: NodeFact) -> tuple[Topic, str]:
    """Where a fact about a node is recorded, and under which key."""
    return NODES, node_of(fact)


def node_decision_route(decision: NodeDecision) -> tuple[Topic, str]:
    """Where the node decider's output goes: beside its input, so that replay finds both in one partition."""
    return NODE_DECISIONS, decision.key if isinstance(decision, FactParked) else node_of(decision)


def action_route(record: ActionIntended | ActionEnded | ActionRefused) -> tuple[Topic, str]:
    """Where the controller writes, in transactions; the relay copies it to the journal.

    Intent, outcome and refusals of one action have keys of their own: compaction must not let one hide another.
    """
    suffix = {ActionIntended: "intended", ActionEnded: "ended"}.get(type(record))
    if isinstance(record, ActionRefused):
        suffix = f"refused/{record.reason}"
    return ACTIONS, f"{record.action_id}/{suffix}"


def emitted_route(emitted: Emitted) -> tuple[Topic, str]:
    """Where the attempt decider's output goes. A TimerCleared goes there as a tombstone."""
    match emitted:
        case NodeAllocated() | NodeFreed():
            return node_fact_route(emitted)
        case TimerSet() | TimerCleared():
            return TIMERS, timer_key(emitted.attempt, emitted.purpose)
        case JobView():
            return JOBS, f"{emitted.cluster}/{emitted.job_id}"
        case Advice():
            return ADVICE, emitted.attempt.key
        case _:
            return DECISION_LOG, job_of_decision(emitted)


def event_types(topic: Topic) -> tuple[type, ...]:
    """The event classes that a topic may hold."""
    known: dict[str, tuple[type, ...]] = {
        JOURNAL.name: FACTS,
        DECISION_LOG.name: DECISIONS,
        JOBS.name: (JobView,),
        ADVICE.name: (Advice,),
        REQUESTS.name: (RequestMade, OutputAsked),
        ACTIONS.name: (ActionIntended, ActionEnded, ActionRefused),
        TIMERS.name: (TimerSet,),
        FLEET.name: (ClusterSeen,),
        NODES.name: NODE_FACTS,
        NODE_DECISIONS.name: (NodeFaultTold, FactParked),
        POLICIES.name: (PolicyPublished,),
        POSITIONS.name: (SourceRead,),
        PARKED.name: (RecordParked,),
    }
    return known.get(topic.name, ())


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a record key: Kafka's murmur2, sign bit cleared, modulo the count."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Kafka's variant of murmur2 (32 bits, seed 0x9747b28c), unsigned."""
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    length = len(data)
    h = (0x9747B28C ^ length) & mask
    for i in range(0, length - 3, 4):
        k = int.from_bytes(data[i : i + 4], "little") * multiplier & mask
        k ^= k >> 24
        h = (h * multiplier & mask) ^ (k * multiplier & mask)
    tail = data[length - length % 4 :]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * multiplier & mask
    h ^= h >> 13
    h = h * multiplier & mask
    return h ^ (h >> 15)
