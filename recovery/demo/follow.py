"""Follows one job live: each thing that the API learns, in plain words, as it comes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from datetime import datetime

import httpx
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from recovery.demo.api import Api, Json
from recovery.demo.scenario import Scenario
from recovery.demo.slurm import Cluster

POLL_S = 0.3
DEADLINE_S = 120.0
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
        self._steps: dict[int, int] = {}
        self._signatures = 0

    def until_over(self, scenario: Scenario) -> None:
        """Follow until the scenario's end is seen. Raises DemoError after DEADLINE_S seconds."""
        deadline = time.monotonic() + DEADLINE_S
        over = self._restarted if scenario.acts else self._observed
        with self._console.status("waiting for the first look at the job") as status:
            while True:
                attempts = self._look(status.update)
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
        index, step = attempt["attemptIndex"], attempt["lastStep"]
        if step is not None and index not in self._steps:
            self._steps[index] = step
            self._say(attempt["firstStepTime"], index, "It trains", "green")

    def _restarted(self, scenario: Scenario, attempts: list[Json]) -> bool:
        """The last attempt is as it must be, by our record and by Slurm, and the Advice has come to its end."""
        if not attempts or attempts[-1]["jmState"] != scenario.final_state:
            return False
        if len(attempts) != scenario.restarts + 1:
            return False
        advice = self._api.advice(self._job_id)
        return bool(advice) and all(not _pending(one) for one in advice)

    def _observed(self, scenario: Scenario, attempts: list[Json]) -> bool:
        """The job failed, what would have been done is on record, and nothing happens for a while after."""
        if not attempts or attempts[-1]["jmState"] != scenario.final_state:
            return False
        refused = self._api.audit(self._job_id, "ActionRefused")
        if not refused:
            return False
        time.sleep(OBSERVE_SETTLE_S)
        return True


def _pending(advice: Json) -> bool:
    return str(advice["reconciliationStatus"]["disposition"]).endswith("PENDING")


def clock(rfc3339: str) -> str:
    """Local wall-clock time with tenths, for a live log."""
    return datetime.fromisoformat(rfc3339).astimezone().strftime("%H:%M:%S.%f")[:-5]


def cancel_quietly(cluster: Cluster, job_id: str) -> str | None:
    """Cancel what the demo submitted; return why it could not be, if so."""
    try:
        cluster.cancel(job_id)
    except (subprocess.SubprocessError, OSError) as error:
        return f"job {job_id} could not be cancelled: {error}"
    return None
