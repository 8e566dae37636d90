"""Times as the interface shows them: RFC 3339 in UTC, ending in Z."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(ms: int | None) -> str | None:
    """Milliseconds since the epoch as `2026-02-02T02:40:05.123Z`; None for None and for what no calendar holds."""
    if ms is None:
        return None
    try:
        moment = EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def clock(ms: int | None) -> str:
    """The same for a sentence."""
    return rfc3339(ms) or "an unknown time"
