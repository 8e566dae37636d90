"""The process `recovery decide`: the attempt decider on Kafka, in a numbered slot."""

from __future__ import annotations

from recovery.settings import Settings
from schemas.codec import Codec
from schemas.topics import ADVICE, DECISION_LOG, JOBS, NODES, PARKED, TIMERS
from streams.run.policies import PolicyDocuments
from streams.run.quix import Application
from streams.run.shell import Post, run_post, stream
from streams.run.slots import ATTEMPT_CREW
from streams.run.worker import Worker

OUTPUTS = (DECISION_LOG, JOBS, ADVICE, TIMERS, NODES, PARKED)


def run(settings: Settings, slot: int) -> int:
    """Run the decider of `slot` until it is stopped; return the exit code."""
    return run_post(settings, Post(ATTEMPT_CREW, OUTPUTS, _worker), slot)


def application(settings: Settings, slot: int, worker: Worker) -> Application:
    """The stream of a slot, to be run by whoever asks for it."""
    return stream(settings, ATTEMPT_CREW, OUTPUTS, slot, worker)


def _worker(settings: Settings, codec: Codec, slot: int) -> Worker:
    policies = PolicyDocuments(settings.kafka.bootstrap, codec, f"decide-{slot}-policies")
    return Worker(codec, policies, str(slot))
