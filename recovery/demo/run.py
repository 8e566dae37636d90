"""The demo from end to end: bring everything up, break a training job, follow it, check it, explain it, clean up."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from confluent_kafka import KafkaException
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from infra.local.parts import Report, StackError
from infra.local.training.job import TrainingJob
from recovery.bring_up import BringUpError, bring_down, bring_up
from recovery.demo.api import Api
from recovery.demo.checks import Check, Run, checks
from recovery.demo.follow import DemoError, Follower, clock, tidy
from recovery.demo.scenario import Scenario
from recovery.demo.slurm import Cluster
from recovery.run_files import read_run_files
from recovery.settings import Settings, load_settings
from schemas.codec import Codec
from schemas.registry import RegistryIds
from streams.replay.history import TopicHistory
from streams.replay.verify import verify
from streams.run.policies import PolicyDocuments
from streams.run.slots import GROUP

ACTING = {
    # The demo's cluster is its own: here the controller may act, and the watchdog with it.
    "SLURM_ADVISOR_ACKNOWLEDGE_SCHEDULER_ACTIONS": "true",
    "RECOVERY_WATCHDOG__MODE": "act",
    "RECOVERY_WATCHDOG__ACKNOWLEDGE": "true",
}


@dataclass(frozen=True)
class Demo:
    """One run of `recovery demo`."""

    console: Console
    scenario: Scenario
    config: Path | None
    keep: bool

    def run(self) -> int:
        """Return the exit code: 0 only if every check holds."""
        began = time.monotonic()
        self.console.rule(f"[bold]{self.scenario.name}[/]: {self.scenario.about}")
        os.environ.update(ACTING)
        data = load_settings(self.config).data
        try:
            return self._recover(bring_up(self.config, self._progress(began)))
        except (BringUpError, DemoError, StackError) as error:
            self.console.print(f"[bold red]failed:[/] {escape(str(error))}")
            return 1
        finally:
            self._end(data)

    def _recover(self, settings: Settings) -> int:
        if settings.slurm.conf_path is None:
            raise DemoError("the local stack has no Slurm; `recovery status` says why")
        api, cluster = Api(_gateway(settings)), Cluster(settings.slurm.conf_path)
        run = self._submit(settings)
        try:
            Follower(self.console, api, cluster, run.job_id).until_over(self.scenario)
            found = list(checks(run, cluster, api))
            self._explain(api, run.job_id)
            found.append(self._replay(settings))
            self._show(found)
            return 0 if all(check.holds for check in found) else 1
        finally:
            for problem in tidy(cluster, run.job_id, node_down=self.scenario.node_down):
                self.console.print(f"[yellow]{escape(problem)}[/]")
            api.close()

    def _submit(self, settings: Settings) -> Run:
        name = f"{self.scenario.name}-{uuid4().hex[:6]}"
        folder = settings.data / "demo" / name
        folder.mkdir(parents=True)
        job = TrainingJob(
            checkpoints=folder / "checkpoints",
            output=folder / "train.out",
            iterations=self.scenario.iterations,
            fault_iteration=self.scenario.fault_iteration,
            fault=self.scenario.fault,
            fault_node=self.scenario.fault_node,
            fault_attempts=self.scenario.fault_attempts,
            fault_id=name,
            comment=_aps(name, self.scenario, settings.sac.environment or "local"),
        )
        assert settings.slurm.conf_path is not None
        job_id = job.submit(settings.slurm.conf_path)
        self.console.print(f"submitted training job [bold]{job_id}[/] on two nodes; its output: {job.output}")
        return Run(self.scenario, job_id, job.checkpoints, job.output, job.iterations)

    def _explain(self, api: Api, job_id: str) -> None:
        first = api.attempts(job_id)[0]["heimdallJobId"]
        timeline = Table(title=f"Timeline of job {job_id}, attempt 0", title_justify="left", show_edge=False)
        for column in ("time", "since the fault", "since the step before", "what"):
            timeline.add_column(column, justify="left" if column in ("time", "what") else "right")
        for step in api.timeline(first)["milestones"]:
            timeline.add_row(
                clock(step["time"]), _seconds(step["msSinceFault"]), _seconds(step["msSincePrevious"]), step["name"]
            )
        self.console.print()
        self.console.print(timeline)
        why = api.why(first)
        self.console.print(f"\n[bold]Why?[/] {escape(why['summary'])}")
        for sentence in why["sentences"]:
            self.console.print(f"  {escape(sentence['text'])}")
            for line in sentence["evidence"][:3]:
                self.console.print(
                    f"    [dim]{Path(line['file']).name}:{line['lineNo']}  {escape(line['text'] or '')}[/]"
                )
        self.console.print()

    def _replay(self, settings: Settings) -> Check:
        """All decisions derived again from the journal."""
        bootstrap = settings.kafka.bootstrap
        try:
            codec = Codec(RegistryIds(settings.registry.url))
            policies = PolicyDocuments(bootstrap, codec, "demo-policies")
            report = verify(TopicHistory(bootstrap, GROUP), codec, policies)
        except KafkaException as error:
            raise DemoError(f"Kafka did not answer the replay: {error}") from error
        seen = f"{report.facts} facts, {report.decisions} decisions"
        if report.difference is not None:
            seen += f"; first difference at {report.difference.fact}: {report.difference.why}"
        holds = report.difference is None and report.decisions > 0
        return Check("replay verify: all decisions derived again, none different", holds, seen)

    def _show(self, found: list[Check]) -> None:
        for check in found:
            mark = "[green]holds[/]" if check.holds else "[bold red]FAILS[/]"
            self.console.print(f"{mark}  {check.claim}: [dim]{escape(check.seen)}[/]")

    def _progress(self, began: float) -> Report:
        def report(sentence: str) -> None:
            self.console.print(f"[dim]{time.monotonic() - began:6.1f} s[/]  {escape(sentence)}")

        return report

    def _end(self, data: Path) -> None:
        """Leave running what may be looked at, or end it: what was started before something failed, too."""
        if self.keep:
            self.console.print("left running: `recovery status` shows all with its addresses, `recovery down` ends it")
            return
        bring_down(data, lambda sentence: self.console.print(f"[dim]{escape(sentence)}[/]"))


def _aps(workflow: str, scenario: Scenario, environment: str) -> str:
    policy = {
        "workflow_id": workflow,
        "environment": environment,
        "mode": scenario.mode,
        "auto_resume_mode": "requeue",
        "max_requeue_times": scenario.max_requeue_times,
        "log_file_paths_shared_across_attempts": True,
        "progress_interval": scenario.progress_interval,
    }
    return json.dumps({"APS": policy}, separators=(",", ":"))


def _gateway(settings: Settings) -> str:
    for record in read_run_files(settings.data):
        if record.process == "gateway" and record.alive() and "http" in record.addresses:
            return record.addresses["http"]
    raise DemoError("the gateway is not running; see `recovery status`")


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.2f} s"
