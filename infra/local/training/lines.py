"""The trainer's output, worded as Megatron-LM, PyTorch and NCCL word it, one whole line a write, times in UTC."""

import os
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime


def stamp() -> str:
    """The time as Megatron-LM prints it, to the microsecond."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def raw(text: str) -> None:
    """A line exactly as given; a single write, so that lines of several ranks don't mix."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class Voice:
    """Who speaks: a rank on a node. Virtual nodes share a host name, so the node is Slurm's name for it."""

    node: str
    rank: int
    local_rank: int

    def say(self, text: str) -> None:
        """Lines that say who and when, as a launcher's prefix does; a text of several lines becomes several."""
        for line in text.splitlines():
            raw(f"[{stamp()[:-3]}] {self.node} rank {self.rank}: {line}")

    def nccl(self, text: str) -> None:
        """A line as NCCL prints warnings with its timestamps on: node:pid:tid [device]."""
        raw(f"[{stamp()[:-3]}] {self.node}:{os.getpid()}:{threading.get_native_id()} [{self.local_rank}] {text}")


@dataclass(frozen=True)
class Step:
    """One finished iteration; `loss` and `grad_norm` are over all ranks."""

    iteration: int
    total: int
    seconds: float
    batch: int
    rate: float
    loss: float
    grad_norm: float

    def line(self) -> str:
        """Megatron-LM's `log_string`, without the throughput that it prints on demand."""
        return (
            f" [{stamp()}] iteration {self.iteration:8d}/{self.total:8d} |"
            f" consumed samples: {self.iteration * self.batch:12d} |"
            f" elapsed time per iteration (ms): {self.seconds * 1000:.1f} |"
            f" learning rate: {self.rate:.6E} | global batch size: {self.batch:5d} |"
            f" lm loss: {self.loss:.6E} | loss scale: 1.0 | grad norm: {self.grad_norm:.3f} |"
            f" number of skipped iterations: {0:3d} | number of nan iterations: {0:3d} |"
        )
