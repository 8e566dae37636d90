"""That watch is blind is remembered, and decides nothing by itself."""

from __future__ import annotations

from dataclasses import replace

from schemas.facts import BlindReported
from schemas.identity import Position
from schemas.vocabulary import AttemptState, BlindKind
from tests.decide.story import Story, attempt


def test_being_blind_concludes_nothing() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    before = story.state
    assert before is not None
    report = BlindReported(
        event_id="blind",
        cause="",
        attempt=attempt(0),
        position=Position("blind:absent", 0, 0),
        kind=BlindKind.ABSENT,
        ended=False,
        detail="not there",
        advice="mount it",
        kinds=(BlindKind.ABSENT,),
        since_ms=0,
        reported_ms=1,
    )
    assert story.take(report) == ()
    after = story.state
    assert after is not None
    [was], [now] = before.attempts, after.attempts
    assert now.blind
    assert replace(now, marks=was.marks, blind=False) == was
    assert story.take(report) == ()
    assert story.state == after
