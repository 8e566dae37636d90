"""What every part of the local stack is, and how it fails."""

from collections.abc import Callable, Mapping
from typing import Protocol

Report = Callable[[str], None]
"""Receives one plain sentence of progress at a time, from any thread."""


class StackError(RuntimeError):
    """The local stack can't do what was asked; the message names the part and the way out."""


class PartFailed(StackError):
    """A part ended or did not answer in time while it was starting."""


class Part(Protocol):
    """One server (or family of servers) which starts and stops by itself in one data folder."""

    @property
    def name(self) -> str: ...

    def start(self, report: Report) -> None:
        """Returns once the part answers; does nothing if it already runs. Raises `StackError`."""

    def stop(self) -> None:
        """Ends what `start` started, by recorded pid; durable data stays. Does nothing if nothing runs."""

    @property
    def daemons(self) -> tuple[str, ...]:
        """The names of its servers, by which their records and logs are found."""

    def healthy(self) -> bool:
        """Whether it runs, answers, and is ours (not another stack's on the same port)."""

    @property
    def endpoints(self) -> Mapping[str, str]:
        """Where clients reach it; empty until it was started once."""
