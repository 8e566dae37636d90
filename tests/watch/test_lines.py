"""What a line says of itself: when, from which node and rank; and what must not be kept of it."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.watch.masking import MOST_CHARACTERS, digest_of, kept_text, masked
from streams.watch.whose.neighbours import Carried
from streams.watch.whose.origin import Origin, named_nodes, origin_of
from streams.watch.whose.stamps import names_zone, offset_ms, repeat_ms, stamp_ms

NEAR = int(datetime(2026, 8, 1, 12, 0, tzinfo=UTC).timestamp() * 1000)
NODES = ("node2", "node03", "gpu-4.cluster.example", "10.0.0.4", "worker-1")


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("line", "moment"),
    [
        (" [2026-08-01 10:00:31.512345] iteration     1001/  500000 |", "2026-08-01T10:00:31.512+00:00"),
        ("2026-08-01T10:00:31Z started", "2026-08-01T10:00:31+00:00"),
        ("2026-08-01T12:00:31.5+02:00 started", "2026-08-01T10:00:31.5+00:00"),
        ("2026-08-01 07:00:31,250 -0300 started", "2026-08-01T10:00:31.25+00:00"),
        ("[2023-07-25 21:03:21,037] [INFO] [timer.py:215:stop]", "2023-07-25T21:03:21.037+00:00"),
        ("[rank0]:[titan] 2026-05-18 16:06:20,101 - root - INFO - step:  1", "2026-05-18T16:06:20.101+00:00"),
        ("2020-07-17 07:11:02 | INFO | train_inner | epoch 001", "2020-07-17T07:11:02+00:00"),
        ("submitit WARNING (2022-07-12 04:18:45,706) - Bypassing", "2022-07-12T04:18:45.706+00:00"),
        ("2026/07/12 04:18:45 worker up", "2026-07-12T04:18:45+00:00"),
        ("Jul 29 18:13:04 node2 kernel: NVRM: Xid", "2026-07-29T18:13:04+00:00"),
        ("Dec 29 18:13:04 node2 kernel: NVRM: Xid", "2025-12-29T18:13:04+00:00"),
        ("[rank3]:[E0731 13:21:12.512781555 ProcessGroupNCCL.cpp:616]", "2026-07-31T13:21:12.512+00:00"),
        ("[rank3]:[E731 13:21:12.512781555 ProcessGroupNCCL.cpp:616]", "2026-07-31T13:21:12.512+00:00"),
        ("[rank3]:[W1122 13:21:12.512781555 ProcessGroupNCCL.cpp:616]", "2025-11-22T13:21:12.512+00:00"),
        ("2023-10-24,08:11:02 | INFO | Train Epoch: 0", "2023-10-24T08:11:02+00:00"),
        ("  time      : 2026-06-08_19:04:45", "2026-06-08T19:04:45+00:00"),
        ("12/09 06:48:01 - mmengine - INFO - Epoch(train)", "2025-12-09T06:48:01+00:00"),
        (
            "slurmstepd: error: *** STEP 32233190.0 ON node34 CANCELLED AT 2026-07-03T02:59:56 ***",
            "2026-07-03T02:59:56+00:00",
        ),
    ],
)
def test_the_usual_timestamps_are_read(line: str, moment: str) -> None:
    assert stamp_ms(line.encode(), zone=UTC, near_ms=NEAR) == at(moment)


@pytest.mark.parametrize(
    "line",
    [
        "epoch 3 step 4120/12000 loss 1.8123 lr 1.2e-04 0.41 s/step",
        "NCCL version 2.20.5+cuda12.4",
        "the job with a very long name is running since the evening of 2026-07-29T20:28:38",
        "[2026-13-41 10:00:00] no date at all",
        "",
    ],
)
def test_a_line_without_a_time_of_its_own_has_none(line: str) -> None:
    assert stamp_ms(line.encode(), zone=UTC, near_ms=NEAR) is None


def test_a_stamp_without_a_zone_is_local_time_of_the_configured_zone() -> None:
    line = b"[2026-08-01 12:00:31] x"
    assert stamp_ms(line, zone=ZoneInfo("Europe/Berlin"), near_ms=NEAR) == at("2026-08-01T10:00:31+00:00")
    assert stamp_ms(line + b"", zone=UTC, near_ms=NEAR) == at("2026-08-01T12:00:31+00:00")


def test_a_stamp_that_names_its_zone_tells_how_far_that_is_from_utc() -> None:
    stamps = ("2026-08-01T10:00:31Z x", "2026-08-01 12:00:31.5 +02:00 x", "2026-08-01T04:30:31-0530 x", "10:00:31 x")
    assert [offset_ms(line.encode()) for line in stamps] == [0, 7_200_000, -19_800_000, None]


@pytest.mark.parametrize(
    ("line", "named"),
    [("2026-08-01T10:00:31Z x", True), ("2026-08-01 12:00:31.5 +02:00 x", True), ("[2026-08-01 10:00:31] x", False)],
)
def test_a_stamp_may_name_its_zone(line: str, named: bool) -> None:
    assert names_zone(line.encode()) is named


def test_clocks_show_an_hour_twice_when_summer_time_ends() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert repeat_ms(at("2026-10-25T00:30:00+00:00"), berlin) == 3_600_000
    assert repeat_ms(at("2026-10-25T01:30:00+00:00"), berlin) == 0, "it is the second one"
    assert repeat_ms(at("2026-10-25T00:30:00+00:00"), UTC) == 0
    assert repeat_ms(at("2026-08-01T00:30:00+00:00"), berlin) == 0


@pytest.mark.parametrize("year", [b"0001-01-01", b"9999-12-31"])
@pytest.mark.parametrize("zone", [None, UTC, ZoneInfo("Asia/Tokyo"), ZoneInfo("America/New_York")])
def test_the_first_and_the_last_year_are_no_stumbling_block(year: bytes, zone: tzinfo | None) -> None:
    moment_ms = stamp_ms(b"[" + year + b" 23:59:59] x", zone=UTC, near_ms=NEAR)
    assert moment_ms is not None
    assert repeat_ms(moment_ms, zone) == 0


@given(line=st.binary(max_size=200))
def test_any_bytes_have_a_time_or_none(line: bytes) -> None:
    stamp_ms(line, zone=UTC, near_ms=NEAR)
    stamp_ms(line, zone=None, near_ms=NEAR)
    origin_of(line, NODES)


@pytest.mark.parametrize(
    ("line", "node", "rank"),
    [
        ("node2: ModuleNotFoundError: No module named 'x'", "node2", None),
        ("[node2] out of memory", "node2", None),
        ("node2:4311:4400 [1] NCCL WARN Cuda failure 'unknown error'", "node2", None),
        ("[2026-08-01 10:00:00.123] node2 rank 3: kernel: NVRM: Xid", "node2", 3),
        ("[1,0]<stdout>:node03:1850301:1881341 [0] transport.cc:154 NCCL WARN", "node03", 0),
        ("Aug  1 10:00:00 node03 kernel: NVRM: Xid", "node03", None),
        ("gpu-4: NVRM", "gpu-4.cluster.example", None),
        ("gpu-4: [rank3]: RuntimeError", "gpu-4.cluster.example", 3),
        ("worker-1: Traceback", "worker-1", None),
        ("worker 1: Traceback", None, None),
        ("worker-2: Traceback", None, None),
        ("10.0.0.4: Traceback", "10.0.0.4", None),
        ("3: Traceback", None, 3),
        ("[rank5]:[E ProcessGroupNCCL.cpp:523] [Rank 5] Watchdog caught", None, 5),
        ("[default7]: iteration   42780/ 115311", None, None),
        ("3: [default5]: Traceback", None, None),
        ("3: [rank27]: Traceback", None, 27),
        ("[default5]:[rank29]:[E ProcessGroupNCCL.cpp:523] [Rank 29] Watchdog caught", None, 29),
        ("[dp rank 2, local_rank 3] failed", None, None),
        ("[Local Rank 4] [Rank 12] failed", None, 12),
        ("2026-08-01T10:01:00.123456+00:00 node2 kernel: mlx5_core", "node2", None),
        ("(RayTrainWorker pid=102, ip=10.0.0.3) RuntimeError", None, None),
        ("(RayTrainWorker pid=102, ip=10.0.0.4) RuntimeError", "10.0.0.4", None),
        ("srun: error: node2: task 12: Exited with exit code 1", None, None),
        ("node51:377:790 [3] NCCL WARN NET/IB : Got completion from peer node2<37948>", None, None),
        ("HW Exception by GPU node-9 (Agent handle: 0x5571d6f2a0) reason :GPU Hang", None, None),
        ("connecting to node2: refused", None, None),
        ('{"ts": 1, "level": "ERROR", "host": "node2", "rank": 11, "msg": "x"}', "node2", 11),
        ('{"hostname":"gpu-4.cluster.example","global_rank":"3"}', "gpu-4.cluster.example", 3),
        ('{"host": "db01", "msg": "rank 3 waits"}', None, None),
        ("AssertionError: Device: 3, node: node2", None, None),
        ("iteration 100/ 2000 |", None, None),
    ],
)
def test_a_node_is_believed_only_as_the_origin_and_only_if_allocated(
    line: str, node: str | None, rank: int | None
) -> None:
    assert origin_of(line.encode(), NODES) == Origin(node, rank)


@pytest.mark.parametrize(
    ("line", "nodes"),
    [
        ("pdsh@login01: worker-2: ssh exited with exit code 1", ["worker-2"]),
        ("pdsh@login01: 10.0.0.5: ssh exited with exit code 255", ["10.0.0.5"]),
        ("ssh: connect to host gpu-08 port 22: Connection refused", ["gpu-08"]),
        ("ssh: connect to host github.com port 22: Connection timed out", []),
        ("srun: error: gpu-08: task 3: Exited with exit code 1", ["gpu-08"]),
        ("  host      : gpu-17.cluster.local", ["gpu-17.cluster.local"]),
        ("gpu-08: kernel: NVRM: Xid (PCI:0000:3b:00): 74, pid=881", ["gpu-08"]),
        ("gpu0 kernel: matmul 3 ms", []),
        ("worker-2: Traceback (most recent call last):", []),
        ("10.0.0.5: Traceback (most recent call last):", []),
        ("worker 3 of stage 2 is late", []),
    ],
)
def test_a_node_is_told_by_the_place_of_its_name_where_nobody_knows_the_allocation(line: str, nodes: list[str]) -> None:
    assert named_nodes(line.encode()) == nodes


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("git clone https://me:hunter2@host/x", "git clone https://me:***@host/x"),
        ("export HF_TOKEN=hf_abcdefghijklmnopqrstuvwx", "export HF_TOKEN=***"),
        ("WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567 train", "WANDB_API_KEY=*** train"),
        ("Authorization: Bearer abc.def-ghi_jkl", "Authorization: Bearer ***"),
        ('{"password": "hunter2", "user": "me"}', '{"password": "***", "user": "me"}'),
        ("AKIAABCDEFGHIJKLMNOP used", "*** used"),
        ("GET https://s3/x?X-Amz-Signature=deadbeef00&y=1", "GET https://s3/x?X-Amz-Signature=***&y=1"),
        ("pushing to postgresql://app:s3cr3t@db/x failed", "pushing to postgresql://app:***@db/x failed"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "***"),
    ],
)
def test_secrets_are_masked(line: str, kept: str) -> None:
    assert masked(line) == kept


@pytest.mark.parametrize(
    "line",
    [
        "kernel: NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.",
        "tokens: 155652554752 | key: value",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.20 GiB.",
        "NCCL WARN Connect to 10.0.0.7<56821> failed : Connection refused",
    ],
)
def test_what_is_no_secret_stays(line: str) -> None:
    assert masked(line) == line


def test_a_long_line_is_cut_around_its_match() -> None:
    line = b"x" * 5000 + b"HERE password=hunter2 " + b"y" * 5000
    text = kept_text(line, 5000)
    assert len(text) <= MOST_CHARACTERS
    assert "HERE password=***" in text
    assert kept_text(b"short", 0) == "short"


@given(line=st.binary(max_size=6000), at_byte=st.integers(0, 6000))
def test_any_bytes_can_be_kept(line: bytes, at_byte: int) -> None:
    text = kept_text(line, min(at_byte, len(line)))
    assert len(text) <= MOST_CHARACTERS
    assert digest_of(text).startswith("sha256:")
    text.encode()


def test_the_carried_stamp_is_the_last_one_of_all_pieces_whenever_it_is_asked_for() -> None:
    asked: list[bytes] = []

    def stamp(line: bytes) -> int | None:
        asked.append(line)
        return int(line) if line.isdigit() else None

    carried = Carried(1)
    assert carried.ms == 1
    later = carried.after(b"2\nno\n", stamp).after(b"no\n", stamp)
    assert asked == []
    assert (later.ms, later.ms) == (2, 2)
    assert later.after(b"no\n", stamp).ms == 2
    assert Carried(None).after(b"no\n", stamp).ms is None
    assert len(asked) == 5, "no line is looked at twice"
