"""Reads one source in a thread of its own, so that a store which answers slowly keeps nobody else waiting.

A few batches wait at most; while they do, the source is not read further. What is taken at once is small in bytes:
looking at a megabyte may take seconds, when every line of it says something.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from queue import Empty, Full, Queue
from typing import Protocol

from streams.sources.lines import Batch, Cursor, LogSource

WAITING_BATCHES = 2
TAKEN_BYTES = 1 << 20
_TRY_S = 0.2
STOP_S = 20.0


class Batches(Protocol):
    """Where batches of one source come from."""

    name: str

    def take(self) -> Batch | None:
        """The next batch, if one is there."""

    def close(self) -> None:
        """Stop reading."""


class Feed:
    """A source that is being followed."""

    def __init__(self, source: LogSource, cursors: Mapping[str, Cursor], since_ms: int) -> None:
        self.name = source.name
        self._source = source
        self._stop = threading.Event()
        self._batches: Queue[Batch] = Queue(WAITING_BATCHES)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, args=(dict(cursors), since_ms), name=f"follow {source.name}", daemon=True
        )
        self._thread.start()

    def take(self) -> Batch | None:
        """The next batch, if one is there. Raises what the source raised: that is a defect, no state of a source."""
        try:
            return self._batches.get_nowait()
        except Empty:
            if self._failure is not None:
                raise RuntimeError(f"following {self.name} failed") from self._failure
            return None

    def close(self) -> None:
        """Stop reading, and let go of the source once its reader has ended."""
        self._stop.set()
        self._thread.join(STOP_S)
        if not self._thread.is_alive():
            self._source.close()

    def _run(self, cursors: Mapping[str, Cursor], since_ms: int) -> None:
        try:
            for batch in self._source.follow(cursors, since_ms, self._stop):
                for part in parts_of(batch):
                    self._put(part)
        except BaseException as failure:  # noqa: BLE001 - raised again by `take`, in the thread that can act on it
            self._failure = failure

    def _put(self, batch: Batch) -> None:
        while not self._stop.is_set():
            try:
                self._batches.put(batch, timeout=_TRY_S)
            except Full:
                continue
            else:
                return


def parts_of(batch: Batch) -> Iterator[Batch]:
    """A batch in parts of about TAKEN_BYTES. The last one has the cursors, which are after all its lines."""
    low = size = 0
    for number, line in enumerate(batch.lines, start=1):
        size += len(line.text)
        if size >= TAKEN_BYTES and number < len(batch.lines):
            yield replace(batch, lines=batch.lines[low:number], cursors=(), caught_up=False)
            low, size = number, 0
    yield replace(batch, lines=batch.lines[low:]) if low else batch
