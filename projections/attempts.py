"""Rows of attempts, of what the scheduler shows of them, and of workflows."""

from __future__ import annotations

from collections.abc import Iterator

from projections.merge import Row, Upsert, Values
from projections.records import Record
from projections.tables import ATTEMPTS, LOOKS, WORKFLOWS
from schemas.decisions import AttemptMoved, AttemptOpened, JobClosed
from schemas.facts import BlindReported, CheckpointLoaded, CheckpointSaved, JobObserved, ProgressObserved
from schemas.identity import AttemptId

_KEY = ("heimdall_job_id",)
_IDENTITY = ("cluster", "job_id", "incarnation", "attempt_index")
_JOB = ("name", "user_name", "partition", "mode", "mode_reason")

OPENED = Upsert("opened", ATTEMPTS, _KEY, _IDENTITY, order="opened_ms", latest=("submit_time", "workflow_id", *_JOB))
MOVED = Upsert("moved", ATTEMPTS, _KEY, _IDENTITY, order="moved_ms", latest=("state", "state_detail", "observed_ms"))
# A requeued or pending attempt shows no nodes: the last ones it had stay.
PLACED = Upsert("placed", ATTEMPTS, _KEY, _IDENTITY, order="nodes_ms", latest=("nodes",))
# Steps count up; the furthest one is the same however often and in which order the lines were read.
PROGRESSED = Upsert(
    "progressed",
    ATTEMPTS,
    _KEY,
    _IDENTITY,
    greatest=("last_step", "last_step_ms", "total_steps"),
    least=("first_step_ms",),
)
SAVED = Upsert("saved", ATTEMPTS, _KEY, _IDENTITY, greatest=("last_checkpoint_step", "last_checkpoint_ms"))
LOADED = Upsert("loaded", ATTEMPTS, _KEY, _IDENTITY, greatest=("loaded_checkpoint_step", "loaded_checkpoint_ms"))
BLINDED = Upsert("blinded", ATTEMPTS, _KEY, _IDENTITY, order="blind_ms", latest=("blind",))
CLOSED = Upsert("closed", ATTEMPTS, _KEY, _IDENTITY, least=("closed_ms",))

_LOOK_KEY = ("cluster", "job_id", "restart_count", "submit_time")
LOOKED = Upsert(
    "looked",
    LOOKS,
    _LOOK_KEY,
    order="looked_ms",
    latest=(*_JOB, "aps_error", "raw_job_id", "start_ms", "end_ms", "exit_code", "in_controller"),
)
CONTROLLED = Upsert(
    "controlled", LOOKS, _LOOK_KEY, order="controller_ms", latest=("hold", "excluded_nodes", "log_paths")
)

WORKFLOW_OPENED = Upsert("workflow_opened", WORKFLOWS, ("workflow_id",), least=("opened_ms",))
WORKFLOW_NAMED = Upsert("workflow_named", WORKFLOWS, ("workflow_id",), order="named_ms", latest=("name",))

UPSERTS = (
    OPENED,
    MOVED,
    PLACED,
    PROGRESSED,
    SAVED,
    LOADED,
    BLINDED,
    CLOSED,
    LOOKED,
    CONTROLLED,
    WORKFLOW_OPENED,
    WORKFLOW_NAMED,
)


def rows_for(record: Record) -> Iterator[Row]:
    """The rows that one event adds to or changes in these tables."""
    event = record.event
    if isinstance(event, JobObserved):
        yield from _look(event)
    elif isinstance(event, AttemptOpened):
        yield from _opened(event)
    elif isinstance(event, AttemptMoved):
        yield from _moved(event)
    elif isinstance(event, ProgressObserved):
        values = {
            "last_step": event.step,
            "last_step_ms": event.read_ms,
            "total_steps": event.total_steps,
            "first_step_ms": event.read_ms,
        }
        yield Row(PROGRESSED, _attempt(event.attempt) | values)
    elif isinstance(event, CheckpointSaved):
        saved = {"last_checkpoint_step": event.step, "last_checkpoint_ms": event.read_ms}
        yield Row(SAVED, _attempt(event.attempt) | saved)
    elif isinstance(event, CheckpointLoaded):
        loaded = {"loaded_checkpoint_step": event.step, "loaded_checkpoint_ms": event.read_ms}
        yield Row(LOADED, _attempt(event.attempt) | loaded)
    elif isinstance(event, BlindReported):
        yield Row(BLINDED, _attempt(event.attempt) | {"blind_ms": event.reported_ms, "blind": list(event.kinds)})
    elif isinstance(event, JobClosed):
        last = event.attempt
        for index in range(last.index + 1):
            attempt = AttemptId(last.cluster, last.job_id, last.incarnation, index)
            yield Row(CLOSED, _attempt(attempt) | {"closed_ms": event.decided_ms})


def _attempt(attempt: AttemptId) -> Values:
    return {
        "heimdall_job_id": attempt.heimdall_job_id,
        "cluster": attempt.cluster,
        "job_id": attempt.job_id,
        "incarnation": attempt.incarnation,
        "attempt_index": attempt.index,
    }


def _opened(event: AttemptOpened) -> Iterator[Row]:
    values = {
        "opened_ms": event.decided_ms,
        "submit_time": event.submit_time,
        "workflow_id": event.workflow_id,
        "name": event.name,
        "user_name": event.user,
        "partition": event.partition,
        "mode": event.mode,
        "mode_reason": event.mode_reason,
    }
    yield Row(OPENED, _attempt(event.attempt) | values)
    yield Row(WORKFLOW_OPENED, {"workflow_id": event.workflow_id, "opened_ms": event.decided_ms})


def _moved(event: AttemptMoved) -> Iterator[Row]:
    values = {
        "moved_ms": event.decided_ms,
        "state": event.after,
        "state_detail": event.detail,
        "observed_ms": event.observed_ms,
    }
    yield Row(MOVED, _attempt(event.attempt) | values)
    if event.nodes:
        yield Row(PLACED, _attempt(event.attempt) | {"nodes_ms": event.decided_ms, "nodes": list(event.nodes)})


def _look(event: JobObserved) -> Iterator[Row]:
    key: Values = {
        "cluster": event.cluster,
        "job_id": event.job_id,
        "restart_count": event.restart_count,
        "submit_time": event.submit_time,
    }
    values = {
        "looked_ms": event.position.offset,
        "name": event.name,
        "user_name": event.user,
        "partition": event.partition,
        "mode": event.mode,
        "mode_reason": event.mode_reason,
        "aps_error": event.aps_error,
        "raw_job_id": event.raw_job_id,
        "start_ms": event.start_ms,
        "end_ms": event.end_ms,
        "exit_code": event.exit_code,
        "in_controller": event.in_controller,
    }
    yield Row(LOOKED, key | values)
    if event.in_controller:
        shown = {
            "controller_ms": event.position.offset,
            "hold": event.hold,
            "excluded_nodes": list(event.excluded_nodes),
            "log_paths": list(event.log_paths),
        }
        yield Row(CONTROLLED, key | shown)
    if event.aps is not None and event.aps.workflow_name:
        name = event.aps.workflow_name
        yield Row(WORKFLOW_NAMED, {"workflow_id": event.workflow_id, "named_ms": event.position.offset, "name": name})
