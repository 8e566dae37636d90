"""What must be true at the end, asserted from Slurm's accounting, the job's own output and the API."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recovery.demo.api import Api, Json
from recovery.demo.scenario import BROKEN, Scenario
from recovery.demo.slurm import Accounted, Cluster

ACCOUNTING_LAG_S = 15.0


@dataclass(frozen=True)
class Check:
    """One claim, whether it holds, and what was seen."""

    claim: str
    holds: bool
    seen: str


@dataclass(frozen=True)
class Run:
    """One demo job and where its traces are."""

    scenario: Scenario
    job_id: str
    checkpoints: Path
    output: Path
    iterations: int


def checks(run: Run, cluster: Cluster, api: Api) -> Iterator[Check]:
    """Yield every check of the run."""
    yield from _slurm(run, cluster)
    yield from _job(run)
    yield from _advice(run, api)
    yield from _actions(run, api)


def _slurm(run: Run, cluster: Cluster) -> Iterator[Check]:
    scenario = run.scenario
    shown = cluster.job(run.job_id)
    state = shown.get("JobState", "?")
    yield Check("Slurm's last word on the job", state in scenario.final_states, state)
    yield _equal("Slurm's ExcNodeList", scenario.excluded, cluster.hosts(shown.get("ExcNodeList", "")))
    records = _accounting(cluster, run)
    ran = [record for record in records if cluster.hosts(record.nodes)]
    yield _equal("attempts that ran, in Slurm's accounting", scenario.runs, len(ran))
    first = cluster.hosts(ran[0].nodes)
    yield Check("the first attempt ran on the node that breaks", BROKEN in first, ", ".join(first))
    if scenario.completes:
        last = cluster.hosts(ran[-1].nodes)
        well = ran[-1].state == "COMPLETED" and not set(scenario.excluded) & set(last)
        yield Check("the last attempt ended well where it may run", well, f"{ran[-1].state} on {', '.join(last)}")


def _accounting(cluster: Cluster, run: Run) -> list[Accounted]:
    """Accounting lags: wait, within a bound, until it has the job's last state."""
    deadline = time.monotonic() + ACCOUNTING_LAG_S
    while True:
        records = cluster.accounting(run.job_id)
        settled = bool(records) and records[-1].state in run.scenario.final_states
        if settled or time.monotonic() > deadline:
            return records
        time.sleep(0.3)


def _job(run: Run) -> Iterator[Check]:
    path = run.checkpoints / "faults.jsonl"
    faults = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    seen = sorted({(fault["node"], fault["attempt"]) for fault in faults})
    expected = run.scenario.fault_node
    attempts = {attempt for _, attempt in seen}
    there = len(attempts) == run.scenario.faults and all(expected in (None, node) for node, _ in seen)
    yield Check("the fault struck where it was set, in as many attempts", there, str(seen))
    if not run.scenario.completes or run.scenario.runs == 1:
        return
    lines = run.output.read_text(errors="replace").splitlines()
    resumed = [line for line in lines if "successfully loaded checkpoint" in line]
    step = int(resumed[-1].rsplit(" ", 1)[-1]) if resumed else 0
    yield Check("the job resumed from its own checkpoint", step > 0, f"iteration {step}")
    saved = sorted(path.stem for path in run.checkpoints.glob("iter_*.json"))
    yield _equal("the job's last checkpoint on disk", f"iter_{run.iterations:07d}", saved[-1] if saved else "none")


def _advice(run: Run, api: Api) -> Iterator[Check]:
    scenario = run.scenario
    advice = sorted(api.advice(run.job_id), key=lambda one: int(one["attemptIndex"]))
    expected = [(told.attempt, told.desired_state, told.disposition, told.excluded) for told in scenario.told]
    yield _equal("Advice", expected, [_shape(one) for one in advice])
    for told, one in zip(scenario.told, advice, strict=False):
        if told.reason is not None:
            yield _equal(f"why attempt {told.attempt} was {told.desired_state.lower()}", told.reason, one["reason"])
    anomalies = api.audit(run.job_id, "AnomalyDetected")
    yield _equal("incidents, one for each fault", scenario.incidents, len(anomalies))
    if scenario.symptom is not None:
        yield _equal("the symptom", [scenario.symptom], [event["payload"]["kind"] for event in anomalies])


def _shape(advice: Json) -> tuple[int, str, str, tuple[str, ...]]:
    disposition = str(advice["reconciliationStatus"]["disposition"]).rsplit("_", 1)[-1]
    excluded = tuple(advice["nodeConstraints"]["excludedNodes"])
    return int(advice["attemptIndex"]), str(advice["desiredState"]), disposition, excluded


def _actions(run: Run, api: Api) -> Iterator[Check]:
    intended = [event["payload"] for event in api.audit(run.job_id, "ActionIntended")]
    names = ", ".join(one["operation"].removeprefix("SLURM_").lower() for one in intended) or "none"
    if not run.scenario.acts or not run.scenario.told:
        yield Check("no scheduler action was sent", not intended, names)
    else:
        actions = {one["action_id"] for one in intended}
        yield Check("each scheduler action was sent once", len(intended) == len(actions) > 0, names)
    if not run.scenario.acts:
        reasons = {event["payload"]["reason"] for event in api.audit(run.job_id, "ActionRefused")}
        yield _equal("the refusal is on record", {"observe_mode"}, reasons)


def _equal(claim: str, expected: object, seen: object) -> Check:
    return Check(claim, expected == seen, f"{seen}" if expected == seen else f"{seen}, not {expected}")
