"""An attempt's timeline with latencies, and the why of what was done about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from fastapi import APIRouter, Path, Query

from gateway.database import Database
from gateway.evidence import evidence_line, texts_of
from gateway.jobs import find_attempt, job_of
from gateway.milestones import milestones
from gateway.models import Milestone, Timeline, TimelineEntry, Why, WhySentence
from gateway.parameters import AttemptQuery
from gateway.story import Entry, Row, Story, load_story
from gateway.times import clock, rfc3339
from gateway.why import explain

router = APIRouter(prefix="/v1/jobs/{heimdallJobId}", tags=["explanations"])

HeimdallJobId = Annotated[str, Path(alias="heimdallJobId")]


@router.get("/timeline")
def get_timeline(
    database: Database, heimdall_job_id: HeimdallJobId, query: Annotated[AttemptQuery, Query()]
) -> Timeline:
    """What happened to one attempt; after a restart also how its successor came to run."""
    attempt = find_attempt(database, heimdall_job_id, use_heimdall_id=query.use_heimdall_id)
    story = load_story(database, attempt)
    entries = sorted((*story.entries, *_until_running(story)), key=lambda entry: entry.at_ms)
    texts = texts_of(database, _lines(entries))
    return Timeline(
        job=job_of(attempt),
        entries=[_entry(entry, texts) for entry in entries],
        milestones=_milestones(story),
    )


@router.get("/why")
def get_why(database: Database, heimdall_job_id: HeimdallJobId, query: Annotated[AttemptQuery, Query()]) -> Why:
    """Why an attempt ended, what was decided and done about it, and whether it runs again, in plain sentences."""
    attempt = find_attempt(database, heimdall_job_id, use_heimdall_id=query.use_heimdall_id)
    explanation = explain(load_story(database, attempt))
    texts = texts_of(database, (line for sentence in explanation.sentences for line in sentence.evidence))
    return Why(
        heimdall_job_id=attempt["heimdall_job_id"],
        job_id=attempt["job_id"],
        attempt_index=attempt["attempt_index"],
        summary=explanation.summary,
        sentences=[
            WhySentence(
                about=sentence.about,
                text=sentence.text,
                time=rfc3339(sentence.at_ms),
                event_id=sentence.event_id,
                evidence=[evidence_line(line, texts) for line in sentence.evidence],
            )
            for sentence in explanation.sentences
        ],
        converged=explanation.converged,
        running_again=explanation.running_again,
    )


def _until_running(story: Story) -> Iterable[Entry]:
    """The successor's entries up to the checkpoint that it resumed from, or its first end."""
    if not any(row["desired_state"] == "RESTARTED" for row in story.advice):
        return
    for entry in story.successor_entries:
        if entry.kind in ("opened", "state", "checkpoint_loaded"):
            yield entry
        if entry.kind == "checkpoint_loaded" or entry.kind == "anomaly":
            return


def _lines(entries: Iterable[Entry]) -> Iterable[Row]:
    return (line for entry in entries for line in entry.evidence)


def _entry(entry: Entry, texts: Mapping[str, str]) -> TimelineEntry:
    return TimelineEntry(
        time=clock(entry.at_ms),
        kind=entry.kind,
        title=entry.title,
        detail=entry.detail,
        attempt_index=entry.attempt_index,
        event_id=entry.event_id,
        cause=entry.cause,
        times={name.removesuffix("Ms"): rfc3339(at) for name, at in entry.times.items()},
        evidence=[evidence_line(line, texts) for line in entry.evidence],
    )


def _milestones(story: Story) -> list[Milestone]:
    reached = milestones(story)
    previous = reached[0][1] if reached else 0
    found = []
    for name, at_ms in reached:
        found.append(
            Milestone(
                name=name,
                time=clock(at_ms),
                ms_since_fault=at_ms - reached[0][1],
                ms_since_previous=at_ms - previous,
            )
        )
        previous = at_ms
    return found
