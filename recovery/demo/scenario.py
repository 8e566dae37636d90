"""What each scenario breaks, and what must have become of the job in the end."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    """One failing training job. Expectations are what Slurm's accounting and the API must show."""

    name: str
    about: str
    mode: str
    fault: str
    fault_node: str | None
    restarts: int
    final_state: str
    desired_state: str
    disposition: str
    excluded: tuple[str, ...]

    @property
    def acts(self) -> bool:
        return self.mode == "act"


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            name="restart",
            about="a GPU falls off the bus on node2; the job is restarted without that node",
            mode="act",
            fault="gpu-xid",
            fault_node="node2",
            restarts=1,
            final_state="COMPLETED",
            desired_state="RESTARTED",
            disposition="CONVERGED",
            excluded=("node2",),
        ),
        Scenario(
            name="observe",
            about="the same crash in observe mode: everything is recorded, Slurm is not touched",
            mode="observe",
            fault="gpu-xid",
            fault_node="node2",
            restarts=0,
            final_state="FAILED",
            desired_state="RESTARTED",
            disposition="PENDING",
            excluded=("node2",),
        ),
    )
}
