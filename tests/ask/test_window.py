"""Many events at once, acknowledged in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from streams.ask.window import Window


class Gates:
    """Work that ends when the test says so."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}
        self.finished: list[str] = []
        self.acknowledged: list[str] = []

    def work(self, name: str, error: Exception | None = None) -> Callable[[], Awaitable[str]]:
        gate = self.gates[name] = asyncio.Event()

        async def wait() -> str:
            await gate.wait()
            if error is not None:
                raise error
            return name

        return wait

    async def finish(self, name: str) -> None:
        self.finished.append(name)

    async def add(
        self, window: Window[str], name: str, key: str = "", partition: int = 0, error: Exception | None = None
    ) -> None:
        work = self.work(name, error)
        await window.add(partition, key or name, work, self.finish, lambda: self.acknowledged.append(name))

    async def open(self, *names: str) -> None:
        for name in names:
            self.gates[name].set()
        for _ in range(10):
            await asyncio.sleep(0)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 10))


def test_a_slow_one_holds_back_no_answer_but_the_acknowledgement_of_its_partition() -> None:
    async def scene() -> None:
        gates, window = Gates(), Window[str](9)
        for name, partition in (("slow", 0), ("fast", 0), ("other", 1)):
            await gates.add(window, name, partition=partition)
        await gates.open("fast", "other")
        assert (gates.finished, gates.acknowledged) == (["fast", "other"], ["other"])
        await gates.open("slow")
        assert gates.acknowledged == ["other", "slow", "fast"]

    run(scene())


def test_answers_of_one_key_keep_their_order() -> None:
    async def scene() -> None:
        gates, window = Gates(), Window[str](9)
        for name in ("first", "second", "third"):
            await gates.add(window, name, key="job")
        await gates.open("third", "second")
        assert gates.finished == []
        await gates.open("first")
        assert gates.finished == ["first", "second", "third"]

    run(scene())


def test_nothing_is_acknowledged_from_a_failure_on_and_the_failure_is_told() -> None:
    async def scene() -> None:
        gates, window = Gates(), Window[str](9)
        await gates.add(window, "fine")
        await gates.add(window, "broken", error=ValueError("flood"))
        await gates.add(window, "after")
        await gates.open("fine", "broken", "after")
        assert gates.acknowledged == ["fine"]
        with pytest.raises(ValueError, match="flood"):
            await window.failed

    run(scene())


def test_what_is_given_up_is_not_acknowledged() -> None:
    async def scene() -> None:
        gates, window = Gates(), Window[str](9)
        await gates.add(window, "one")
        await window.close()
        assert (gates.finished, gates.acknowledged, window.failed.done()) == ([], [], False)

    run(scene())


def test_a_full_window_waits() -> None:
    async def scene() -> None:
        gates, window = Gates(), Window[str](1)
        await gates.add(window, "one")
        adding = asyncio.ensure_future(gates.add(window, "two"))
        await asyncio.sleep(0.01)
        assert not adding.done()
        await gates.open("one")
        await adding
        await gates.open("two")
        assert gates.acknowledged == ["one", "two"]

    run(scene())
