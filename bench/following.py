"""1,000 files that grow by 10 lines a second each: what the real watch process costs, beside a tail that polls.

Both read the same files at the same time, on CPU seconds of their own; inotify tells nothing on shared file systems, so
neither uses it. Files are written by a process of its own. Memory is looked at while it goes on, to see it flat.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.harness import Figure, process_cpu_s, resident_mb
from infra.local.endpoints import Endpoints
from infra.local.stack import Stack
from recovery.topics import create_topics
from schemas.aps import Aps
from schemas.codec import Codec
from schemas.decisions import AttemptView, JobView
from schemas.identity import AttemptId
from schemas.registry import RegistryIds
from schemas.topics import JOBS
from schemas.vocabulary import AttemptState, Mode
from streams.kafka import producer, send

FILES, LINES_A_SECOND = 1_000, 10
WARM_UP_S, MEASURED_S, LOOK_S = 30, 90, 10
TAIL_S = 0.5
END_S = 20


def figures() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="recovery-bench-") as name:
        folder = Path(name)
        stack = Stack(folder / "stack")
        try:
            endpoints = stack.start(lambda _: None, only=("kafka", "registry", "postgres"))
            if endpoints is None:
                raise RuntimeError("the local stack did not start")
            return _measure(endpoints, folder)
        finally:
            stack.stop()


def _measure(endpoints: Endpoints, folder: Path) -> list[Figure]:
    create_topics(endpoints.kafka)
    paths = [folder / f"slurm-{number}.out" for number in range(FILES)]
    _publish(endpoints, paths)
    environment = os.environ | {
        "RECOVERY_DATA": str(folder / "data"),
        "RECOVERY_KAFKA__BOOTSTRAP": endpoints.kafka,
        "RECOVERY_REGISTRY__URL": endpoints.registry,
        "RECOVERY_WATCH__TIME_ZONE": "UTC",
    }
    writer = [sys.executable, "-m", "bench.following_side", str(LINES_A_SECOND), *map(str, paths)]
    tail = ["tail", "---disable-inotify", "-q", "-n", "0", "-s", str(TAIL_S), "-F", *map(str, paths)]
    for path in paths:
        path.touch()
    with (
        _running([sys.executable, "-m", "recovery", "watch"], environment) as watching,
        _running(tail, environment) as tailing,
        _running(writer, environment),
    ):
        time.sleep(WARM_UP_S)
        pids = (watching.pid, tailing.pid)
        sizes, began = _size(paths), time.monotonic()
        before = [process_cpu_s(pid) for pid in pids]
        memory = [resident_mb(watching.pid)[0]]
        while time.monotonic() - began < MEASURED_S:
            time.sleep(LOOK_S)
            memory.append(resident_mb(watching.pid)[0])
        passed, grown = time.monotonic() - began, _size(paths) - sizes
        own, base = (100 * (process_cpu_s(pid) - known) / passed for pid, known in zip(pids, before, strict=True))
    rate = f"{FILES} files, {grown / passed / 1e6:.2f} MB/s in all, {passed:.0f} s"
    return [
        Figure(
            f"following {FILES:,} files",
            own,
            "% of a core",
            f"tail -F without inotify, a look each {TAIL_S:g} s",
            own / base,
            f"{rate}; tail {base:.1f} %",
            "<= 15 % of a core",
            own <= 15,
        ),
        Figure(
            f"memory of following {FILES:,} files",
            max(memory),
            "MB resident",
            "itself after the warm-up",
            memory[-1] / memory[0],
            f"each {LOOK_S} s: {', '.join(f'{one:.0f}' for one in memory)}",
            "<= 200 MB",
            max(memory) <= 200,
        ),
    ]


def _publish(endpoints: Endpoints, paths: list[Path]) -> None:
    """Tell watch of one running job for each file."""
    codec, to = Codec(RegistryIds(endpoints.registry)), producer(endpoints.kafka, "bench")
    for number, path in enumerate(paths):
        view = _running_job(str(1_000_000 + number), path, time.time_ns() // 1_000_000)
        send(to, JOBS, f"{view.cluster}/{view.job_id}", codec.encode(view, source="bench", time_ms=0, subject=""))
    if to.flush(30):
        raise RuntimeError("Kafka did not take all jobs")


def _running_job(job_id: str, path: Path, now_ms: int) -> JobView:
    attempt = AttemptId("local", job_id, now_ms // 1000, 0)
    shown = AttemptView(attempt, now_ms // 1000, now_ms, None, AttemptState.RUNNING, ("gpu-a001",), (str(path),))
    return JobView("", "", "local", job_id, int(job_id), "train", Aps(), Mode.OBSERVE, (shown,), False, False, now_ms)


def _size(paths: list[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


@contextmanager
def _running(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
            if process.poll() is not None:
                raise RuntimeError(f"{command[:4]} ended with {process.returncode} while it was measured")
        finally:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
