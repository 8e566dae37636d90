"""Replay proves that the record follows from the journal, and names the first place where it does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import fastavro
import pytest

from schemas.policy import Policy
from streams.decide.decide import MissingPolicy
from streams.replay.export import FORMAT, META, PARTITIONS, FileHistory, export
from streams.replay.history import HistoryUnreadable, StoredRecord
from streams.replay.verify import Report, verify
from tests.decide.story import Story
from tests.replay.memory import CODEC, MemoryHistory, change, record


@pytest.fixture
def story() -> Story:
    told = Story()
    told.run_and_fail()
    told.wait(2)
    told.held_then_running(1)
    return told


def check(history: MemoryHistory, story: Story) -> Report:
    return verify(history, CODEC, {story.policy.digest(): story.policy})


def test_an_honest_history_verifies_and_is_counted(story: Story) -> None:
    history = record(story)
    report = check(history, story)
    assert report.difference is None
    assert (report.facts, report.jobs, report.decisions) == (len(story.facts), 1, len(history.decided))
    assert report.decisions > 5


def test_a_changed_decision_is_named_with_its_fact_and_field(story: Story) -> None:
    history = record(story)
    at = next(
        i
        for i, e in enumerate(history.decided)
        if type(CODEC.decode(e.value or b"", e.headers)).__name__ == "AttributionMade"
    )
    history.decided[at] = change(history.decided[at], confidence=0.123)
    found = check(history, story).difference
    assert found is not None
    assert "recovery.journal/0/" in found.fact
    assert "confidence" in found.why
    assert "0.123" in found.recorded


def test_what_differs_is_told_though_the_history_can_not_be_read_to_its_end(story: Story) -> None:
    class Torn(MemoryHistory):
        def journal(self, partition: int) -> Iterator[StoredRecord]:
            yield from super().journal(partition)
            raise HistoryUnreadable("torn")

    whole = record(story)
    with pytest.raises(HistoryUnreadable, match="torn"):
        check(Torn(whole.facts, whole.decided), story)
    found = check(Torn(whole.facts, [change(whole.decided[0], decided_ms=1), *whole.decided[1:]]), story).difference
    assert found is not None
    assert "decided_ms" in found.why


def test_a_missing_a_repeated_and_an_invented_decision_are_differences(story: Story) -> None:
    decided = record(story).decided
    for spoilt in (decided[:-1], [*decided[:2], *decided[1:]], [*decided, decided[-1]]):
        history = record(story)
        history.decided = spoilt
        assert check(history, story).difference is not None


def test_a_tampered_fact_is_seen_in_the_first_decision_that_depends_on_it(story: Story) -> None:
    history = record(story)
    history.facts[0] = change(history.facts[0], name="another")
    found = check(history, story).difference
    assert found is not None
    assert "name" in found.why


@pytest.mark.parametrize("left", [slice(0, 0), slice(1, None), slice(None, -1)])
def test_a_missing_fact_is_a_difference_even_where_no_decision_misses_it(story: Story, left: slice) -> None:
    whole = record(story)
    history = MemoryHistory(whole.facts[left], [], decided=len(whole.facts))
    found = check(history, story).difference
    assert found is not None
    assert "missing" in found.why


def test_a_job_taken_out_with_all_its_decisions_is_missed(story: Story) -> None:
    whole = record(story)
    other = [replace(whole.facts[0], offset=len(whole.facts), key=b"local/8")]
    found = check(MemoryHistory(other, [], decided=len(whole.facts) + 1), story).difference
    assert found is not None
    assert found.why.startswith(f"{len(whole.facts)} facts are missing")


def test_a_parked_fact_is_parked_again_not_decided(story: Story) -> None:
    history = record(story, garbage_at=1)
    report = check(history, story)
    assert report.difference is None
    assert report.parked == 1


def test_an_unreadable_fact_that_was_not_parked_is_a_difference(story: Story) -> None:
    history = record(story)
    history.facts[1] = replace(history.facts[1], value=b"garbage")
    found = check(history, story).difference
    assert found is not None
    assert "was not parked" in found.why


def test_facts_that_are_not_decided_yet_are_counted_not_accused(story: Story) -> None:
    whole = record(story)
    partial = MemoryHistory(whole.facts, [], decided=0)
    report = check(partial, story)
    assert report.difference is None
    assert report.undecided == len(whole.facts)


def test_a_policy_that_is_not_at_hand_stops_the_verification() -> None:
    told = Story(policy=Policy(max_requeue_times=7))
    told.run_and_fail()
    history = record(told)
    with pytest.raises(MissingPolicy, match="sha256"):
        verify(history, CODEC, {})


def test_an_exported_file_verifies_like_the_history_it_came_from(story: Story, tmp_path: Path) -> None:
    history = record(story, garbage_at=1)
    path = tmp_path / "month.avro"
    count = export(history, {story.policy.digest(): story.policy}, path, lambda _: None)
    assert count == len(history.facts) + len(history.decided)
    exported = FileHistory(path)
    report = verify(exported, CODEC, exported.policies)
    assert report.difference is None
    assert report.facts == len(history.facts)


@pytest.mark.parametrize("content", [b"", b"not avro", b"Obj\x01rubbish"])
def test_a_file_that_is_no_export_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "odd.avro"
    path.write_bytes(content)
    with pytest.raises(HistoryUnreadable, match=r"odd\.avro"):
        FileHistory(path)


def test_a_file_that_is_cut_short_is_refused(story: Story, tmp_path: Path) -> None:
    path = tmp_path / "cut.avro"
    export(record(story), {story.policy.digest(): story.policy}, path, lambda _: None)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(HistoryUnreadable, match=r"cut\.avro"):
        FileHistory(path)


@pytest.mark.parametrize("dropped", [{0}, {1}, {0, 1}])
def test_a_file_that_does_not_say_how_far_it_was_decided_is_refused(
    story: Story, tmp_path: Path, dropped: set[int]
) -> None:
    class Two(MemoryHistory):
        def partitions(self) -> int:
            return 2

    history = record(story)
    path = tmp_path / "unmarked.avro"
    export(Two(history.facts, history.decided), {story.policy.digest(): story.policy}, path, lambda _: None)
    with path.open("rb") as whole:
        lines = fastavro.reader(whole)
        schema, kept = (
            lines.writer_schema,
            [
                line
                for line in cast(Iterator[dict[str, Any]], lines)
                if line["topic"] != "decided" or line["partition"] not in dropped
            ],
        )
    with path.open("wb") as part:
        fastavro.writer(part, cast(dict[str, Any], schema), kept, metadata={META: FORMAT, PARTITIONS: "2"})
    with pytest.raises(HistoryUnreadable, match=r"unmarked\.avro does not say how far"):
        FileHistory(path)
