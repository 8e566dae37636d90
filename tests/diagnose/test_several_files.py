"""What several files say together: those of a job's ranks, of its attempts, and of its nodes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from schemas.vocabulary import FaultClass, Remedy
from streams.diagnose.hosts import Hosts, is_elsewhere, is_of_node
from streams.diagnose.matching import general_matcher
from streams.diagnose.report import diagnosis_json, diagnosis_text
from streams.diagnose.verdict import Diagnosis, diagnose
from streams.watch.whose.origin import named_by_place, named_in_front

NOW_MS = 1_785_578_400_000
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.20 GiB."
XID = "Aug  1 10:00:05 {} kernel: NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus."
DONE = "Training completed."
LATE = (
    "[rank{0}]:[E801 10:15:00.114 ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective operation timeout:"
    " WorkNCCL(SeqNum=80, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600060 milliseconds."
)


@cache
def general() -> Any:
    return general_matcher()


def said(folder: Path, **files: list[str]) -> Diagnosis:
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return diagnose([str(folder / name) for name in files], general(), NOW_MS, lambda _name, _read, _size: None)


def step(number: int, time: str | None = None) -> str:
    stamp = "" if time is None else f"[2026-08-01 {time}] "
    return f"{stamp}iteration {number:8d}/  500000 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.4 |"


def nccl(node: str) -> str:
    return f"{node}:4311:4400 [1] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>"


@pytest.mark.parametrize(
    ("output", "host", "counts"),
    [
        ([nccl("node1"), nccl("node2")], "node2", True),
        ([nccl("node1"), nccl("node2")], "node9", False),
        ([nccl("node1"), nccl("node2")], "node2.cluster.example", True),
        ([nccl("node1.cluster.example")], "node1", True),
        ([nccl("node1.cluster.example")], "node1.other.example", False),
        ([nccl("Node1")], "node1", True),
        (["SLURM_JOB_NODELIST=node[01-04,7],gpu1"], "node03", True),
        (["SLURM_JOB_NODELIST=node[01-04,7],gpu1"], "gpu1", True),
        (["SLURM_JOB_NODELIST=node[01-04,7],gpu1"], "node05", False),
        (["node1: starting", "node2: starting"], "node2", True),
        (["node1: starting", "node2: starting"], "node9", False),
        (["trainer0: starting", "trainer1: starting"], "node9", True),  # these are no nodes
        (["starting"], "node9", True),  # no node is named
        ([nccl("node1"), "world_size: 32"], "node9", True),  # not all nodes are named
        ([nccl("node1"), "nnodes=4"], "node9", True),
        ([nccl("node1"), "nnodes=1"], "node9", False),
        (
            [nccl("node1"), "node1:1:2 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.9<37948> with error 12"],
            "node9",
            True,
        ),
        ([nccl("node1"), "[rank12]: RuntimeError: no luck"], "node9", True),
        (["hostname=localhost, x", "failed on node because of it"], "node9", True),
    ],
)
def test_a_node_s_log_counts_unless_the_job_names_its_nodes_and_it_is_none_of_them(
    output: list[str], host: str, counts: bool, tmp_path: Path
) -> None:
    found = said(tmp_path, job=[step(80), *output, "RuntimeError: no luck"], kernel=[XID.format(host)])
    assert (found.fault_class is FaultClass.GPU_HARDWARE) is counts
    assert ("Left aside" in found.explanation and f"{host} (" in found.explanation) is not counts
    if not counts:
        assert (found.nodes, found.remedy is Remedy.RESTART_EXCLUDING_NODE) == ((), False)


def test_of_nodes_that_a_job_may_have_and_does_not_name_none_explains_what_its_own_lines_explain(
    tmp_path: Path,
) -> None:
    job, kernel = [nccl("node1"), "nnodes=4", step(80)], [XID.format("node9")]
    late = (
        "[rank0]:[E801 10:15:00.114 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout:"
        " WorkNCCL(SeqNum=80, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600060 milliseconds."
    )
    assert said(tmp_path, job=[*job, late], kernel=kernel).nodes == ("node9",)
    assert said(tmp_path, job=[*job, OOM], kernel=kernel).fault_class is FaultClass.CUDA_OOM
    port = "node3:11:19 [0] NCCL WARN NET/IB : Got async event : port error"
    assert said(tmp_path, job=[*job, port], kernel=kernel).nodes == ("node3",)


def test_a_node_s_log_alone_is_believed(tmp_path: Path) -> None:
    assert said(tmp_path, kernel=[XID.format("node9")]).nodes == ("node9",)
    two = said(tmp_path, kernel=[XID.format("node9")], other=["Aug  1 10:00:05 node3 systemd[1]: Started x."])
    assert two.nodes == ("node9",)


def test_of_a_log_of_many_nodes_only_the_lines_of_the_job_s_nodes_count(tmp_path: Path) -> None:
    syslog = [XID.format("node9"), XID.format("node2"), XID.format("node8")]
    found = said(tmp_path, job=[nccl("node1"), nccl("node2"), step(80)], syslog=syslog)
    assert found.nodes == ("node2",)
    assert "node9" in found.explanation


def test_a_host_list_of_absurd_length_is_bounded() -> None:
    hosts = Hosts()
    line = b"SLURM_NODELIST=node[1-999999999],x[9-1],y[z]"
    hosts.hear(line, named_by_place(line), named_in_front(line))
    assert len(hosts.listed) <= 4096
    assert not is_elsewhere("node7", [hosts])


@pytest.mark.parametrize(
    "failed",
    [[OOM], [step(100), OOM], [f"[2026-08-01 10:05:00] {OOM}"], ["starting", "RuntimeError: no luck"]],
    ids=["no step", "steps", "later", "an exception"],
)
def test_that_one_rank_was_done_does_not_hide_that_another_failed(failed: list[str], tmp_path: Path) -> None:
    done = [step(99, "10:04:00"), step(100, "10:04:01"), DONE]
    found = said(tmp_path, rank0=done, rank1=failed)
    assert found.remedy is not Remedy.IGNORE
    assert found.root is not None
    assert found.root.evidence.file.endswith("rank1")


def test_a_later_attempt_that_was_done_leaves_nothing_of_the_failure_before_it(tmp_path: Path) -> None:
    for time in (None, "10:00:00"):
        later = None if time is None else "10:30:00"
        first, second = [step(80, time), OOM], [step(70, time), step(100, later), DONE]
        assert said(tmp_path, first=first, second=second).remedy is Remedy.IGNORE
        assert said(tmp_path, second=second, first=first).remedy is Remedy.IGNORE


def test_attempts_in_files_of_their_own_that_fail_in_the_same_place_are_not_tried_again(tmp_path: Path) -> None:
    killed = "E torch/distributed/elastic/api.py:984] failed (exitcode: -9) local_rank: 0 (pid: 5120) of binary: x"
    first = [step(80, "10:00:00"), killed]
    again = said(tmp_path, first=first, second=[step(70, "10:30:00"), step(80, "10:40:00"), killed])
    assert again.remedy is Remedy.TERMINATE_NO_RETRY
    elsewhere = said(tmp_path, first=first, second=[step(70, "10:30:00"), step(90, "10:40:00"), killed])
    assert elsewhere.remedy is Remedy.RESTART
    ranks = said(tmp_path, first=first, second=[step(79, "10:00:00"), step(80, "10:00:01"), killed])
    assert ranks.remedy is Remedy.RESTART, "ranks of one attempt fail together"


def test_an_attempt_that_was_done_does_not_hide_that_a_later_one_failed_or_stands_still(tmp_path: Path) -> None:
    first = [step(70, "10:00:00"), step(100, "10:10:00"), DONE]
    assert said(tmp_path, first=first, second=[step(150, "11:00:00"), OOM]).fault_class is FaultClass.CUDA_OOM
    beats = [f"[2026-08-01 1{hour}:30:00] heartbeat" for hour in range(1, 4)]
    hung = said(tmp_path, first=first, second=[step(150, "11:00:00"), *beats])
    assert hung.fault_class is FaultClass.HANG_NO_LOG


def test_all_ranks_are_done_where_only_the_first_says_so(tmp_path: Path) -> None:
    steps = [step(number, f"10:{number:02d}:00") for number in range(1, 50)]
    found = said(tmp_path, rank0=[*steps, DONE], rank1=steps, rank2=steps[:-1])
    assert "said that it was done" in found.explanation


def test_a_node_s_fault_that_training_outlived_is_mentioned(tmp_path: Path) -> None:
    found = said(
        tmp_path, job=[nccl("node2"), step(70, "10:00:00"), step(100, "10:10:00")], kernel=[XID.format("node2")]
    )
    assert found.remedy is Remedy.IGNORE
    assert "went on after 1 line that can mean a fault" in found.explanation


def broken(time: str) -> str:
    return f"{time} node2 kernel: NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus."


@pytest.mark.parametrize(
    "time",
    [
        "2026-08-01T10:12:05.112233+01:00",
        "2026-08-01T10:12:05-08:00",
        "2026-08-01T09:12:05Z",
        "2026-08-01T04:42:05+00:00",
        "Aug  1 02:12:05",
    ],
)
@pytest.mark.parametrize("last", [LATE.format(0), OOM], ids=["waited", "explained"])
def test_broken_hardware_is_told_though_its_node_has_another_clock(time: str, last: str, tmp_path: Path) -> None:
    steps = [step(number, f"10:{number:02d}:00") for number in range(13)]
    found = said(tmp_path, job=[nccl("node2"), *steps, last.replace("10:15", "10:22")], kernel=[broken(time)])
    assert (found.fault_class, found.nodes) == (FaultClass.GPU_HARDWARE, ("node2",))


@pytest.mark.parametrize(
    ("time", "zone"),
    [
        ("2026-08-01T09:50:00+01:00", ""),
        ("Aug  1 09:50:00", ""),
        ("2026-07-30T10:12:05Z", ""),
        ("2026-08-01T10:12:05+01:00", "+00:00"),
    ],
    ids=["before, by the wall", "before", "days before", "both name their zones"],
)
def test_broken_hardware_that_training_outlived_is_set_aside_and_told(time: str, zone: str, tmp_path: Path) -> None:
    steps = [f"2026-08-01T10:{number:02d}:00{zone} {step(number)}" for number in range(13)]
    found = said(tmp_path, job=[nccl("node2"), *steps, OOM], kernel=[broken(time)])
    assert found.fault_class is FaultClass.CUDA_OOM
    assert "for training went on after it: Xid 79" in found.explanation
    assert "kernel:1)" in found.explanation


def test_what_a_node_says_by_its_clock_is_in_order_with_a_job_that_names_its_zone(tmp_path: Path) -> None:
    steps = [f"2026-08-01T10:{number:02d}:00+01:00 {step(number)}" for number in range(13)]
    files = {"job": [nccl("node2"), *steps, OOM], "kernel": [broken("Aug  1 10:07:05")]}
    found = said(tmp_path, **files)
    assert (found.fault_class, found.nodes) == (FaultClass.CUDA_OOM, ())
    assert "for training went on after it" in found.explanation


def test_a_node_that_says_why_steps_are_slow_is_named_though_training_goes_on(tmp_path: Path) -> None:
    hot = "2026-08-01T10:00:30+00:00 node2 dcgm[7]: Detected clock throttling due to thermal violation in GPU 5."
    names = [nccl("node1"), nccl("node2")]
    steady = [step(number, f"10:{number // 60:02d}:{number % 60:02d}") for number in range(200)]
    slow = [step(200 + number, f"10:{4 + number // 20:02d}:{number % 20 * 3:02d}") for number in range(100)]
    found = said(tmp_path, job=[*names, *steady, *(line.replace("1000.0", "3000.0") for line in slow)], syslog=[hot])
    assert (found.fault_class, found.nodes) == (FaultClass.STRAGGLER, ("node2",))
    assert said(tmp_path, job=[*names, *steady], syslog=[hot]).remedy is Remedy.IGNORE


@pytest.mark.parametrize(
    "line",
    [
        "2026-08-01T10:00:30.123Z INFO train: step 3",
        "2026-08-01T10:00:30 node2 train: x",
        "[2026-08-01 10:00:30] x",
        "node2: step 3",
    ],
)
def test_a_program_s_own_line_is_not_taken_for_a_system_s(line: str) -> None:
    assert not is_of_node(line.encode())


LIMIT = "slurmstepd: error: *** JOB 42 ON node1 CANCELLED AT 2026-08-01T14:00:00 DUE TO TIME LIMIT ***"


@pytest.mark.parametrize(
    ("last", "heartbeat", "hung"), [("13:59:00", "10:00:00", False), ("10:30:00", "13:59:00", True)]
)
def test_whether_a_run_hung_before_its_time_limit_is_told_by_the_file_that_has_its_steps(
    last: str, heartbeat: str, hung: bool, tmp_path: Path
) -> None:
    output = [f"2026-08-01 {heartbeat} alive", LIMIT]
    found = said(tmp_path, slurm=output, rank0=[step(70, "10:00:00"), step(100, last)])
    assert found.fault_class is (FaultClass.HANG_NO_LOG if hung else FaultClass.SCHEDULER_TIMEOUT)


def test_what_a_node_says_long_after_a_job_explained_its_end_did_not_end_it(tmp_path: Path) -> None:
    late = XID.format("node2").replace("10:00:05", "15:00:05")
    job = [nccl("node1"), nccl("node2"), step(80, "10:00:00")]
    found = said(tmp_path, job=[*job, OOM], kernel=[late])
    assert (found.fault_class, "long after" in found.explanation) == (FaultClass.CUDA_OOM, True)
    assert said(tmp_path, job=[*job, OOM], kernel=[XID.format("node2")]).nodes == ("node2",)
    assert said(tmp_path, job=job, kernel=[late]).nodes == ("node2",), "nothing else explains why no more was printed"


def test_that_a_run_was_slow_before_its_time_limit_is_mentioned(tmp_path: Path) -> None:
    def line(number: int, ms: float) -> str:
        minutes, seconds = divmod(number, 60)
        return step(number, f"13:{minutes:02d}:{seconds:02d}").replace("1000.0", str(ms))

    steps = [line(number, 1000.0 if number < 100 else 4000.0) for number in range(200)]
    found = said(tmp_path, job=[*steps, LIMIT.replace("14:00:00", "13:03:30")])
    assert found.fault_class is FaultClass.SCHEDULER_TIMEOUT
    assert "steps take 4 s" in found.explanation


def test_the_only_rank_without_a_word_is_told_where_each_has_its_own_file(tmp_path: Path) -> None:
    def rank(number: int, *, late: bool) -> list[str]:
        printed = [f"[rank{number}]: {step(minute, f'10:0{minute}:00')}" for minute in range(1, 6)]
        return [*printed, LATE.format(number)] if late else printed

    found = said(tmp_path, **{f"rank{number}": rank(number, late=number != 2) for number in range(4)})
    assert "rank 2 stopped printing before the others" in found.explanation
    assert found.ranks == (2,)
    unsure = said(tmp_path, **{f"rank{number}": rank(number, late=number > 1) for number in range(4)})
    assert "stopped printing" not in unsure.explanation


@pytest.mark.parametrize("name", ["rank{}.log", "rank_{}.out", "logs-worker{}", "job-rank-{}.txt"])
def test_a_file_s_name_tells_the_rank_that_its_lines_do_not(name: str, tmp_path: Path) -> None:
    printed = [step(minute, f"10:0{minute}:00") for minute in range(1, 6)]
    files = {name.format(one): printed if one == 2 else [*printed, LATE.format(one)] for one in range(4)}
    assert said(tmp_path, **files).ranks == (2,)
    assert said(tmp_path, **{name.format(one): [*printed, OOM] for one in (0, 1, 3)}).ranks == (0, 1, 3)
    assert said(tmp_path, **{name.format(1): [*printed, OOM]}).ranks == (), "one file alone may be called anything"


def test_a_file_s_name_is_no_rank_where_lines_tell_others_or_two_files_have_the_same(tmp_path: Path) -> None:
    told = said(tmp_path, **{"worker0": [step(9)], "worker1": [step(9), f"[rank13]: {OOM}"]})
    assert told.ranks == (13,)
    local = said(tmp_path, **{"n1-rank0": [OOM], "n1-rank1": [step(9)], "n2-rank0": [OOM], "n2-rank1": [step(9)]})
    assert local.ranks == ()
    assert said(tmp_path, **{"local_rank0": [OOM], "local_rank1": [step(9)]}).ranks == ()


def test_what_stands_before_lines_is_a_node_where_another_file_names_it(tmp_path: Path) -> None:
    output = [f"worker-{number}: {step(minute)}" for minute in range(9) for number in (0, 1)]
    ecc = "worker-1: RuntimeError: CUDA error: uncorrectable ECC error encountered"
    xid = "Aug  1 10:00:05 {} kernel: NVRM: Xid (PCI:0000:06:00): 48, pid=1, DBE"
    assert said(tmp_path, job=[*output, ecc], kernel=[xid.format("worker-1")]).nodes == ("worker-1",)
    elsewhere = said(tmp_path, job=[*output, ecc], kernel=[xid.format("worker-7")])
    assert (elsewhere.nodes, "worker-7" in elsewhere.explanation) == (("worker-1",), True)


@pytest.mark.parametrize(
    ("names", "node"),
    [
        (("worker-1", "worker-2"), "worker-2"),
        (("gpu-08", "gpu-09"), "gpu-09"),
        (("10.0.0.5", "10.0.0.6"), "10.0.0.6"),
        (("worker-2",), None),  # nothing shows that it is a node's name
        (("gpu0", "gpu1"), None),
        (("rank0", "rank1"), None),
        (("stage-1", "stage-2"), None),
    ],
)
def test_names_before_most_lines_are_nodes_where_siblings_stand_there_too(
    names: tuple[str, ...], node: str | None, tmp_path: Path
) -> None:
    ecc = f"{names[-1]}: RuntimeError: CUDA error: uncorrectable ECC error encountered"
    output = [f"{name}: {step(minute)}" for minute in range(9) for name in names]
    assert said(tmp_path, job=[*output, ecc]).nodes == (() if node is None else (node,))
    seldom = [*(step(minute) for minute in range(9)), *output[: len(names)], ecc]
    assert said(tmp_path, job=seldom).nodes == (), "what a program prints now and then is no launcher's word"


def test_the_first_line_of_a_launcher_s_other_node_may_be_its_last(tmp_path: Path) -> None:
    ecc = "worker-2: RuntimeError: CUDA error: uncorrectable ECC error encountered"
    output = [f"worker-1: {step(minute)}" for minute in range(9)]
    assert said(tmp_path, job=[*output, ecc]).nodes == ("worker-2",)
    alone = [step(80), ecc, "pdsh@login01: worker-2: ssh exited with exit code 1"]
    assert said(tmp_path, job=alone).nodes == ("worker-2",)


@pytest.mark.parametrize(
    ("line", "ranks"),
    [
        ("E torch/distributed/elastic/api.py:984] failed (exitcode: -9) local_rank: 5 (pid: 5120) of binary: x", []),
        ("[rank13]: RuntimeError: CUDA error: an illegal memory access was encountered", [13]),
    ],
)
def test_a_local_rank_is_not_told_as_a_rank_of_the_job(line: str, ranks: list[int], tmp_path: Path) -> None:
    assert diagnosis_json(said(tmp_path, job=[step(80), line]))["ranks"] == ranks


def test_a_worker_of_ray_is_on_the_node_whose_address_it_is_printed_with(tmp_path: Path) -> None:
    worker = "(RayTrainWorker pid={}, ip=10.0.0.{}) {}"
    steps = [worker.format(100 + node, node, f"step {number} loss 2.3") for number in range(9) for node in (1, 2, 3)]
    ecc = worker.format(103, 3, "RuntimeError: CUDA error: uncorrectable ECC error encountered")
    assert said(tmp_path, job=[*steps, ecc]).nodes == ("10.0.0.3",)


def test_all_ranks_that_met_the_same_at_first_hand_are_named_and_none_of_them_is_a_consequence(tmp_path: Path) -> None:
    missing = "ModuleNotFoundError: No module named 'flash_attn'"
    ended = "srun: error: n01: tasks 0-15,24: Exited with exit code 1"
    found = said(tmp_path, job=[*(f"{rank}: {missing}" for rank in (*range(16), 24)), ended])
    assert found.ranks == (*range(16), 24)
    assert "17 ranks met the same; 1 other matching line is a consequence" in found.explanation
    text = "\n".join(diagnosis_text(found))
    assert "Ranks:           0-15, 24\n" in text
    assert f"Met alike:       {tmp_path}/job:2: 1: {missing}" in text
    assert f"Consequences:    {tmp_path}/job:18: srun" in text


def test_ranks_that_wait_for_another_are_not_told_as_failed(tmp_path: Path) -> None:
    assert len(said(tmp_path, job=[LATE.format(rank) for rank in range(8)]).ranks) == 1


SUMMARY = [
    "Root Cause (first observed failure):",
    "[0]:",
    "  time      : 2026-08-01_10:05:33",
    "  host      : gpu-17.cluster.local",
    "  rank      : 11 (local_rank: 3)",
    "  exitcode  : -9 (pid: 4233)",
]


def test_whom_the_launcher_saw_fail_first_is_shown_where_the_root_does_not_say_who_met_it(tmp_path: Path) -> None:
    killed = "E torch/distributed/elastic/api.py:984] failed (exitcode: -9) local_rank: 3 (pid: 4233) of binary: x"
    found = said(tmp_path, job=[step(80), killed, *SUMMARY])
    assert (found.fault_class, found.ranks, found.nodes) == (FaultClass.HOST_OOM, (11,), ())
    assert "saw rank 11 on gpu-17.cluster.local fail first" in found.explanation
    assert said(tmp_path, job=[step(80), f"[rank3]: {OOM}", *SUMMARY]).ranks == (3,)


@pytest.mark.parametrize(
    ("output", "nodes"),
    [
        (
            [
                "slurmstepd: error: prolog: GPU health check failed: GPU 3: XID 79 detected",
                "slurmd: error: Prolog failed on node gpu12",
                "srun: error: Node failure on gpu12",
            ],
            ("gpu12",),
        ),
        (
            ["RuntimeError: CUDA error: uncorrectable ECC error", "srun: error: n7: task 2: Exited with exit code 1"],
            ("n7",),
        ),
        (
            [
                nccl("n6"),
                "RuntimeError: CUDA error: uncorrectable ECC error",
                "srun: error: n7: task 2: Exited with exit code 1",
            ],
            (),  # it may as well have been the other
        ),
        ([nccl("n6"), "RuntimeError: CUDA error: uncorrectable ECC error"], ()),
        (["[rank9]: RuntimeError: CUDA error: uncorrectable ECC error", "srun: error: n7: task 2: Aborted"], ()),
        (
            ["The node with node id: ab and address: 10.0.0.2 and node name: 10.0.0.2 has been marked dead."],
            ("10.0.0.2",),
        ),
    ],
)
def test_a_node_is_told_where_lines_name_only_one_and_say_that_it_failed(
    output: list[str], nodes: tuple[str, ...], tmp_path: Path
) -> None:
    assert said(tmp_path, job=[step(80), *output]).nodes == nodes


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("first", "ecc", "nodes"),
    [
        ("starting", "[rank2]: RuntimeError: CUDA error: uncorrectable ECC error", ("n7",)),
        ("starting", "RuntimeError: CUDA error: uncorrectable ECC error", ()),  # n6 takes part, too
        ("world_size: 32", "RuntimeError: CUDA error: uncorrectable ECC error", ()),
    ],
)
def test_srun_names_nodes_at_the_end_of_a_long_log(
    first: str, ecc: str, nodes: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.diagnose.account.NODES_BYTES", 1)
    ends = ["srun: error: n7: task 2: Exited with exit code 1"]
    ends += ["srun: error: n6: tasks 0-1: Terminated"] if first == "starting" else []
    found = said(tmp_path, job=[first, *(step(number) for number in range(400)), ecc, *ends])
    assert found.nodes == nodes


@pytest.mark.parametrize(
    ("line", "node"),
    [
        ("slurmctld: error: Nodes node2 not responding", "node2"),
        ("pdsh@login: node2: ssh exited with exit code 255", "node2"),
        ("ssh: connect to host node2 port 22: Connection timed out", "node2"),
        ("srun: error: Task launch for StepId=23.0 failed on node node2: Job prolog failed", "node2"),
    ],
)
def test_the_node_that_a_line_says_failed_is_named_in_whatever_form(tmp_path: Path, line: str, node: str) -> None:
    found = said(tmp_path, out=[nccl("node1"), nccl("node2"), step(1), line])
    assert found.nodes == (node,)


def test_a_node_is_named_as_the_scheduler_names_it(tmp_path: Path) -> None:
    kernel = XID.format("node2.cluster.example")
    found = said(tmp_path, out=["SLURM_JOB_NODELIST=node[1-2]", step(1, "10:00:00")], kern=[kernel])
    assert found.nodes == ("node2",)


def test_an_error_of_the_program_is_not_its_process_s_end_on_the_gpu(tmp_path: Path) -> None:
    kernel = "Aug  1 10:00:08 node1 kernel: NVRM: Xid (PCI:0000:3b:00): 43, pid=1, name=python3, Ch 00000010"
    error = ["[2026-08-01 10:00:05] Traceback (most recent call last):", '  File "train.py", line 3, in <module>']
    found = said(tmp_path, out=[nccl("node1"), step(1, "10:00:00"), *error, "KeyError: 'labels'"], kern=[kernel])
    assert found.root is not None
    assert (found.root.evidence.text, found.fault_class) == ("KeyError: 'labels'", FaultClass.USER_CODE)
