"""What watch remembers of attempts, beside how far sources were read: of no use any more once their job is closed.

The positions are read whole at each start, and nothing else would ever take these out.
"""

from __future__ import annotations

from collections.abc import Iterable

from schemas.decisions import JobView
from schemas.identity import AttemptId
from schemas.vocabulary import BlindKind

_BLIND, _PROPOSED = "blind:", "proposed:"


def of_blindness(attempt: AttemptId, kind: BlindKind) -> str:
    """Under which name it is remembered what was told of the attempt."""
    return f"{_BLIND}{kind}/{attempt.key}"


def of_proposal(attempt: AttemptId) -> str:
    """Under which name it is remembered what its lines seem to be."""
    return f"{_PROPOSED}{attempt.key}"


def blindness_of(name: str) -> tuple[str, str] | None:
    """The kind of blindness that is remembered under this name, and the key of the attempt."""
    if not name.startswith(_BLIND):
        return None
    kind, _slash, key = name.removeprefix(_BLIND).partition("/")
    return kind, key


def is_proposal(name: str) -> bool:
    """Whether that is what is remembered under this name."""
    return name.startswith(_PROPOSED)


class Memories:
    """The names that are in use."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names: set[str] = set()
        for name in names:
            self.wrote(name)

    def wrote(self, name: str) -> None:
        """Something was written down under this name."""
        if name.startswith((_BLIND, _PROPOSED)):
            self._names.add(name)

    def forget(self, views: Iterable[JobView]) -> list[str]:
        """Take out and return what is remembered of attempts of which there is no view any more."""
        if not self._names:
            return []
        known = {shown.attempt.key for view in views for shown in view.attempts}
        gone = sorted(name for name in self._names if _attempt_key(name) not in known)
        self._names.difference_update(gone)
        return gone


def _attempt_key(name: str) -> str:
    blind = blindness_of(name)
    return blind[1] if blind else name.removeprefix(_PROPOSED)
