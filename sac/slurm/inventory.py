"""Which nodes the cluster has: names that Slurm does not know can't be excluded, it would refuse the whole list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sac.slurm.answers import Known, Unknown
from sac.slurm.commands import SlurmCommands


@dataclass(frozen=True)
class Inventory:
    """Node names, and the host name behind each (the same name nearly everywhere)."""

    hostnames: Mapping[str, str]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.hostnames)


def inventory(commands: SlurmCommands) -> Known[Inventory] | Unknown:
    """Ask sinfo."""
    answer = commands.read("sinfo", "-h", "-a", "-N", "-o", "%N|%n")
    if isinstance(answer, Unknown):
        return answer
    hostnames: dict[str, str] = {}
    for line in answer.value.splitlines():
        name, separator, host = line.strip().partition("|")
        if not separator or not name:
            return Unknown(f"sinfo printed {line[:200]!r}, not a node and its host")
        hostnames[name] = host or name
    return Known(Inventory(hostnames))
