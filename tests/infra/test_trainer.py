"""The trainer on real Slurm: it learns, fails as real jobs do, and resumes."""

import itertools
import json
import re
from pathlib import Path

import pytest

from infra.local.endpoints import Endpoints
from infra.local.training.job import TrainingJob
from tests.infra.cluster import FINAL, accounted, ask, field, wait_for, wait_for_state

pytestmark = pytest.mark.slurm

STEP = re.compile(r"iteration\s+(\d+)/\s*\d+ \|.* lm loss: (\S+) \|")
TIMESTAMPED = re.compile(r"^\s*(\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\]|\[(before|after) .*\] datetime: )")


def steps(log: str) -> list[tuple[int, float]]:
    return [(int(number), float(loss)) for number, loss in STEP.findall(log)]


def test_a_job_without_fault_completes_and_its_loss_falls(slurm: Endpoints, tmp_path: Path) -> None:
    job = TrainingJob(checkpoints=tmp_path / "ckpt", output=tmp_path / "out", iterations=20, step_seconds=0.01)
    assert slurm.slurm_conf is not None
    number = job.submit(slurm.slurm_conf)

    assert wait_for_state(slurm.slurm_conf, number, FINAL) == "COMPLETED"
    log = job.output.read_text()
    seen = steps(log)
    assert [iteration for iteration, _ in seen] == list(range(1, 21))
    assert all(later < earlier for (_, earlier), (_, later) in itertools.pairwise(seen))
    assert "successfully saved checkpoint from iteration      20 to" in log
    assert not (tmp_path / "ckpt" / "faults.jsonl").exists()


def test_a_broken_gpu_fails_the_job_which_completes_elsewhere_from_its_checkpoint(
    slurm: Endpoints, tmp_path: Path
) -> None:
    conf = slurm.slurm_conf
    assert conf is not None
    job = TrainingJob(
        checkpoints=tmp_path / "ckpt",
        output=tmp_path / "out",
        iterations=20,
        step_seconds=0.01,
        save_every=5,
        fault="gpu-xid",
        fault_node="node2",
        fault_iteration=13,
        fault_id="fault-one",
        sbatch=("--nodelist=node1,node2",),
    )
    number = job.submit(conf)
    assert wait_for_state(conf, number, FINAL) == "FAILED"
    first = job.output.read_text()

    # a recovery by hand, as the advisor controller will do it
    ask(conf, "scontrol", "requeuehold", number)
    wait_for_state(conf, number, ("PENDING",))
    ask(conf, "scontrol", "update", f"JobId={number}", "ReqNodeList=", "ExcNodeList=node2", "StartTime=now")
    ask(conf, "scontrol", "release", number)
    assert wait_for_state(conf, number, ("COMPLETED", "FAILED")) == "COMPLETED"

    assert field(conf, number, "ExcNodeList") == "node2"
    assert field(conf, number, "Restarts") == "1"
    second = job.output.read_text().removeprefix(first)
    assert re.search(r"node2 rank \d: kernel: NVRM: Xid \(PCI:0000:3b:00\): 79, ", first)
    assert re.search(r"node1:\d+:\d+ \[\d\] .*NCCL WARN socketProgress: Connection closed by remote peer node", first)
    assert "Xid" not in second
    assert re.search(r"successfully loaded checkpoint from \S+ .* at iteration 10$", second, re.MULTILINE)
    assert [iteration for iteration, _ in steps(second)] == list(range(11, 21))
    assert accounted(conf, number, ["REQUEUED", "COMPLETED"]) == ["REQUEUED", "COMPLETED"]


def test_the_fault_is_on_record_apart_from_the_log(slurm: Endpoints, tmp_path: Path) -> None:
    conf = slurm.slurm_conf
    assert conf is not None
    job = TrainingJob(
        checkpoints=tmp_path / "ckpt",
        output=tmp_path / "out",
        fault="gpu-xid",
        step_seconds=0.01,
        fault_iteration=3,
        fault_id="fault-two",
    )
    number = job.submit(conf)
    assert wait_for_state(conf, number, FINAL) == "FAILED"

    facts = [json.loads(line) for line in (tmp_path / "ckpt" / "faults.jsonl").read_text().splitlines()]
    assert {(fact["fault_id"], fact["kind"], fact["job"], fact["attempt"]) for fact in facts} == {
        ("fault-two", "gpu-xid", number, 0)
    }
    assert "fault-two" not in job.output.read_text()


@pytest.mark.parametrize(
    ("fault", "words", "exit_code"),
    [
        ("user-error", "ModuleNotFoundError: No module named 'fused_attention_kernels'", "1:0"),
        ("oom", "Out of memory: Killed process", "137:0"),
        ("no-progress", "[Errno 5] Input/output error", "1:0"),
    ],
)
def test_other_faults_end_the_job_in_their_own_words(
    slurm: Endpoints, tmp_path: Path, fault: str, words: str, exit_code: str
) -> None:
    conf = slurm.slurm_conf
    assert conf is not None
    job = TrainingJob(
        checkpoints=tmp_path / "ckpt", output=tmp_path / "out", step_seconds=0.01, fault=fault, fault_iteration=3
    )
    number = job.submit(conf)

    assert wait_for_state(conf, number, FINAL) == "FAILED"
    log = job.output.read_text()
    assert words in log
    assert field(conf, number, "ExitCode") == exit_code
    assert not list((tmp_path / "ckpt").glob("iter_*.json"))
    ours = [line for line in log.splitlines() if not line.startswith(("srun: ", "slurmstepd: "))]
    assert all(TIMESTAMPED.match(line) for line in ours), ours


def test_a_hang_keeps_the_job_running_without_output(slurm: Endpoints, tmp_path: Path) -> None:
    conf = slurm.slurm_conf
    assert conf is not None
    job = TrainingJob(
        checkpoints=tmp_path / "ckpt", output=tmp_path / "out", step_seconds=0.01, fault="hang", fault_iteration=6
    )
    number = job.submit(conf)
    wait_for_state(conf, number, ("RUNNING",))
    record = tmp_path / "ckpt" / "faults.jsonl"
    wait_for(lambda: record.exists() and job.output.exists() and len(steps(job.output.read_text())) == 5)

    assert field(conf, number, "JobState") == "RUNNING"
    ask(conf, "scancel", number)
    wait_for_state(conf, number, ("CANCELLED",))
    assert len(steps(job.output.read_text())) == 5
