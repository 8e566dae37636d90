"""The process `recovery nodes`: the node decider on Kafka, in a numbered slot."""

from __future__ import annotations

from recovery.settings import Settings
from schemas.codec import Codec
from schemas.topics import NODE_DECISIONS, PARKED
from streams.run.node_worker import NodeWorker
from streams.run.shell import Post, run_post
from streams.run.slots import NODE_CREW

OUTPUTS = (NODE_DECISIONS, PARKED)


def run(settings: Settings, slot: int) -> int:
    """Run the node decider of `slot` until it is stopped; return the exit code."""
    return run_post(settings, Post(NODE_CREW, OUTPUTS, _worker), slot)


def _worker(_settings: Settings, codec: Codec, slot: int) -> NodeWorker:
    return NodeWorker(codec, str(slot))
