"""What keeps watch from seeing a running attempt now. Pure: the states of its files and sources in, findings out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from schemas.vocabulary import BlindKind
from streams.sources.files import FileState


@dataclass(frozen=True)
class FileSight:
    """One path that an attempt reports, as the follower sees it."""

    path: str
    state: FileState
    problem: str


@dataclass(frozen=True)
class StoreSight:
    """One log source beside files, as far as it concerns an attempt."""

    name: str
    problem: str
    """Why the source can't be read now, or seems to have died; empty where it can."""
    gives: bool
    """Records of the attempt came from it."""
    mislabelled: str
    """Why records of the attempt's job fit no attempt."""
    labelless: bool
    """Records came that name neither job nor file."""


@dataclass(frozen=True)
class Finding:
    """What was found, and what to do about it."""

    detail: str
    advice: str


def findings(job_id: str, files: Sequence[FileSight], stores: Sequence[StoreSight]) -> Mapping[BlindKind, Finding]:
    """All that keeps watch from reading this attempt's output now."""
    return dict(_findings(f"`recovery doctor logs --job {job_id}` goes through it step by step.", files, stores))


def _findings(
    doctor: str, files: Sequence[FileSight], stores: Sequence[StoreSight]
) -> Iterator[tuple[BlindKind, Finding]]:
    if any(store.gives and not store.problem for store in stores):
        return
    denied = [file for file in files if file.state is FileState.DENIED]
    if denied:
        advice = f"Let the user of watch read the file and enter its folders (new ones, too: default ACL). {doctor}"
        yield BlindKind.DENIED, Finding("; ".join(file.problem for file in denied), advice)
    if any(file.state is FileState.FOLLOWED for file in files):
        return
    down = [store for store in stores if store.problem]
    if down:
        advice = f"Bring the source or its collector back, or correct its address and access in [watch]. {doctor}"
        yield BlindKind.SOURCE_DOWN, Finding("; ".join(store.problem for store in down), advice)
    labels = [f"{store.name}: {store.mislabelled}" for store in stores if store.mislabelled] or [
        f"{store.name}: records come that have neither a job id nor a file" for store in stores if store.labelless
    ]
    if labels:
        asked = "Have the collector set job_id and keep the source path in filename, or name its labels in [watch]."
        advice = f"{asked} {doctor}"
        yield BlindKind.LABELS, Finding("; ".join(labels), advice)
    if not denied and not down and not labels:
        yield BlindKind.ABSENT, _absent(files, stores, doctor)


def _absent(files: Sequence[FileSight], stores: Sequence[StoreSight], doctor: str) -> Finding:
    names = ", ".join(store.name for store in stores)
    beside = f", and no line of it comes from {names}" if names else ""
    if not files:
        advice = f"Submit with --output to a path that watch can read. {doctor}"
        return Finding(f"the scheduler names no output file{beside}", advice)
    broken = [file.problem for file in files if file.state is FileState.BROKEN]
    what = "; ".join(broken) or f"not there: {', '.join(file.path for file in files)}"
    advice = f"Mount the job's output folder where watch runs, or have a collector send it to a log source. {doctor}"
    return Finding(what + beside, advice)
