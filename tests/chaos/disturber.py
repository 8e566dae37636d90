"""Does to the world what the plan says, in a thread of its own, and undoes all of it in the end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass, field

from infra.local.parts import Report
from tests.chaos.plan import Deed, Disturbance
from tests.chaos.world import SLURMCTLD, World

END_S = 300.0
AT_ONCE = 16


@dataclass(frozen=True)
class Done:
    """A disturbance that took place, for the story of a job."""

    began_ms: int
    what: Disturbance


@dataclass
class Disturber:
    """Between `start` and `end` the plan is carried out. `undisturbed` holds off slurmctld's end for a submission."""

    world: World
    plan: Iterator[Disturbance]
    report: Report
    done: list[Done] = field(default_factory=list)
    undisturbed: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(AT_ONCE, "disturber"))
    _work: list[Future[None]] = field(default_factory=list)

    def start(self) -> None:
        self._work.append(self._pool.submit(self._turn))

    def end(self) -> None:
        """Stop disturbing, wait until everything is undone. Raises what went wrong on the way."""
        self._over.set()
        wait(self._work, END_S)
        self._pool.shutdown(wait=False, cancel_futures=True)
        for future in self._work:
            future.result(0)

    def check(self) -> None:
        """Raise what went wrong so far: a part that does not start again ends a run."""
        for future in self._work:
            if future.done():
                future.result()

    def counts(self) -> Counter[str]:
        return Counter(f"{one.what.victim}: {one.what.deed}" for one in self.done)

    def _turn(self) -> None:
        for disturbance in self.plan:
            if self._over.wait(disturbance.after_s):
                return
            self.report(str(disturbance))
            self.done.append(Done(time.time_ns() // 1_000_000, disturbance))
            self._do(disturbance)

    def _do(self, what: Disturbance) -> None:
        if what.deed is Deed.KILL:
            self.world.kill(what.victim)
        elif what.deed is Deed.RESTART:
            self._work.append(self._pool.submit(self._restart, what))
        elif (pid := self.world.stop(what.victim)) is not None:
            self._work.append(self._pool.submit(self._continue, pid, what.lasts_s))

    def _continue(self, pid: int, after_s: float) -> None:
        self._over.wait(after_s)
        self.world.resume(pid)

    def _restart(self, what: Disturbance) -> None:
        with self.undisturbed if what.victim == SLURMCTLD else nullcontext():
            self.world.end_part(what.victim)
            self._over.wait(what.lasts_s)
            self.world.start_part(what.victim, self.report)
