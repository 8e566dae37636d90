"""Which line is the cause: kinds, time, collectives, peers, nodes, the scheduler's word, and the same failure again."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.facts import Evidence
from schemas.vocabulary import FaultClass, LineRole, Remedy, Scope
from streams.decide.blame import Places, host_of, places_of
from streams.decide.state import Line
from streams.decide.weighing import HANG_SILENCE_MS, Earlier, Scene, root_line, weigh

NODES = ("node1", "node2", "node3")
HERE = Scene(NODES)


def line(
    signature: str,
    fault_class: FaultClass,
    at_ms: int,
    *,
    precedence: int = 50,
    scope: Scope = Scope.UNKNOWN,
    remedy: Remedy = Remedy.RESTART,
    role: LineRole = LineRole.CAUSE,
    node: str | None = None,
    rank: int | None = None,
    peer: str | None = None,
    blamed: int | None = None,
    sequence: int | None = None,
    text: str = "",
) -> Line:
    evidence = Evidence("/logs/a", at_ms, at_ms, at_ms, at_ms, node, rank, text or signature, "sha256:0")
    return Line(signature, fault_class, scope, remedy, role, precedence, signature, peer, blamed, sequence, evidence)


def timeout(at_ms: int, sequence: int, rank: int, text: str = "") -> Line:
    return line(
        "nccl-watchdog-timeout",
        FaultClass.NCCL_TIMEOUT,
        at_ms,
        precedence=30,
        role=LineRole.CONSEQUENCE,
        rank=rank,
        sequence=sequence,
        text=text,
    )


def broken(signature: str, fault_class: FaultClass, at_ms: int, precedence: int, **more: Any) -> Line:
    """A line that says that its node is to be left."""
    remedy = Remedy.RESTART_EXCLUDING_NODE
    return line(signature, fault_class, at_ms, precedence=precedence, scope=Scope.NODE, remedy=remedy, **more)


def xid(at_ms: int, node: str | None = "node2") -> Line:
    return broken("xid-off-the-bus", FaultClass.GPU_HARDWARE, at_ms, 98, node=node)


def closed(at_ms: int, node: str, peer: str) -> Line:
    role = LineRole.CONSEQUENCE
    return line("nccl-remote-error", FaultClass.NETWORK_IB, at_ms, precedence=28, role=role, node=node, peer=peer)


def imports(at_ms: int, node: str) -> Line:
    stop = Remedy.TERMINATE_NO_RETRY
    return line("python-import", FaultClass.USER_CODE, at_ms, precedence=69, scope=Scope.JOB, remedy=stop, node=node)


def ended(at_ms: int, fault_class: FaultClass = FaultClass.SCHEDULER_TIMEOUT) -> Line:
    return line("slurm-time-limit", fault_class, at_ms, precedence=38, scope=Scope.JOB)


def test_hardware_explains_what_was_printed_before_it() -> None:
    cause = weigh([timeout(10, 5, 0), closed(20, "node1", "node2"), xid(30)], HERE)
    assert (cause.fault_class, cause.nodes) == (FaultClass.GPU_HARDWARE, ("node2",))


def test_of_causes_of_one_weight_the_earlier_is_the_root() -> None:
    first, later = line("a", FaultClass.STORAGE_IO, 10, precedence=62), line("b", FaultClass.DATA, 20, precedence=78)
    assert root_line([later, first]) is first


def test_a_cause_that_comes_after_the_first_timeout_is_none() -> None:
    oom = line("cuda-oom", FaultClass.CUDA_OOM, 20, precedence=66, remedy=Remedy.TERMINATE_NO_RETRY)
    assert weigh([timeout(10, 5, 0), oom], HERE).remedy is Remedy.RESTART
    before = line("cuda-oom", FaultClass.CUDA_OOM, 5, precedence=66, remedy=Remedy.TERMINATE_NO_RETRY)
    assert weigh([timeout(10, 5, 0), before], HERE).remedy is Remedy.TERMINATE_NO_RETRY


def test_of_collectives_the_lowest_number_is_the_root_within_one_group() -> None:
    late = timeout(30, 7, 3)
    assert root_line([timeout(10, 9, 0), timeout(20, 9, 1), late]) is late
    first = timeout(10, 9, 0, "[PG 0 Rank 0] Watchdog")
    assert root_line([first, timeout(20, 2, 1, "[PG 5 Rank 1] Watchdog")]) is first


def test_a_node_that_two_others_blame_is_excluded_and_one_voice_is_not_enough() -> None:
    two = [closed(10, "node1", "node2<4711>"), closed(20, "node3", "node2<4712>")]
    cause = weigh(two, HERE)
    assert (cause.remedy, cause.nodes) == (Remedy.RESTART_EXCLUDING_NODE, ("node2",))
    assert weigh(two[:1], HERE).remedy is Remedy.RESTART
    assert weigh([*two, closed(30, "node2", "node1<1>")], HERE).nodes == ()


def missed(at_ms: int, node: str, rank: int, blamed: int) -> Line:
    return line("barrier", FaultClass.NCCL_TIMEOUT, at_ms, precedence=34, node=node, rank=rank, blamed=blamed)


def test_peers_by_address_and_ranks_mean_the_nodes_that_other_lines_give_them() -> None:
    places = places_of(
        [
            "node2:11:12 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.12<0>",
            "node3:11:99 [1] NCCL INFO ncclCommInitRank comm 0x55 rank 9 nranks 16 cudaDev 1 - Init COMPLETE",
            "node1:11:99 [1] NCCL INFO ncclCommInitRank comm 0x56 rank 9 nranks 12 cudaDev 1 - Init COMPLETE",
        ],
        [timeout(5, 1, 4)],
    )
    by_address = [closed(10, "node1", "10.0.0.12<4711>"), closed(20, "node3", "10.0.0.12<4712>")]
    assert weigh(by_address, Scene(NODES, places=places)).nodes == ("node2",)
    assert weigh(by_address, HERE).nodes == ()
    by_rank = [missed(10, "node1", 0, 9), missed(20, "node2", 4, 9)]
    assert weigh(by_rank, Scene(NODES, places=places)).nodes == ("node3",)
    assert weigh([*by_rank, missed(30, "node3", 9, 9)], Scene(NODES, places=places)).nodes == ("node3",)
    assert weigh(by_rank[:1], Scene(NODES, places=places)).nodes == ()


@pytest.mark.parametrize(
    ("text", "address", "rank"),
    [
        ("node1:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:10.0.0.1<0>", "10.0.0.1", None),
        ("mmfs: [E] The node 10.0.0.1 (node1) is being expelled", "10.0.0.1", None),
        ("10.0.0.1\tnode1", "10.0.0.1", None),
        ("Rank 7, node node1, device 7, iteration 3: Unexpected result nan", None, 7),
        (
            "Starting with JobEnvironment(job_id=6, hostname=node1, local_rank=0(2), node=0(1), global_rank=7(16))",
            None,
            7,
        ),
        ("listening on 10.0.0.1 (port 80)", None, None),
    ],
)
def test_lines_that_say_which_node_an_address_or_a_rank_means(text: str, address: str | None, rank: int | None) -> None:
    known = Places({address: "node1"} if address else {}, {} if rank is None else {rank: "node1"})
    assert places_of([text]) == known


def test_a_line_that_carries_only_a_rank_is_of_the_node_that_other_lines_give_that_rank() -> None:
    gpu = broken("ecc", FaultClass.GPU_MEMORY_ECC, 10, 95, rank=9)
    assert weigh([gpu], Scene(NODES, places=Places(ranks={9: "node3"}))).nodes == ("node3",)
    assert weigh([gpu], HERE).nodes == ()


def reports(at_ms: int, node: str) -> Line:
    return line("nccl", FaultClass.NCCL_TIMEOUT, at_ms, precedence=30, role=LineRole.CONSEQUENCE, node=node)


def test_a_node_that_is_silent_where_all_others_time_out_is_named_and_excluded_only_if_somebody_blames_it() -> None:
    silence = [reports(10, "node1"), reports(11, "node3")]
    alone = weigh(silence, HERE)
    assert (alone.remedy, alone.nodes) == (Remedy.RESTART, ())
    assert "node2 is silent" in alone.explanation
    cause = weigh([*silence, closed(12, "node1", "node2<4711>")], HERE)
    assert (cause.remedy, cause.nodes) == (Remedy.RESTART_EXCLUDING_NODE, ("node2",))
    assert weigh([*silence, closed(12, "node1", "node3<4711>")], HERE).nodes == ()
    assert weigh(silence, Scene(("node1", "node3", "node4", "node5"))).explanation.count("silent") == 0


def test_a_broken_environment_of_one_node_is_the_node_s() -> None:
    cause = weigh([imports(10, "node2"), imports(11, "node2")], HERE)
    assert (cause.fault_class, cause.remedy) == (FaultClass.SOFTWARE_ENV, Remedy.RESTART_EXCLUDING_NODE)
    assert weigh([imports(10, "node2"), imports(11, "node1")], HERE).remedy is Remedy.TERMINATE_NO_RETRY
    assert weigh([imports(10, "node1")], Scene(("node1",))).remedy is Remedy.TERMINATE_NO_RETRY


def test_long_silence_before_the_time_limit_is_a_hang() -> None:
    cause = weigh([ended(10)], Scene(NODES, silent_ms=HANG_SILENCE_MS))
    assert (cause.fault_class, cause.remedy) == (FaultClass.HANG_NO_LOG, Remedy.RESTART)
    assert weigh([ended(10)], Scene(NODES, silent_ms=1000)).fault_class is FaultClass.SCHEDULER_TIMEOUT


def test_the_scheduler_s_end_does_not_explain_a_timeout_before_it() -> None:
    assert weigh([timeout(10, 5, 0), ended(20)], HERE).fault_class is FaultClass.NCCL_TIMEOUT


def test_the_same_failure_at_the_same_step_again_is_not_tried_a_third_time() -> None:
    nan = line("nan-found", FaultClass.NUMERIC_NAN, 10, precedence=74)
    assert weigh([nan], Scene(NODES, step=500, earlier=(Earlier("nan-found", 500),))).remedy is (
        Remedy.TERMINATE_NO_RETRY
    )
    assert weigh([nan], Scene(NODES, step=501, earlier=(Earlier("nan-found", 500),))).remedy is Remedy.RESTART
    assert weigh([timeout(10, 5, 0)], Scene(NODES, 5, earlier=(Earlier("nccl-watchdog-timeout", 5),))).remedy is (
        Remedy.RESTART
    )


def test_what_is_printed_after_a_normal_end_means_nothing_unless_hardware_speaks() -> None:
    assert weigh([timeout(10, 5, 0)], Scene(NODES, finished=True)).remedy is Remedy.IGNORE
    assert weigh([xid(10)], Scene(NODES, finished=True)).remedy is Remedy.RESTART_EXCLUDING_NODE


def test_a_job_that_somebody_has_requeued_is_left_to_them() -> None:
    handed = line("requeued", FaultClass.PREEMPTION, 20, precedence=18, remedy=Remedy.WAIT, role=LineRole.CONSEQUENCE)
    assert weigh([ended(10, FaultClass.PREEMPTION), handed], HERE).remedy is Remedy.WAIT
    assert weigh([xid(10), handed], HERE).remedy is Remedy.RESTART_EXCLUDING_NODE


def blind_gpu(at_ms: int, node: str) -> Line:
    return broken("cuda-unknown", FaultClass.GPU_HARDWARE, at_ms, 70, node=node)


def test_what_every_node_says_alike_excludes_none_of_them() -> None:
    everywhere = [blind_gpu(10 + number, node) for number, node in enumerate(NODES)]
    assert weigh(everywhere[:2], HERE).nodes == ("node1",)
    cause = weigh(everywhere, HERE)
    assert (cause.scope, cause.remedy, cause.nodes) == (Scope.CLUSTER, Remedy.RESTART, ())
    assert weigh(everywhere[:1], Scene(("node1",))).nodes == ("node1",)  # of a job with one node it is that node's


def test_hardware_that_is_broken_on_every_node_is_excluded_where_it_was_first_met() -> None:
    cause = weigh([xid(10 + number, node) for number, node in enumerate(NODES)], HERE)
    assert (cause.remedy, cause.nodes) == (Remedy.RESTART_EXCLUDING_NODE, ("node1",))


def test_a_node_is_only_named_if_it_takes_part() -> None:
    assert weigh([xid(10, "node9")], HERE).nodes == ()
    assert host_of("node2.cluster.example:29500", NODES) == "node2"
    assert host_of("10.0.0.7<56821>", NODES) is None
    assert host_of(None, NODES) is None
