"""Asks log sources beside files whether an attempt still prints, in threads: a slow store must not stop the reading.

A source that fell silent as a whole is no witness: an attempt that hangs and a collector that died look the same in it,
until it gives a line of anybody.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from schemas.decisions import OutputAsked
from schemas.identity import Position
from streams.sources.configured import Configured
from streams.sources.lines import Answer, Wanted
from streams.watch.answers import StoreSaid
from streams.watch.claims import Writer
from streams.watch.labelled import Directory
from streams.watch.ownership import written_at

ANSWER_S = 30.0
"""A source that has not answered by then has not: the decider waits no longer than a minute."""
MOST_LINES = 20
"""Newest lines of a job that are looked at: some may be of another attempt."""
LEAST_BACK_MS = 3_600_000
WORKERS = 4


@dataclass
class _Question:
    asked: OutputAsked
    position: Position
    until_s: float
    answers: dict[int, Future[Answer]]


class StoreAnswers:
    """Questions that are under way. Not thread-safe."""

    def __init__(self, sources: Sequence[Configured], skew_ms: int) -> None:
        self._sources = sources
        self._skew_ms = skew_ms
        self._questions: list[_Question] = []
        self._threads = ThreadPoolExecutor(WORKERS, thread_name_prefix="query")

    def ask(self, asked: OutputAsked, position: Position, directories: Mapping[str, Directory], now_ms: int) -> bool:
        """Put a question to every source of the attempt's cluster; False where there is none."""
        attempt = asked.attempt
        back_ms = max(2 * asked.budget_ms, LEAST_BACK_MS)
        answers = {}
        for number, one in enumerate(self._sources):
            if one.cluster != attempt.cluster:
                continue
            wanted = Wanted(
                job_ids=directories[one.cluster].ids(attempt.job_id),
                filenames=asked.log_paths,
                start_ms=max((asked.start_ms or 0) - self._skew_ms, now_ms - back_ms - one.delay_ms),
                end_ms=now_ms + self._skew_ms,
            )
            answers[number] = self._threads.submit(one.source.query, wanted, MOST_LINES)
        if answers:
            self._questions.append(_Question(asked, position, time.monotonic() + ANSWER_S, answers))
        return bool(answers)

    def ready(
        self, directories: Mapping[str, Directory], heard: Mapping[str, int], now_ms: int
    ) -> Iterator[tuple[OutputAsked, Position, list[StoreSaid]]]:
        """The questions that all sources have answered, or had the time to.

        `heard`: for each source the time of the newest line of anybody that its follower has seen.
        """
        for question in list(self._questions):
            late = time.monotonic() > question.until_s
            if late or all(answer.done() for answer in question.answers.values()):
                self._questions.remove(question)
                said = [
                    self._said(number, answer, question, directories, heard, now_ms)
                    for number, answer in question.answers.items()
                ]
                yield question.asked, question.position, said

    def close(self) -> None:
        """Wait for nobody; what is under way ends by its own time limit."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _said(
        self,
        number: int,
        answer: Future[Answer],
        question: _Question,
        directories: Mapping[str, Directory],
        heard: Mapping[str, int],
        now_ms: int,
    ) -> StoreSaid:
        one = self._sources[number]
        name = one.source.name
        if not answer.done():
            return StoreSaid(name, None, one.delay_ms, f"{name} did not answer within {ANSWER_S:g} s")
        found = answer.result()
        directory, own = directories[one.cluster], []
        for line in found.lines:
            whose = directory.whose(line.labels, written_at(line.at_ms, now_ms), self._skew_ms)
            if isinstance(whose, Writer) and whose.attempt == question.asked.attempt:
                own.append(line.at_ms)
        if own and now_ms - max(own) >= question.asked.budget_ms and heard.get(name, 0) <= max(own):
            words = f"{name} gave lines of it, and for {(now_ms - max(own)) // 1000} s none of any job"
            return StoreSaid(name, None, one.delay_ms, f"{words}: its collector may have died", dead=True)
        if own:
            return StoreSaid(name, max(own), one.delay_ms, "")
        return StoreSaid(name, None, one.delay_ms, found.problem or f"{name} has no line of this attempt")
