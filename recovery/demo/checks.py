"""What must be true at the end, asserted from Slurm's accounting, the job's own output and the API."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recovery.demo.api import Api
from recovery.demo.scenario import Scenario
from recovery.demo.slurm import Accounted, Cluster

ACCOUNTING_LAG_S = 15.0
FAILED_STATES = {"FAILED", "REQUEUED"}


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
    yield from _records(run, api)


def _slurm(run: Run, cluster: Cluster) -> Iterator[Check]:
    scenario = run.scenario
    shown = cluster.job(run.job_id)
    yield _equal("Slurm counts the restarts", str(scenario.restarts), shown.get("Restarts", "?"))
    yield _equal("Slurm's last word on the job", scenario.final_state, shown.get("JobState", "?"))
    excluded = cluster.hosts(shown.get("ExcNodeList", ""))
    wanted = scenario.excluded if scenario.acts else ()
    yield _equal("Slurm's ExcNodeList", wanted, excluded)
    records = _accounting(cluster, run, scenario.restarts + 1)
    yield _equal("attempts in Slurm's accounting", scenario.restarts + 1, len(records))
    first, last = records[0], records[-1]
    yield Check("the first attempt failed", first.state in FAILED_STATES, f"{first.state} {first.exit_code}")
    on_first = cluster.hosts(first.nodes)
    yield Check("it ran on the broken node", set(scenario.excluded) <= set(on_first), ", ".join(on_first))
    if scenario.acts:
        on_last = cluster.hosts(last.nodes)
        clean = last.state == scenario.final_state and not set(scenario.excluded) & set(on_last)
        yield Check("the last attempt ended well on other nodes", clean, f"{last.state} on {', '.join(on_last)}")


def _accounting(cluster: Cluster, run: Run, attempts: int) -> list[Accounted]:
    """Accounting lags: wait, within a bound, until it has all attempts in their final states."""
    deadline = time.monotonic() + ACCOUNTING_LAG_S
    while True:
        records = cluster.accounting(run.job_id)
        settled = len(records) == attempts and records[-1].state == run.scenario.final_state
        if settled or time.monotonic() > deadline:
            return records
        time.sleep(0.3)


def _job(run: Run) -> Iterator[Check]:
    faults = [json.loads(line) for line in (run.checkpoints / "faults.jsonl").read_text().splitlines()]
    seen = [(fault["node"], fault["attempt"]) for fault in faults]
    yield _equal("the fault struck once, where it was set", [(run.scenario.fault_node, 0)], seen)
    if not run.scenario.acts:
        return
    output = run.output.read_text(errors="replace")
    resumed = [line for line in output.splitlines() if "successfully loaded checkpoint" in line]
    step = int(resumed[-1].rsplit(" ", 1)[-1]) if resumed else 0
    yield Check("the job resumed from its own checkpoint", step > 0, resumed[-1].strip() if resumed else "no such line")
    saved = sorted(path.stem for path in run.checkpoints.glob("iter_*.json"))
    yield _equal("the job's last checkpoint on disk", f"iter_{run.iterations:07d}", saved[-1] if saved else "none")


def _records(run: Run, api: Api) -> Iterator[Check]:
    scenario = run.scenario
    attempts = api.attempts(run.job_id)
    yield _equal("attempts in the API", list(range(scenario.restarts + 1)), [a["attemptIndex"] for a in attempts])
    advice = api.advice(run.job_id)
    shape = [
        (
            one["attemptIndex"],
            one["desiredState"],
            one["reconciliationStatus"]["disposition"].rsplit("_", 1)[-1],
            tuple(one["nodeConstraints"]["excludedNodes"]),
        )
        for one in advice
    ]
    yield _equal("Advice", [(0, scenario.desired_state, scenario.disposition, scenario.excluded)], shape)
    anomalies = api.audit(run.job_id, "AnomalyDetected")
    yield _equal("incidents for the one fault", 1, len(anomalies))
    intended = [event["payload"]["operation"] for event in api.audit(run.job_id, "ActionIntended")]
    if scenario.acts:
        yield Check("each action was intended once", len(intended) == len(set(intended)) > 0, ", ".join(intended))
    else:
        yield _equal("scheduler actions", [], intended)
        refused = {event["payload"]["reason"] for event in api.audit(run.job_id, "ActionRefused")}
        yield _equal("the refusal is on record", {"observe_mode"}, refused)


def _equal(claim: str, expected: object, seen: object) -> Check:
    return Check(claim, expected == seen, f"{seen}" if expected == seen else f"{seen}, not {expected}")
