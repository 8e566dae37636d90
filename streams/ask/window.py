"""Handles many events side by side and acknowledges them in order.

Faust commits the highest offset of the first unbroken run of acknowledged ones, wherever that run begins: an event
acknowledged before an older one would lose the older at a crash. So events of a partition are acknowledged in order,
and each only when it was handled. Events of one key are finished in order, too: an answer may not overtake another
of the same job, since a job's positions rise.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

R = TypeVar("R")


class Window(Generic[R]):
    """At most `most` events at once. `failed` is set by the first event that could not be handled."""

    def __init__(self, most: int) -> None:
        self._room = asyncio.Semaphore(most)
        self._open: dict[Hashable, deque[tuple[asyncio.Task[None], Callable[[], object]]]] = {}
        self._last: dict[Hashable, asyncio.Task[None]] = {}
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def add(
        self,
        partition: Hashable,
        key: Hashable,
        work: Callable[[], Awaitable[R]],
        finish: Callable[[R], Awaitable[None]],
        acknowledge: Callable[[], object],
    ) -> None:
        """Start `work`, then `finish` with its result once earlier events of `key` are finished.

        Waits where the window is full. What either raises ends up in `failed`, and nothing from that event on is
        acknowledged in its partition.
        """
        await self._room.acquire()
        task = asyncio.create_task(self._handle(self._last.get(key), work, finish))
        self._last[key] = task
        self._open.setdefault(partition, deque()).append((task, acknowledge))
        task.add_done_callback(lambda done: self._done(partition, key, done))

    async def close(self) -> None:
        """Give up what is not finished: it was not acknowledged."""
        tasks = [task for waiting in self._open.values() for task, _ in waiting]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _handle(
        self,
        before: asyncio.Task[None] | None,
        work: Callable[[], Awaitable[R]],
        finish: Callable[[R], Awaitable[None]],
    ) -> None:
        result = await work()
        if before is not None:
            await asyncio.wait([before])
        await finish(result)

    def _done(self, partition: Hashable, key: Hashable, task: asyncio.Task[None]) -> None:
        self._room.release()
        if self._last.get(key) is task:
            del self._last[key]
        error = None if task.cancelled() else task.exception()
        if error is not None and not self.failed.done():
            self.failed.set_exception(error)
        waiting = self._open[partition]
        while waiting and waiting[0][0].done() and not waiting[0][0].cancelled() and waiting[0][0].exception() is None:
            waiting.popleft()[1]()
