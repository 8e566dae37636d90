"""Looks at jobs of a cluster that nobody runs, straight into the journal: load, and clocks to measure by."""

from __future__ import annotations

import time

from confluent_kafka import Producer

from schemas.aps import Aps
from schemas.codec import Codec
from schemas.facts import JobObserved
from schemas.identity import Position, derived_id
from schemas.policy import DEFAULT_POLICY, LOGIC
from schemas.topics import JOURNAL, fact_route, partition_of
from schemas.vocabulary import AttemptState, Hold, Mode
from streams.kafka import send

CLUSTER = "elsewhere"
SUBMITTED = 1_700_000_000
OBSERVED_BY_US = Aps(workflow_id="load", environment="elsewhere", mode=Mode.OBSERVE, auto_resume_mode="requeue")


def look(job: int, state: AttemptState, look_ms: int) -> JobObserved:
    """What a controller would say of attempt 0 of one job."""
    ended = state is AttemptState.FAILED
    return JobObserved(
        event_id=derived_id("chaos-look", job, look_ms),
        cause="",
        cluster=CLUSTER,
        job_id=str(job),
        position=Position(f"slurm:{CLUSTER}", 0, look_ms),
        restart_count=0,
        submit_time=SUBMITTED,
        start_ms=SUBMITTED * 1000,
        end_ms=look_ms if ended else None,
        state=state,
        state_reason="None",
        state_description="",
        hold=Hold.NONE,
        exit_code=256 if ended else None,
        in_controller=True,
        nodes=("node1", "node2"),
        excluded_nodes=(),
        name="load",
        user="nobody",
        partition="main",
        requeue=True,
        batch=True,
        raw_job_id=job,
        log_paths=("/nowhere/out",),
        workflow_id="load",
        aps=OBSERVED_BY_US,
        aps_error=None,
        mode=Mode.OBSERVE,
        mode_reason="its APS asks to observe",
        advice_generation=0,
        policy=DEFAULT_POLICY.digest(),
        logic=LOGIC,
    )


def partition(job: int) -> int:
    """The journal partition of a job of that cluster."""
    return partition_of(f"{CLUSTER}/{job}".encode(), JOURNAL.partitions)


def write(to: Producer, codec: Codec, job: int, state: AttemptState) -> int:
    """Write a look made now; returns its time in ms."""
    look_ms = time.time_ns() // 1_000_000
    fact = look(job, state, look_ms)
    topic, key = fact_route(fact)
    send(to, topic, key, codec.encode(fact, source="chaos", time_ms=look_ms, subject=key))
    return look_ms
