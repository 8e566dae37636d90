"""The names under which deciders work: their group, the fixed ids of each slot, and the changelog of their state."""

from __future__ import annotations

from schemas.topics import JOURNAL, Cleanup, Topic

GROUP = "recovery-decide"

CHANGELOG = Topic(
    f"changelog__{GROUP}--{JOURNAL.name}--default",
    "job",
    Cleanup.COMPACTED,
    JOURNAL.partitions,
    "the deciders' state, named as Quix Streams wants it",
)


def instance_id(slot: int) -> str:
    """The slot's static group membership: a worker that comes back takes its partitions over without a rebalance."""
    return f"decide-{slot}"


def transactional_id(slot: int) -> str:
    """The slot's transactional id: a worker that comes back ends the open transaction of the one that died."""
    return f"recovery-decide-{slot}"
