"""What the runner counts."""

from __future__ import annotations

from recovery.metrics import counter, latency

APPLIED = counter("projection_records", "Records applied to the tables.", "topic")
PROBLEMS = counter("projection_problems", "Records that could not be projected and were set aside.", "topic")
CONFLICTS = counter("projection_conflicts", "Batches given up because another runner was ahead.", "topic")
BATCH = latency("projection_batch", "Time to apply one batch and its offsets.")
SINCE_LINE = latency(
    "since_line", "From an incident's first line (its detection, where a line has no time) to a milestone.", "milestone"
)
