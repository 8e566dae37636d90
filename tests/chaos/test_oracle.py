"""The oracle finds what it is there to find: a run that ended right passes, and each kind of wrong end is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from schemas.decisions import Advice, AdviceIssued, AnomalyDetected, AttributionMade
from schemas.facts import ActionEnded
from schemas.identity import AttemptId, Position
from schemas.vocabulary import (
    AnomalyKind,
    DesiredState,
    Disposition,
    FaultClass,
    Operation,
    Outcome,
    Remedy,
    Resolution,
    Scope,
)
from tests.chaos.jobs import KINDS
from tests.chaos.oracle import Struck, Truth, judge
from tests.chaos.plan import Job
from tests.chaos.records import Records
from tests.chaos.slurm import Accounted, Orders, Shown

XID = next(kind for kind in KINDS if kind.name == "xid")
JOB = Job("chaos-xid", XID, 0.0, 7, 12, 0.1)
FIRST = AttemptId("local", "1", 1_700_000_000, 0)


def restarted() -> tuple[Truth, Records]:
    """A job whose node1 broke, and which was restarted on node2, as it must be."""
    truth = Truth(
        job=JOB,
        job_id="1",
        faults=(Struck("chaos-xid", 0, "node1"),),
        shown=Shown("COMPLETED", 1, 1, ("node1",)),
        accounted=(Accounted("REQUEUED", ("node1",), "1:0"), Accounted("COMPLETED", ("node2",), "0:0")),
        orders=Orders(requeued=1, released=1, cancelled=0),
    )
    records = Records()
    records.anomalies.append(anomaly(0))
    records.attributions.append(attribution())
    records.advice[FIRST] = advice(DesiredState.RESTARTED)
    records.issued.append(AdviceIssued("e", "", FIRST, 1, records.advice[FIRST]))
    records.outcomes.append(accepted())
    return truth, records


def anomaly(index: int) -> AnomalyDetected:
    of = replace(FIRST, index=index)
    return AnomalyDetected("n", "", of, 1, f"i{index}", AnomalyKind.CRASH_LOG, FaultClass.GPU_HARDWARE, "", None)


def attribution() -> AttributionMade:
    return AttributionMade(
        "a", "", FIRST, 1, "i", FaultClass.GPU_HARDWARE, Scope.NODE, Remedy.RESTART_EXCLUDING_NODE, ("node1",), "xid",
        None, (), 1, 0.9, "rules", "",
    )  # fmt: skip


def advice(desired: DesiredState, disposition: Disposition = Disposition.CONVERGED) -> Advice:
    return Advice(
        "e", FIRST, 1_700_000_000, 1, desired, ("node1",), disposition, Resolution.UNSPECIFIED, "", "", "i", "w", 1, 2,
        None, "", 1,
    )  # fmt: skip


def accepted() -> ActionEnded:
    nowhere = Position("topic:actions/0", 0, 0)
    return ActionEnded("o", "", FIRST, nowhere, "action", Operation.REQUEUE_HOLD, 0, Outcome.ACCEPTED, "", 1)


def found(truth: Truth, records: Records) -> str:
    return "\n".join(str(violation) for violation in judge({truth.job_id: truth}, records))


def test_a_job_that_was_restarted_as_it_must_be_passes() -> None:
    assert found(*restarted()) == ""


WRONG_TRUTHS: dict[str, Callable[[Truth], Truth]] = {
    "attempts in which the fault struck": lambda t: replace(t, faults=()),
    "faults bear the job's own id": lambda t: replace(t, faults=(Struck("another", 0, "node1"),)),
    "attempts that ran": lambda t: replace(t, accounted=(*t.accounted, Accounted("COMPLETED", ("node2",), "0:0"))),
    "the last state": lambda t: replace(t, accounted=(t.accounted[0], Accounted("FAILED", ("node2",), "1:0"))),
    "attempts before the last": lambda t: replace(
        t, accounted=(Accounted("COMPLETED", ("node1",), "0:0"), t.accounted[1])
    ),
    "is not used again": lambda t: replace(t, accounted=(t.accounted[0], Accounted("COMPLETED", ("node1",), "0:0"))),
    "ExcNodeList": lambda t: replace(t, shown=Shown("COMPLETED", 1, 1, ("node1", "node3"))),
    "requeues that slurmctld carried out": lambda t: replace(t, orders=replace(t.orders, requeued=2)),
    "releases that slurmctld carried out": lambda t: replace(t, orders=replace(t.orders, released=0)),
    "cancellations": lambda t: replace(t, orders=replace(t.orders, cancelled=1)),
    "restart count": lambda t: replace(t, shown=Shown("COMPLETED", 2, 1, ("node1",))),
}


@pytest.mark.parametrize("claim", WRONG_TRUTHS)
def test_what_slurm_shows_wrong_is_named(claim: str) -> None:
    truth, records = restarted()
    assert claim in found(WRONG_TRUTHS[claim](truth), records)


def wrong_records() -> dict[str, Callable[[Records], object]]:
    return {
        "one incident for each fault": lambda r: r.anomalies.append(anomaly(0)),
        "one incident": lambda r: r.anomalies.clear(),
        "one incident for": lambda r: r.anomalies.append(anomaly(1)),
        "the node that broke is named": lambda r: r.attributions.clear(),
        "the last word": lambda r: r.advice.update({FIRST: advice(DesiredState.TERMINATED)}),
        "did not converge": lambda r: r.advice.update({FIRST: advice(DesiredState.RESTARTED, Disposition.PENDING)}),
        "accepted more than once": lambda r: r.outcomes.append(accepted()),
        "issued once a generation": lambda r: r.issued.append(r.issued[0]),
    }


@pytest.mark.parametrize("claim", wrong_records())
def test_what_we_claim_wrong_is_named(claim: str) -> None:
    truth, records = restarted()
    wrong_records()[claim](records)
    assert claim in found(truth, records)


def test_an_action_on_a_job_that_is_none_of_ours_is_named() -> None:
    kind = next(kind for kind in KINDS if kind.mode is None)
    truth = Truth(
        job=replace(JOB, kind=kind),
        job_id="1",
        faults=(Struck(JOB.name, 0, "node1"),),
        shown=Shown("FAILED", 0, 1, ()),
        accounted=(Accounted("FAILED", ("node1",), "1:0"),),
        orders=Orders(),
    )
    assert found(truth, Records()) == ""
    assert "requeues" in found(replace(truth, orders=Orders(requeued=1)), Records())
    records = Records()
    records.anomalies.append(anomaly(0))
    assert "one incident" in found(truth, records)


def test_a_successor_that_was_held_and_cancelled_is_no_attempt_that_ran() -> None:
    kind = next(kind for kind in KINDS if kind.name == "user-error")
    truth = Truth(
        job=replace(JOB, kind=kind),
        job_id="1",
        faults=(Struck(JOB.name, 0, "node1"),),
        shown=Shown("CANCELLED", 1, 0, ()),
        accounted=(Accounted("REQUEUED", ("node1",), "1:0"), Accounted("CANCELLED", (), "0:0")),
        orders=Orders(requeued=1, released=0, cancelled=1),
    )
    records = Records()
    records.anomalies.append(anomaly(0))
    records.advice[FIRST] = advice(DesiredState.TERMINATED)
    assert found(truth, records) == ""
    assert "cancellations" in found(replace(truth, orders=Orders(requeued=1, cancelled=2)), records)


def test_a_job_that_slurmctld_lost_need_not_end_but_nothing_is_done_to_it_twice() -> None:
    truth, records = restarted()
    stuck = replace(
        truth,
        shown=Shown("PENDING", 1, 0, ()),
        accounted=truth.accounted[:1],
        orders=Orders(requeued=1, unchangeable=9),
    )
    records.advice[FIRST] = advice(DesiredState.RESTARTED, Disposition.PENDING)
    assert found(stuck, records) == ""
    assert "did not converge" in found(replace(stuck, orders=Orders(requeued=1, unchangeable=1)), records)
    records.outcomes.append(accepted())
    assert "accepted more than once" in found(stuck, records)
