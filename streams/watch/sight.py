"""What keeps watch from seeing a running attempt now. Pure: the states of its files and sources in, findings out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from schemas.vocabulary import BlindKind
from streams.sources.files import FileState
from streams.watch.guessing import Guess
from streams.watch.matching.proposals import in_comment


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


def unknown_format(where: str, quiet_s: int, found: Guess | None, *, used: bool, given: bool, refused: str) -> Finding:
    """Output grows, and nobody knows what it counts. `used`: what was found is taken for steps from now on.

    `given`, `refused`: the job's APS says what its steps look like, and why that can't be used.
    """
    detail = f"output grows, and for {quiet_s} s no line of it was of a known format: {where}"
    if given:
        detail += "; the log_based_progress_pattern of its APS comment matches none"
    detail += "".join(f"; {one}" for one in (refused, "" if found is None else found.found) if one)
    return Finding(detail, unknown_advice(found, used=used))


def unknown_advice(found: Guess | None, *, used: bool) -> str:
    """What to do about lines that nobody knows."""
    unseen = "Until then a hang of this attempt is not seen."
    if found is None:
        return (
            "`recovery formats detect FILE` shows which lines look like steps; log_based_progress_pattern in the APS"
            f" comment (anomaly_detection_config), or a pack of the site (watch.packs), makes them known. {unseen}"
        )
    if used:
        said = "They are taken for steps from now on (watch.arm_on_proposed)."
        return f"{said} The APS comment can say so: {in_comment(found.pattern)}"
    said = f"If they do, the APS comment can say so: {in_comment(found.pattern)}"
    return f"{said}; or let watch use what it finds (watch.arm_on_proposed). {unseen}"


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
