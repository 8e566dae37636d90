"""Bounded waiting: every wait in this folder ends, with success or with an error that says what was awaited."""

import time
from collections.abc import Callable

from infra.local.parts import PartFailed


def until(
    condition: Callable[[], bool],
    *,
    seconds: float,
    what: str,
    still_possible: Callable[[], bool] = lambda: True,
    every: float = 0.05,
) -> None:
    """Polls until `condition` holds. Raises `PartFailed` after `seconds`, or at once when it is no longer possible."""
    deadline = time.monotonic() + seconds
    while not condition():
        if not still_possible():
            raise PartFailed(f"{what}: it ended instead")
        if time.monotonic() > deadline:
            raise PartFailed(f"{what}: no success within {seconds:g} s")
        time.sleep(every)
