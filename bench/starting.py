"""How long the local stack takes to start: with nothing on disk but the downloads, again with its data, and running."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.harness import Figure, timed
from infra.local.stack import Stack

PARTS = ("kafka", "registry", "postgres")


def figures() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="recovery-bench-") as folder:
        stack = Stack(Path(folder))

        def start() -> object:
            return stack.start(lambda _: None, only=PARTS)

        try:
            first = _seconds(start)
            stop = _seconds(stack.stop)
            again = _seconds(start)
            running = _seconds(start)
        finally:
            stack.stop()
    return [
        Figure(
            "start of the local stack",
            first,
            "s",
            "starting it again, with its data",
            again / first,
            f"Kafka, registry and PostgreSQL, from an empty folder; again {again:.1f} s, stop {stop:.1f} s, start"
            f" of what runs already {running:.1f} s",
        )
    ]


def _seconds(work: Callable[[], object]) -> float:
    return timed(work).wall_s
