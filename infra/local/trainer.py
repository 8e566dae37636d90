"""A small real trainer: logistic regression by gradient descent, its gradients averaged over ranks that `srun` started.

Every rank draws its own share of the data; rank 0 saves checkpoints, the last rank prints progress, as in Megatron-LM.
It resumes from the newest checkpoint in $TRAIN_CHECKPOINTS. Run by `train.sbatch`; standard library only.
"""

import argparse
import math
import os
import random
import time
from dataclasses import dataclass
from pathlib import Path

from infra.local.training import checkpoints
from infra.local.training.faults import KINDS, Fault
from infra.local.training.group import CollectiveTimeout, Group, PeerLost
from infra.local.training.lines import Step, Voice, raw, stamp

FEATURES = 8
SAMPLES_A_RANK = 64
LEARNING_RATE = 0.5
SHARDS = "[ t 1/1, p 1/1 ]"  # Megatron-LM's tensor and pipeline shards: the model is whole on each rank


@dataclass(frozen=True)
class Place:
    """Where this rank runs, as Slurm tells it, and who speaks."""

    voice: Voice
    size: int
    job: str
    attempt: int

    @classmethod
    def from_environment(cls) -> "Place":
        get = os.environ.get
        rank = int(get("SLURM_PROCID", "0"))
        voice = Voice(get("SLURMD_NODENAME", "localhost"), rank, int(get("SLURM_LOCALID", "0")))
        size, attempt = int(get("SLURM_NTASKS", "1")), int(get("SLURM_RESTART_COUNT", "0"))
        return cls(voice, size, get("SLURM_JOB_ID", "0"), attempt)


class Shard:
    """One rank's share of the data: points that a hidden straight line separates, with some noise."""

    def __init__(self, rank: int) -> None:
        truth = random.Random(0)
        line = [truth.gauss(0, 1) for _ in range(FEATURES)]
        chance = random.Random(rank + 1)
        self._points = [[chance.gauss(0, 1) for _ in range(FEATURES)] for _ in range(SAMPLES_A_RANK)]
        self._labels = [float(_dot(line, point) + chance.gauss(0, 0.3) > 0) for point in self._points]

    def gradient(self, weights: list[float]) -> tuple[list[float], float]:
        """Mean gradient and mean loss (cross entropy, nats) over this share."""
        gradient, loss = [0.0] * FEATURES, 0.0
        for point, label in zip(self._points, self._labels, strict=True):
            guess = 1 / (1 + math.exp(-_dot(weights, point)))
            loss -= math.log(max(guess if label else 1 - guess, 1e-12))
            for index, value in enumerate(point):
                gradient[index] += (guess - label) * value
        return [value / SAMPLES_A_RANK for value in gradient], loss / SAMPLES_A_RANK


def train(place: Place, options: argparse.Namespace, group: Group, folder: Path, fault: Fault | None) -> None:
    """From the newest checkpoint to the last iteration. Raises what `Group.mean` raises."""
    voice, shard = place.voice, Shard(place.voice.rank)
    start, weights = _resume(voice, folder)
    if voice.rank == 0:
        raw(f"[before the start of training step] datetime: {stamp()} ")
    for iteration in range(start + 1, options.iterations + 1):
        began = time.monotonic()
        time.sleep(options.step_seconds)
        if fault is not None:
            fault.before_step(voice, iteration, options.step_seconds)
        gradient, loss = shard.gradient(weights)
        *mean, mean_loss = group.mean([*gradient, loss])
        weights = [weight - LEARNING_RATE * slope for weight, slope in zip(weights, mean, strict=True)]
        if voice.rank == place.size - 1:
            norm, batch = math.sqrt(_dot(mean, mean)), SAMPLES_A_RANK * place.size
            seconds = time.monotonic() - began
            raw(Step(iteration, options.iterations, seconds, batch, LEARNING_RATE, mean_loss, norm).line())
        if voice.rank == 0 and (iteration % options.save_every == 0 or iteration == options.iterations):
            raw(f"[{stamp()}] saving checkpoint at iteration {iteration:7d} to {folder} in torch_dist format")
            checkpoints.save(folder, iteration, weights)
            raw(f"  [{stamp()}] successfully saved checkpoint from iteration {iteration:7d} to {folder} {SHARDS}")
    if voice.rank == 0:
        raw(f"[after training is done] datetime: {stamp()} ")


def _resume(voice: Voice, folder: Path) -> tuple[int, list[float]]:
    found = checkpoints.load(folder)
    if found is None:
        if voice.rank == 0:
            pointer = folder / "latest_checkpointed_iteration.txt"
            raw(f"[{stamp()}] WARNING: could not find the metadata file {pointer}")
            raw(f"[{stamp()}]     will not load any checkpoints and will start from random")
        return 0, [0.0] * FEATURES
    iteration, weights = found
    if voice.rank == 0:
        raw(f"  [{stamp()}] successfully loaded checkpoint from {folder} {SHARDS} at iteration {iteration}")
    return iteration, weights


def _dot(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def _say_peer_lost(voice: Voice, lost: PeerLost) -> None:
    """The secondary error: what a healthy rank prints because another one died."""
    words = f"socketProgress: Connection closed by remote peer {lost.peer}"
    voice.nccl(f"misc/socket.cc:49 NCCL WARN {words}")
    voice.say(
        f"[rank{voice.rank}]: torch.distributed.DistBackendError: NCCL error in:"
        " ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3384, remote process exited or there was a network"
        " error, NCCL version 2.21.5\n"
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
        f"Last error:\n{words}"
    )


def _say_timeout(voice: Voice, seconds: float) -> None:
    voice.say(
        f"[rank{voice.rank}]:[E ProcessGroupNCCL.cpp:616] [Rank {voice.rank}] Watchdog caught collective operation"
        f" timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn={FEATURES + 1}, NumelOut={FEATURES + 1},"
        f" Timeout(ms)={seconds * 1000:.0f}) ran for {seconds * 1000 + 60:.0f} milliseconds before timing out."
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small real trainer for local Slurm clusters.")
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--step-seconds", type=float, default=0.15)
    parser.add_argument("--save-every", type=int, default=10, help="iterations between checkpoints")
    parser.add_argument("--collective-timeout", type=float, default=600.0, help="seconds before a rank gives up")
    parser.add_argument("--fault", choices=KINDS)
    parser.add_argument("--fault-node", help="the broken node; any node if left out")
    parser.add_argument("--fault-iteration", type=int, default=25)
    parser.add_argument("--fault-attempts", type=int, help="attempts in which the fault strikes; all if left out")
    return parser.parse_args()


def main() -> None:
    options, place = _options(), Place.from_environment()
    folder = Path(os.environ["TRAIN_CHECKPOINTS"])
    folder.mkdir(parents=True, exist_ok=True)
    fault = None
    if options.fault is not None:
        fault_id, record = os.environ.get("TRAIN_FAULT_ID", ""), folder / "faults.jsonl"
        fault = Fault(
            options.fault,
            options.fault_node,
            options.fault_iteration,
            options.save_every,
            fault_id,
            record,
            options.fault_attempts,
        )
        fault.at_start(place.voice)
    meeting_point = folder / f"meet-{place.job}-{place.attempt}"
    try:
        group = Group.join(place.voice, place.size, meeting_point, options.collective_timeout)
        train(place, options, group, folder, fault)
        group.close()
    except PeerLost as lost:
        _say_peer_lost(place.voice, lost)
        raise SystemExit(1) from None
    except CollectiveTimeout:
        _say_timeout(place.voice, options.collective_timeout)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
