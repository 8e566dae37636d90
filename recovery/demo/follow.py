"""Follows one job live: each thing that the API learns, in plain words, as it comes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime

import httpx
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from recovery.demo.api import Api, Json
from recovery.demo.scenario import BROKEN, Scenario
from recovery.demo.slurm import Cluster

POLL_S = 0.3
DEADLINE_S = 180.0
OBSERVE_SETTLE_S = 3.0
STYLES = {
    "signature": "yellow",
    "anomaly": "bold red",
    "attribution": "bold magenta",
    "advice": "bold cyan",
    "action": "blue",
    "action_ended": "blue",
    "action_refused": "yellow",
    "resolution": "bold green",
    "checkpoint_loaded": "green",
    "withheld": "yellow",
}
QUIET = {"checkpoint_saved"}
DETAILED = {"attribution", "action", "action_refused", "withheld"}
SIGNATURES_SHOWN = 4


class DemoError(Exception):
    """The demo did not see what must happen; the message says what was missing and where to look."""


class Follower:
    """Prints what is new about one job until it is over."""

    def __init__(self, console: Console, api: Api, cluster: Cluster, job_id: str) -> None:
        self._console = console
        self._api = api
        self._cluster = cluster
        self._job_id = job_id
        self._told: set[str] = set()
        self._trains: set[int] = set()
        self._signatures = 0
        self._node_down = False

    def until_over(self, scenario: Scenario) -> None:
        """Follow until the scenario's end is seen. Raises DemoError after DEADLINE_S seconds."""
        deadline = time.monotonic() + DEADLINE_S
        over = self._acted if scenario.acts else self._observed
        with self._console.status("waiting for the first look at the job") as status:
            while True:
                attempts = self._look(status.update)
                if scenario.node_down:
                    self._break_node(attempts)
                if over(scenario, attempts):
                    return
                if time.monotonic() > deadline:
                    states = [f"attempt {a['attemptIndex']} {a['jmState']}" for a in attempts]
                    raise DemoError(
                        f"job {self._job_id} was not over within {DEADLINE_S:g} s"
                        f" ({', '.join(states) or 'never seen'}); see the processes' logs"
                    )
                time.sleep(POLL_S)

    def _look(self, update: Callable[[str], None]) -> list[Json]:
        try:
            attempts = self._api.attempts(self._job_id)
            for attempt in attempts:
                self._tell(self._api.timeline(attempt["heimdallJobId"]).get("entries", []))
                self._tell_step(attempt)
        except httpx.TransportError as error:
            update(f"the gateway does not answer: {error}")
            return []
        if attempts:
            latest = attempts[-1]
            step = latest["lastStep"]
            update(
                f"attempt {latest['attemptIndex']} is {latest['jmState']}"
                + (f" on {', '.join(latest['nodes'])}" if latest["nodes"] else "")
                + (f", step {step} of {latest['totalSteps']}" if step is not None else "")
            )
        return attempts

    def _tell(self, entries: list[Json]) -> None:
        for entry in entries:
            if entry["eventId"] in self._told:
                continue
            self._told.add(entry["eventId"])
            if entry["kind"] in QUIET or self._is_too_many(entry["kind"]):
                continue
            self._say(entry["time"], entry["attemptIndex"], entry["title"], STYLES.get(entry["kind"], ""))
            if entry["kind"] in DETAILED and entry["detail"]:
                self._console.print(f"{'':22}[dim]{escape(entry['detail'])}[/]")

    def _say(self, time_of: str, attempt: int | None, text: str, style: str) -> None:
        whose = "" if attempt is None else f"attempt {attempt}"
        line = Text.assemble((clock(time_of), "dim"), f"  {whose:10}", (text, style))
        self._console.print(line)

    def _is_too_many(self, kind: str) -> bool:
        """One fault prints dozens of lines; the first few tell it."""
        if kind != "signature":
            return False
        self._signatures += 1
        return self._signatures > SIGNATURES_SHOWN

    def _tell_step(self, attempt: Json) -> None:
        """Say when an attempt trains for the first time."""
        index = attempt["attemptIndex"]
        if attempt["lastStep"] is not None and index not in self._trains:
            self._trains.add(index)
            self._say(attempt["firstStepTime"], index, "It trains", "green")

    def _break_node(self, attempts: list[Json]) -> None:
        """Once the job has a checkpoint to resume from, have Slurm lose a node."""
        if not self._node_down and attempts and (attempts[-1]["lastCheckpointStep"] or 0) > 0:
            self._cluster.lose_node(BROKEN)
            self._node_down = True
            self._console.print(f"{'':12}[bold red]{BROKEN} is set DOWN[/]")

    def _acted(self, scenario: Scenario, attempts: list[Json]) -> bool:
        """The job is as it must be, and every Advice that must have been given has come to its end."""
        if not attempts or attempts[-1]["jmState"] not in scenario.final_states:
            return False
        advice = self._api.advice(self._job_id)
        enough = len(advice) >= len(scenario.told) and sum(1 for a in attempts if a["startTime"]) >= scenario.runs
        return enough and all(not _pending(one) for one in advice)

    def _observed(self, scenario: Scenario, attempts: list[Json]) -> bool:
        """The job failed, what would have been done is on record, and nothing happens for a while after."""
        if not attempts or attempts[-1]["jmState"] not in scenario.final_states:
            return False
        if not self._api.audit(self._job_id, "ActionRefused"):
            return False
        time.sleep(OBSERVE_SETTLE_S)
        return True


def _pending(advice: Json) -> bool:
    return str(advice["reconciliationStatus"]["disposition"]).endswith("PENDING")


def clock(rfc3339: str) -> str:
    """Local wall-clock time with tenths, for a live log."""
    return datetime.fromisoformat(rfc3339).astimezone().strftime("%H:%M:%S.%f")[:-5]


def tidy(cluster: Cluster, job_id: str, *, node_down: bool) -> Iterator[str]:
    """Cancel the job and bring the node back; yield what could not be done, and why."""
    try:
        cluster.cancel(job_id)
        if node_down:
            cluster.have_node_back(BROKEN)
    except (subprocess.SubprocessError, OSError) as error:
        yield f"the cluster could not be tidied: {error}"
