"""What the gateway reads: the views and tables that the projections promise, by name. A test holds both together."""

from __future__ import annotations

from sqlalchemy import TableClause, column, table


def _table(name: str, columns: str) -> TableClause:
    return table(name, *(column(word) for word in columns.split()))


ATTEMPTS = _table(
    "attempts",
    "heimdall_job_id cluster job_id incarnation attempt_index opened_ms submit_time workflow_id name user_name"
    " partition mode mode_reason aps_error raw_job_id start_ms end_ms exit_code hold state jm_state state_detail"
    " observed_ms nodes excluded_nodes log_paths first_step_ms last_step last_step_ms total_steps"
    " last_checkpoint_step last_checkpoint_ms loaded_checkpoint_step loaded_checkpoint_ms blind closed_ms",
)
ADVICE = _table(
    "advice",
    "heimdall_job_id generation cluster job_id incarnation attempt_index issued_ms event_id desired_state"
    " exclude_nodes reason explanation incident_id workflow_id valid_until_ms policy logic resolved_ms disposition"
    " resolution resolution_detail current kind symptom_class symptom detected_ms fault_class scope fault_nodes"
    " signature lines_seen confidence provider cause",
)
WORKFLOWS = _table("workflows", "workflow_id name opened_ms start_ms end_ms")
AUDIT = _table(
    "audit",
    "event_id produced_us stage partition offset topic type level producer heimdall_job_id attempt_id cluster job_id"
    " attempt_index cause payload",
)
TIMELINE = _table(
    "timeline",
    "event_id heimdall_job_id cluster job_id attempt_index at_ms stage partition offset kind title detail cause times"
    " payload",
)
EVIDENCE = _table("evidence_rows", "digest text")
OFFSETS = _table("projection_offsets", "projection topic partition next_offset record_ms lag looked_ms")

READ = (ATTEMPTS, ADVICE, WORKFLOWS, AUDIT, TIMELINE, EVIDENCE, OFFSETS)
