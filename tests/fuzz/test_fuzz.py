"""A small run of the fuzzer, and what larger ones found."""

from __future__ import annotations

import json
import time
from pathlib import Path
from random import Random

import pytest

from streams.sources.feed import TAKEN_BYTES, parts_of
from streams.sources.http import Address
from streams.sources.lines import Batch, Cursor, Labels, SourceLine, SourceProblem
from streams.sources.loki import Loki, LokiFields
from streams.sources.windows import NS, Waits
from streams.watch.matching.shapes import Shapes
from streams.watch.source import Source
from streams.watch.throttle import MOST_BURSTS, MOST_OF_ORIGIN, Throttle
from streams.watch.whose.origin import named_nodes
from tests.fuzz.answers import Said
from tests.fuzz.lines import Lines
from tests.fuzz.run import run
from tests.watch.parts import T0, reading, running

SEED = 7


def test_hostile_lines_and_files_raise_and_stall_nothing() -> None:
    outcome = run(50, SEED, print)
    assert outcome.violations == []
    assert outcome.lines == 50
    assert all(outcome.events[way] for way in ("file", "records", "diagnose", "formats detect")), outcome.events


def test_the_same_seed_makes_the_same_lines_and_another_makes_others() -> None:
    one, again, other = (Lines(seed).file(50) for seed in ("1/2", "1/2", "1/3"))
    assert one == again
    assert one != other


def test_a_file_full_of_faults_gives_way_to_other_files_after_a_block(tmp_path: Path) -> None:
    path = tmp_path / "slurm-7.out"
    path.write_bytes((b"[rank3]: RuntimeError: CUDA error: unknown error " + b"x" * 450 + b"\n") * 5_000)
    source = Source(str(path), reading())
    list(source.turn(T0 + 1_000, running(path)))
    assert source.more
    assert source.read_to[1] < 1.1 * (1 << 20)


def test_a_large_batch_is_taken_in_parts_and_its_cursor_comes_with_the_last() -> None:
    text = b"x" * (TAKEN_BYTES // 3)
    lines = tuple(SourceLine(text, 0, Labels(), "s", 0, n, 0, str(n), "s", n) for n in range(8))
    batch = Batch(lines, (Cursor("s", offset=8),), caught_up=True)
    parts = list(parts_of(batch))
    assert [len(part.lines) for part in parts] == [4, 4]
    assert [part.cursors for part in parts] == [(), batch.cursors]
    assert tuple(line for part in parts for line in part.lines) == lines
    empty = Batch((), (Cursor("s", offset=8),))
    assert list(parts_of(empty)) == [empty]


def test_a_name_that_does_not_end_takes_linear_time() -> None:
    began = time.process_time()
    assert named_nodes(b"node" + b"1" * (1 << 20)) == []
    assert time.process_time() - began < 1


def test_nuls_in_lines_do_not_confuse_what_is_proposed_as_a_format() -> None:
    shapes = Shapes()
    for number in range(5):
        shapes.take(b"at\x00 %d\x01of 7" % number)
        shapes.take(b"at 1 \x00of 7")
    proposal = shapes.proposal()
    assert proposal is not None
    assert proposal.steps == (0, 1, 2, 3, 4)


def test_any_number_of_hosts_in_a_node_log_takes_bounded_memory() -> None:
    throttle = Throttle()
    for number in range(MOST_BURSTS + 100):
        assert throttle.keeps_fault(("local", f"host{number}"), "xid", None, None, T0, T0)
    assert len(throttle._bursts) == MOST_BURSTS
    kept = [throttle.keeps_fault(("local", f"host{MOST_BURSTS}"), "xid", None, None, T0, T0) for _ in range(20)]
    assert sum(kept) == MOST_OF_ORIGIN - 1, "the newest ones are remembered"


def test_times_that_fit_no_event_make_an_answer_of_a_store_none() -> None:
    loki = Loki("main", Address("http://127.0.0.1:9"), '{job_id="7"}', LokiFields(), Waits(0, 0, 1))
    for moment in ("9" * 30, "-1", "9" * 5_000):
        answer = {"data": {"result": [{"stream": {}, "values": [[moment, "hello"]]}]}}
        loki._asking = Said(json.dumps(answer).encode(), Random(1))  # type: ignore[assignment]
        with pytest.raises(SourceProblem, match="no answer of Loki"):
            loki.page(0, T0 * NS)
