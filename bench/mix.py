"""The mix of facts that deciders, replay and projections are measured with.

Ten jobs a set, on eight nodes each: five train for 10 progress lines and complete, four hit a GPU fault (one root
line, five secondary ones) and are restarted without the node, one has a bug and is stopped. That is far more trouble
than a cluster sees (there, nine facts in ten are progress, which writes nothing), so it is the harder mix. The stories
are decided when the mix is made, so that timers fire when they would. `python -m bench.mix` prints what `FACTS` and
`RECORDS` state: how many facts a set has, and how many records deciders write for them, by topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from schemas.facts import Fact
from schemas.identity import AttemptId, derived_id
from schemas.topics import emitted_route
from schemas.vocabulary import AttemptState, FaultClass, LineRole, Operation, Remedy, Scope
from tests.decide.story import Story

NODES = tuple(f"gpu-a{number:03}" for number in range(1, 9))
JOBS_A_SET = 10
FACTS = 189
RECORDS = {"recovery.decisions": 88, "recovery.jobs": 55, "recovery.timers": 33, "recovery.advice": 10}

ROOT = "2026-08-01T10:00:00.123456 gpu-a002 rank 11: kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
PEER = (
    "[rank{rank}]:[E801 10:00:01.512345678 ProcessGroupNCCL.cpp:1746] [PG ID 0 Rank {rank}] NCCL error: unhandled system"
    " error, NCCL version 2.21.5, Last error: socketProgress: Connection closed by remote peer gpu-a002<41234>"
)
BUG = "[rank0]: ModuleNotFoundError: No module named 'megatron.training.custom_data'"


@dataclass(frozen=True)
class Timed:
    """A fact and when the journal took it, in ms."""

    fact: Fact
    recorded_ms: int


@cache
def _stories() -> tuple[tuple[Timed, ...], ...]:
    """The jobs of one set."""
    stories = [_steady() for _ in range(5)] + [_crash() for _ in range(4)] + [_bug()]
    return tuple(tuple(Timed(fact, at_ms) for fact, at_ms in story.facts) for story in stories)


def facts(sets: int, first_job: int = 1) -> Iterator[Timed]:
    """The facts of `sets` sets of jobs in the order of their times, each job with an id of its own from `first_job` on."""
    jobs = [
        [Timed(_of(timed.fact, first_job + JOBS_A_SET * number + place), timed.recorded_ms) for timed in story]
        for number in range(sets)
        for place, story in enumerate(_stories())
    ]
    everything = [timed for job in jobs for timed in job]
    return iter(sorted(everything, key=lambda timed: timed.recorded_ms))


def _of(fact: Any, job: int) -> Any:
    """The same fact of another job."""
    changes: dict[str, Any] = {"event_id": derived_id(fact.event_id, job)}
    changes["position"] = replace(fact.position, source=fact.position.source.replace("train.out", f"train-{job}.out"))
    if hasattr(fact, "attempt"):
        known: AttemptId = fact.attempt
        changes["attempt"] = replace(known, job_id=str(job))
    else:
        paths = tuple(path.replace("train.out", f"train-{job}.out") for path in fact.log_paths)
        changes |= {"job_id": str(job), "raw_job_id": job, "log_paths": paths}
    return replace(fact, **changes)


def _steady() -> Story:
    story = Story()
    _train(story, 0, NODES, steps=10)
    story.observe(AttemptState.COMPLETED, nodes=NODES)
    return story


def _crash() -> Story:
    story = Story()
    _train(story, 0, NODES, steps=4)
    story.line(ROOT, node="gpu-a002")
    for rank in range(5):
        story.now_ms += 20
        story.line(
            PEER.format(rank=rank),
            node=NODES[rank % 8],
            fault_class=FaultClass.NCCL_TIMEOUT,
            scope=Scope.JOB,
            remedy=Remedy.RESTART,
            role=LineRole.CONSEQUENCE,
            precedence=20,
        )
    story.wait(1)
    story.observe(AttemptState.FAILED, nodes=NODES)
    story.wait(3)
    story.intend(Operation.REQUEUE_HOLD)
    out = ("gpu-a002",)
    story.held_then_running(1, excluded=out)
    story.intend(Operation.RELEASE)
    _train(story, 1, (*NODES[:1], *NODES[2:], "gpu-a009"), steps=4)
    story.observe(AttemptState.COMPLETED, 1, excluded=out, nodes=(*NODES[:1], *NODES[2:], "gpu-a009"))
    return story


def _bug() -> Story:
    story = Story()
    _train(story, 0, NODES, steps=0)
    story.line(
        BUG,
        node=None,
        fault_class=FaultClass.USER_CODE,
        scope=Scope.JOB,
        remedy=Remedy.TERMINATE_NO_RETRY,
        precedence=60,
    )
    story.observe(AttemptState.FAILED, nodes=NODES)
    story.wait(3)
    story.observe(AttemptState.FAILED, nodes=NODES)
    return story


def _train(story: Story, index: int, nodes: tuple[str, ...], *, steps: int) -> None:
    story.observe(AttemptState.PENDING, index, nodes=nodes)
    story.wait(2)
    story.observe(AttemptState.RUNNING, index, nodes=nodes)
    for step in range(1, steps + 1):
        story.wait(60)
        story.progress(step * 100, index)
        if step % 5 == 0:
            story.checkpoint(step * 100, index)


def main() -> None:
    """Print what a set holds and leads to."""
    stories = [_steady(), _crash(), _bug()]
    weights = (5, 4, 1)
    kinds: Counter[str] = Counter()
    outputs: Counter[str] = Counter()
    for story, weight in zip(stories, weights, strict=True):
        for fact, _ in story.facts:
            kinds[type(fact).__name__] += weight
        for event in story.emitted:
            outputs[emitted_route(event)[0].name] += weight
    total = sum(kinds.values())
    print(f"{total} facts a set: {dict(kinds)}")
    print(f"{sum(outputs.values()) / total:.2f} records a fact: {dict(outputs)}")


if __name__ == "__main__":
    main()
