"""The process `sac`: one leads each cluster, the others stand by."""

from __future__ import annotations

import time

import structlog

from recovery.process import ProcessContext, run_process
from recovery.settings import Settings
from recovery.topics import check_topics
from sac.act import Actor
from sac.controller import Controller, Pass
from sac.lease import Lease
from sac.slurm.commands import SlurmCommands
from sac.view import TOPICS, KafkaView
from sac.writers import ActionWriter, FactWriter
from schemas.codec import Codec
from schemas.policy import DEFAULT_POLICY
from schemas.registry import RegistryIds
from schemas.topics import FLEET, JOURNAL, SAC_LEASE

BEAT_S = 90.0
LEASE_POLL_S = 0.2
log = structlog.get_logger(__name__)


def run(settings: Settings) -> int:
    """Run until told to stop; returns the exit code (75 when another controller took over in the middle)."""
    return run_process("sac", settings, _body)


def _body(context: ProcessContext) -> None:
    settings = context.settings
    watchdog = settings.watchdog
    if settings.sac.acknowledge_scheduler_actions and not (watchdog.mode == "act" and watchdog.acknowledge):
        log.warning(
            "jobs may be held and the watchdog may not release them",
            problem="with everything else down, a hold has no exit",
            next="set watchdog.mode to act and watchdog.acknowledge to true, where the watchdog runs too",
        )
    check_topics(settings.kafka.bootstrap, (*TOPICS, JOURNAL, FLEET, SAC_LEASE))
    codec = Codec(RegistryIds(settings.registry.url))
    lease = Lease(settings.kafka.bootstrap, settings.slurm.cluster)
    try:
        while not context.stop.requested:
            context.health.not_ready("standing by: another controller leads this cluster, or Kafka does not answer")
            context.health.beat(BEAT_S)
            if lease.poll(LEASE_POLL_S):
                _lead(context, lease, codec)
    finally:
        lease.close()


def _lead(context: ProcessContext, lease: Lease, codec: Codec) -> None:
    """Look and act until told to stop or the lease goes to another."""
    settings = context.settings
    bootstrap, cluster = settings.kafka.bootstrap, settings.slurm.cluster
    context.health.not_ready("reading what was done before")
    commands = SlurmCommands.of(settings.slurm)
    view = KafkaView(bootstrap, codec, cluster)
    facts = FactWriter(bootstrap, codec, cluster)
    actions = ActionWriter(bootstrap, codec, cluster, view.known.action)  # fences whoever led before
    controller = Controller(settings, commands, view, facts, Actor(commands, actions))
    try:
        facts.documented(DEFAULT_POLICY)
        view.read_to_stable_end(60.0)
        actions.start_after(view.known.last_action_ms)
        controller.start()
        unknown: str | None = None
        while lease.poll(0) and not context.stop.requested:
            began = time.monotonic()
            done = controller.run_pass()
            _report(context, done, unknown)
            unknown = done.unknown
            context.health.beat(BEAT_S)
            wait = 0.0 if done.acted else settings.slurm.tick_s - (time.monotonic() - began)
            if wait > 0:
                context.stop.wait(wait)
    finally:
        controller.close()
        facts.close()
        view.close()


def _report(context: ProcessContext, done: Pass, unknown_before: str | None) -> None:
    if done.unknown is not None:
        context.health.not_ready(f"Slurm is unknown: {done.unknown}")
        if done.unknown != unknown_before:
            log.warning("pass", did="nothing, Slurm is unknown", reason=done.unknown, next="look again")
        return
    context.health.ready()
    if done.said:
        log.info("pass", did=done.sentence)
    else:
        log.debug("pass", did=done.sentence)
