"""Faults on demand: each breaks the training as the real one does, in the words of real logs.

What was done is also recorded in `faults.jsonl` beside the checkpoints, so that a test knows the truth from elsewhere
than the log lines that we match. The fault's id appears there alone.
"""

import json
import os
import signal
import time
import traceback
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from infra.local.training.lines import Voice, raw, stamp

KINDS = ("gpu-xid", "user-error", "oom", "no-progress", "silent-exit", "hang", "straggler")
HANG_SECONDS = 24 * 3600.0
STRAGGLER_FACTOR = 4.0


@dataclass
class Fault:
    """`kind` strikes on `node` (on any, if None) from `iteration` on; `save_every` is the trainer's own.

    It strikes in the first `attempts` executions of the job alone, in all if None.

    `struck` is whether it has struck in this process: a slow node is written down once.
    """

    kind: str
    node: str | None
    iteration: int
    save_every: int
    fault_id: str
    record: Path
    attempts: int | None = None
    struck: bool = False

    def at_start(self, voice: Voice) -> None:
        """May end the process."""
        if self.kind == "user-error":
            self._write_down(voice, 0)
            try:
                import_module("fused_attention_kernels")
            except ModuleNotFoundError:
                voice.say(traceback.format_exc())
                raise SystemExit(1) from None

    def before_step(self, voice: Voice, iteration: int, step_seconds: float) -> None:
        """May end the process, stop it for good, or slow it down. Peers of a node share a fault; one rank has it."""
        if voice.local_rank != 0 or self.node not in (None, voice.node):
            return
        if self.kind == "no-progress" and self.node is None and voice.rank != 0:
            return
        if self._strikes(iteration):
            if not self.struck:
                self._write_down(voice, iteration)
            self.struck = True
            _STRIKE[self.kind](voice, step_seconds)

    def _strikes(self, iteration: int) -> bool:
        if self.attempts is not None and _attempt() >= self.attempts:
            return False
        if self.kind == "no-progress":
            return iteration % self.save_every == 0  # the step after which it would save
        return self.kind in _STRIKE and iteration >= self.iteration

    def _write_down(self, voice: Voice, iteration: int) -> None:
        fact = {
            "fault_id": self.fault_id,
            "kind": self.kind,
            "node": voice.node,
            "rank": voice.rank,
            "job": os.environ.get("SLURM_JOB_ID", ""),
            "attempt": _attempt(),
            "iteration": iteration,
            "time_ms": time.time_ns() // 1_000_000,
        }
        with self.record.open("a") as file:
            file.write(json.dumps(fact) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _attempt() -> int:
    return int(os.environ.get("SLURM_RESTART_COUNT", "0"))


def _gpu_xid(voice: Voice, _: float) -> None:
    voice.say(
        f"kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid={os.getpid()}, name=python3, GPU has fallen off the bus.\n"
        "kernel: NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus."
    )
    voice.nccl("enqueue.cc:1402 NCCL WARN Cuda failure 'unknown error'")
    voice.say(
        "Traceback (most recent call last):\n"
        '  File "train.py", line 142, in train_step\n'
        "    losses = forward_backward(model, batch)\n"
        "torch.AcceleratorError: CUDA error: unknown error\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be"
        " incorrect."
    )
    raise SystemExit(1)


def _oom(voice: Voice, _: float) -> None:
    pid = os.getpid()
    voice.say(
        f"kernel: Out of memory: Killed process {pid} (python3) total-vm:193273528kB, anon-rss:131064832kB,"
        " file-rss:4096kB, shmem-rss:0kB, UID:1000 pgtables:262144kB oom_score_adj:0"
    )
    raw(
        f"[{stamp()[:-3]}] {voice.node} slurmstepd: error: Detected 1 oom-kill event(s) in"
        f" StepId={os.environ.get('SLURM_JOB_ID', '0')}.0 cgroup."
        " Some of your processes may have been killed by the cgroup out-of-memory handler."
    )
    os.kill(pid, signal.SIGKILL)  # as the kernel does; the job's exit code becomes 137


def _no_progress(voice: Voice, _: float) -> None:
    voice.say("OSError: [Errno 5] Input/output error: '/shared/checkpoints/next.tmp'")  # it can't save
    raise SystemExit(1)


def _silent_exit(_: Voice, __: float) -> None:
    raise SystemExit(1)


def _hang(_: Voice, __: float) -> None:
    time.sleep(HANG_SECONDS)


def _straggle(_: Voice, step_seconds: float) -> None:
    time.sleep(step_seconds * (STRAGGLER_FACTOR - 1))


_STRIKE = {
    "gpu-xid": _gpu_xid,
    "oom": _oom,
    "no-progress": _no_progress,
    "silent-exit": _silent_exit,
    "hang": _hang,
    "straggler": _straggle,
}
