"""The first tables: attempts, Advice, timeline and audit trail, and the views that join them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None

# An attempt with all that is known of it: the decider's view, and the scheduler's newest look at it. A look names its
# attempt by restart count and SubmitTime; Slurm raises the count before it rewrites the time, so the time only tells
# the incarnation: it lies between the incarnation's beginning and the next one's.
ATTEMPTS_VIEW = """
CREATE VIEW attempts AS
SELECT a.heimdall_job_id, a.cluster, a.job_id, a.incarnation, a.attempt_index, a.opened_ms,
       coalesce(l.submit_time, a.submit_time) AS submit_time,
       a.workflow_id,
       coalesce(l.name, a.name) AS name,
       coalesce(l.user_name, a.user_name) AS user_name,
       coalesce(l.partition, a.partition) AS partition,
       coalesce(l.mode, a.mode) AS mode,
       coalesce(l.mode_reason, a.mode_reason) AS mode_reason,
       l.aps_error, l.raw_job_id, l.start_ms, l.end_ms, l.exit_code, l.hold,
       coalesce(a.state, 'UNKNOWN') AS state,
       CASE a.state WHEN 'HELD' THEN 'PENDING' ELSE coalesce(a.state, 'UNKNOWN') END AS jm_state,
       a.state_detail, a.observed_ms,
       coalesce(a.nodes, '[]'::jsonb) AS nodes,
       coalesce(l.excluded_nodes, '[]'::jsonb) AS excluded_nodes,
       coalesce(l.log_paths, '[]'::jsonb) AS log_paths,
       a.first_step_ms, a.last_step, a.last_step_ms, a.total_steps,
       a.last_checkpoint_step, a.last_checkpoint_ms, a.loaded_checkpoint_step, a.loaded_checkpoint_ms,
       coalesce(a.blind, '[]'::jsonb) AS blind,
       a.closed_ms
FROM attempt_rows a
LEFT JOIN LATERAL (
    SELECT * FROM look_rows s
    WHERE s.cluster = a.cluster AND s.job_id = a.job_id AND s.restart_count = a.attempt_index
      AND s.submit_time >= a.incarnation
      AND NOT EXISTS (SELECT 1 FROM attempt_rows n WHERE n.cluster = a.cluster AND n.job_id = a.job_id
                      AND n.incarnation > a.incarnation AND n.incarnation <= s.submit_time)
    ORDER BY s.looked_ms DESC, s.submit_time DESC LIMIT 1
) l ON true
WHERE a.opened_ms IS NOT NULL
"""

# `current` is the newest generation of its attempt: the only one that can still be reached.
ADVICE_VIEW = """
CREATE VIEW advice AS
SELECT v.heimdall_job_id, v.generation, v.cluster, v.job_id, v.incarnation, v.attempt_index, v.issued_ms, v.event_id,
       v.desired_state, v.exclude_nodes, v.reason, v.explanation, v.incident_id, v.workflow_id, v.valid_until_ms,
       v.policy, v.logic, v.resolved_ms,
       coalesce(v.disposition, 'PENDING') AS disposition,
       coalesce(v.resolution, 'UNSPECIFIED') AS resolution,
       coalesce(v.resolution_detail, '') AS resolution_detail,
       NOT EXISTS (SELECT 1 FROM advice_rows n WHERE n.heimdall_job_id = v.heimdall_job_id
                   AND n.generation > v.generation AND n.issued_ms IS NOT NULL) AS current,
       i.kind, i.symptom_class, i.symptom, i.detected_ms, i.fault_class, i.scope, i.nodes AS fault_nodes, i.signature,
       i.lines_seen, i.confidence, i.provider, i.explanation AS cause
FROM advice_rows v
LEFT JOIN incident_rows i ON i.incident_id = v.incident_id
WHERE v.issued_ms IS NOT NULL
"""

# A workflow ends when its last attempt did, and has no end while one may still run.
WORKFLOWS_VIEW = """
CREATE VIEW workflows AS
SELECT w.workflow_id, coalesce(w.name, w.workflow_id) AS name, w.opened_ms, t.start_ms,
       CASE WHEN t.running = 0 THEN t.end_ms END AS end_ms
FROM workflow_rows w
LEFT JOIN LATERAL (
    SELECT min(a.start_ms) AS start_ms, max(a.end_ms) AS end_ms,
           count(*) FILTER (WHERE a.state NOT IN ('COMPLETED', 'FAILED', 'CANCELLED', 'TIMEOUT', 'NODE_FAIL',
                            'OUT_OF_MEMORY', 'BOOT_FAIL', 'DEADLINE', 'PREEMPTED', 'REVOKED', 'REQUEUED')) AS running
    FROM attempts a WHERE a.workflow_id = w.workflow_id
) t ON true
WHERE w.opened_ms IS NOT NULL
"""

# The scheduler's looks do not know their attempt: `attempt_id` is the one whose incarnation had begun by then.
AUDIT_VIEW = """
CREATE VIEW audit AS
SELECT r.event_id, r.produced_us, r.stage, r.partition, r."offset", r.topic, r.type, r.level, r.producer,
       r.heimdall_job_id, r.cluster, r.job_id, r.attempt_index, r.cause, r.payload,
       coalesce(r.heimdall_job_id, (
           SELECT a.heimdall_job_id FROM attempt_rows a
           WHERE a.cluster = r.cluster AND a.job_id = r.job_id AND a.attempt_index = r.attempt_index
             AND a.incarnation <= r.submit_time AND a.opened_ms IS NOT NULL
           ORDER BY a.incarnation DESC LIMIT 1)) AS attempt_id
FROM audit_rows r
"""

# The words of a story beside the events that they tell.
TIMELINE_VIEW = """
CREATE VIEW timeline AS
SELECT t.event_id, t.heimdall_job_id, t.cluster, t.job_id, r.attempt_index, t.at_ms, r.stage, r.partition, r."offset",
       t.kind, t.title, t.detail, r.cause, t.times, r.payload
FROM timeline_rows t
JOIN audit_rows r ON r.event_id = t.event_id
"""


def upgrade() -> None:
    _attempts()
    _advice()
    _trail()
    _bookkeeping()
    for view in (ATTEMPTS_VIEW, ADVICE_VIEW, WORKFLOWS_VIEW, AUDIT_VIEW, TIMELINE_VIEW):
        op.execute(view)


def _attempts() -> None:
    op.create_table(
        "attempt_rows",
        sa.Column("heimdall_job_id", sa.Text, primary_key=True),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("incarnation", sa.BigInteger, nullable=False),
        sa.Column("attempt_index", sa.BigInteger, nullable=False),
        sa.Column("opened_ms", sa.BigInteger),
        sa.Column("submit_time", sa.BigInteger),
        sa.Column("name", sa.Text),
        sa.Column("user_name", sa.Text),
        sa.Column("partition", sa.Text),
        sa.Column("workflow_id", sa.Text),
        sa.Column("mode", sa.Text),
        sa.Column("mode_reason", sa.Text),
        sa.Column("moved_ms", sa.BigInteger),
        sa.Column("state", sa.Text),
        sa.Column("state_detail", sa.Text),
        sa.Column("observed_ms", sa.BigInteger),
        sa.Column("nodes_ms", sa.BigInteger),
        sa.Column("nodes", JSONB),
        sa.Column("first_step_ms", sa.BigInteger),
        sa.Column("last_step", sa.BigInteger),
        sa.Column("last_step_ms", sa.BigInteger),
        sa.Column("total_steps", sa.BigInteger),
        sa.Column("last_checkpoint_step", sa.BigInteger),
        sa.Column("last_checkpoint_ms", sa.BigInteger),
        sa.Column("loaded_checkpoint_step", sa.BigInteger),
        sa.Column("loaded_checkpoint_ms", sa.BigInteger),
        sa.Column("blind_ms", sa.BigInteger),
        sa.Column("blind", JSONB),
        sa.Column("closed_ms", sa.BigInteger),
    )
    op.create_index("attempt_rows_job", "attempt_rows", ["job_id", "attempt_index"])
    op.create_index("attempt_rows_opened", "attempt_rows", ["opened_ms", "heimdall_job_id"])
    op.create_index("attempt_rows_workflow", "attempt_rows", ["workflow_id"])
    op.create_table(
        "look_rows",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("job_id", sa.Text, primary_key=True),
        sa.Column("restart_count", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("submit_time", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("looked_ms", sa.BigInteger),
        sa.Column("name", sa.Text),
        sa.Column("user_name", sa.Text),
        sa.Column("partition", sa.Text),
        sa.Column("mode", sa.Text),
        sa.Column("mode_reason", sa.Text),
        sa.Column("aps_error", sa.Text),
        sa.Column("raw_job_id", sa.BigInteger),
        sa.Column("start_ms", sa.BigInteger),
        sa.Column("end_ms", sa.BigInteger),
        sa.Column("exit_code", sa.BigInteger),
        sa.Column("in_controller", sa.Boolean),
        sa.Column("controller_ms", sa.BigInteger),
        sa.Column("hold", sa.Text),
        sa.Column("excluded_nodes", JSONB),
        sa.Column("log_paths", JSONB),
    )
    op.create_table(
        "workflow_rows",
        sa.Column("workflow_id", sa.Text, primary_key=True),
        sa.Column("named_ms", sa.BigInteger),
        sa.Column("name", sa.Text),
        sa.Column("opened_ms", sa.BigInteger),
    )
    op.create_index("workflow_rows_opened", "workflow_rows", ["opened_ms", "workflow_id"])


def _advice() -> None:
    op.create_table(
        "advice_rows",
        sa.Column("heimdall_job_id", sa.Text, primary_key=True),
        sa.Column("generation", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("incarnation", sa.BigInteger, nullable=False),
        sa.Column("attempt_index", sa.BigInteger, nullable=False),
        sa.Column("issued_ms", sa.BigInteger),
        sa.Column("event_id", sa.Text),
        sa.Column("desired_state", sa.Text),
        sa.Column("exclude_nodes", JSONB),
        sa.Column("reason", sa.Text),
        sa.Column("explanation", sa.Text),
        sa.Column("incident_id", sa.Text),
        sa.Column("workflow_id", sa.Text),
        sa.Column("valid_until_ms", sa.BigInteger),
        sa.Column("policy", sa.Text),
        sa.Column("logic", sa.BigInteger),
        sa.Column("resolved_ms", sa.BigInteger),
        sa.Column("disposition", sa.Text),
        sa.Column("resolution", sa.Text),
        sa.Column("resolution_detail", sa.Text),
    )
    op.create_index("advice_rows_issued", "advice_rows", ["issued_ms", "heimdall_job_id", "generation"])
    op.create_table(
        "incident_rows",
        sa.Column("incident_id", sa.Text, primary_key=True),
        sa.Column("heimdall_job_id", sa.Text, nullable=False),
        sa.Column("detected_ms", sa.BigInteger),
        sa.Column("kind", sa.Text),
        sa.Column("symptom_class", sa.Text),
        sa.Column("symptom", sa.Text),
        sa.Column("attributed_ms", sa.BigInteger),
        sa.Column("fault_class", sa.Text),
        sa.Column("scope", sa.Text),
        sa.Column("remedy", sa.Text),
        sa.Column("nodes", JSONB),
        sa.Column("signature", sa.Text),
        sa.Column("lines_seen", sa.BigInteger),
        sa.Column("confidence", sa.Float),
        sa.Column("provider", sa.Text),
        sa.Column("explanation", sa.Text),
    )
    op.create_index("incident_rows_attempt", "incident_rows", ["heimdall_job_id"])


def _trail() -> None:
    op.create_table(
        "timeline_rows",
        sa.Column("event_id", sa.Text, primary_key=True),
        sa.Column("heimdall_job_id", sa.Text),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("times", JSONB, nullable=False),
    )
    op.create_index("timeline_rows_attempt", "timeline_rows", ["heimdall_job_id"])
    op.create_index("timeline_rows_job", "timeline_rows", ["cluster", "job_id"])
    op.create_table(
        "audit_rows",
        sa.Column("event_id", sa.Text, primary_key=True),
        sa.Column("produced_us", sa.BigInteger, nullable=False),
        sa.Column("stage", sa.BigInteger, nullable=False),
        sa.Column("partition", sa.BigInteger, nullable=False),
        sa.Column("offset", sa.BigInteger, nullable=False),
        sa.Column("topic", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("level", sa.Text, nullable=False),
        sa.Column("producer", sa.Text, nullable=False),
        sa.Column("heimdall_job_id", sa.Text),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("attempt_index", sa.BigInteger),
        sa.Column("submit_time", sa.BigInteger),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("payload", JSONB, nullable=False),
    )
    op.create_index("audit_rows_attempt", "audit_rows", ["heimdall_job_id", "produced_us"])
    op.create_index("audit_rows_job", "audit_rows", ["job_id", "produced_us"])
    op.create_index("audit_rows_order", "audit_rows", ["produced_us", "stage", "partition", "offset"])
    op.create_index("audit_rows_type", "audit_rows", ["type", "produced_us"])
    op.create_table(
        "evidence_rows",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
    )


def _bookkeeping() -> None:
    op.create_table(
        "projection_offsets",
        sa.Column("projection", sa.Text, primary_key=True),
        sa.Column("topic", sa.Text, primary_key=True),
        sa.Column("partition", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("next_offset", sa.BigInteger, nullable=False),
        sa.Column("record_ms", sa.BigInteger),
        sa.Column("lag", sa.BigInteger),
        sa.Column("looked_ms", sa.BigInteger),
    )
    op.create_table(
        "projection_problems",
        sa.Column("topic", sa.Text, primary_key=True),
        sa.Column("partition", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("offset", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("record_ms", sa.BigInteger, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("next", sa.Text, nullable=False),
    )
