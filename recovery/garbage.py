"""Python's garbage collector, for processes whose objects make no cycles."""

from __future__ import annotations

import gc

COLLECT_AFTER = 200_000
"""Objects made before Python looks for cycles; 700 by default."""


def collect_rarely() -> None:
    """Have Python look for cycles rarely: states, records and rows make none, and there are many to look through."""
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
