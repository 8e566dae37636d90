"""Whose clock the times of a file are of: files of one job may show UTC, the local time with its offset, or without.

A time without a zone is read as UTC's. Beside it a time with an offset is compared as that clock shows it: both hung on
the same wall. Where nobody tells, the two may be whole or half hours apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from streams.diagnose.account import Account

HALF_HOUR_MS = 1_800_000
MOST_APART_MS = 14 * 2 * HALF_HOUR_MS
"""No zone is further from UTC."""
BEFORE_MS, AFTER_MS = 60_000, 180_000
"""What broke the hardware, and with it the run, is told so long before the last step that was printed, or after it."""


def in_one_clock(accounts: Sequence[Account]) -> list[Account]:
    """The accounts, their times as the clocks on the wall show them, where only some of the files name a zone.

    If the file in which training moved last names one, the others are taken to be of that zone.
    """
    timed = [one for one in accounts if one.now_ms]
    if all(one.offset_ms is None for one in timed) or all(one.offset_ms is not None for one in timed):
        return list(accounts)
    jobs = max(timed, key=lambda one: one.advanced_ms).offset_ms
    return [one if one.offset_ms is None else one.shifted(one.offset_ms if jobs is None else jobs) for one in accounts]


def may_be_at(moment_ms: int, seen_ms: int) -> bool:
    """Whether something was seen at a moment by a clock of another zone, if perhaps not by this one."""
    apart_ms = seen_ms - moment_ms
    return abs(apart_ms) <= MOST_APART_MS + AFTER_MS and (apart_ms + BEFORE_MS) % HALF_HOUR_MS <= BEFORE_MS + AFTER_MS
