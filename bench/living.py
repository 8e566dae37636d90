"""Everything up on a real local cluster: what our processes cost at rest, and how fast a failure is seen and acted on.

Jobs fail in turns with jobs that Slurm requeues plainly (`scontrol requeue` from within), so Slurm's share is known.
Times are those that the jobs write themselves; the anomaly counts as seen when a reader of decisions has it.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from confluent_kafka import Message

from bench.harness import Figure, percentile, process_cpu_s, resident_mb
from infra.local.supervisor import Supervisor
from recovery.bring_up import bring_down, bring_up
from recovery.demo.run import ACTING
from recovery.run_files import read_run_files
from recovery.settings import Settings
from schemas.codec import Codec
from schemas.decisions import AnomalyDetected
from schemas.registry import RegistryIds
from schemas.topics import DECISION_LOG
from streams.kafka import TopicView, decode, reader

JOBS = 12
PLAIN_JOBS = 6
SETTLE_S, IDLE_S = 15.0, 30.0
JOB_S = 90.0

SCRIPT = """#!/bin/bash
mark() { echo "$1 $(date +%s%3N)" >> "$MARKS"; }
mark "started-${SLURM_RESTART_COUNT:-0}"
[ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] && exit 0
sleep 3
mark line
echo "[$(date -u +%FT%T.%3NZ)] node1 rank 0: kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
sleep 2
mark failed
[ -n "$PLAIN" ] && exec scontrol requeue "$SLURM_JOB_ID"
exit 1
"""


@dataclass(frozen=True)
class Life:
    """What one job told of itself, in ms."""

    job_id: str
    marks: dict[str, int]


def figures() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="recovery-bench-") as name, _environment(Path(name)):
        settings = bring_up(None, lambda _: None)
        try:
            return [*_at_rest(settings), *_latencies(settings, Path(name))]
        finally:
            bring_down(settings.data, lambda _: None)


@contextmanager
def _environment(folder: Path) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(ACTING | {"RECOVERY_DATA": str(folder / "data")})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _ours(settings: Settings) -> dict[str, int]:
    """The pids of our processes by name, the supervisor among them."""
    found = {record.name: record.pid for record in read_run_files(settings.data) if record.alive()}
    supervisor = Supervisor(settings.data).pid
    return found if supervisor is None else found | {"supervisor": supervisor}


def _at_rest(settings: Settings) -> list[Figure]:
    time.sleep(SETTLE_S)
    pids = _ours(settings)
    before = {name: process_cpu_s(pid) for name, pid in pids.items()}
    began = time.monotonic()
    time.sleep(IDLE_S)
    passed = time.monotonic() - began
    used = {name: 100 * (process_cpu_s(pid) - before[name]) / passed for name, pid in pids.items()}
    memory = {name: resident_mb(pid) for name, pid in pids.items()}
    rss, pss = (sum(one[index] for one in memory.values()) for index in (0, 1))
    share = sum(used.values())
    return [
        Figure(
            "idle CPU of all our processes",
            share,
            "% of a core",
            "nothing: no job runs",
            None,
            ", ".join(f"{name} {value:.1f}" for name, value in sorted(used.items(), key=lambda one: -one[1])),
            "<= 10 % of a core",
            share <= 10,
        ),
        Figure(
            "memory of all our processes",
            rss,
            "MB resident",
            "PSS, which counts shared pages once",
            rss / pss,
            f"PSS {pss:.0f} MB; "
            + ", ".join(f"{name} {one[0]:.0f}" for name, one in sorted(memory.items(), key=lambda one: -one[1][0])),
            "<= 1 GB",
            rss <= 1000,
        ),
    ]


def _latencies(settings: Settings, folder: Path) -> list[Figure]:
    seen: dict[str, int] = {}
    codec = Codec(RegistryIds(settings.registry.url))

    def take(message: Message) -> None:
        event = decode(codec, message)
        if isinstance(event, AnomalyDetected):
            seen.setdefault(event.attempt.job_id, time.time_ns() // 1_000_000)

    consumer = reader(settings.kafka.bootstrap, "bench-living")
    view = TopicView(consumer, (DECISION_LOG,), take)
    view.read_to_stable_end()
    acted: list[Life] = []
    plain: list[Life] = []
    for number in range(JOBS):
        acted.append(_live(settings, folder, lambda: view.poll(0.005), plain=False))
        if number < PLAIN_JOBS:
            plain.append(_live(settings, folder, lambda: view.poll(0.005), plain=True))
    consumer.close()
    line_s = [(seen[life.job_id] - life.marks["line"]) / 1000 for life in acted]
    again_s = [(life.marks["started-1"] - life.marks["failed"]) / 1000 for life in acted]
    plain_s = [(life.marks["started-1"] - life.marks["failed"]) / 1000 for life in plain]
    return [_seen(line_s), _again(again_s, plain_s)]


def _seen(line_s: list[float]) -> Figure:
    worst = percentile(line_s, 0.99)
    return Figure(
        "line written to anomaly",
        median(line_s),
        "s, median",
        "the original's mean, 69 s",
        median(line_s) / 69,
        f"{len(line_s)} jobs; p99 {worst:.2f} s; seen by a reader of decisions that waits 5 ms",
        "median <= 0.3 s, p99 <= 1 s",
        median(line_s) <= 0.3 and worst <= 1,
    )


def _again(again_s: list[float], plain_s: list[float]) -> Figure:
    return Figure(
        "failure to new attempt running",
        median(again_s),
        "s, median",
        "a plain scontrol requeue from within the job",
        median(again_s) / median(plain_s),
        f"{len(again_s)} jobs, {min(again_s):.1f} to {max(again_s):.1f} s; plain requeue {median(plain_s):.1f} s,"
        f" {min(plain_s):.1f} to {max(plain_s):.1f} s; the original's mean to act is 94 s",
        "median <= 15 s",
        median(again_s) <= 15,
    )


def _live(settings: Settings, folder: Path, look: Callable[[], object], *, plain: bool) -> Life:
    """Submit a job and wait until its second attempt has started."""
    marks = Path(tempfile.mkstemp(dir=folder, prefix="marks-")[1])
    script = folder / "job.sh"
    script.write_text(SCRIPT)
    policy = {"environment": settings.sac.environment or "local", "mode": "act", "auto_resume_mode": "requeue"}
    comment = [] if plain else [f"--comment={json.dumps({'APS': policy})}"]
    command = ["sbatch", "--parsable", "--requeue", "--open-mode=append", f"--output={marks}.out", *comment]
    environment = os.environ | {
        "SLURM_CONF": str(settings.slurm.conf_path),
        "MARKS": str(marks),
        "PLAIN": "yes" if plain else "",
    }
    done = subprocess.run(
        [*command, str(script)], env=environment, capture_output=True, text=True, check=True, timeout=30
    )
    deadline = time.monotonic() + JOB_S
    while "started-1" not in (told := _marks(marks)):
        look()
        if time.monotonic() > deadline:
            raise RuntimeError(f"job {done.stdout.strip()} did not start again within {JOB_S:g} s: {told}")
    return Life(done.stdout.strip(), told)


def _marks(path: Path) -> dict[str, int]:
    words = (line.split() for line in path.read_text().splitlines())
    return {name: int(at_ms) for name, at_ms in words}
