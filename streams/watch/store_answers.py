"""Asks log sources beside files whether an attempt still prints, in threads: a slow store must not stop the reading.

A source that several running attempts print into, and that fell silent for all of them at once, is no witness: they do
not hang together, so its collector may have died. Where only the silent attempt prints into it, what it still tells of
that attempt shows that it is there, and its silence is the attempt's.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from schemas.decisions import OutputAsked
from schemas.identity import AttemptId, Position
from streams.sources.configured import Configured
from streams.sources.lines import Answer, LogSource, Wanted
from streams.watch.answers import StoreSaid
from streams.watch.whose.claims import Writer
from streams.watch.whose.labelled import Directory
from streams.watch.whose.ownership import written_at

ANSWER_S = 30.0
"""A source that has not answered by then has not: the decider waits no longer than a minute."""
MOST_LINES = 20
"""Newest lines of a job that are looked at: some may be of another attempt."""
MOST_AROUND = 500
"""Newest lines of anybody, which tell whether others fell silent with it."""
LEAST_BACK_MS = 3_600_000
WORKERS = 4


@dataclass(frozen=True)
class Followed:
    """What the follower of a source has seen so far, and who may print into it."""

    heard_ms: int
    """When the newest line of anybody was written; 0 before the first."""
    last_ms: Mapping[AttemptId, int]
    """The same for each attempt."""
    running: Collection[AttemptId]
    """The attempts that run on the source's cluster."""

    def fell_silent(self, attempt: AttemptId, last_ms: int, budget_ms: int, now_ms: int) -> bool:
        """Whether others went on printing about as long as this attempt did, or longer, and for a whole budget nobody
        has: when a collector dies, one line is the last of all, and most attempts' last ones came a little before."""
        others = [self.last_ms.get(one, 0) for one in self.running if one != attempt]
        return now_ms - self.heard_ms >= budget_ms and any(other_ms > last_ms - budget_ms for other_ms in others)

    def with_lines(self, times: Sequence[tuple[AttemptId | None, int]]) -> Followed:
        """The same, with lines that the source itself still has; None: of nobody who is known."""
        last_ms = dict(self.last_ms)
        for attempt, at_ms in times:
            if attempt is not None:
                last_ms[attempt] = max(last_ms.get(attempt, 0), at_ms)
        return replace(self, heard_ms=max([self.heard_ms, *(at_ms for _, at_ms in times)]), last_ms=last_ms)


@dataclass(frozen=True)
class _Looked:
    """What a source has: the newest lines of a job, and where it is silent those of anybody about its last."""

    own: Answer
    around: Answer


@dataclass
class _Question:
    asked: OutputAsked
    position: Position
    until_s: float
    answers: dict[int, Future[_Looked]]


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
            answers[number] = self._threads.submit(_looked, one.source, wanted, now_ms, asked.budget_ms)
        if answers:
            self._questions.append(_Question(asked, position, time.monotonic() + ANSWER_S, answers))
        return bool(answers)

    def ready(
        self, directories: Mapping[str, Directory], followed: Mapping[str, Followed], now_ms: int
    ) -> Iterator[tuple[OutputAsked, Position, list[StoreSaid]]]:
        """The questions that all sources have answered, or had the time to; with what their followers have seen."""
        for question in list(self._questions):
            late = time.monotonic() > question.until_s
            if late or all(answer.done() for answer in question.answers.values()):
                self._questions.remove(question)
                said = [
                    self._said(number, answer, question, directories, followed, now_ms)
                    for number, answer in question.answers.items()
                ]
                yield question.asked, question.position, said

    def close(self) -> None:
        """Wait for nobody; what is under way ends by its own time limit."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _said(
        self,
        number: int,
        answer: Future[_Looked],
        question: _Question,
        directories: Mapping[str, Directory],
        followed: Mapping[str, Followed],
        now_ms: int,
    ) -> StoreSaid:
        one = self._sources[number]
        name = one.source.name
        if not answer.done():
            return StoreSaid(name, None, one.delay_ms, f"{name} did not answer within {ANSWER_S:g} s")
        found, attempt, budget_ms = answer.result(), question.asked.attempt, question.asked.budget_ms
        directory = directories[one.cluster]
        own = [at_ms for whose, at_ms in self._times(found.own, directory, now_ms) if whose == attempt]
        seen = followed[name].with_lines(self._times(found.around, directory, now_ms))
        if own and now_ms - max(own) >= budget_ms and seen.fell_silent(attempt, max(own), budget_ms, now_ms):
            quiet_ms = now_ms - max(seen.heard_ms, *own)
            words = f"{name} gave lines of it, and for {quiet_ms // 1000} s none of any job"
            return StoreSaid(name, None, one.delay_ms, f"{words}: its collector may have died", dead=True)
        if own:
            return StoreSaid(name, max(own), one.delay_ms, found.own.problem)
        if found.own.problem:
            return StoreSaid(name, None, one.delay_ms, found.own.problem)
        return StoreSaid(name, None, one.delay_ms, f"{name} has no line of this attempt", empty=True)

    def _times(self, answer: Answer, directory: Directory, now_ms: int) -> list[tuple[AttemptId | None, int]]:
        """Whose lines these are, as far as that is known, and when they were written."""
        times: list[tuple[AttemptId | None, int]] = []
        for line in answer.lines:
            whose = directory.whose(line.labels, written_at(line.at_ms, now_ms), self._skew_ms)
            times.append((whose.attempt if isinstance(whose, Writer) else None, line.at_ms))
        return times


def _looked(source: LogSource, wanted: Wanted, now_ms: int, budget_ms: int) -> _Looked:
    own = source.query(wanted, MOST_LINES)
    newest_ms = max((line.at_ms for line in own.lines), default=now_ms)
    silent = newest_ms <= now_ms - budget_ms
    around = source.sample(newest_ms - budget_ms, wanted.end_ms, MOST_AROUND) if silent else Answer(())
    return _Looked(own, around)
