"""The names under which deciders work: their groups, the fixed ids of each slot, and the changelogs of their state."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.topics import JOURNAL, NODES, Cleanup, Topic


@dataclass(frozen=True)
class Crew:
    """The deciders of one kind: workers in numbered slots that share one input topic."""

    process: str
    input: Topic

    @property
    def group(self) -> str:
        return f"recovery-{self.process}"

    @property
    def changelog(self) -> Topic:
        """Their state, named as Quix Streams wants it."""
        name = f"changelog__{self.group}--{self.input.name}--default"
        return Topic(name, self.input.key, Cleanup.COMPACTED, self.input.partitions, "the deciders' state")

    def instance_id(self, slot: int) -> str:
        """The slot's static group membership: one that comes back takes its partitions over at once."""
        return f"{self.process}-{slot}"

    def transactional_id(self, slot: int) -> str:
        """The slot's transactional id: a worker that comes back ends the open transaction of the one that died."""
        return f"recovery-{self.process}-{slot}"


ATTEMPT_CREW = Crew("decide", JOURNAL)
NODE_CREW = Crew("nodes", NODES)
GROUP = ATTEMPT_CREW.group
CHANGELOG = ATTEMPT_CREW.changelog
