"""The mix of facts that deciders, replay and projections are measured with.

Ten jobs a set, on eight nodes each: five train for 10 progress lines and complete, four hit a GPU fault (one root
line, five secondary ones) and are restarted without the node, one has a bug and is stopped. That is far more trouble
than a cluster sees (there, nine facts in ten are progress, which writes nothing), so it is the harder mix.
`python -m bench.mix` prints how many facts a set has, and how many records deciders write for them, by topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from bench.stories import Printed, Told
from schemas.facts import Fact
from schemas.topics import emitted_route
from schemas.vocabulary import AttemptState, FaultClass, Hold, LineRole, Operation, Remedy, Scope

JOBS_A_SET = 10
NODES = tuple(f"gpu-a{number:03}" for number in range(1, 9))
BAD = "gpu-a002"
OTHERS = (*(node for node in NODES if node != BAD), "gpu-a009")

ROOT = Printed(
    "2026-08-01T10:00:00.123456 gpu-a002 rank 11: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
    "gpu.xid.79",
    FaultClass.GPU_HARDWARE,
    Scope.NODE,
    Remedy.RESTART_EXCLUDING_NODE,
    LineRole.CAUSE,
    90,
)
PEER = Printed(
    "[rank3]:[E801 10:00:01.512345678 ProcessGroupNCCL.cpp:1746] [PG ID 0 Rank 3] NCCL error: unhandled system error,"
    " NCCL version 2.21.5, Last error: socketProgress: Connection closed by remote peer gpu-a002<41234>",
    "comm.nccl.remote-peer",
    FaultClass.NCCL_TIMEOUT,
    Scope.JOB,
    Remedy.RESTART,
    LineRole.CONSEQUENCE,
    20,
)
BUG = Printed(
    "[rank0]: ModuleNotFoundError: No module named 'megatron.training.custom_data'",
    "program.module-not-found",
    FaultClass.USER_CODE,
    Scope.JOB,
    Remedy.TERMINATE_NO_RETRY,
    LineRole.CAUSE,
    60,
)


@dataclass(frozen=True)
class Timed:
    """A fact and when the journal took it, in ms."""

    fact: Fact
    recorded_ms: int


def a_set(first_job: int) -> list[Told]:
    """The jobs of one set, numbered from `first_job` on."""
    kinds = [_steady] * 5 + [_crash] * 4 + [_bug]
    return [kind(Told(first_job + number)) for number, kind in enumerate(kinds)]


def facts(sets: int, first_job: int = 1) -> Iterator[Timed]:
    """The facts of `sets` sets of jobs, in the order of their times."""
    jobs = [told for number in range(sets) for told in a_set(first_job + JOBS_A_SET * number)]
    everything = [Timed(fact, at_ms) for told in jobs for fact, at_ms in told.facts]
    return iter(sorted(everything, key=lambda timed: timed.recorded_ms))


def _steady(told: Told) -> Told:
    _train(told, NODES, steps=10)
    told.observe(AttemptState.COMPLETED, NODES)
    return told


def _crash(told: Told) -> Told:
    _train(told, NODES, steps=4)
    told.line(ROOT, BAD, 11)
    for rank in range(5):
        told.now_ms += 20
        told.line(PEER, NODES[0], rank)
    told.wait(1)
    told.observe(AttemptState.FAILED, NODES)
    told.wait(3)
    told.intend(Operation.REQUEUE_HOLD)
    told.observe(AttemptState.HELD, NODES, 1, hold=Hold.REQUEUE)
    told.observe(AttemptState.HELD, NODES, 1, hold=Hold.REQUEUE, excluded=(BAD,))
    told.intend(Operation.RELEASE)
    _train(told, OTHERS, steps=4, index=1, excluded=(BAD,))
    told.observe(AttemptState.COMPLETED, OTHERS, 1, excluded=(BAD,))
    return told


def _bug(told: Told) -> Told:
    _train(told, NODES, steps=0)
    told.line(BUG, None, 0)
    told.observe(AttemptState.FAILED, NODES)
    told.wait(3)
    told.observe(AttemptState.FAILED, NODES)
    return told


def _train(told: Told, nodes: tuple[str, ...], *, steps: int, index: int = 0, excluded: tuple[str, ...] = ()) -> None:
    told.observe(AttemptState.PENDING, nodes, index, excluded=excluded)
    told.wait(2)
    told.observe(AttemptState.RUNNING, nodes, index, excluded=excluded)
    for step in range(1, steps + 1):
        told.wait(60)
        told.progress(step * 100, index)
        if step % 4 == 0:
            told.checkpoint(step * 100, index)


def main() -> None:
    """Print what a set holds and leads to."""
    jobs = a_set(1)
    kinds = Counter(type(fact).__name__ for told in jobs for fact, _ in told.facts)
    records = Counter(emitted_route(event)[0].name for told in jobs for event in told.emitted)
    print(f"{kinds.total()} facts a set: {dict(kinds)}")
    print(f"{records.total() / kinds.total():.2f} records a fact: {dict(records)}")


if __name__ == "__main__":
    main()
