"""The tables. Times are milliseconds since the epoch, as in the events; lists are JSON arrays.

A column is written from one topic only, and within a topic a job's events have one order. So it does not matter how
the journal and the decisions interleave: the tables end the same. What belongs together is joined by views.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData()


def _text(name: str, *, key: bool = False, nullable: bool = True) -> Column[str]:
    return Column(name, Text, primary_key=key, nullable=nullable and not key)


def _whole(name: str, *, key: bool = False, nullable: bool = True) -> Column[int]:
    return Column(name, BigInteger, primary_key=key, nullable=nullable and not key, autoincrement=False)


def _identity() -> tuple[Column[str], Column[str], Column[int], Column[int]]:
    return (
        _text("cluster", nullable=False),
        _text("job_id", nullable=False),
        _whole("incarnation", nullable=False),
        _whole("attempt_index", nullable=False),
    )


ATTEMPTS = Table(
    "attempt_rows",
    metadata,
    _text("heimdall_job_id", key=True),
    *_identity(),
    # from AttemptOpened
    _whole("opened_ms"),
    _whole("submit_time"),
    _text("name"),
    _text("user_name"),
    _text("partition"),
    _text("workflow_id"),
    _text("mode"),
    _text("mode_reason"),
    # from AttemptMoved
    _whole("moved_ms"),
    _text("state"),
    _text("state_detail"),
    _whole("observed_ms"),
    _whole("nodes_ms"),
    Column("nodes", JSONB),
    # from the job's output
    _whole("first_step_ms"),
    _whole("last_step"),
    _whole("last_step_ms"),
    _whole("total_steps"),
    _whole("last_checkpoint_step"),
    _whole("last_checkpoint_ms"),
    _whole("loaded_checkpoint_step"),
    _whole("loaded_checkpoint_ms"),
    # from BlindReported
    _whole("blind_ms"),
    Column("blind", JSONB),
    # from JobClosed
    _whole("closed_ms"),
    Index("attempt_rows_opened", "opened_ms", "heimdall_job_id"),
    Index("attempt_rows_job", "job_id", "attempt_index"),
    Index("attempt_rows_workflow", "workflow_id"),
)

LOOKS = Table(
    "look_rows",
    metadata,
    # What Slurm shows names an attempt by restart count and SubmitTime; only the decider knows its incarnation.
    _text("cluster", key=True),
    _text("job_id", key=True),
    _whole("restart_count", key=True),
    _whole("submit_time", key=True),
    _whole("looked_ms"),
    _text("name"),
    _text("user_name"),
    _text("partition"),
    _text("mode"),
    _text("mode_reason"),
    _text("aps_error"),
    _whole("raw_job_id"),
    _whole("start_ms"),
    _whole("end_ms"),
    _whole("exit_code"),
    Column("in_controller", Boolean),
    # only slurmctld shows these; accounting does not
    _whole("controller_ms"),
    _text("hold"),
    Column("excluded_nodes", JSONB),
    Column("log_paths", JSONB),
)

WORKFLOWS = Table(
    "workflow_rows",
    metadata,
    _text("workflow_id", key=True),
    _whole("named_ms"),
    _text("name"),
    _whole("opened_ms"),
    Index("workflow_rows_opened", "opened_ms", "workflow_id"),
)

ADVICE = Table(
    "advice_rows",
    metadata,
    _text("heimdall_job_id", key=True),
    _whole("generation", key=True),
    *_identity(),
    # from AdviceIssued
    _whole("issued_ms"),
    _text("event_id"),
    _text("desired_state"),
    Column("exclude_nodes", JSONB),
    _text("reason"),
    _text("explanation"),
    _text("incident_id"),
    _text("workflow_id"),
    _whole("valid_until_ms"),
    _text("policy"),
    _whole("logic"),
    # from AdviceResolved
    _whole("resolved_ms"),
    _text("disposition"),
    _text("resolution"),
    _text("resolution_detail"),
    Index("advice_rows_issued", "issued_ms", "heimdall_job_id", "generation"),
)

INCIDENTS = Table(
    "incident_rows",
    metadata,
    _text("incident_id", key=True),
    _text("heimdall_job_id", nullable=False),
    # from AnomalyDetected
    _whole("detected_ms"),
    _text("kind"),
    _text("symptom_class"),
    _text("symptom"),
    # from AttributionMade
    _whole("attributed_ms"),
    _text("fault_class"),
    _text("scope"),
    _text("remedy"),
    Column("nodes", JSONB),
    _text("signature"),
    _whole("lines_seen"),
    Column("confidence", Float),
    _text("provider"),
    _text("explanation"),
    Index("incident_rows_attempt", "heimdall_job_id"),
)

# The event itself stands in AUDIT alone; the view `timeline` joins the two.
TIMELINE = Table(
    "timeline_rows",
    metadata,
    _text("event_id", key=True),
    _text("heimdall_job_id"),
    _text("cluster", nullable=False),
    _text("job_id", nullable=False),
    _whole("at_ms", nullable=False),
    _text("kind", nullable=False),
    _text("title", nullable=False),
    _text("detail", nullable=False),
    Column("times", JSONB, nullable=False),
    Index("timeline_rows_attempt", "heimdall_job_id"),
    Index("timeline_rows_job", "cluster", "job_id"),
)

AUDIT = Table(
    "audit_rows",
    metadata,
    _text("event_id", key=True),
    _whole("produced_us", nullable=False),
    _whole("stage", nullable=False),
    _whole("partition", nullable=False),
    _whole("offset", nullable=False),
    _text("topic", nullable=False),
    _text("type", nullable=False),
    _text("level", nullable=False),
    _text("producer", nullable=False),
    _text("heimdall_job_id"),
    _text("cluster", nullable=False),
    _text("job_id", nullable=False),
    _whole("attempt_index"),
    _whole("submit_time"),
    _text("cause", nullable=False),
    Column("payload", JSONB, nullable=False),
    Index("audit_rows_order", "produced_us", "stage", "partition", "offset"),
    Index("audit_rows_job", "job_id", "produced_us"),
    Index("audit_rows_attempt", "heimdall_job_id", "produced_us"),
    Index("audit_rows_type", "type", "produced_us"),
)

# Lines of job output stand here alone, so that one can be redacted without touching the record of what was decided.
EVIDENCE = Table("evidence_rows", metadata, _text("digest", key=True), _text("text", nullable=False))

OFFSETS = Table(
    "projection_offsets",
    metadata,
    _text("projection", key=True),
    _text("topic", key=True),
    _whole("partition", key=True),
    _whole("next_offset", nullable=False),
    _whole("record_ms"),
    # how many records were still unread when the runner last looked, and when that was
    _whole("lag"),
    _whole("looked_ms"),
)

PROBLEMS = Table(
    "projection_problems",
    metadata,
    _text("topic", key=True),
    _whole("partition", key=True),
    _whole("offset", key=True),
    _whole("record_ms", nullable=False),
    _text("key", nullable=False),
    _text("reason", nullable=False),
    _text("next", nullable=False),
)

# What a rebuild drops and makes again; PROBLEMS belongs to it, for a newer reader may understand what failed.
PROJECTED: tuple[Table, ...] = (
    ATTEMPTS,
    LOOKS,
    WORKFLOWS,
    ADVICE,
    INCIDENTS,
    TIMELINE,
    AUDIT,
    EVIDENCE,
    PROBLEMS,
)
