"""Whose line is it? Pure, and never "the newest by default".

A line was written somewhere between two moments: at its own timestamp if it carries one; else after the stamped line
before it and before the one after it; and between our two looks, where the bytes appeared while we were following.
Its owner is the only attempt whose window meets all of that. Several, or none: wait, for a bounded time, because the
scheduler's news may be late; then the line is parked with the reason. What was written before every attempt that is
known is nobody's: whoever is not known yet begins later.

A stamp without a zone is read in that of watch.time_zone. Where watch saw the bytes appear, it notices a wrong one; of
what stood in the file before, nothing better is known than what the stamp says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.identity import AttemptId


@dataclass(frozen=True)
class Window:
    """When an attempt that reports the path could write. `end_ms` None: it still runs, as far as known."""

    attempt: AttemptId
    start_ms: int | None
    end_ms: int | None


@dataclass(frozen=True)
class Written:
    """What is known of when a line was written; None for what is not known."""

    own_ms: int | None
    """The line's own timestamp."""
    after_ms: int | None
    """Not before this: the stamped line before it in the same epoch."""
    before_ms: int | None
    """Not after this: the stamped line after it."""
    absent_ms: int | None
    """A look of ours at which the bytes were not there yet."""
    read_ms: int
    """The look at which they were."""
    new_epoch: bool
    """The file was replaced or truncated moments ago: a new attempt may have done it that we do not know of yet."""
    record_ms: int | None = None
    """The time of the store's record that the line stands in."""


def written_at(record_ms: int, read_ms: int, own_ms: int | None = None) -> Written:
    """A record of a store: it has a time, its line may have another, and that is all."""
    own_ms = record_ms if own_ms is None else own_ms
    return Written(own_ms, None, None, None, read_ms, new_epoch=False, record_ms=record_ms)


@dataclass(frozen=True)
class Owner:
    attempt: AttemptId


@dataclass(frozen=True)
class Wait:
    """Not decided: look again when the scheduler's news may have come; past the bound, park with this reason."""

    reason: str


@dataclass(frozen=True)
class Unowned(Wait):
    """No news can tell whose it is: there is nothing to wait for."""


Verdict = Owner | Wait


def owner_of(written: Written, windows: Sequence[Window], *, shared: bool, skew_ms: int) -> Verdict:
    """Decide whose line it is among all attempts that report the path.

    `shared`: the job or the path is known to be shared by several attempts; `skew_ms`: how far clocks may differ.
    """
    if not windows:
        return Wait("no known attempt reports this path")
    older = _of_before(written, windows, skew_ms)
    if older is not None:
        return older
    if len(windows) == 1 and (not shared or windows[0].attempt.index == 0):
        return _only(written, windows[0], skew_ms)
    said = _by_stamp(written, windows, skew_ms)
    live = _by_look(written, windows, skew_ms)
    if live and not said:
        # A stamp that lies in no window may be wrong, or of an attempt that is not known yet: only a look that leaves
        # no room for one tells.
        said = live = _surrounding(written, windows)
    both = said if live is None else [window for window in said if window in live]
    if len(both) > 1:
        both = _narrowed(written, both)
    if len(both) == 1:
        return Owner(both[0].attempt)
    if both:
        return Wait(f"{len(both)} attempts could have written it")
    if said:
        return Wait(
            "its time and the moment at which it appeared lie in the windows of different attempts:"
            " check watch.time_zone and the clocks"
        )
    return Wait("its time lies in no attempt's window")


def _of_before(written: Written, windows: Sequence[Window], skew_ms: int) -> Wait | None:
    """The verdict on a line that was, or may have been, written before every known attempt; None on any other.

    What appeared under our eyes since then was not, whatever it says of its time: a clock or a zone is wrong.
    """
    first_ms = min((window.start_ms for window in windows if window.start_ms is not None), default=0) - skew_ms
    if written.absent_ms is not None and written.absent_ms >= first_ms:
        return None
    own_ms = written.own_ms
    low, high = (written.after_ms, written.before_ms) if own_ms is None else (own_ms, own_ms)
    if high is not None and high < first_ms:
        return Unowned("it was written before any known attempt began")
    if low is not None and low < first_ms:
        reason = "the line before it was written before any known attempt began"
        return Wait(reason) if high is None else Unowned(f"{reason}, the one after it later")
    return None


def _only(written: Written, window: Window, skew_ms: int) -> Verdict:
    """One attempt reports the path. A line later than its end is of a successor that is not known yet."""
    if written.new_epoch:
        return Wait("the file has just begun anew, and who began it may not be known yet")
    latest = window.end_ms
    earliest = max(
        (moment for moment in (written.own_ms, written.after_ms, written.absent_ms) if moment is not None), default=None
    )
    plausible = earliest is not None and earliest <= written.read_ms + skew_ms
    if latest is not None and plausible and earliest is not None and earliest > latest + skew_ms:
        return Wait("the line is later than the end of the only attempt that reports this path")
    return Owner(window.attempt)


def _by_stamp(written: Written, windows: Sequence[Window], skew_ms: int) -> list[Window]:
    """The windows that the stamps allow. A stamp from the future is none: its clock or its zone is wrong."""
    own = written.own_ms
    if own is not None and own <= written.read_ms + skew_ms:
        return _meeting(windows, own - skew_ms, own + skew_ms)
    low = 0 if written.after_ms is None else written.after_ms
    high = written.read_ms if written.before_ms is None else min(written.before_ms, written.read_ms)
    return _meeting(windows, low - skew_ms, high + skew_ms)


def _by_look(written: Written, windows: Sequence[Window], skew_ms: int) -> list[Window] | None:
    """The windows during which the bytes appeared under our eyes; None where they did not.

    The scheduler tells whole seconds and a shared file system shows late, so the skew counts here, too.
    """
    if written.absent_ms is None:
        return None
    return _meeting(windows, written.absent_ms - skew_ms, written.read_ms + skew_ms)


def _surrounding(written: Written, windows: Sequence[Window]) -> list[Window]:
    """The windows in which both looks lie, the one without the bytes and the one with them."""
    return [
        window
        for window in windows
        if window.start_ms is not None
        and written.absent_ms is not None
        and window.start_ms <= written.absent_ms
        and (window.end_ms is None or written.read_ms <= window.end_ms)
    ]


def _narrowed(written: Written, windows: list[Window]) -> list[Window]:
    """Several windows are in reach of the clocks' skew: the only one that meets the same times without it."""
    if written.own_ms is not None:
        exact = _meeting(windows, written.own_ms, written.own_ms)
    elif written.absent_ms is not None:
        exact = _meeting(windows, written.absent_ms, written.read_ms)
    else:
        exact = windows
    return exact if len(exact) == 1 else windows


def _meeting(windows: Sequence[Window], low_ms: int, high_ms: int) -> list[Window]:
    return [
        window
        for window in windows
        if window.start_ms is not None
        and window.start_ms <= high_ms
        and (window.end_ms is None or low_ms <= window.end_ms)
    ]
