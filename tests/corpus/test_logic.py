"""Old history verifies with the rules of its day."""

from __future__ import annotations

import pytest

from schemas.policy import LOGIC, SUPPORTED_LOGIC
from streams.replay.export import FileHistory
from streams.replay.verify import verify
from tests.corpus.make_history import CODEC, path_of


@pytest.mark.parametrize("logic", sorted(SUPPORTED_LOGIC))
def test_what_was_decided_by_the_rules_of_a_logic_version_is_decided_again(logic: int) -> None:
    """Fails where a rule was changed without a new logic version: see docs/decisions/0013."""
    history = FileHistory(path_of(logic))
    report = verify(history, CODEC, history.policies)
    assert report.difference is None
    assert report.facts > 1_000


def test_the_newest_logic_has_a_history() -> None:
    assert max(SUPPORTED_LOGIC) == LOGIC
    assert path_of(LOGIC).exists(), "python -m tests.corpus.make_history"
