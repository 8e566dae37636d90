"""The stateful function of the node decider: raw bytes in, what is told to whom out."""

from __future__ import annotations

from typing import cast, get_args

from schemas.codec import Codec
from schemas.nodes import NodeFact, is_recorded_under, node_of
from schemas.topics import NodeDecision, node_decision_route
from streams.decide.nodes import NodeOutcome, NodeState, decide_node, park_node
from streams.records import Incoming, Outgoing
from streams.run.state_codec import NODE_STATES
from streams.run.stateful import StatefulWorker

FACT_TYPES: tuple[type, ...] = get_args(NodeFact)


class NodeWorker(StatefulWorker[NodeFact, NodeState, NodeDecision]):
    """Decides facts of nodes. What it can't handle is parked; the node's other facts go on."""

    def __init__(self, codec: Codec, name: str) -> None:
        super().__init__(codec, NODE_STATES, f"recovery/nodes/{name}", "node")

    def _read(self, record: Incoming) -> NodeFact:
        if record.value is None:
            raise ValueError(f"{record.topic} has no tombstones")
        decoded = self._codec.decode(record.value, record.headers)
        if not isinstance(decoded, FACT_TYPES):
            raise TypeError(f"{type(decoded).__name__} is no fact about a node")
        return cast(NodeFact, decoded)

    def _decide(self, record: Incoming, fact: NodeFact, state: NodeState | None) -> NodeOutcome:
        if not is_recorded_under(fact, record.key.decode("utf-8", "replace")):
            raise ValueError(f"the record's key {record.key!r} is not its node, {node_of(fact)!r}")
        return decide_node(state, fact, record.recorded_ms)

    def _parked(self, record: Incoming, state: NodeState | None, reason: str) -> NodeOutcome:
        key = record.key.decode("utf-8", "replace")
        return park_node(state, key, (record.topic, record.partition, record.offset), reason, record.recorded_ms)

    def _outgoing(self, event: NodeDecision, now_ms: int) -> Outgoing:
        topic, key = node_decision_route(event)
        encoded = self._codec.encode(event, source=self._source, time_ms=now_ms, subject=key)
        return Outgoing(topic, key.encode(), encoded.value, encoded.headers)
