"""What is held back is written before each commit, whoever asks for the commit and whenever it becomes due."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from streams.run.quix import Application, PartitionsLost

LATER = [False, True]
"""A checkpoint that becomes due between two looks at it."""


class Checkpoint:
    """Stands for Quix's checkpoint; notes that it was committed or closed."""

    def __init__(self, done: list[str], due: list[bool], *, empty: bool) -> None:
        self.done, self.due, self._empty = done, list(due), empty

    def expired(self) -> bool:
        return self.due.pop(0) if len(self.due) > 1 else self.due[0]

    def empty(self) -> bool:
        return self._empty

    def commit(self, *, revoking: bool) -> None:
        self.done.append("revoked" if revoking else "committed")

    def close(self, *, revoking: bool) -> None:  # noqa: ARG002 - as Quix calls it
        self.done.append("closed")


@pytest.mark.parametrize(
    ("due", "empty", "asked", "done"),
    [
        ([False], False, {}, []),
        (LATER, False, {}, []),
        ([True], False, {}, ["written", "committed"]),
        ([True], True, {}, ["closed"]),
        ([False], False, {"force": True}, ["written", "committed"]),
        (LATER, False, {"force": True, "revoking": True}, ["written", "revoked"]),
    ],
)
def test_nothing_is_committed_before_its_states_are_written(
    monkeypatch: pytest.MonkeyPatch, due: list[bool], asked: dict[str, bool], done: list[str], *, empty: bool
) -> None:
    seen: list[str] = []
    app = Application(lambda: seen.append("written"), broker_address="nowhere:9", consumer_group="none")
    context = app._processing_context
    monkeypatch.setattr(context, "_checkpoint", Checkpoint(seen, due, empty=empty))
    monkeypatch.setattr(context, "init_checkpoint", lambda: None)
    context.commit_checkpoint(**asked)
    assert seen == done


@pytest.mark.parametrize(
    ("empty", "failing", "ends"), [(True, False, False), (False, False, True), (False, True, False)]
)
def test_a_worker_whose_partitions_were_lost_ends_where_anything_was_not_committed_unless_it_does_already(
    monkeypatch: pytest.MonkeyPatch, *, empty: bool, failing: bool, ends: bool
) -> None:
    app = Application(lambda: None, broker_address="nowhere:9", consumer_group="none")
    monkeypatch.setattr(app._processing_context, "_checkpoint", Checkpoint([], [False], empty=empty))
    if failing:
        app.stop(fail=True)
    with pytest.raises(PartitionsLost) if ends else nullcontext():
        app._on_lost(None, [])
