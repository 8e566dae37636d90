"""Devices and ranks that do the same work: one that is much slower than another."""

from __future__ import annotations

from streams.diagnose.peers import Peers, Slower, slowest


def told(*lines: str) -> Peers:
    peers = Peers()
    for line in lines:
        peers.take(line.encode())
    peers.compare("\n".join(lines).encode())
    return peers


def named(peers: Peers) -> str | None:
    return None if peers.slower is None else peers.slower.name


def test_a_gpu_that_needs_much_longer_for_an_item_is_named() -> None:
    assert named(told("[gpu0] 12/400 items done, 22.0 s/item", "[gpu1] 12/400 items done, 66.0 s/item")) == "gpu1"
    assert named(told("[gpu0] 12/400 items done, 22.0 s/item", "[gpu1] 12/400 items done, 40.0 s/item")) is None


def test_a_gpu_that_needs_much_longer_for_a_part_of_a_step_is_named() -> None:
    assert named(told("node1 cuda:0 forward 0.415 s", "node1 cuda:1 forward 2873 ms")) == "node1 cuda:1"
    assert named(told("node1 cuda:0 forward 0.415 s", "node1 cuda:1 backward 2.873 s")) is None


def test_of_speeds_the_smallest_is_the_slowest() -> None:
    lines = [
        f"GEMM [I] (ADAPTER#{n})  Ending with {gflops} GFlops" for n, gflops in enumerate(("6698.44", "19239", "19148"))
    ]
    assert named(told(*lines)) == "ADAPTER#0"


def test_speeds_are_compared_whatever_their_unit() -> None:
    assert named(told("[gpu0] 61.2 TFLOPS", "[gpu1] 61100 GFLOPS")) is None
    assert named(told("[gpu0] 61.2 TFLOPS", "[gpu1] 30100 GFLOPS")) == "gpu1"


def test_a_report_of_the_slowest_and_the_fastest_rank_counts_where_they_are_far_apart() -> None:
    report = " 0: INFO: MnRtt/Rnk: 3461.15ms/8 | MxRtt/Rnk: {most}ms/28 | MnPwr/Rnk: 171204W/28 | MxPwr/Rnk: 683801W/18"
    assert told(report.format(most="3520.00")).slower is None
    found = told(report.format(most="9877.42")).slower
    assert found is not None
    assert (found.name, round(found.factor, 2)) == ("rank 28", 2.85)


def test_only_the_last_report_counts() -> None:
    slow = ["Train MinThroughput/Rank: 61.20TF/11", "Train MaxThroughput/Rank: 129.54TF/2"]
    well = ["Train MinThroughput/Rank: 127.10TF/4", "Train MaxThroughput/Rank: 129.54TF/2"]
    assert named(told(*well, *slow)) == "rank 11"
    assert named(told(*slow, *well)) is None


def test_a_peer_without_any_speed_proves_nothing() -> None:
    assert told("Train MinThroughput/Rank: 0TF/11", "Train MaxThroughput/Rank: 129.5TF/2").slower is None
    assert told("[gpu0] 0/400 items done, 0.0 s/item", "[gpu1] 12/400 items done, 66.0 s/item").slower is None


def test_files_are_compared_with_each_other() -> None:
    one = told("[gpu0] 1/4 items done, 66.0 s/item")
    other = told("[gpu1] 1/4 items done, 6.0 s/item")
    assert slowest([one, Peers(), other]) == Slower("gpu0", 11.0)
    assert slowest([one]) is None
    assert slowest([Peers()]) is None


def test_what_is_no_speed_of_the_same_work_is_not_compared() -> None:
    assert told("GPU 0: H100, peak bf16 989.4 TFLOPS", "GPU 1: A100, peak bf16 312.0 TFLOPS").slower is None
    assert told("cuda:0 encoder: 181.2 GFLOPs, 86.0M params", "cuda:1 decoder: 45.3 GFLOPs, 9M params").slower is None
    assert told("gpu0 did 612.31 TFLOP", "gpu1 did 12.31 TFLOP").slower is None
    assert told("gpu0 fp16 gemm 612.3 TFLOPS", "gpu1 fp64 gemm 61.2 TFLOPS").slower is None
