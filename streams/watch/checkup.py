"""Goes through the path of a job's output step by step: from the file that it writes to a line that watch knows.

The steps are those in which log collection fails: the job writes elsewhere, the reader may not read, the query's filter
fits nothing, labels are lost, access differs between writing and reading, and lines do not come back in time.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.decisions import AttemptView, JobView
from schemas.identity import AttemptId
from streams.sources.configured import Configured
from streams.sources.lines import Answer, SourceLine, Wanted
from streams.watch.guessing import guess
from streams.watch.matching.matcher import Matcher
from streams.watch.matching.progress import Step
from streams.watch.own import OwnFormats
from streams.watch.sight import unknown_advice
from streams.watch.whose.claims import Writer
from streams.watch.whose.labelled import Directory
from streams.watch.whose.ownership import Wait, written_at

SAMPLED = 1_000
TAIL_BYTES = 256 * 1024
LOOK_BACK_MS = 86_400_000
_ACL = "system.posix_acl_default"

OK, BAD, NOTE = "ok", "bad", "note"


@dataclass(frozen=True)
class Check:
    """One step: `state` is ok, bad, or note where it does not matter or can't be told; `advice` says what to do."""

    step: str
    state: str
    found: str
    advice: str = ""


def checkup(
    view: JobView,
    shown: AttemptView,
    sources: Sequence[Configured],
    matcher: Matcher,
    formats: OwnFormats,
    skew_ms: int,
    now_ms: int,
) -> list[Check]:
    """Return all steps for one attempt, in the order in which its lines pass them."""
    own = [one for one in sources if one.cluster == view.cluster]
    formats.learn([view])
    lines = _Lines(matcher, shown.attempt, formats)
    checks = [*_patterns(lines), *_files(shown, lines, now_ms, needed=not own)]
    for one in own:
        checks += _source(one, view, shown, lines, skew_ms, now_ms)
    if not own:
        checks.append(Check("log sources", NOTE, "none is on in [watch]: only files that watch can read are seen"))
    return checks


@dataclass(frozen=True)
class _Lines:
    """By what the lines of one attempt are known."""

    matcher: Matcher
    attempt: AttemptId
    own: OwnFormats

    def last_step(self, text: bytes) -> Step | None:
        own, last = self.own.of(self.attempt), None
        for found in self.matcher.scan(text, own=self.own.searches([self.attempt])):
            last = (own.step(found.line) if own is not None else None) or found.progress or last
        return last


def _patterns(lines: _Lines) -> Iterator[Check]:
    """Whether the job's own patterns can be used; nothing where it has none."""
    refused = lines.own.refused.get(lines.attempt)
    if refused is not None:
        yield Check(
            "the patterns of its APS comment can be used", BAD, refused, "correct it, and submit again (docs/packs.md)"
        )


def _files(shown: AttemptView, lines: _Lines, now_ms: int, *, needed: bool) -> Iterator[Check]:
    wrong = BAD if needed else NOTE
    if not shown.log_paths:
        yield Check("the job writes a file", wrong, "the scheduler names none", "submit with --output=FILE")
    for path in dict.fromkeys(shown.log_paths):
        try:
            status = Path(path).stat()
        except PermissionError as error:
            yield Check("watch may read it", wrong, f"{error.strerror}: {path}", _readable(path))
            continue
        except OSError as error:
            advice = "mount the folder where watch runs, correct --output, or let a collector send it to a log source"
            yield Check("the job writes where watch looks", wrong, f"{error.strerror}: {path}", advice)
            continue
        if not stat.S_ISREG(status.st_mode):
            yield Check("the job writes a file", wrong, f"not a regular file: {path}", "submit with --output=FILE")
            continue
        age_s = (now_ms - status.st_mtime_ns // 1_000_000) / 1000
        yield Check("the job writes where watch looks", OK, f"{path}: {status.st_size} bytes, last {age_s:.0f} s ago")
        yield from _reading(path, wrong, lines)


def _reading(path: str, wrong: str, lines: _Lines) -> Iterator[Check]:
    try:
        with Path(path).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            tail = file.read(TAIL_BYTES)
    except OSError as error:
        yield Check("watch may read it", wrong, f"{error.strerror}: {path}", _readable(path))
        return
    yield Check("watch may read it", OK, f"this user can; {_default_acl(Path(path).parent)}")
    yield _known(path, tail, lines)


def _known(where: str, text: bytes, lines: _Lines) -> Check:
    step, last = "a known line comes back", lines.last_step(text)
    if last is not None:
        return Check(step, OK, f"{where}: step {last.step} of {last.framework}")
    counts = guess(text)
    said = unknown_advice(counts, used=False)
    found = f"{where}: no line of a known format in its last part" + ("" if counts is None else f"; {counts.found}")
    return Check(step, BAD if text.strip() else NOTE, found, said)


def _source(
    one: Configured, view: JobView, shown: AttemptView, lines: _Lines, skew_ms: int, now_ms: int
) -> Iterator[Check]:
    name = one.source.name
    sample = one.source.sample(now_ms - LOOK_BACK_MS, now_ms + skew_ms, SAMPLED)
    if sample.problem:
        advice = "correct address, tenant, token and TLS in [watch]; they must agree with those that the collector uses"
        yield Check(f"{name} answers, and lets us in", BAD, sample.problem, advice)
        return
    yield Check(f"{name} answers, and lets us in", OK, "yes")
    if not sample.lines:
        advice = "compare `search` with the labels that the collector sets; it must fit exactly, and in the same tenant"
        yield Check(f"{name}: the filter fits lines", BAD, "no line of the last day fits", advice)
        return
    yield Check(f"{name}: the filter fits lines", OK, f"{len(sample.lines)} lines looked at{_labels(sample)}")
    directory = Directory.of(view.cluster, [view])
    start_ms = max((shown.start_ms or 0) - skew_ms, now_ms - LOOK_BACK_MS)
    wanted = Wanted(directory.ids(view.job_id), shown.log_paths, start_ms, now_ms + skew_ms)
    answer = one.source.query(wanted, SAMPLED)
    yield from _own(one, shown, answer, directory, lines, skew_ms, now_ms)


def _own(
    one: Configured,
    shown: AttemptView,
    answer: Answer,
    directory: Directory,
    lines: _Lines,
    skew_ms: int,
    now_ms: int,
) -> Iterator[Check]:
    name = one.source.name
    if not answer.lines:
        advice = "have the collector read the job's file and set job_id (or keep its path in filename)"
        found = answer.problem or "no line of this attempt's time has its job id or one of its files"
        yield Check(f"{name}: job_id can be queried", BAD, found, advice)
        return
    own: list[SourceLine] = []
    why = ""
    for line in answer.lines:
        whose = directory.whose(line.labels, written_at(line.at_ms, now_ms), skew_ms)
        if isinstance(whose, Writer) and whose.attempt == shown.attempt:
            own.append(line)
        elif isinstance(whose, Wait):
            why = whose.reason
    if not own:
        advice = "have the collector keep the source path in filename, or set slurm_job_attempt"
        found = why or "all of its lines are those of other attempts"
        yield Check(f"{name}: filename and slurm_job_attempt name the attempt", BAD, found, advice)
        return
    yield Check(f"{name}: filename and slurm_job_attempt name the attempt", OK, f"{len(own)} lines are its own")
    late = (now_ms - own[-1].at_ms) / 1000
    words = f"the newest line is {late:.0f} s old; the query delay is {one.delay_ms / 1000:g} s"
    yield Check(f"{name}: lines come back in time", OK if late * 1000 <= one.delay_ms else NOTE, words)
    yield _known(name, b"\n".join(line.text for line in own), lines)


def _labels(sample: Answer) -> str:
    """How many of the lines lack a label, in words."""
    lacking = {
        "job_id": sum(line.labels.job_id is None for line in sample.lines),
        "filename": sum(line.labels.filename is None for line in sample.lines),
        "slurm_job_attempt": sum(line.labels.attempt is None for line in sample.lines),
    }
    said = [f"{count} without {name}" for name, count in lacking.items() if count]
    return f"; {', '.join(said)}" if said else ""


def _default_acl(folder: Path) -> str:
    try:
        os.getxattr(folder, _ACL)
    except OSError:
        return f"{folder} has no default ACL, so new files have the rights that the job gives them"
    return f"{folder} has a default ACL for new files"


def _readable(path: str) -> str:
    """Which folder or file keeps this user out, and what to do."""
    for folder in reversed(Path(path).parents):
        if not os.access(folder, os.X_OK, effective_ids=True):
            return f"let the user of watch enter {folder} (setfacl -m u:USER:x {folder})"
    return f"let the user of watch read it, also new files (setfacl -d -m u:USER:r {Path(path).parent})"
