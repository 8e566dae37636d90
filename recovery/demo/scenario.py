"""What each scenario breaks, and what must have become of the job in the end."""

from __future__ import annotations

from dataclasses import dataclass

BROKEN = "node2"
"""The node that every scenario breaks: Slurm gives the first job node1 and node2."""


@dataclass(frozen=True)
class Told:
    """One Advice that must be on record at the end."""

    attempt: int
    desired_state: str
    disposition: str
    excluded: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class Scenario:
    """One failing training job. Expectations are what Slurm's accounting, the job's output and the API must show."""

    name: str
    about: str
    told: tuple[Told, ...]
    runs: int
    final_states: frozenset[str]
    fault: str | None = "gpu-xid"
    fault_node: str | None = BROKEN
    node_down: bool = False
    mode: str = "act"
    fault_attempts: int | None = None
    fault_iteration: int = 25
    iterations: int = 60
    max_requeue_times: int = 2
    progress_interval: int = 1
    symptom: str | None = None
    faults: int = 1
    incidents: int = 1

    @property
    def acts(self) -> bool:
        return self.mode == "act"

    @property
    def completes(self) -> bool:
        return "COMPLETED" in self.final_states

    @property
    def excluded(self) -> tuple[str, ...]:
        """What Slurm's ExcNodeList must hold at the end."""
        return tuple(sorted({node for told in self.told for node in told.excluded})) if self.acts else ()


COMPLETED = frozenset({"COMPLETED"})
# A failed attempt that was held before the decision to stop is cancelled; one that was not yet held stays failed.
STOPPED = frozenset({"CANCELLED", "FAILED", "OUT_OF_MEMORY"})

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            name="restart",
            about="a GPU falls off the bus on node2; the job is restarted without that node",
            told=(Told(0, "RESTARTED", "CONVERGED", (BROKEN,)),),
            runs=2,
            final_states=COMPLETED,
        ),
        Scenario(
            name="observe",
            about="the same crash in observe mode: everything is recorded, Slurm is not touched",
            told=(Told(0, "RESTARTED", "PENDING", (BROKEN,)),),
            runs=1,
            final_states=frozenset({"FAILED"}),
            mode="observe",
        ),
        Scenario(
            name="user-error",
            about="the script imports what is not there; the job is stopped with the reason, not retried",
            told=(Told(0, "TERMINATED", "CONVERGED", reason="user_code"),),
            runs=1,
            final_states=STOPPED,
            fault="user-error",
            fault_node=None,
        ),
        Scenario(
            name="oom",
            about="the kernel kills a rank for lack of memory; restarted once, as the job allows, then stopped",
            told=(
                Told(0, "RESTARTED", "CONVERGED", reason="host_oom"),
                Told(1, "TERMINATED", "CONVERGED", reason="requeue_limit"),
            ),
            runs=2,
            final_states=STOPPED,
            fault="oom",
            max_requeue_times=1,
            faults=2,
            incidents=2,
        ),
        Scenario(
            name="no-progress",
            about="the job fails each time before its first checkpoint; stopped after three such failures",
            told=(
                Told(0, "RESTARTED", "CONVERGED"),
                Told(1, "RESTARTED", "CONVERGED"),
                Told(2, "TERMINATED", "CONVERGED", reason="no_new_checkpoint"),
            ),
            runs=3,
            final_states=STOPPED,
            fault="no-progress",
            max_requeue_times=9,
            faults=3,
            incidents=3,
        ),
        Scenario(
            name="hang",
            about="a rank on node2 stands still and prints nothing; found by its own rhythm, asked about, restarted",
            told=(Told(0, "RESTARTED", "CONVERGED", reason="hang_no_log"),),
            runs=2,
            final_states=COMPLETED,
            fault="hang",
            fault_attempts=1,
            fault_iteration=90,  # after enough steps for their rhythm to be known
            iterations=130,
            progress_interval=2,
            symptom="hang",
        ),
        Scenario(
            name="straggler",
            about="node2 becomes four times slower; recorded against the attempt's own pace, and left running",
            told=(),
            runs=1,
            final_states=COMPLETED,
            fault="straggler",
            symptom="straggler",
        ),
        Scenario(
            name="node-down",
            about="Slurm loses node2 and requeues the job by itself; recovery leaves that to Slurm",
            told=(),
            runs=2,
            final_states=COMPLETED,
            fault=None,
            fault_node=None,
            node_down=True,
            faults=0,
        ),
    )
}
