"""Scheduler truth has three values. Known and unknown are here; what is too old to act on is the caller's to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Known(Generic[T]):
    """Slurm answered, and the answer was understood."""

    value: T


@dataclass(frozen=True)
class Unknown:
    """Slurm did not answer, or not in a form that we know. It says nothing about any job: nobody may act on it."""

    reason: str
