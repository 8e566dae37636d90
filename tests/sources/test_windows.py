"""Following a store that is asked for windows: late lines, moments with too many lines, refusals, nonsense."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streams.sources import loki as loki_module
from streams.sources.http import Address
from streams.sources.lines import Batch, Cursor, SourceState
from streams.sources.loki import Loki, LokiFields
from streams.sources.victorialogs import VictoriaLogs, VictoriaLogsFields
from streams.sources.windows import Waits
from tests.sources.fake_loki import FakeLoki

WAITS = Waits(settle_s=0.1, delay_s=0.6, poll_s=0.02)
DEADLINE_S = 20.0
LABELS = {"cluster": "local", "job_id": "7", "filename": "/a.out"}


@pytest.fixture(autouse=True)
def asked_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.sources.windows.RETRY_S", (0.05,))


@pytest.fixture
def server() -> Iterator[FakeLoki]:
    made = FakeLoki()
    made.start()
    yield made
    made.stop()


def source(server: FakeLoki, token_file: Path | None = None) -> Loki:
    return Loki("main", Address(server.url, token_file), '{cluster="local"}', LokiFields(), WAITS)


def follow(
    loki: Loki, since_ms: int, enough: Callable[[list[Batch]], bool], cursor: Cursor | None = None
) -> list[Batch]:
    stop, batches, deadline = threading.Event(), list[Batch](), time.monotonic() + DEADLINE_S
    for batch in loki.follow({} if cursor is None else {cursor.source: cursor}, since_ms, stop):
        batches.append(batch)
        if enough(batches):
            stop.set()
        assert time.monotonic() < deadline, batches[-1]
    loki.close()
    return batches


def texts(batches: list[Batch]) -> list[str]:
    return [line.text.decode() for batch in batches for line in batch.lines]


def now_ns() -> int:
    return time.time_ns()


def test_a_line_that_arrives_late_is_still_given_and_keeps_its_place(server: FakeLoki) -> None:
    began = now_ns()
    server.push([(began + 2, LABELS, "second")])
    late: list[str] = []

    def enough(batches: list[Batch]) -> bool:
        if "second" in texts(batches) and not late:
            late.append("pushed")
            server.push([(began + 1, LABELS, "first")])
        return "first" in texts(batches)

    batches = follow(source(server), began // 1_000_000 - 100, enough)
    lines = {line.identity: line for batch in batches for line in batch.lines}
    assert [line.text for line in sorted(lines.values(), key=lambda line: line.offset)] == [b"first", b"second"]
    assert texts(batches).count("second") == 2, "the window was given again, its lines named the same"


def test_the_durable_place_follows_only_when_no_more_lines_are_expected(server: FakeLoki) -> None:
    began = now_ns()
    server.push([(began, LABELS, "line")])
    seen_at: list[int] = []

    def enough(batches: list[Batch]) -> bool:
        if batches[-1].lines:
            seen_at.append(batches[-1].cursors[0].offset)
        return batches[-1].cursors[0].offset > began

    batches = follow(source(server), began // 1_000_000 - 100, enough)
    assert seen_at[0] <= began, "whoever is killed right after the line reads it again"
    assert now_ns() - began >= WAITS.delay_s * 1e9
    again = follow(source(server), 0, lambda batches: len(batches) > 5, batches[-1].cursors[0])
    assert texts(again) == []


def test_more_lines_in_one_moment_than_can_be_had_are_said(server: FakeLoki, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loki_module, "MOST_LINES", 10)
    began = now_ns() - 10**10
    server.push([(began, LABELS, f"line {n}") for n in range(25)])
    server.push([(began + 1, LABELS, "after")])
    batches = follow(source(server), began // 1_000_000 - 1, lambda batches: "after" in texts(batches))
    problems = {batch.problem for batch in batches if batch.state is SourceState.BROKEN}
    assert len(problems) == 1
    assert "share the moment" in problems.pop()
    assert texts(batches)[-1] == "after"


def test_a_refusal_is_a_state_and_a_new_token_is_taken_without_a_restart(server: FakeLoki, tmp_path: Path) -> None:
    server.token = "right"
    token = tmp_path / "token"
    token.write_text("wrong\n")
    server.push([(now_ns() - 10**9, LABELS, "line")])

    def enough(batches: list[Batch]) -> bool:
        if batches[-1].state is SourceState.DENIED:
            token.write_text("right\n")
        return "line" in texts(batches)

    batches = follow(source(server, token), now_ns() // 1_000_000 - 5_000, enough)
    assert batches[0].state is SourceState.DENIED
    assert "401" in batches[0].problem


@pytest.mark.parametrize(
    ("status", "answer", "state"),
    [
        (200, b"<html>a proxy</html>", SourceState.BROKEN),
        (200, b'{"data": {"result": [{"stream": 1, "values": 2}]}}', SourceState.BROKEN),
        (400, b"parse error", SourceState.BROKEN),
        (429, b"too many requests", SourceState.DOWN),
        (503, b"", SourceState.DOWN),
    ],
)
def test_what_is_no_answer_is_a_state_and_following_goes_on(
    server: FakeLoki, status: int, answer: bytes, state: SourceState
) -> None:
    server.status, server.answer = status, answer
    server.push([(now_ns() - 10**9, LABELS, "line")])

    def enough(batches: list[Batch]) -> bool:
        if batches[-1].state is state:
            server.status, server.answer = 200, None
        return "line" in texts(batches)

    batches = follow(source(server), now_ns() // 1_000_000 - 5_000, enough)
    assert batches[0].state is state
    assert server.url.removeprefix("http://") in batches[0].problem or "loki:main" in batches[0].problem


def test_the_address_in_a_problem_shows_no_password(server: FakeLoki) -> None:
    server.stop()
    url = server.url.replace("http://", "http://me:secret@")
    loki = Loki("main", Address(url), '{cluster="local"}', LokiFields(), WAITS)
    [batch] = follow(loki, 0, bool)
    assert batch.state is SourceState.DOWN
    assert "secret" not in batch.problem


def test_what_is_no_stream_selector_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="no stream selector"):
        Loki("main", Address("http://x"), 'job_id="7"', LokiFields(), WAITS)


def test_nonsense_in_the_place_of_victorialogs_is_a_state(server: FakeLoki) -> None:
    server.answer = b'{"no": "record"}\n'
    store = VictoriaLogs("main", Address(server.url), "*", VictoriaLogsFields(), WAITS)
    stop = threading.Event()
    batch = next(iter(store.follow({}, now_ns() // 1_000_000 - 1_000, stop)))
    store.close()
    assert batch.state in (SourceState.BROKEN, SourceState.DOWN)
