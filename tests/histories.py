"""Sample histories: what the journal and the decisions hold after a job's story.

For tests of whatever reads events. They show the order and the shape of real histories, not what a decider would
decide: that has tests of its own.
"""

from __future__ import annotations

from schemas.decisions import Advice
from schemas.vocabulary import (
    AttemptState,
    Disposition,
    Hold,
    LineRole,
    Mode,
    Operation,
    Refusal,
    Resolution,
)
from tests.history import START_MS, History

XID_LINE = "[node2] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus."
PEER_LINE = "[node1] NCCL WARN Net: peer node2 closed the connection"


def failing(history: History) -> Advice:
    """Attempt 0 runs on two nodes, saves a checkpoint, fails by an Xid on node2, and is to be restarted without it."""
    history.observed(AttemptState.PENDING)
    history.tick(2000)
    history.observed(AttemptState.RUNNING, ("node1", "node2"))
    for step in (10, 20, 30):
        history.tick(1000)
        history.progress(step)
    history.saved(30)
    history.tick(500)
    root = history.line(XID_LINE, "node2")
    history.anomaly(root)
    history.tick(100)
    peer = history.line(PEER_LINE, "node1", LineRole.CONSEQUENCE)
    history.tick(900)
    history.observed(
        AttemptState.FAILED, ("node1", "node2"), exit_code=256, start_ms=START_MS + 2000, end_ms=history.now_ms
    )
    history.tick(1500)
    history.attribution(root, peer)
    return history.advice()


def gpu_xid_failure(job_id: str = "42", *, cluster: str = "local", workflow_id: str = "training-run") -> History:
    """The whole story: failed, held, constrained, released, running without the node, resumed, completed."""
    history = History(job_id, cluster, workflow_id)
    advice = failing(history)
    history.tick(100)
    history.acted(advice, Operation.REQUEUE_HOLD)
    history.next_attempt()
    history.tick(300)
    history.observed(AttemptState.HELD, hold=Hold.REQUEUE)
    history.acted(advice, Operation.UPDATE_CONSTRAINTS)
    history.acted(advice, Operation.RELEASE)
    history.tick(400)
    history.observed(AttemptState.PENDING, excluded_nodes=("node2",), advice_generation=1)
    history.resolved(
        advice, Disposition.CONVERGED, Resolution.DESIRED_STATE_OBSERVED, "attempt 1 is PENDING and not held"
    )
    history.tick(1000)
    history.observed(AttemptState.RUNNING, ("node1", "node3"), excluded_nodes=("node2",))
    started = history.now_ms
    history.tick(700)
    history.loaded(30)
    history.tick(300)
    history.progress(40)
    history.tick(5000)
    history.observed(
        AttemptState.COMPLETED,
        ("node1", "node3"),
        exit_code=0,
        excluded_nodes=("node2",),
        start_ms=started,
        end_ms=history.now_ms,
    )
    return history


def observed_only(job_id: str = "43") -> History:
    """The same crash in observe mode: advised, refused once, and Slurm left alone."""
    history = History(job_id, workflow_id="watched-run", mode=Mode.OBSERVE)
    advice = failing(history)
    history.tick(100)
    history.refused(
        advice,
        Operation.REQUEUE_HOLD,
        Refusal.OBSERVE_MODE,
        "would have requeued the job into a held state; the job's mode is observe",
    )
    history.tick(60_000)
    history.observed(AttemptState.FAILED, ("node1", "node2"), in_controller=False, exit_code=256)
    history.resolved(advice, Disposition.ABANDONED, Resolution.JOB_LEFT_SCHEDULER, "slurmctld no longer shows the job")
    return history
