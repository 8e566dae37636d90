"""What happened to a run, from files of any kind and size."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from recovery.cli import app
from schemas.vocabulary import FaultClass, Remedy
from streams.diagnose.account import MOST_LINES, MOST_NODES, Account
from streams.diagnose.matching import CONCLUDED, GENERAL, general_matcher
from streams.diagnose.reading import Piece, Unreadable, pieces
from streams.diagnose.report import diagnosis_json, diagnosis_text
from streams.diagnose.verdict import Diagnosis, conclude, diagnose
from streams.watch.matching.packs import load_packs

NOW_MS = 1_785_578_400_000
XID = "Aug  1 10:00:{second:02d} node2 kernel: NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus."
OOM = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.20 GiB."


@cache
def general() -> Any:
    return general_matcher()


def step(number: int, time: str = "10:00:00") -> str:
    stamp = f"[2026-08-01 {time}.000000]"
    return f" {stamp} iteration {number:8d}/  500000 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.4 |"


def timeout(second: int) -> str:
    return (
        f"[rank0]:[E801 10:10:{second:02d}.114 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation"
        " timeout: WorkNCCL(SeqNum=80, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600060 milliseconds."
    )


def said(tmp_path: Path, **files: str | bytes) -> Diagnosis:
    names = []
    for name, text in files.items():
        path = tmp_path / f"{name}.log"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        names.append(str(path))
    return diagnose(names, general(), NOW_MS, lambda _name, _read, _size: None)


def lines(*text: str) -> str:
    return "".join(f"{line}\n" for line in text)


def test_a_node_s_kernel_log_explains_the_timeouts_of_the_job_s_output(tmp_path: Path) -> None:
    found = said(tmp_path, job=lines(step(80), timeout(3), timeout(4)), kernel=lines(XID.format(second=5)))
    assert (found.fault_class, found.remedy, found.nodes) == (
        FaultClass.GPU_HARDWARE,
        Remedy.RESTART_EXCLUDING_NODE,
        ("node2",),
    )
    assert found.root is not None
    assert found.root.evidence.file.endswith("kernel.log")
    assert len(found.secondary) == 2
    assert found.steps.last_step == 80


def test_a_gpu_fault_that_may_be_chance_is_the_node_s_where_its_gpus_are_gone_afterwards(tmp_path: Path) -> None:
    chance, gone = "RuntimeError: CUDA error: unspecified launch failure", "RuntimeError: No CUDA GPUs are available"
    assert said(tmp_path, job=lines(step(80), chance)).remedy is Remedy.RESTART
    found = said(tmp_path, job=lines(step(80), f"node2: {chance}", f"node2: {gone}"))
    assert (found.remedy, found.nodes) == (Remedy.RESTART_EXCLUDING_NODE, ("node2",))
    assert found.root is not None
    assert chance in found.root.evidence.text


@pytest.mark.parametrize(("first", "second", "root"), [(50, 3, 2), (4, 3, 1)])
def test_a_line_that_was_printed_late_counts_from_its_own_time_unless_clocks_may_differ(
    first: int, second: int, root: int, tmp_path: Path
) -> None:
    found = said(tmp_path, job=lines(timeout(first), timeout(second)))
    assert found.root is not None
    assert found.root.evidence.line_no == root


def test_a_fault_that_training_outlived_is_none(tmp_path: Path) -> None:
    found = said(tmp_path, job=lines(step(80), OOM, step(81), step(82)))
    assert (found.remedy, found.root, found.outlived) == (Remedy.IGNORE, None, 1)
    assert said(tmp_path, job=lines(step(81), OOM, step(81))).remedy is Remedy.TERMINATE_NO_RETRY


def test_the_rank_that_stopped_printing_before_the_others_is_told(tmp_path: Path) -> None:
    def heard(*until: int) -> str:
        printed = [
            f"[rank{rank}]: 2026-08-01 10:{minute:02d}:00 forward"
            for minute in range(10)
            for rank in range(4)
            if minute < until[rank]
        ]
        late = [f"[rank{rank}]: 2026-08-01 10:20:00 {timeout(3)}" for rank in (0, 1, 2)]
        return lines(*printed, *late)

    assert "rank 3 stopped printing before the others" in said(tmp_path, job=heard(10, 10, 10, 4)).explanation
    assert "stopped printing" not in said(tmp_path, job=heard(10, 10, 10, 10)).explanation
    assert "stopped printing" not in said(tmp_path, job=heard(10, 4, 10, 4)).explanation
    assert "stopped printing" not in said(tmp_path, job=heard(10, 4, 10, 10)).explanation


@pytest.mark.parametrize(
    ("prefix", "ranks"),
    [("[rank5]: ", [5]), ("5: ", [5]), ("[default5]:", []), ("1: [default5]:", []), ("1: [rank13]: ", [13])],
)
def test_only_a_number_that_no_other_process_of_the_job_has_is_told_as_a_rank(
    prefix: str, ranks: list[int], tmp_path: Path
) -> None:
    said_oom = prefix + OOM.removeprefix("[rank3]: ")
    assert diagnosis_json(said(tmp_path, job=lines(step(80), said_oom)))["ranks"] == ranks


def test_a_place_among_the_processes_of_a_node_is_not_told_as_the_silent_rank(tmp_path: Path) -> None:
    printed = [f"[default{n}]: 2026-08-01 10:{minute:02d}:00 x" for minute in range(10) for n in range(4 - minute // 4)]
    late = [f"[default{n}]: 2026-08-01 10:20:00 {timeout(3)}" for n in (0, 1, 2)]
    assert "stopped printing" not in said(tmp_path, job=lines(*printed, *late)).explanation


def test_a_step_that_was_skipped_is_no_way_out_of_lost_numbers(tmp_path: Path) -> None:
    def iteration(number: int, loss: str, skipped: int) -> str:
        return (
            f" iteration     {number}/    8000 | consumed samples: 232512 | elapsed time per iteration (ms): 6956.6 |"
            f"{loss} loss scale: 1.0 | number of skipped iterations:   {skipped} |"
        )

    lost, skipped = iteration(7, " lm loss: NAN |", 0), iteration(8, "", 1)
    assert said(tmp_path, job=lines(lost, skipped)).fault_class is FaultClass.NUMERIC_NAN
    healed = iteration(9, " lm loss: 2.1E+00 |", 1)
    assert said(tmp_path, job=lines(lost, skipped, healed)).remedy is Remedy.IGNORE


def test_a_run_that_never_had_a_loss_has_nothing_to_go_back_to(tmp_path: Path) -> None:
    def printed(loss: str) -> str:
        return f"{{'loss': {loss}, 'grad_norm': {loss}, 'learning_rate': 1e-06, 'epoch': 0.01}}"

    never = said(tmp_path, job=lines(*[printed("nan")] * 3))
    assert (never.fault_class, never.remedy) == (FaultClass.NUMERIC_NAN, Remedy.TERMINATE_NO_RETRY)
    assert "nothing to go back to" in never.explanation
    assert said(tmp_path, job=lines(printed("2.1"), *[printed("nan")] * 3)).remedy is Remedy.RESTART
    assert said(tmp_path, job=lines(step(80), *[printed("nan")] * 3)).remedy is Remedy.RESTART


def test_a_log_that_only_a_scraper_makes_grow_is_that_of_a_hung_job(tmp_path: Path) -> None:
    def answer(time: str) -> str:
        return f'(Engine pid=7) [2026-03-24 {time}] INFO:     10.0.0.46:41646 - "GET /metrics HTTP/1.1" 200 OK'

    begun = "(Trainer pid=9) [2026-03-24 06:00:00] timer.py:24 - Timer actor_train start"
    assert said(tmp_path, job=lines(begun, answer("06:00:15"), answer("06:29:00"))).remedy is Remedy.IGNORE
    hung = said(tmp_path, job=lines(begun, answer("06:00:15"), answer("06:31:00")))
    assert (hung.fault_class, hung.remedy) == (FaultClass.HANG_NO_LOG, Remedy.RESTART)
    assert "31 minutes" in hung.explanation
    many = [answer(f"{hour:02}:{minute:02}:00") for hour in range(7, 24) for minute in range(60)]
    assert said(tmp_path, job=lines(begun, *many)).fault_class is FaultClass.HANG_NO_LOG
    assert said(tmp_path, job=lines(*many)).remedy is Remedy.IGNORE
    assert said(tmp_path, job=lines(begun, *many, begun)).remedy is Remedy.IGNORE


def test_a_bar_at_nought_takes_nothing_back_where_the_program_ends_in_its_line(tmp_path: Path) -> None:
    raised, bar = "KeyError: 'attention_mask'", "steps:   0%|          | 0/186 [00:00<?, ?it/s]"
    ended = (
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 7) of binary: x"
    )
    assert said(tmp_path, job=lines(raised, bar + ended)).remedy is Remedy.TERMINATE_NO_RETRY
    assert said(tmp_path, job=lines(raised, bar)).remedy is Remedy.IGNORE


def test_steps_don_t_take_back_that_a_device_makes_them_slow(tmp_path: Path) -> None:
    hot = "node2: dcgmi health: Detected clock throttling due to thermal violation in GPU 5."
    found = said(tmp_path, job=lines(step(80), hot, step(81), step(82)))
    assert (found.fault_class, found.nodes) == (FaultClass.STRAGGLER, ("node2",))


def test_a_fault_in_one_file_that_training_in_another_outlived_is_none(tmp_path: Path) -> None:
    rank3 = lines("2026-08-01 10:00:30 ERROR OSError: [Errno 5] Input/output error")
    assert said(tmp_path, rank0=lines(step(80, "10:00:00"), step(90, "10:09:00")), rank3=rank3).remedy is Remedy.IGNORE
    assert said(tmp_path, rank0=lines(step(80, "10:00:00"), step(81, "10:00:31")), rank3=rank3).remedy is Remedy.RESTART


def test_a_run_that_fails_again_where_it_failed_before_is_not_tried_a_third_time(tmp_path: Path) -> None:
    killed = "E torch/distributed/elastic/api.py:984] failed (exitcode: -9) local_rank: 0 (pid: 5120) of binary: x"
    load = "  successfully loaded checkpoint from /ck [ t 1/8, p 1/4 ] at iteration 50"
    again = said(tmp_path, job=lines(step(80), killed, load, step(60), step(80), killed))
    assert again.remedy is Remedy.TERMINATE_NO_RETRY
    elsewhere = said(tmp_path, job=lines(step(80), killed, load, step(60), step(70), killed))
    assert elsewhere.remedy is Remedy.RESTART


def test_a_restart_of_which_nothing_is_heard_leaves_the_failure_before_it(tmp_path: Path) -> None:
    load = "  successfully loaded checkpoint from /ck [ t 1/8, p 1/4 ] at iteration 50"
    assert said(tmp_path, job=lines(step(80), OOM, load)).fault_class is FaultClass.CUDA_OOM


LOADED = "  successfully loaded checkpoint from /ck [ t 1/8, p 1/4 ] at iteration 50"


@pytest.mark.parametrize(
    "after",
    [
        (LOADED, *(step(number, "12:00:00") for number in range(51, 56))),
        (LOADED, step(51, "12:00:00"), step(52, "12:02:01")),
        (LOADED, step(60, "12:00:00")),
        (step(1, "12:00:00"), step(4, "12:00:09")),
    ],
)
def test_a_run_that_started_over_and_is_on_its_way_is_well_long_before_it_is_where_it_was(
    after: tuple[str, ...], tmp_path: Path
) -> None:
    found = said(tmp_path, job=lines(step(79), step(80), OOM, *after))
    assert (found.remedy, found.root) == (Remedy.IGNORE, None)
    assert "Before, the run had failed and started over: the GPU's memory is exhausted (" in found.explanation
    assert said(tmp_path, job=lines(step(80), OOM, *after, OOM)).fault_class is FaultClass.CUDA_OOM


@pytest.mark.parametrize("after", [(LOADED, step(51, "12:00:00"), step(52, "12:00:09")), (step(1), step(2))])
def test_a_restart_of_which_a_step_or_two_are_heard_leaves_the_failure_before_it(
    after: tuple[str, ...], tmp_path: Path
) -> None:
    assert said(tmp_path, job=lines(step(80), OOM, *after)).fault_class is FaultClass.CUDA_OOM


def test_what_a_new_attempt_outlives_is_measured_by_its_own_steps(tmp_path: Path) -> None:
    found = said(tmp_path, job=lines(step(80), LOADED, step(51), OOM, step(52), step(53)))
    assert (found.remedy, found.outlived) == (Remedy.IGNORE, 1)
    assert "Before, the run had failed" not in found.explanation


def test_bars_of_something_else_after_a_failure_are_no_new_attempt(tmp_path: Path) -> None:
    def bar(number: int, total: int) -> str:
        return f"{number / total:4.0%}|###       | {number}/{total} [00:17<01:02,  4.47s/it]"

    output = lines(bar(80, 900), bar(81, 900), OOM, "", *(bar(number, 40) for number in range(41)))
    assert said(tmp_path, job=output).fault_class is FaultClass.CUDA_OOM


def test_what_comes_after_a_normal_end_is_tidying_up(tmp_path: Path) -> None:
    assert said(tmp_path, job=lines(step(80), "Training completed.", timeout(3))).remedy is Remedy.IGNORE
    assert said(tmp_path, job=lines(step(80), timeout(3), "Training completed.")).remedy is Remedy.RESTART


def test_what_stands_only_on_lines_of_steps_is_no_fault_of_a_run_that_ended_normally(tmp_path: Path) -> None:
    def output(*last: str) -> str:
        return lines(*(f"{step(number)} sample <CUDA out of memory>" for number in range(9)), *last)

    assert said(tmp_path, job=output("Training completed.")).remedy is Remedy.IGNORE
    last = lines(step(80), f"{step(81)} sample <CUDA out of memory>")
    assert said(tmp_path, job=last).fault_class is FaultClass.CUDA_OOM, "it may be the last word of a dead run"
    assert said(tmp_path, job=output(OOM, "Training completed.")).fault_class is FaultClass.CUDA_OOM
    nan = said(tmp_path, job=lines(step(80), step(81).replace("2.4", "nan"), "Training completed."))
    assert nan.fault_class is FaultClass.NUMERIC_NAN, "its last step learned nothing, whatever it says of itself"


CANCELLED = (
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
    "slurmstepd: error: *** STEP 99.0 ON node1 CANCELLED AT 2026-08-01T10:05:00 ***",
    "slurmstepd: error: *** JOB 99 ON node1 CANCELLED AT 2026-08-01T10:05:00 ***",
)
TORCHRUN = (
    "W0801 10:05:00.102000 4211 torch/distributed/elastic/agent/server/api.py:704] Received 15 death signal, shutting"
    " down workers",
    "W0801 10:05:00.103000 4211 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 4231 closing"
    " signal SIGTERM",
    "Traceback (most recent call last):",
    '  File "/usr/local/bin/torchrun", line 8, in <module>',
    '    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)',
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 12 got signal: 15",
)


@pytest.mark.parametrize("told", [TORCHRUN, ("Terminated",), ("[rank: 3] Received SIGTERM: 15",), ()])
def test_a_job_that_somebody_cancelled_is_not_restarted_for_what_its_launcher_was_told(
    told: tuple[str, ...], tmp_path: Path
) -> None:
    for output in ((step(80), *told, *CANCELLED), (step(80), *CANCELLED, *told)):
        found = said(tmp_path, job=lines(*output))
        assert (found.fault_class, found.remedy) == (FaultClass.PREEMPTION, Remedy.IGNORE)
        assert found.root is not None
        assert "CANCELLED" in found.root.evidence.text


def test_a_program_that_acts_on_a_signal_may_have_been_preempted_unless_the_job_was_cancelled_before(
    tmp_path: Path,
) -> None:
    acts = "[INFO] SIGTERM received, saving checkpoint before exit"
    assert said(tmp_path, job=lines(step(80), *CANCELLED, acts)).remedy is Remedy.IGNORE
    assert said(tmp_path, job=lines(step(80), acts, *CANCELLED)).remedy is Remedy.RESTART


def test_a_signal_asks_for_a_restart_where_nobody_cancelled_the_job(tmp_path: Path) -> None:
    preempted = "slurmstepd: error: *** JOB 99 ON node1 CANCELLED AT 2026-08-01T10:05:00 DUE TO PREEMPTION ***"
    for others in ((), CANCELLED[:2]):
        assert said(tmp_path, job=lines(step(80), *others, *TORCHRUN)).remedy is Remedy.RESTART
    assert said(tmp_path, job=lines(step(80), *TORCHRUN, *CANCELLED[:2], preempted)).remedy is Remedy.WAIT


def test_what_tasks_print_while_the_scheduler_ends_them_takes_its_word_not_back(tmp_path: Path) -> None:
    ended = "slurmstepd: error: *** STEP 7.0 ON node1 CANCELLED AT 2026-08-01T10:00:08 DUE TO TIME LIMIT ***"
    found = said(tmp_path, job=lines(step(80), ended, step(81, "10:00:09")))
    assert found.fault_class is FaultClass.SCHEDULER_TIMEOUT


def test_where_the_scheduler_says_that_the_run_completed_only_broken_hardware_counts(tmp_path: Path) -> None:
    assert said(tmp_path, job=lines(step(80), timeout(3), "7|COMPLETED|0:0")).remedy is Remedy.IGNORE
    hardware = said(tmp_path, job=lines(step(80), XID.format(second=5), "7|COMPLETED|0:0"))
    assert hardware.fault_class is FaultClass.GPU_HARDWARE


def test_words_that_only_may_mean_a_failure_count_where_nothing_else_was_said(tmp_path: Path) -> None:
    vague = "(worker pid=3) E: Collective call returned error"
    found = said(tmp_path, job=lines(step(80), vague))
    assert (found.fault_class, found.remedy) == (FaultClass.NCCL_TIMEOUT, Remedy.RESTART)
    assert said(tmp_path, job=lines(step(80), vague, OOM)).fault_class is FaultClass.CUDA_OOM
    assert said(tmp_path, job=lines(step(80), vague, step(81, "10:00:09"))).remedy is Remedy.IGNORE


def test_peers_that_are_known_by_address_only_are_named_as_nodes(tmp_path: Path) -> None:
    here = "{}:11:12 [0] NCCL INFO Bootstrap : Using eth0:{}<0>"
    away = "{}:11:19 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.2<37948> with error 12, opcode 2, len 1"
    names = [here.format(f"node{number}", f"10.0.0.{number}") for number in (1, 2, 3)]
    found = said(tmp_path, job=lines(*names, away.format("node1"), away.format("node3")))
    assert (found.remedy, found.nodes) == (Remedy.RESTART_EXCLUDING_NODE, ("node2",))


ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"


def test_what_srun_says_of_tasks_tells_the_node_of_a_rank(tmp_path: Path) -> None:
    ended = [
        f"srun: error: node0{node}: tasks {8 * node}-{8 * node + 7}: Exited with exit code 1" for node in (4, 3, 5)
    ]
    found = said(tmp_path, job=lines(f"37: {ECC}", *ended))
    assert (found.remedy, found.nodes) == (Remedy.RESTART_EXCLUDING_NODE, ("node04",))


def test_where_each_task_is_a_launcher_srun_tells_the_node_of_its_lines(tmp_path: Path) -> None:
    ended = [f"srun: error: node0{node}: task {node - 3}: Exited with exit code 1" for node in (4, 3, 5)]
    for mark in ("2: [rank1]:", "2: [default1]:"):
        found = said(tmp_path, job=lines(f"{mark} {ECC}", *ended))
        assert (found.remedy, found.nodes) == (Remedy.RESTART_EXCLUDING_NODE, ("node05",))


def test_the_launchers_summary_tells_the_node_that_the_root_line_does_not(tmp_path: Path) -> None:
    def summary(host: str) -> list[str]:
        head = ["Root Cause (first observed failure):", "[0]:", "  time      : 2026-08-01_10:00:05"]
        return [*head, f"  host      : {host}", "  rank      : 43 (local_rank: 3)", "  exitcode  : 1 (pid: 102932)"]

    found = said(tmp_path, job=lines(ECC, *summary("node05")))
    assert (found.remedy, found.nodes) == (Remedy.RESTART_EXCLUDING_NODE, ("node05",))
    unsure = said(tmp_path, job=lines(ECC, *summary("node05"), *["filler"] * 2000, *summary("node06")))
    assert unsure.nodes == ()


def test_what_a_node_tells_of_itself_beside_a_run_that_ended_well_is_no_failure_of_it(tmp_path: Path) -> None:
    done = "[after training is done] datetime: 2026-08-01 10:00:30"
    for second in (5, 59):
        found = said(tmp_path, job=lines(step(80), done), kernel=lines(XID.format(second=second)))
        assert (found.fault_class, found.remedy, found.nodes) == (FaultClass.BENIGN_NOISE, Remedy.IGNORE, ())
        assert "node2" in found.explanation
        assert "Xid 79" in found.explanation
    failed = said(tmp_path, job=lines(step(80), done, OOM), kernel=lines(XID.format(second=5)))
    assert failed.nodes == ("node2",), "a run that says more after its end did not end well"


def test_heartbeats_until_the_time_limit_do_not_hide_that_steps_stood_still(tmp_path: Path) -> None:
    beats = [f"[2026-08-01 {10 + minute // 60}:{minute % 60:02d}:30.000000] heartbeat ok" for minute in range(80)]
    limit = "slurmstepd: error: *** JOB 42 ON node1 CANCELLED AT 2026-08-01T11:20:00 DUE TO TIME LIMIT ***"
    hung = said(tmp_path, job=lines(step(79, "09:59:58"), step(80), *beats, limit))
    assert (hung.fault_class, hung.remedy) == (FaultClass.HANG_NO_LOG, Remedy.RESTART)
    busy = said(tmp_path, job=lines(step(79, "11:19:00"), step(80, "11:19:55"), limit))
    assert busy.fault_class is FaultClass.SCHEDULER_TIMEOUT


def test_of_a_log_of_nothing_but_steps_the_first_and_the_last_are_told(tmp_path: Path) -> None:
    found = said(
        tmp_path, job=lines(*(f"iter {number}: loss 2.4000, time 251.00ms, mfu 41.00%" for number in range(15_000)))
    )
    assert (found.steps.first_step, found.steps.last_step) == (0, 14_999)


def test_output_that_grows_while_steps_stand_still_is_a_hang(tmp_path: Path) -> None:
    beats = [f"2026-08-01 1{hour}:30:00 heartbeat: the job is running" for hour in range(1, 4)]
    found = said(tmp_path, job=lines(step(80), *beats))
    assert (found.fault_class, found.remedy) == (FaultClass.HANG_NO_LOG, Remedy.RESTART)
    assert said(tmp_path, job=lines(step(80), *beats, step(81, "13:31:00"))).remedy is Remedy.IGNORE
    assert said(tmp_path, job=lines(step(80), "Training completed.", *beats)).remedy is Remedy.IGNORE


@pytest.mark.parametrize("count", [3, 40, 50_000])
def test_what_an_unknown_program_counts_up_is_told_as_its_steps(count: int, tmp_path: Path) -> None:
    counted = [f"batch_done n={number} t=0.31" for number in range(5, 5 + count)]
    found = said(tmp_path, job=lines("starting", *counted, OOM))
    assert found.fault_class is FaultClass.CUDA_OOM
    assert (found.steps.framework, found.steps.first_step, found.steps.last_step) == (None, 5, 4 + count)
    assert any("of no known format" in text for text in diagnosis_text(found))
    known = said(tmp_path, job=lines(*counted, step(80), OOM))
    assert (known.steps.first_step, known.steps.proposed) == (80, False)


def test_what_may_count_anything_is_not_told_as_steps(tmp_path: Path) -> None:
    found = said(tmp_path, job=lines(*[f"tick {number} q=0.{number}" for number in range(400)]))
    assert found.steps.last_step is None


def test_the_last_finished_checkpoint_is_told(tmp_path: Path) -> None:
    save = "  successfully saved checkpoint from iteration      50 to /ck [ t 1/8, p 1/4 ]"
    found = said(tmp_path, job=lines(step(40), save, step(60), "saving checkpoint at iteration 60 to /ck", OOM))
    steps = found.steps
    assert (steps.first_step, steps.last_step, steps.last_checkpoint_step) == (40, 60, 50)
    assert steps.framework == "Megatron-LM (current)"


def test_bars_of_an_evaluation_are_no_steps_of_training(tmp_path: Path) -> None:
    def bars(first: int, last: int, total: int) -> list[str]:
        return [
            f"{number / total:4.0%}|###       | {number}/{total} [00:17<01:02,  4.47s/it]"
            for number in range(first, last)
        ]

    evaluation = bars(0, 626, 625)
    found = said(tmp_path, job=lines(*bars(1, 101, 900), *evaluation, *bars(101, 201, 900), *evaluation, OOM))
    assert (found.steps.first_step, found.steps.last_step) == (1, 200)


def test_steps_of_an_epoch_are_told_as_steps_of_the_run(tmp_path: Path) -> None:
    bar = "Epoch {0}:  99%|#########9| {1}/391 [00:17<00:01,  4.47s/it, loss=1.0, v_num=3]"
    found = said(tmp_path, job=lines(bar.format(0, 1), bar.format(4, 391), bar.format(5, 1), OOM))
    assert (found.steps.first_step, found.steps.last_step) == (1, 1956)
    assert any("steps 1 to 1956 (PyTorch Lightning, epoch 5)" in text for text in diagnosis_text(found))


def test_of_two_attempts_the_last_one_s_steps_are_told(tmp_path: Path) -> None:
    saved = "  successfully saved checkpoint from iteration {0} to /ck [ t 1/8, p 1/4 ]"
    loaded = "  successfully loaded checkpoint from /ck [ t 1/8, p 1/4 ] at iteration 500"
    before = lines(*(step(number) for number in range(900, 1001)), saved.format(1000))
    after = lines(loaded, *(step(number, "12:00:00") for number in range(501, 651)), saved.format(600), OOM)
    for files in ({"a": before, "b": after}, {"a": after, "b": before}, {"a": before + after}):
        steps = said(tmp_path, **files).steps
        assert (steps.first_step, steps.last_step, steps.last_checkpoint_step) == (501, 650, 600)
        for name in files:
            (tmp_path / f"{name}.log").unlink()
    steps = said(tmp_path, a=before, b=lines(loaded, step(501, "12:00:00"), OOM)).steps
    assert (steps.first_step, steps.last_step, steps.last_checkpoint_step) == (501, 501, 1000)


@pytest.mark.parametrize("last", [560, 700])
@pytest.mark.parametrize("total", ["500000", "600000"])
def test_of_two_attempts_beside_other_bars_the_last_one_s_steps_are_told(total: str, last: int, tmp_path: Path) -> None:
    shards = [
        f"Loading checkpoint shards: {number / 4:4.0%}|##  | {number}/4 [00:09<00:00,  2.31s/it]" for number in range(5)
    ]
    loaded = "  successfully loaded checkpoint from /ck [ t 1/8, p 1/4 ] at iteration 500"
    before = lines(*shards, *(step(number) for number in range(1, 651)), OOM)
    after = lines(*shards, loaded, *(step(number, "12:00:00") for number in range(501, last + 1)), "KeyError: 'x'")
    steps = said(tmp_path, job=before + after.replace("500000", total)).steps
    assert (steps.first_step, steps.last_step) == (501, last)


def test_a_checkpoint_that_is_loaded_while_training_goes_on_begins_no_attempt(tmp_path: Path) -> None:
    loaded = "  successfully loaded checkpoint from /ck [ t 1/8, p 1/4 ] at iteration 50"
    bars = [f"{number / 625:4.0%}|###       | {number}/625 [00:17<01:02,  4.47s/it]" for number in range(626)]
    steps = said(tmp_path, job=lines(*map(step, range(90)), loaded, *bars, *map(step, range(90, 95)), OOM)).steps
    assert (steps.first_step, steps.last_step) == (0, 94)


@pytest.mark.parametrize("prefix", ["", "3: ", "\x1b[32m"])
def test_a_framework_is_known_by_lines_without_a_step(prefix: str, tmp_path: Path) -> None:
    shown = "{{'loss': 0.4589, 'grad_norm': 1.04, 'learning_rate': 5.2e-06, 'epoch': 1.{0}}}"
    found = said(tmp_path, job=lines(*(prefix + shown.format(number) for number in range(10, 40)), OOM))
    assert found.steps.framework == "HF Trainer"


@pytest.mark.parametrize("line", ["=> it {0} obj 0.1 loss 2.0{0}", "batch_done n={0} t=0.31"])
def test_the_last_save_of_an_unknown_program_is_told(line: str, tmp_path: Path) -> None:
    counted = [line.format(number) for number in range(1, 100)]
    saves = ["Checkpoint saved: step=30 path=/ckpt/30", *counted[30:60], "Checkpoint saved: step=60 path=/ckpt/60"]
    found = said(tmp_path, job=lines(*counted[:30], *saves, *counted[60:], "Saving checkpoint: step=90", OOM))
    assert (found.steps.framework, found.steps.last_step, found.steps.last_checkpoint_step) == (None, 99, 60)
    known = said(tmp_path, job=lines(step(80), "Checkpoint saved: step=60 path=/ckpt/60", OOM))
    assert known.steps.last_checkpoint_step is None


def test_the_bars_of_an_evaluation_do_not_hide_which_save_was_done(tmp_path: Path) -> None:
    bar = "{0:4.0%}|###       | {1}/{2} [00:17<01:02,  4.47s/it]"
    text: list[str] = []
    for first in (1, 501, 1001):
        text += [bar.format(number / 3000, number, 3000) for number in range(first, first + 500, 5)]
        text += [bar.format(number / 250, number, 250) for number in range(250)]
        text += [f"Saving model checkpoint to ./out/checkpoint-{first + 499}"]
    assert said(tmp_path, job=lines(*text, OOM)).steps.last_checkpoint_step == 1000
    assert said(tmp_path, job=lines(*text, bar.format(0.5, 1501, 3000), OOM)).steps.last_checkpoint_step == 1500


@pytest.mark.parametrize("save", ["Saved checkpoint to /ckpt/last.pt", "\x1b[32mmodel saved.\x1b[0m"])
@pytest.mark.parametrize("after", [0, 500, 5_000])
def test_a_save_that_names_no_step_is_of_the_last_step_before_its_line(save: str, after: int, tmp_path: Path) -> None:
    counted = [f"epoch 0 step {number}/90000 loss 2.1 lr 1.2e-04 2.01 s/step" for number in range(1, 401 + after)]
    found = said(tmp_path, job=lines(*counted[:400], save, *counted[400:], OOM))
    assert (found.steps.last_step, found.steps.last_checkpoint_step) == (400 + after, 400)


def test_a_save_that_begins_a_block_is_of_the_last_step_of_the_block_before(small_blocks: int, tmp_path: Path) -> None:
    counted = [f"epoch 0 step {number}/90000 loss 2.1 lr 1.2e-04 2.01 s/step" for number in range(1, 1_000)]
    filled = ["-" * (small_blocks - 1)] * 3
    saved = "Saved checkpoint to /ckpt/last.pt"
    found = said(tmp_path, job=lines(*counted[:400], *filled, saved, *counted[400:], OOM))
    assert found.steps.last_checkpoint_step == 400


def test_a_save_that_was_announced_and_failed_is_no_checkpoint(tmp_path: Path) -> None:
    announced = "Epoch {0}, global step {1}: 'loss' reached 1.0 (best 1.0), saving model to '/ckpt/{1}.ckpt' as top 1"
    bar = "Epoch {0}:  99%|#########9| 99/100 [00:17<00:01,  4.47s/it, loss=1.0, v_num=3]"
    epochs = [text for epoch in range(2) for text in (bar.format(epoch), announced.format(epoch, 100 * (epoch + 1)))]
    found = said(tmp_path, job=lines(*epochs, "OSError: [Errno 28] No space left on device: '/ckpt/200.ckpt'"))
    assert found.steps.last_checkpoint_step == 100


TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "/work/train.py", line 412, in <module>',
    "    main(args)",
    "KeyError: 'x'",
]


@pytest.mark.parametrize(
    "prefix",
    [
        "Aug 01 10:00:00 ",
        "Aug 01 10:00:00.123456 ",
        "2026-08-01 10:00:00.123 CET\t",
        "2026-08-01 10:00:00.123 UTC ",
        "ERROR\t2026-08-01 10:00:00\t",
        "2026-08-01 10:00:00.123\tn01:0\ttrainer.util:158\tCRITICAL\t",
        "2026-08-01 10:00:00.123 | ERROR    | __main__:main:12 - ",
        "2026-08-01 10:00:00.123 | ERROR    | trainer.loop:<module>:12 - ",
        "rank0[2311][MainThread]: ERROR: composer.cli.launcher: ",
    ],
)
def test_an_exception_is_read_behind_what_a_logger_or_an_export_puts_before_it(prefix: str) -> None:
    account = Account("job.log", NOW_MS)
    account.take(Piece(lines(*(prefix + text for text in TRACEBACK)).encode(), 0, 1), general())
    assert [one.line.signature for one in account.faults][-1:] == ["python-error"]


@pytest.mark.parametrize("prefix", ["<<x>> 17% ~ ", "\x1b[33m@ node q @ \x1b[0m", "Sat 01.08.26 10-00-00 // "])
@pytest.mark.parametrize("after", [[], ["", "the launcher is sorry"]])
def test_a_log_that_ends_with_a_traceback_failed_whatever_stands_before_its_lines(
    prefix: str, after: list[str], tmp_path: Path
) -> None:
    whole = [prefix + text for text in [*(f"step {number}/500 loss 2.1 lr 1e-4" for number in range(9)), *TRACEBACK]]
    found = said(tmp_path, job=lines(*whole, *(prefix + text for text in after)))
    assert (found.fault_class, found.remedy) == (FaultClass.USER_CODE, Remedy.TERMINATE_NO_RETRY)
    assert found.root is not None
    assert found.root.evidence.line_no == 13
    assert found.root.evidence.text.endswith("KeyError: 'x'")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "step 10/500 loss 2.1 lr 1e-4"),
        ("", "epoch 9: train loss 0.31"),
        ("", "Training completed."),
        ("Exception ignored in: <function x>", ""),
    ],
)
def test_a_traceback_that_ended_nothing_is_no_failure_behind_whatever_either(
    before: str, after: str, tmp_path: Path
) -> None:
    told = [f"<<x>> 17% ~ {text}" for text in (before, *TRACEBACK)]
    steps = [f"step {number}/500 loss 2.1 lr 1e-4" for number in range(9)]
    assert said(tmp_path, job=lines(*steps, *told, after)).remedy is Remedy.IGNORE


def test_a_traceback_behind_whatever_is_read_across_the_ends_of_blocks(small_blocks: int, tmp_path: Path) -> None:
    for filled in range(small_blocks - 200, small_blocks, 20):
        found = said(tmp_path, job=lines("-" * filled, *(f"<<x>> 17% ~ {text}" for text in TRACEBACK)))
        assert found.root is not None
        assert found.root.evidence.line_no == 5


def test_a_traceback_cut_by_the_end_of_a_block_keeps_its_frames(small_blocks: int, tmp_path: Path) -> None:
    frames = lines("Traceback (most recent call last):", '  File "/opt/multiprocessing/queues.py", line 245, in _feed')
    error = lines("BrokenPipeError: [Errno 32] Broken pipe")
    for cut in (0, 1, 60):
        padding = lines(*["x" * 63] * ((small_blocks - len(frames)) // 64)) + "y" * cut + "\n"
        assert said(tmp_path, job=padding + frames + error).remedy is Remedy.IGNORE


def test_line_numbers_and_bytes_are_right_in_the_hundredth_block(small_blocks: int, tmp_path: Path) -> None:
    quiet = lines(*["nothing of interest happens in this line of output"] * 32_000)
    assert len(quiet) > 99 * small_blocks
    found = said(tmp_path, job=quiet + lines(OOM))
    assert found.root is not None
    assert found.root.evidence.line_no == 32_001
    assert found.root.evidence.offset == len(quiet)


def test_of_a_flood_of_lines_and_nodes_only_a_bounded_part_is_kept() -> None:
    account = Account("flood", NOW_MS)
    for number in range(0, 6000, 100):
        port = "node{0}:1:2 [0] NCCL WARN NET/IB : Got async event : port error {0}"
        flood = lines(*[port.format(one) for one in range(number, number + 100)]).encode()
        account.take(Piece(flood, 0, 1), general())
    assert len(account.faults) == MOST_LINES
    assert len(account.nodes) <= MOST_NODES
    assert conclude([account]).fault_class is FaultClass.NETWORK_IB


def test_a_file_that_can_t_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"nowhere can't be read: No such file or directory"):
        diagnose([str(tmp_path / "nowhere")], general(), NOW_MS, lambda _name, _read, _size: None)
    with pytest.raises(Unreadable, match="Is a directory"):
        diagnose([str(tmp_path)], general(), NOW_MS, lambda _name, _read, _size: None)


@pytest.mark.usefixtures("small_blocks")
def test_pieces_are_the_whole_file_and_end_where_lines_do(tmp_path: Path) -> None:
    text = b"".join(b"%d\n" % number for number in range(8_000)) + b"no end"
    (tmp_path / "a").write_bytes(text)
    cut = list(pieces(str(tmp_path / "a"), lambda _name, _read, _size: None))
    assert b"".join(piece.data for piece in cut) == text
    assert len(cut) > 2
    assert all(piece.data.endswith(b"\n") for piece in cut[:-1])
    assert [piece.line_no for piece in cut] == [text[: piece.offset].count(b"\n") + 1 for piece in cut]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.lists(st.sampled_from([OOM, XID.format(second=1), step(1), step(9), timeout(1), "\x00\xff"]), max_size=12)
)
def test_any_order_of_lines_has_a_diagnosis(text: list[str], tmp_path: Path) -> None:
    found = said(tmp_path, job=lines(*text), other=b"\xff\xfe\x00" + lines(*reversed(text)).encode())
    assert "\n".join(diagnosis_text(found))
    json.dumps(diagnosis_json(found))


def test_the_command_prints_one_object_with_the_public_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.log").write_text(lines(step(80), OOM))
    done = CliRunner().invoke(app, ["diagnose", "job.log", "--json"])
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert (told["fault_class"], told["scope"], told["action"]) == ("cuda_oom", "job", "terminate_no_retry")
    assert told["root"] == {"file": "job.log", "line_no": 2, "text": OOM}
    assert told["evidence"] == [told["root"] | {"signature": "cuda-oom"}]
    assert told["progress"] == {
        "framework": "Megatron-LM (current)",
        "first_step": 80,
        "last_step": 80,
        "last_checkpoint_step": None,
    }
    plain = CliRunner().invoke(app, ["diagnose", "job.log"])
    assert "do not restart it" in plain.stdout
    assert "job.log:2:" in plain.stdout


def test_the_command_reads_standard_input_and_refuses_what_it_can_t_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["diagnose", "-", "--json"], input=lines("all is well"))
    assert (done.exit_code, json.loads(done.stdout)["action"]) == (0, "ignore")
    refused = CliRunner().invoke(app, ["diagnose", "nowhere.log"])
    assert refused.exit_code == 2
    assert "nowhere.log can't be read" in refused.stderr


def test_no_secret_is_told(tmp_path: Path) -> None:
    failed = "RuntimeError: request to https://me:hunter2@host/x failed password=hunter2"
    found = said(tmp_path, job=lines(step(80), "Traceback (most recent call last):", failed))
    assert "https://me:***@host/x" in found.explanation
    assert "hunter2" not in json.dumps(diagnosis_json(found)) + "".join(diagnosis_text(found))


def test_signatures_are_listed_explained_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    listed = {line.split()[0]: line for line in CliRunner().invoke(app, ["signatures", "list"]).stdout.splitlines()}
    assert "diagnose" not in listed["xid-off-the-bus"]
    assert "of `recovery diagnose` alone" in listed["nothing-lost"]
    assert "concluded from many lines" in listed["slow-steps"]
    assert listed.keys() >= {one.id for one in load_packs((GENERAL,)).signatures} | CONCLUDED.keys()
    explained = CliRunner().invoke(app, ["signatures", "explain", "xid-off-the-bus"]).stdout
    assert "gpu_hardware" in explained
    assert "restart_excluding_node" in explained
    assert CliRunner().invoke(app, ["signatures", "explain", "xid-of"]).exit_code == 2
    for known, words in {"unknown-exception": "only `recovery diagnose`", "skipped-steps": "from many lines"}.items():
        assert words in CliRunner().invoke(app, ["signatures", "explain", known]).stdout
    (tmp_path / "job.log").write_text(lines("quiet", OOM))
    assert "2: cuda-oom" in CliRunner().invoke(app, ["signatures", "test", "job.log"]).stdout


@pytest.mark.usefixtures("few_shipped")
def test_the_examples_of_a_pack_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pack = (
        "[[signature]]\nid = 'fan'\npattern = 'fan \\d failed'\nclass = 'host_hardware'\nscope = 'node'\n"
        "remedy = 'restart'\nrole = 'cause'\ndetail = 'a fan failed'\nexamples = ['fan 3 failed']\nsource = 'us'\n"
    )
    (tmp_path / "ours.toml").write_text(pack)
    assert CliRunner().invoke(app, ["signatures", "test", "ours.toml"]).exit_code == 0
    (tmp_path / "ours.toml").write_text(pack.replace("fan 3", "fan x"))
    refused = CliRunner().invoke(app, ["signatures", "test", "ours.toml"])
    assert refused.exit_code == 1
    assert "does not match its own pattern" in refused.stderr


def test_formats_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.log").write_text(lines(step(80), step(81)))
    done = CliRunner().invoke(app, ["formats", "detect", "job.log", "--json"])
    told = json.loads(done.stdout)
    assert told["framework"] == "Megatron-LM (current)"
    assert told["steps"] == [{"step": 80, "seconds_per_step": 1.0}, {"step": 81, "seconds_per_step": 1.0}]
    assert told["checkpoints"] == []
    assert "Read:         step 80, 1 s a step" in CliRunner().invoke(app, ["formats", "detect", "job.log"]).stdout
    odd = CliRunner().invoke(app, ["formats", "detect", "-"], input=lines("round 1 x", "round 2 x", "round 3 x"))
    assert "[[format]]" in odd.stdout


def test_how_far_reading_came_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from recovery.commands.diagnose import Shown

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        monkeypatch.setattr("sys.stderr", stream)
        shown = Shown(every_s=0)
        shown.read("a.log", 5 << 20, 9 << 20)
        shown.clear()
    assert "reading a.log: 5 MB of 9" in terminal.getvalue()
    assert pipe.getvalue() == ""


def test_what_is_printed_after_a_normal_end_is_told_with_the_end(tmp_path: Path) -> None:
    exited = "srun: error: node4: task 3: Exited with exit code 1"
    found = said(tmp_path, job=lines(step(80), "Training completed.", exited))
    assert found.explanation.startswith("The run had ended well, and what was printed after that is no failure of it: ")
    assert "task 3 on node4: Exited with exit code 1" in found.explanation


def test_a_failure_before_the_run_started_over_is_mentioned(tmp_path: Path) -> None:
    found = said(tmp_path, job=lines(step(80), OOM, step(70), step(99), "OSError: [Errno 28] No space left on device"))
    assert found.fault_class is FaultClass.STORAGE_IO
    assert "Before, the run had failed and started over: the GPU's memory is exhausted (" in found.explanation
    assert "job.log:2)" in found.explanation
    twice = said(tmp_path, job=lines(step(80), OOM, step(70), OOM, step(60), step(99), "Training completed."))
    assert "started over, the last of 2 times: the GPU's memory is exhausted" in twice.explanation


def test_more_lines_than_are_kept_are_told_as_the_least_that_there_are(tmp_path: Path) -> None:
    nan = [step(number).replace("2.4", "nan") for number in range(20)]
    assert "; at least 7 other matching lines" in said(tmp_path, job=lines(step(80), *nan)).explanation
    assert "; 7 other matching lines" in said(tmp_path, job=lines(step(80), *nan[:8])).explanation


def test_where_no_line_names_the_broken_node_it_is_told_how_to_find_it(tmp_path: Path) -> None:
    ecc = "[rank2]: RuntimeError: CUDA error: uncorrectable ECC error encountered"
    found = said(tmp_path, job=lines(step(80), ecc))
    assert (found.remedy, found.nodes) == (Remedy.RESTART_EXCLUDING_NODE, ())
    assert "sacct -j JOB -o nodelist" in "\n".join(diagnosis_text(found))
    assert "sacct" not in "\n".join(diagnosis_text(said(tmp_path, job=lines(step(80), f"node7: {ecc}"))))


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            "slurmstepd: error: *** JOB 99 ON n01 CANCELLED AT 2026-08-01T10:05:00 DUE TO PREEMPTION ***",
            "Slurm gave the nodes to another job and requeues this one by itself, as it says on n01",
        ),
        (
            "The node with node id: ab and address: 10.0.0.2 and node name: 10.0.0.2 has been marked dead because",
            "A node that tasks ran on died: 10.0.0.2 (",
        ),
    ],
)
def test_an_explanation_reads_as_a_sentence_with_the_node_that_it_names(line: str, text: str, tmp_path: Path) -> None:
    assert said(tmp_path, job=lines(line)).explanation.startswith(text)
