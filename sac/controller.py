"""One pass of the controller: look, publish changes, compare with Advice, act at most once a job, say what was done.

It keeps nothing but memories that it can lose: what it has done is in `recovery.actions`, what shall be done in
`recovery.advice`, what is in Slurm.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from recovery.metrics import counter, gauge
from recovery.settings import Settings
from sac.act import Actor
from sac.left import LeftJobs
from sac.observe import Stamp, left, observe
from sac.plan import plan
from sac.publish import Publisher
from sac.slurm import squeue
from sac.slurm.answers import Unknown
from sac.slurm.commands import Sent, SlurmCommands
from sac.slurm.inventory import Inventory, inventory
from sac.slurm.sacct import final_record
from sac.slurm.squeue import Look
from sac.steps import Intent, Refused, Situation, Step
from sac.view import KafkaView
from sac.writers import FactWriter
from schemas.bookkeeping import ClusterSeen
from schemas.facts import JobObserved
from schemas.identity import derived_id
from schemas.vocabulary import Outcome
from streams.kafka import KafkaUnavailable

HEARTBEAT_MS = 10_000
VIEW_TIMEOUT_S = 5.0
INVENTORY_S = 60.0
COMMANDS_A_PASS = 10
"""Restarting hundreds of jobs at once has taken slurmctld down; and a look ages while commands run."""

log = structlog.get_logger(__name__)
ACTIONS = counter("sac_actions", "Scheduler commands sent, by operation and outcome.", "operation", "outcome")
REFUSALS = counter("sac_refusals", "Actions considered and not taken, by operation and reason.", "operation", "reason")
INTENTS = gauge("sac_intents_open", "Intents on record whose command has no outcome on record.")
KNOWN_JOBS = gauge("sac_jobs", "Jobs that have opted in, as last seen.")
UNKNOWN_LOOKS = counter("sac_unknown_looks", "Looks at Slurm that gave no answer.")


@dataclass
class Pass:
    """What one pass did, for its one sentence."""

    said: list[str] = field(default_factory=list)
    acted: bool = False  # look again at once: a next step may be due
    unknown: str | None = None

    @property
    def sentence(self) -> str:
        return "; ".join(self.said) or "nothing to do"


class Controller:
    """The controller of one cluster, while it leads."""

    def __init__(
        self, settings: Settings, commands: SlurmCommands, view: KafkaView, facts: FactWriter, actor: Actor
    ) -> None:
        self._settings = settings
        self._cluster = settings.slurm.cluster
        self._commands = commands
        self._view = view
        self._facts = facts
        self._actor = actor
        self._publisher = Publisher()
        self._left = LeftJobs(commands)
        self._inventory: Inventory | None = None
        self._inventory_at = float("-inf")
        self._look_ms = 0
        self._heartbeat_ms = 0
        self._was_unknown: str | None = None
        INTENTS.set_function(lambda: len(view.known.ledger.open()))

    def start(self) -> None:
        """Learn all that was done before, and close intents whose process died before it could say how they ended."""
        self._view.read_to_stable_end(60.0)
        for action in list(self._view.known.ledger.open()):
            self._actor.end(action.intent, Sent(Outcome.UNKNOWN, "the controller ended before it knew"))

    def close(self) -> None:
        self._left.close()

    def run_pass(self) -> Pass:
        """Look once and do what follows. Raises FencedError and what writing to Kafka raises."""
        done = Pass()
        if self._settings.sac.mode == "disabled":
            self._heartbeat(0, "disabled by sac.mode", unknown=False)
            return done
        self._refresh_inventory()
        hostnames = self._inventory.hostnames if self._inventory is not None else {}
        self._look_ms = max(self._look_ms + 1, _now_ms())
        look = squeue.look(self._commands, self._cluster, hostnames)
        self._view.follow()
        if isinstance(look, Unknown):
            UNKNOWN_LOOKS.inc()
            self._heartbeat(0, look.reason, unknown=True)
            done.unknown = look.reason
            return done
        seen = self._observe(look.value)
        self._publish(look.value, seen, done)
        self._act(seen, done)
        KNOWN_JOBS.set(len(seen))
        self._heartbeat(len(seen), _unreadable(look.value), unknown=False)
        self._facts.check()
        return done

    def _observe(self, look: Look) -> Mapping[str, JobObserved]:
        stamp = self._stamp()
        seen: dict[str, JobObserved] = {}
        for job_id, job in look.jobs.items():
            advice = self._view.known.open_advice(job_id)
            generation, cause = (advice.generation, advice.event_id) if advice is not None else (0, "")
            one = observe(job, self._settings.sac, stamp, generation, cause)
            if one is not None:
                seen[job_id] = one
        return seen

    def _publish(self, look: Look, seen: Mapping[str, JobObserved], done: Pass) -> None:
        for one in self._publisher.changes(seen.values(), self._view.known):
            self._facts.observed(one)
            done.said.append(f"{one.job_id} is {one.state}")
        for one in self._departures(look):
            self._facts.observed(one)
            done.said.append(f"{one.job_id} left slurmctld as {one.state}")

    def _departures(self, look: Look) -> list[JobObserved]:
        known, stamp = self._view.known, self._stamp()
        final: list[JobObserved] = []
        for job_id, records in self._left.look(self._publisher.gone(look, known)).items():
            last = self._publisher.last(job_id) or known.jobs.get(job_id)
            if last is None:
                continue
            submit_time = last.submit_time if isinstance(last, JobObserved) else last.attempts[-1].submit_time
            record = final_record(records, submit_time)
            if record is None:  # accounting lags: asked again
                continue
            advice = known.open_advice(job_id)
            generation, cause = (advice.generation, advice.event_id) if advice is not None else (0, "")
            one = left(last, record, stamp, generation=generation, cause=cause)
            if one is not None:
                final.append(one)
                self._publisher.is_left(job_id)
                self._left.found(job_id)
        return final

    def _act(self, seen: Mapping[str, JobObserved], done: Pass) -> None:
        """Steps are planned on what is in view, and again on the view read to its stable end before any is taken."""
        if not self._steps(seen):
            return
        try:
            self._view.read_to_stable_end(VIEW_TIMEOUT_S)
        except KafkaUnavailable as error:
            done.said.append(f"not acting, the view of Advice is stale: {error}")
            return
        for step in self._steps(seen):
            if isinstance(step, Refused):
                self._actor.refuse(step)
                REFUSALS.labels(step.operation, step.reason).inc()
                done.said.append(f"{step.attempt.job_id}: not {step.operation}, {step.reason} ({step.detail})")
                continue
            if sum(1 for said in done.said if said.startswith("sent ")) >= COMMANDS_A_PASS:
                done.said.append("more to do in the next pass")
                break
            ended = self._actor.act(step)
            ACTIONS.labels(step.operation, ended.outcome).inc()
            done.said.append(f"sent {step.operation} for {step.target}: {ended.outcome} {ended.detail}".rstrip())
            done.acted = True

    def _steps(self, seen: Mapping[str, JobObserved]) -> list[Step]:
        known, now_ms = self._view.known, _now_ms()
        names = self._inventory.names if self._inventory is not None else None
        steps: list[Step] = []
        for job_id, one in seen.items():
            view = known.jobs.get(job_id)
            situation = Situation(
                observed=one,
                attempt=known.attempt(job_id, one.restart_count, one.submit_time),
                advice=known.advice_of(job_id),
                quarantined=view is not None and view.quarantined,
                policy=known.in_force.policy,
                known_nodes=names,
                components=_components(job_id, seen),
            )
            steps += plan(situation, known.ledger, self._settings, now_ms)
        return sorted(steps, key=lambda step: isinstance(step, Intent), reverse=True)

    def _stamp(self) -> Stamp:
        in_force = self._view.known.in_force
        return Stamp(self._cluster, self._look_ms, in_force.digest, in_force.logic)

    def _refresh_inventory(self) -> None:
        """Which nodes there are; an old answer serves until a new one comes, nodes rarely change."""
        if time.monotonic() - self._inventory_at < INVENTORY_S:
            return
        answer = inventory(self._commands)
        if isinstance(answer, Unknown):
            log.warning("nodes unknown", reason=answer.reason, next="asked again at the next pass")
            return
        self._inventory, self._inventory_at = answer.value, time.monotonic()

    def _heartbeat(self, jobs: int, detail: str, *, unknown: bool) -> None:
        now_ms = _now_ms()
        state = detail if unknown else None
        if now_ms - self._heartbeat_ms < HEARTBEAT_MS and state == self._was_unknown:
            return
        self._heartbeat_ms, self._was_unknown = now_ms, state
        self._facts.seen(
            ClusterSeen(
                event_id=derived_id("cluster-seen", self._cluster, now_ms),
                cause="",
                cluster=self._cluster,
                jobs=jobs,
                unknown=unknown,
                detail=detail,
                seen_ms=now_ms,
            )
        )


def _components(job_id: str, seen: Mapping[str, JobObserved]) -> tuple[JobObserved, ...]:
    """All components of a heterogeneous job, the leader first; empty for another job."""
    leader, plus, _ = job_id.partition("+")
    if not plus:
        return ()
    parts = [one for other, one in seen.items() if other.partition("+")[0] == leader and "+" in other]
    return tuple(sorted(parts, key=lambda one: int(one.job_id.partition("+")[2])))


def _unreadable(look: Look) -> str:
    shown = [f"{job_id}: {reason}" for job_id, reason in sorted(look.unreadable.items())[:3]]
    return f"{len(look.unreadable)} jobs unreadable ({'; '.join(shown)})" if shown else ""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
