"""What every log source keeps to, held over each of them: files, Kafka, VictoriaLogs (a real one) and Loki (a fake)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from streams.sources.lines import Cursor, Labels, LogSource, SourceLine, SourceState, Wanted
from tests.sources.benches import Bench, FileBench, KafkaBench, LokiBench, VictoriaLogsBench, Written
from tests.sources.victorialogs_server import binary

pytestmark = pytest.mark.stack  # real processes, not pure

DEADLINE_S = 40.0
LABELS = Labels(job_id="7", filename="/logs/slurm-7.out", attempt=1, node="node1", rank=3)
PLAIN = Labels(job_id="7", filename="/logs/slurm-7.out")


STORES = ["loki", "victorialogs", pytest.param("kafka", marks=pytest.mark.stack)]


@pytest.fixture(params=["file", *STORES])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """Each source."""
    yield from benches(request, tmp_path)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """Each source that is queried; watch looks at files itself."""
    yield from benches(request, tmp_path)


def benches(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made: Bench
    if request.param == "file":
        made = FileBench(tmp_path)
    elif request.param == "loki":
        made = LokiBench()
    elif request.param == "kafka":
        made = KafkaBench(request.getfixturevalue("stack"), request.getfixturevalue("session_stack"))
    else:
        program = binary()
        if program is None:
            pytest.skip("VictoriaLogs is built from its Go module, and there is no Go here")
        made = VictoriaLogsBench(program, tmp_path)
    with closing(made):
        yield made


@dataclass
class Taken:
    """What a follower gave until it was left."""

    lines: list[SourceLine] = field(default_factory=list)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    states: list[SourceState] = field(default_factory=list)
    longest: int = 0

    @property
    def texts(self) -> list[str]:
        """The lines, each once, in the order in which they first came."""
        return list({line.identity: line.text.decode("utf-8", "replace") for line in self.lines}.values())


def follow(
    source: LogSource, since_ms: int, enough: Callable[[Taken], bool], cursors: dict[str, Cursor] | None = None
) -> Taken:
    """Read until there is enough."""
    taken, stop, deadline = Taken(cursors=dict(cursors or {})), threading.Event(), time.monotonic() + DEADLINE_S
    for batch in source.follow(taken.cursors.copy(), since_ms, stop):
        taken.lines += batch.lines
        taken.cursors |= {cursor.source: cursor for cursor in batch.cursors}
        taken.states.append(batch.state)
        taken.longest = max(taken.longest, len(batch.lines))
        if enough(taken):
            stop.set()
        assert time.monotonic() < deadline, f"{len(taken.texts)} lines, {set(taken.states)}, {batch.problem}"
    source.close()
    return taken


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def some(count: int, labels: Labels = PLAIN, *, since_ms: int, step_ms: int = 1) -> list[Written]:
    return [Written(f"iteration {n} of {count}", since_ms + n * step_ms, labels) for n in range(count)]


def test_lines_come_in_order_with_their_labels_and_times(bench: Bench) -> None:
    since_ms = now_ms() - 10_000
    written = some(5, LABELS, since_ms=since_ms)
    bench.write(written)
    lines = follow(bench.source(), since_ms, lambda taken: len(taken.texts) == 5).lines[:5]
    assert [line.text.decode() for line in lines] == [one.text for one in written]
    places = [(line.epoch, line.offset, line.index) for line in lines]
    assert places == sorted(set(places)), "places rise, and no two lines have the same"
    if bench.has_labels:
        assert {line.labels for line in lines} == {LABELS}
    if bench.has_times:
        assert [line.at_ms for line in lines] == [one.at_ms for one in written]


def test_lines_of_one_moment_keep_their_order_and_are_told_apart(bench: Bench) -> None:
    since_ms = now_ms() - 10_000
    written = some(50, since_ms=since_ms, step_ms=0) + [Written("the same again", since_ms, PLAIN)] * 3
    bench.write(written)
    lines = follow(bench.source(), since_ms, lambda taken: len(taken.lines) >= 53).lines
    assert [line.text.decode() for line in lines] == [one.text for one in written]
    assert len({line.identity for line in lines}) == 53


def test_a_backlog_bigger_than_a_batch_comes_whole_in_bounded_batches(bench: Bench) -> None:
    since_ms = now_ms() - 60_000
    written = some(6_000, since_ms=since_ms, step_ms=5)
    bench.write(written)
    taken = follow(bench.source(), since_ms, lambda taken: len(taken.lines) >= 6_000)
    assert taken.texts == [one.text for one in written]
    if bench.has_labels:  # a file's batches are bounded in bytes
        assert taken.longest <= 5_000


def test_whoever_is_killed_goes_on_where_it_was_and_names_each_line_the_same(bench: Bench) -> None:
    since_ms = now_ms() - 60_000
    bench.write(some(6_000, since_ms=since_ms, step_ms=5))
    whole = follow(bench.source(), since_ms, lambda taken: len(taken.lines) >= 6_000)
    part = follow(bench.source(), since_ms, lambda taken: len(taken.lines) >= 1_500 and bool(taken.cursors))
    rest = follow(
        bench.source(),
        since_ms,
        lambda taken: len({line.identity for line in (*part.lines, *taken.lines)}) >= 6_000,
        part.cursors,
    )
    again = {line.identity: (line.text, line.source, line.epoch, line.offset) for line in (*part.lines, *rest.lines)}
    assert again == {line.identity: (line.text, line.source, line.epoch, line.offset) for line in whole.lines}
    assert len(rest.lines) <= 6_000, "what was given and is settled is not read again"


def test_what_is_written_while_it_follows_comes_soon_and_only_once_told_anew(bench: Bench) -> None:
    since_ms = now_ms()
    bench.write([Written("first", now_ms(), PLAIN)])
    began = time.monotonic()
    seen: list[float] = []

    def enough(taken: Taken) -> bool:
        if len(taken.texts) == 1 and not seen:
            seen.append(time.monotonic() - began)
            bench.write([Written("second", now_ms(), PLAIN)])
        return len(taken.texts) == 2

    taken = follow(bench.source(), since_ms, enough)
    assert taken.texts == ["first", "second"]
    assert time.monotonic() - began < 15


def test_a_source_that_goes_away_is_said_to_be_down_and_comes_back_with_all_lines(bench: Bench) -> None:
    since_ms = now_ms() - 10_000
    bench.write([Written("before", since_ms, PLAIN)])
    done: list[str] = []

    def enough(taken: Taken) -> bool:
        if taken.texts == ["before"] and not done:
            bench.stop()
            done.append("stopped")
        if taken.states[-1] is SourceState.DOWN and done == ["stopped"]:
            bench.start()
            done.append("started")
            bench.write([Written("after", now_ms(), PLAIN)])
        return len(taken.texts) == 2

    taken = follow(bench.source(), since_ms, enough)
    assert SourceState.DOWN in taken.states
    assert taken.texts == ["before", "after"]


HOSTILE = [
    "NUL \x00 and bell \x07",
    "colours \x1b[31mred\x1b[0m",
    'quotes " \\ { } [ ] , : {"message": "nested"}',
    "unicode \u2028 line separators \u0085 and \U0001f525",
    "10% | 1/10 [00:01<00:09]\r20% | 2/10",
    " leading and trailing ",
    "'; drop table jobs; --",
]


def test_hostile_lines_come_as_they_were_written(bench: Bench) -> None:
    since_ms = now_ms() - 10_000
    texts = [*HOSTILE, "x" * (bench.longest - 1_000)]
    if not bench.has_labels:
        texts = [text for text in texts if "\r" not in text and "\u2028" not in text]
    bench.write([Written(text, since_ms + n, PLAIN) for n, text in enumerate(texts)])
    taken = follow(bench.source(), since_ms, lambda taken: len(taken.texts) == len(texts))
    assert taken.texts == texts


def test_a_query_gives_the_newest_lines_of_a_job_or_of_its_files(store: Bench) -> None:
    start = now_ms() - 10_000
    other = Labels(job_id="8", filename="/logs/slurm-8.out")
    quoted = Labels(job_id='9"', filename="/logs/a b (1).out")
    store.write(some(20, since_ms=start) + some(20, other, since_ms=start + 100) + some(2, quoted, since_ms=start))
    with closing(store.source()) as source:
        by_job = source.query(Wanted(("7", "70"), (), start, start + 60_000), 3)
        by_file = source.query(Wanted((), ("/logs/slurm-8.out",), start, start + 60_000), 1)
        odd = source.query(Wanted(('9"',), ("/logs/a b (1).out",), start, start + 60_000), 5)
        sample = source.sample(start, start + 60_000, 1_000)
        nothing = source.query(Wanted(("7",), (), start + 1_000, start + 60_000), 1)
    assert [line.text.decode() for line in by_job.lines] == [f"iteration {n} of 20" for n in (17, 18, 19)]
    assert [(line.at_ms, line.labels) for line in by_file.lines] == [(start + 119, other)]
    assert len(odd.lines) == 2
    assert {line.labels.job_id for line in sample.lines} == {"7", "8", '9"'}
    assert (nothing.lines, nothing.problem) == ((), "")


def test_a_query_of_a_source_that_is_down_says_so(store: Bench) -> None:
    with closing(store.astray()) as source:
        answer = source.query(Wanted(("7",), (), 0, now_ms()), 1)
    assert answer.lines == ()
    assert "answer" in answer.problem


def test_following_ends_soon_after_it_is_told_to(bench: Bench) -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    source = bench.source()
    for _batch in source.follow({}, now_ms(), stop):
        assert time.monotonic() - began < DEADLINE_S
    source.close()
    assert time.monotonic() - began < 3
