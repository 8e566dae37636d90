"""Whether a run ended right: what the jobs were told to do and what Slurm did, against what we claim. Pure.

The truth is the trainer's own record of each fault that it was told to make, Slurm's accounting of each attempt, and
slurmctld's log of each order that it carried out. Our records are what is on trial.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from schemas.vocabulary import Disposition, Outcome
from tests.chaos.plan import Job
from tests.chaos.records import Records
from tests.chaos.slurm import Accounted, Orders, Shown


@dataclass(frozen=True)
class Struck:
    """One fault as the trainer wrote it down."""

    fault_id: str
    attempt: int
    node: str


@dataclass(frozen=True)
class Truth:
    """What really happened to one job."""

    job: Job
    job_id: str
    faults: tuple[Struck, ...]
    shown: Shown | None
    accounted: tuple[Accounted, ...]
    orders: Orders

    @property
    def ran(self) -> tuple[Accounted, ...]:
        """The attempts that ran; a successor that was held and cancelled never did."""
        return tuple(row for row in self.accounted if row.nodes)

    @property
    def lost(self) -> bool:
        """Whether slurmctld itself lost the job: it can't be changed, and has not ended."""
        return self.orders.lost and (not self.accounted or self.accounted[-1].state not in self.job.kind.final)

    @property
    def struck(self) -> Mapping[int, str]:
        """The attempts in which the fault struck, and on which node; ranks of a node share a fault."""
        return {fault.attempt: fault.node for fault in self.faults}


@dataclass(frozen=True)
class Violation:
    """One claim that does not hold for one job (or for the run: no job)."""

    job_id: str | None
    claim: str
    seen: str

    def __str__(self) -> str:
        whose = "the run" if self.job_id is None else f"job {self.job_id}"
        return f"{whose}: {self.claim}; {self.seen}"


def judge(truths: Mapping[str, Truth], records: Records) -> list[Violation]:
    """Every violation of a run; `truths` is by job id."""
    found = [violation for truth in truths.values() for violation in _of_job(truth, records)]
    return [*found, *_of_run(records)]


def _of_job(truth: Truth, records: Records) -> Iterator[Violation]:
    of_slurm = () if truth.lost else (*_slurm(truth), *_actions(truth))
    for claim, expected, seen in (*of_slurm, *_once(truth, records), *_claims(truth, records)):
        if expected != seen:
            yield Violation(truth.job_id, claim, f"{seen}, not {expected} ({truth.job.name})")


Compared = tuple[str, object, object]


def _slurm(truth: Truth) -> Iterator[Compared]:
    """Every attempt ended right: by what was injected and by Slurm alone."""
    kind = truth.job.kind
    yield "attempts in which the fault struck", list(range(kind.struck)), sorted(truth.struck)
    yield "faults bear the job's own id", {truth.job.name} if kind.struck else set(), {f.fault_id for f in truth.faults}
    yield "attempts that ran, by accounting", kind.runs, len(truth.ran)
    last = truth.ran[-1].state if truth.ran else "none"
    ended = truth.accounted[-1].state if truth.accounted else "none"
    yield "the last state is one it may end in", True, ended in kind.final or f"{ended} ({last})"
    yield (
        "attempts before the last were requeued",
        ["REQUEUED"] * (len(truth.accounted) - 1),
        [
            "REQUEUED" if row.state in ("REQUEUED", "FAILED", "OUT_OF_MEMORY") else row.state
            for row in truth.accounted[:-1]
        ],
    )
    left_out = {attempt: node for attempt, node in truth.struck.items() if attempt < kind.restarts}
    if kind.excludes:
        for attempt, node in left_out.items():
            later = {name for row in truth.ran[attempt + 1 :] for name in row.nodes}
            yield f"{node}, which broke attempt {attempt}, is not used again", False, node in later
    if truth.shown is not None:
        excluded = set(left_out.values()) if kind.excludes else set()
        yield "ExcNodeList is the nodes that broke", sorted(excluded), sorted(truth.shown.excluded)


def _actions(truth: Truth) -> Iterator[Compared]:
    """No action more or fewer than due, none on an attempt not our business: by what slurmctld carried out."""
    kind, orders = truth.job.kind, truth.orders
    held_successor = bool(truth.accounted) and not truth.accounted[-1].nodes
    requeues = kind.restarts + (1 if held_successor else 0)
    yield "requeues that slurmctld carried out", requeues, orders.requeued
    yield "releases that slurmctld carried out", kind.restarts, orders.released
    cancelled = bool(truth.accounted) and truth.accounted[-1].state == "CANCELLED"
    yield "cancellations that slurmctld was asked for", 1 if cancelled else 0, orders.cancelled
    if truth.shown is not None:
        yield "Slurm's restart count", requeues, truth.shown.restarts


def _once(truth: Truth, records: Records) -> Iterator[Compared]:
    """No effective action twice: by our own records, which hold also where Slurm lost its own."""
    accepted = Counter(
        one.action_id
        for one in records.outcomes
        if one.attempt.job_id == truth.job_id and one.outcome is Outcome.ACCEPTED
    )
    yield "actions accepted more than once", {}, {action: n for action, n in accepted.items() if n > 1}


def _claims(truth: Truth, records: Records) -> Iterator[Compared]:
    """What we recorded is what happened."""
    kind = truth.job.kind
    anomalies = [one for one in records.anomalies if one.attempt.job_id == truth.job_id]
    expected = sorted(truth.struck) if kind.mode is not None else []
    yield "one incident for each fault", expected, sorted(one.attempt.index for one in anomalies)
    if kind.excludes:
        named = {one.attempt.index: one.nodes for one in records.attributions if one.attempt.job_id == truth.job_id}
        yield "the node that broke is named", {a: (node,) for a, node in truth.struck.items()}, named
    if truth.lost:
        return
    advice = {attempt.index: one for attempt, one in records.advice.items() if attempt.job_id == truth.job_id}
    yield (
        "the last word on each attempt that was struck",
        dict(enumerate(kind.advised)),
        {index: str(one.desired_state) for index, one in sorted(advice.items())},
    )
    if kind.mode == "act":
        open_or_lost = [index for index, one in advice.items() if one.disposition is not Disposition.CONVERGED]
        yield "Advice that did not converge", [], open_or_lost
    elif kind.mode == "observe":
        yield "actions intended in observe mode", 0, sum(1 for i in records.intents if i.attempt.job_id == truth.job_id)


def _of_run(records: Records) -> Iterator[Violation]:
    generations = Counter((one.attempt, one.advice.generation) for one in records.issued)
    twice = [f"{attempt} generation {generation}" for (attempt, generation), n in generations.items() if n > 1]
    if twice:
        yield Violation(None, "Advice is issued once a generation", f"twice: {', '.join(twice)}")
    if records.parked or records.parked_records:
        told = [f"{one.topic}/{one.partition}/{one.offset}: {one.reason}" for one in records.parked_records]
        reasons = "; ".join(sorted({*told, *(one.reason for one in records.parked)}))
        yield Violation(None, "nothing is parked", f"{len(told)} records ({reasons})")
