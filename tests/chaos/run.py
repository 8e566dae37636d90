"""One chaos run from end to end: submit, disturb, follow, let it settle, judge."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from infra.local.parts import Report
from infra.local.training.job import TrainingJob
from streams.kafka import KafkaUnavailable
from tests.chaos import history, plan
from tests.chaos.disturber import Disturber
from tests.chaos.oracle import Struck, Truth, Violation, judge
from tests.chaos.plan import Job
from tests.chaos.records import read
from tests.chaos.slurm import Cluster, Orders
from tests.chaos.story import tell
from tests.chaos.world import World, read_json_lines

AT_ONCE = 8
POLL_S = 0.5
JOB_S = 300.0
SETTLE_S = 180.0
SCRIPT = Path(__file__).with_name("train.sbatch")


@dataclass
class Outcome:
    """What a run came to."""

    seed: int
    jobs: int
    violations: list[Violation] = field(default_factory=list)
    stories: dict[str, str] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    disturbances: dict[str, int] = field(default_factory=dict)

    def text(self) -> str:
        """The report: figures, and for each violation what it is and the story of its job."""
        lines = [f"chaos run: seed {self.seed}, {self.jobs} jobs"]
        lines += [f"  {name}: {value:g}" for name, value in self.figures.items()]
        lines += [f"  {count} x {what}" for what, count in sorted(self.disturbances.items())]
        lines += [f"VIOLATION {violation}" for violation in self.violations] or ["no violation"]
        lines += [f"\nstory of job {job_id}\n{story}" for job_id, story in self.stories.items()]
        if self.violations:
            lines.append(f"\nagain: make soak SEED={self.seed} JOBS={self.jobs}")
        return "\n".join(lines)


@dataclass
class Submitted:
    """A job that Slurm has taken."""

    job: Job
    job_id: str
    folder: Path
    at: float
    over: bool = False


@dataclass
class Run:
    """One run in one world."""

    world: World
    seed: int
    count: int
    report: Report
    submitted: dict[str, Submitted] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cluster = Cluster(self.world.slurm_conf, self.world.data / "log" / "slurmctld.log")
        self.disturber = Disturber(self.world, plan.disturbances(self.seed), self.report)
        self.outcome = Outcome(self.seed, self.count)

    def go(self) -> Outcome:
        """Carry the run out and judge it."""
        began = time.monotonic()
        self.disturber.start()
        try:
            self._submit_and_follow()
        finally:
            self.disturber.end()
        self._note("s under disturbance", time.monotonic() - began)
        self.report("all jobs are over, or had their time; letting everything settle")
        self._settle()
        self._judge()
        self._note("s in all", time.monotonic() - began)
        self.outcome.disturbances = dict(self.disturber.counts())
        return self.outcome

    def _submit_and_follow(self) -> None:
        waiting = list(plan.jobs(self.seed, self.count))
        due = time.monotonic()
        while waiting or self._unfinished():
            self.disturber.check()
            room = len(self._unfinished()) < AT_ONCE and time.monotonic() >= due
            if waiting and room and self._submit(waiting[0]):
                due = time.monotonic() + waiting.pop(0).after_s
            self._look()
            time.sleep(POLL_S)

    def _submit(self, job: Job) -> bool:
        """Submit, while slurmctld is there and stays long enough to save the job; False where it is away now."""
        if not self.disturber.undisturbed.acquire(blocking=False):
            return False
        try:
            folder = self.world.data / "jobs" / job.name
            folder.mkdir(parents=True, exist_ok=True)
            kind = job.kind
            job_id = TrainingJob(
                checkpoints=folder,
                output=folder / "train.out",
                iterations=job.iterations,
                step_seconds=job.step_seconds,
                save_every=plan.SAVE_EVERY,
                fault=kind.fault,
                fault_iteration=job.fault_iteration,
                fault_attempts=kind.strikes,
                fault_id=job.name,
                comment=kind.comment(job.name),
                sbatch=(f"--ntasks={kind.ranks}", f"--job-name={job.name}"),
                script=SCRIPT,
            ).submit(self.world.slurm_conf)
        finally:
            self.disturber.undisturbed.release()
        self.submitted[job_id] = Submitted(job, job_id, folder, time.monotonic())
        self.report(f"job {job_id} is {job.name}")
        return True

    def _unfinished(self) -> list[Submitted]:
        return [one for one in self.submitted.values() if not one.over]

    def _look(self) -> None:
        """Mark the jobs that are over: as they must end, by what Slurm shows, or past their time."""
        if not self._unfinished() or not self.cluster.look():
            return
        accounted = self.cluster.accounting([one.job_id for one in self._unfinished()]) or {}
        for one in self._unfinished():
            shown, rows = self.cluster.shown.get(one.job_id), accounted.get(one.job_id, ())
            ran = sum(1 for row in rows if row.nodes)
            kind = one.job.kind
            if shown is not None and shown.state in kind.final and rows and rows[-1].state in kind.final:
                one.over = ran >= kind.runs
            if not one.over and time.monotonic() - one.at > JOB_S:
                state = "unknown to slurmctld" if shown is None else f"{shown.state}, restarts {shown.restarts}"
                self.report(f"job {one.job_id} ({one.job.name}) is not over after {JOB_S:g} s: {state}")
                one.over = True
            elif one.over:
                self.report(f"job {one.job_id} ({one.job.name}) is over: {rows[-1].state} after {ran} attempts")

    def _settle(self) -> None:
        """Until all processes work, no timer waits, all Advice is resolved, and accounting has each job's end."""
        self.world.wait_ready()
        deadline = time.monotonic() + SETTLE_S
        for what, settled in (("records", self._records_settled), ("accounting", self._accounting_settled)):
            while not settled():
                if time.monotonic() > deadline:
                    self.report(f"{what} did not settle within {SETTLE_S:g} s")
                    break
                time.sleep(1.0)

    def _records_settled(self) -> bool:
        try:
            records = read(self.world)
        except KafkaUnavailable:
            return False
        acting = [one for one in records.open_advice() if self._acts_on(one.attempt.job_id)]
        lost = self._lost() if acting or records.waiting() else set()
        return not acting and all(timer.attempt.job_id in lost for timer in records.waiting())

    def _acts_on(self, job_id: str) -> bool:
        submitted = self.submitted.get(job_id)
        return submitted is not None and submitted.job.kind.mode == "act" and job_id not in self._lost()

    def _lost(self) -> set[str]:
        """The jobs that slurmctld itself lost."""
        return {job_id for job_id, orders in self.cluster.orders().items() if orders.lost}

    def _accounting_settled(self) -> bool:
        if not self.cluster.look():
            return False
        rows = self.cluster.accounting(self.submitted.keys())
        if rows is None:
            return False
        lost = self._lost()
        return all(
            job_id in lost or (rows[job_id] and rows[job_id][-1].state in one.job.kind.final)
            for job_id, one in self.submitted.items()
        )

    def _judge(self) -> None:
        truths, records = self._truths(), read(self.world)
        self.outcome.violations += judge(truths, records)
        for what, trial in (("facts replayed", history.replayed), ("rows rebuilt", history.rebuilt)):
            count, violations = _timed(lambda trial=trial: trial(self.world), what, self._note)  # type: ignore[misc]
            self._note(what, count)
            self.outcome.violations += violations
        self._note("jobs that slurmctld lost", sum(truth.lost for truth in truths.values()))
        self._note("attempts that ran", sum(len(truth.ran) for truth in truths.values()))
        self._note("incidents", len(records.anomalies))
        self._note("actions intended", len(records.intents))
        for job_id in {one.job_id for one in self.outcome.violations if one.job_id is not None}:
            self.outcome.stories[job_id] = tell(truths[job_id], records, self.disturber.done)

    def _truths(self) -> dict[str, Truth]:
        self.cluster.look()
        orders = self.cluster.orders()
        accounted = self.cluster.accounting(self.submitted.keys()) or {}
        return {
            job_id: Truth(
                job=one.job,
                job_id=job_id,
                faults=_faults(one.folder),
                shown=self.cluster.shown.get(job_id),
                accounted=accounted.get(job_id, ()),
                orders=orders.get(job_id, Orders()),
            )
            for job_id, one in self.submitted.items()
        }

    def _note(self, name: str, value: float) -> None:
        self.outcome.figures[name] = round(value, 1)


def _timed(
    work: Callable[[], tuple[int, list[Violation]]], what: str, note: Callable[[str, float], None]
) -> tuple[int, list[Violation]]:
    began = time.monotonic()
    done = work()
    note(f"s for {what}", time.monotonic() - began)
    return done


def _faults(folder: Path) -> tuple[Struck, ...]:
    return tuple(
        Struck(str(line["fault_id"]), int(str(line["attempt"])), str(line["node"]))
        for line in read_json_lines(folder / "faults.jsonl")
    )
