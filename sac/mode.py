"""What the controller may do with a job. Pure.

| the job                                                         | effective mode | refusal      |
|-----------------------------------------------------------------|----------------|--------------|
| its comment speaks of no APS                                    | not ours: never published   |  |
| its comment claims to be an APS and is malformed                | disabled       | APS          |
| names no environment, or another than `sac.environment`         | disabled       | ENVIRONMENT  |
| is in a partition outside `sac.partitions`                      | disabled       | PARTITION    |
| `sac.mode` is disabled (then no job is looked at)               | disabled       | OBSERVE_MODE |
| asks for observe, or for nothing where `sac.mode` is observe    | observe        | OBSERVE_MODE |
| asks for act (or nothing, `sac.mode` act), not acknowledged     | observe        | OBSERVE_MODE |
| the same, with `sac.acknowledge_scheduler_actions`              | act            |              |

Disabled jobs are published once, so that "why does nobody look after my job" has an answer, and never touched. An
empty `sac.environment` or `sac.partitions` admits nothing: what is missing is never permission.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from schemas.aps import Aps
from schemas.vocabulary import Mode, Refusal


class Granted(Protocol):
    """What the operator set (the settings' section `sac`), so that this module needs no settings file."""

    @property
    def mode(self) -> str: ...

    @property
    def acknowledge_scheduler_actions(self) -> bool: ...

    @property
    def environment(self) -> str: ...

    @property
    def partitions(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Permission:
    """The effective mode, why in words, and the refusal that anything beyond it meets (None: may act)."""

    mode: Mode
    reason: str
    refusal: Refusal | None


def permission(aps: Aps | None, aps_error: str | None, partition: str, settings: Granted) -> Permission:
    """Resolve the mode of one job; see the table above."""
    refused = not_admitted(aps, aps_error, partition, settings)
    if refused is not None:
        return refused
    assert aps is not None
    if settings.mode == "disabled":
        return Permission(Mode.DISABLED, "the controller is disabled (sac.mode)", Refusal.OBSERVE_MODE)
    asked = aps.mode if aps.mode is not None else Mode(settings.mode)
    by = "its APS asks to" if aps.mode is not None else "sac.mode is to"
    if asked is not Mode.ACT:
        return Permission(Mode.OBSERVE, f"{by} observe", Refusal.OBSERVE_MODE)
    if not settings.acknowledge_scheduler_actions:
        return Permission(
            Mode.OBSERVE,
            f"{by} act, but scheduler actions are not acknowledged (SLURM_ADVISOR_ACKNOWLEDGE_SCHEDULER_ACTIONS)",
            Refusal.OBSERVE_MODE,
        )
    return Permission(Mode.ACT, f"{by} act, and scheduler actions are acknowledged", None)


def not_admitted(aps: Aps | None, aps_error: str | None, partition: str, settings: Granted) -> Permission | None:
    """Why this job is none of this installation's, or None where it is."""
    if aps is None:
        return Permission(Mode.DISABLED, aps_error or "its comment has no APS", Refusal.APS)
    if not settings.environment or aps.environment != settings.environment:
        named = f"its APS names environment {aps.environment!r}" if aps.environment else "its APS names no environment"
        here = repr(settings.environment) if settings.environment else "not set (sac.environment)"
        return Permission(Mode.DISABLED, f"{named}; this installation's is {here}", Refusal.ENVIRONMENT)
    # A pending job may name several partitions, and may start in any of them.
    outside = [name for name in partition.split(",") if name not in settings.partitions]
    if outside:
        return Permission(
            Mode.DISABLED, f"partition {', '.join(outside)} is not admitted (sac.partitions)", Refusal.PARTITION
        )
    return None
