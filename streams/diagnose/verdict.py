"""From the accounts of all files to one diagnosis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from schemas.vocabulary import FaultClass, Remedy, Scope
from streams.decide.cause import what
from streams.decide.roots import FORERUNNERS
from streams.decide.state import Line
from streams.decide.weighing import HANG_SILENCE_MS, Cause, Scene, moment, weigh
from streams.diagnose.account import Account, Sighting
from streams.diagnose.beginnings import begun
from streams.diagnose.clocks import in_one_clock
from streams.diagnose.course import UNKNOWN
from streams.diagnose.ending import Files
from streams.diagnose.formats import proposed_steps
from streams.diagnose.peers import slowest
from streams.diagnose.placing import broken_nodes, placed, unnamed_peers
from streams.diagnose.ranks import launchers_word, met_alike, met_by, with_ranks_of_files
from streams.diagnose.reading import Progress, Unreadable, none_of, pieces, written_ms
from streams.diagnose.rhythm import slow_steps
from streams.diagnose.skipping import NONE_IN_STEPS
from streams.diagnose.voices import LEAST_RANKS
from streams.watch.matching.matcher import Matcher

# In so many files it is looked for what an unknown program counts up.
MOST_PROPOSED = 8


@dataclass(frozen=True)
class Steps:
    """How far training came; None where nothing says so."""

    framework: str | None
    first_step: int | None
    last_step: int | None
    last_checkpoint_step: int | None
    proposed: bool = False
    """Counted by the shape of an unknown program's lines: that it counts steps is likely, and no more."""
    last_epoch: int | None = None


@dataclass(frozen=True)
class Diagnosis:
    """What happened, where, and what should be done. `root` None: nothing is wrong."""

    fault_class: FaultClass
    scope: Scope
    remedy: Remedy
    nodes: tuple[str, ...]
    ranks: tuple[int, ...]
    root: Line | None
    secondary: tuple[Line, ...]
    explanation: str
    confidence: float
    steps: Steps
    files: int
    outlived: int


def diagnose(
    names: Sequence[str],
    matcher: Matcher,
    now_ms: int,
    told: Progress,
    left_out: Callable[[str], None] = lambda _why: None,
) -> Diagnosis:
    """Read files (`-`: standard input) and say what happened.

    A file that can't be read to its end is left out, and `left_out` is told why. Raises Unreadable where none is left.
    """
    accounts = []
    unread = []
    for name in dict.fromkeys(names):
        try:
            accounts.append(_account(name, matcher, now_ms, told))
        except Unreadable as error:
            unread.append(error)
    if not accounts:
        raise none_of(unread)
    for one in unread:
        left_out(str(one))
    return conclude(accounts)


def _account(name: str, matcher: Matcher, now_ms: int, told: Progress) -> Account:
    near_ms = None
    account = Account(name, now_ms)
    for piece in pieces(name, told):
        if near_ms is None:
            near_ms = account.near_ms = written_ms(name) or now_ms
        account.take(piece, matcher)
    account.read_last_traceback(matcher)
    account.end()
    return account


def conclude(accounts: Sequence[Account]) -> Diagnosis:
    """Weigh what the files say together."""
    files = Files(in_one_clock(with_ranks_of_files(accounts)))
    said = _concluded(files, sorted(files.standing, key=lambda one: moment(one.line)))
    text = said.explanation
    slowed = _slowed(files.moved_last) if said.root is not None and _by_limit(said.root) else None
    if slowed is not None:
        text += f" Before, it had become slow: {slowed.detail} ({slowed.evidence.file}:{slowed.evidence.line_no})."
    text += _told_before(files.failed_before)
    if files.elsewhere:
        text += f" Left aside, for no file of the job names this node: {_named(files.elsewhere)}."
    if files.late:
        text += f" Left aside, for it came long after the job's last line: {_named(files.late)}."
    text += _moved_past(files.moved_past)
    return replace(said, explanation=text)


def _told_before(failed: Sequence[Line]) -> str:
    """That the run had failed before it started over, which may be what its people want to know."""
    if not failed:
        return ""
    seen = failed[-1].evidence
    often = "" if len(failed) == 1 else f", the last of {len(failed)} times"
    return f" Before, the run had failed and started over{often}: {what(failed[-1])} ({seen.file}:{seen.line_no})."


def _moved_past(lines: Sequence[Line]) -> str:
    """That a node spoke of broken hardware while training went on, by the times of both: a clock may be wrong."""
    if not lines:
        return ""
    seen = lines[-1].evidence
    often = "" if len(lines) == 1 else f", the last of {len(lines)} such lines"
    return f" Left aside, for training went on after it{often}: {what(lines[-1])} ({seen.file}:{seen.line_no})."


def _named(hosts: Mapping[str, str]) -> str:
    return ", ".join(f"{host} ({file})" for host, file in hosts.items())


def _concluded(files: Files, sightings: Sequence[Sighting]) -> Diagnosis:
    accounts, steps, outlived = files.accounts, _steps(files), files.outlived
    if all(one.line.signature in FORERUNNERS for one in sightings):
        return _without_lines(files, steps, outlived)
    if files.ended_well and all(files.is_beside(one) for one in sightings):
        return _beside_the_run(sightings, steps, len(accounts), outlived)
    named = dict.fromkeys(node for one in accounts for node in one.nodes.values() if node not in files.elsewhere)
    nodes = _as_scheduled(named, {name for one in accounts for name in one.hosts.listed})
    texts = [text for account in accounts for text in account.places]
    sightings, places = placed(sightings, texts, nodes)
    scene = Scene(
        nodes=(*nodes, *unnamed_peers([one.line for one in sightings], places)),
        step=next((one.step for one in sightings if one.step is not None), None),
        finished=all(one.finished for one in sightings),
        silent_ms=next((_silence(one, accounts) for one in sightings if _by_limit(one.line)), None),
        earlier=files.earlier,
        silent_rank=_silent_rank(accounts, sightings),
        places=places,
    )
    counting = [one.line for one in sightings if scene.finished or not one.finished]
    cause = _after_the_end(begun(weigh(counting, scene), counting), scene)
    if cause.root.signature == NONE_IN_STEPS and any(account.numbers.never for account in accounts):
        text = f"{cause.explanation}, from the first step on: there is nothing to go back to"
        cause = replace(cause, remedy=Remedy.TERMINATE_NO_RETRY, explanation=text)
    lines = [one.line for one in sightings]
    least = max(account.hosts.least for account in accounts)
    cause = replace(cause, nodes=broken_nodes(cause, lines, scene, least))
    return _with_cause(cause, lines, met_by(cause, lines, scene.silent_rank), files)


def _as_scheduled(named: Iterable[str], listed: Collection[str]) -> tuple[str, ...]:
    """The names, without a domain where the allocation or another line has none: the scheduler would refuse it."""
    names = list(named)
    short = {name for name in (*names, *listed) if "." not in name}
    return tuple(dict.fromkeys(own if (own := name.partition(".")[0]) in short else name for name in names))


def _after_the_end(cause: Cause, scene: Scene) -> Cause:
    """Of what is printed after a normal end it is told what it says, and that the run had ended well."""
    if not scene.finished or cause.fault_class is not FaultClass.BENIGN_NOISE:
        return cause
    text = f"the run had ended well, and what was printed after that is no failure of it: {what(cause.root)}"
    return replace(cause, explanation=text)


def _silent_rank(accounts: Sequence[Account], sightings: Sequence[Sighting]) -> int | None:
    """The rank that stopped printing before the others."""
    complaining = {one.line.evidence.rank for one in sightings if one.line.evidence.rank is not None}
    stopped = next((rank for one in accounts if (rank := one.voices.silent(complaining)) is not None), None)
    return _only_one_without_a_word(accounts, sightings) if stopped is None else stopped


def _only_one_without_a_word(accounts: Sequence[Account], sightings: Sequence[Sighting]) -> int | None:
    """The rank that alone did not complain of a collective that all others waited for, where each has its own file."""
    late = {one.line.evidence.rank for one in sightings if one.line.fault_class is FaultClass.NCCL_TIMEOUT}
    quiet = {rank for one in accounts if len(one.voices.heard_ms) == 1 for rank in one.voices.heard_ms} - late
    return quiet.pop() if len(quiet) == 1 and len(late) >= LEAST_RANKS - 1 else None


def _beside_the_run(sightings: Sequence[Sighting], steps: Steps, files: int, outlived: int) -> Diagnosis:
    line = sightings[0].line
    node = f" on {line.evidence.node}" if line.evidence.node is not None else ""
    text = f"The program said that it was done. Beside it, {line.detail or line.signature}{node} was reported"
    text += f" ({line.evidence.file}:{line.evidence.line_no}), which is no failure of this run; the node wants a look."
    said = (FaultClass.BENIGN_NOISE, Scope.JOB, Remedy.IGNORE)
    return Diagnosis(*said, (), (), None, (), text, 0.8, steps, files, outlived)


def _silence(ended: Sighting, accounts: Sequence[Account]) -> int | None:
    """How long no file had a step when the scheduler ended the run; None where that was no longer than before."""
    advanced_ms, ended_ms = max(account.advanced_ms for account in accounts), ended.line.evidence.read_ms
    silent_ms = ended_ms - advanced_ms if advanced_ms and ended_ms else ended.silent_ms
    usual_ms = max(account.usual_ms for account in accounts if account.advanced_ms == advanced_ms)
    return silent_ms if silent_ms is None or silent_ms > usual_ms else None


def _by_limit(line: Line) -> bool:
    return line.fault_class is FaultClass.SCHEDULER_TIMEOUT


def _with_cause(cause: Cause, lines: Sequence[Line], ranks: tuple[int, ...], files: Files) -> Diagnosis:
    others = tuple(line for line in lines if line is not cause.root)
    explanation = cause.explanation
    alike = met_alike(cause.root, others, ranks)
    if alike:
        explanation += f"; {len(ranks)} ranks met the same"
    summary = launchers_word(cause, lines)
    if summary is not None:
        explanation += f"; {summary.detail}"
    weaker = len(others) - len(alike)
    if weaker and cause.remedy is not Remedy.IGNORE:
        lines_are = (
            "line is a consequence or a weaker sign" if weaker == 1 else "lines are consequences or weaker signs"
        )
        least = "at least " if any(account.cut for account in files.accounts) else ""
        explanation += f"; {least}{weaker} other matching {lines_are}"
    return Diagnosis(
        cause.fault_class,
        cause.scope,
        cause.remedy,
        cause.nodes,
        ranks,
        cause.root,
        others,
        explanation[:1].upper() + explanation[1:] + ".",
        cause.confidence,
        _steps(files),
        len(files.accounts),
        files.outlived,
    )


def _without_lines(files: Files, steps: Steps, outlived: int) -> Diagnosis:
    """No line says that anything failed: the run is well, or it stands still, or a device of it is slow."""
    accounts, finished, last = files.accounts, files.ended_well, files.moved_last
    idle_ms = min((_idle_ms(account) for account in last if account.last_step is not None), default=0)
    answered = max((account.answered_ms for account in accounts), default=0)
    slower = slowest(account.peers for account in accounts)
    said = (FaultClass.BENIGN_NOISE, Scope.JOB, Remedy.IGNORE)
    confidence = 0.8 if finished or outlived else 0.6
    slowed, root = None if finished else _slowed(last), None
    if not finished and idle_ms >= HANG_SILENCE_MS:
        said, confidence = (FaultClass.HANG_NO_LOG, Scope.UNKNOWN, Remedy.RESTART), 0.6
        text = (
            f"Step {steps.last_step} was the last, and other lines were printed for {idle_ms // 60_000} minutes more."
        )
    elif not finished and answered >= HANG_SILENCE_MS:
        said, confidence = (FaultClass.HANG_NO_LOG, Scope.UNKNOWN, Remedy.RESTART), 0.5
        text = f"For {answered // 60_000} minutes nothing but answers to requests was printed."
    elif not finished and slower is not None:
        said, confidence = (FaultClass.STRAGGLER, Scope.NODE, Remedy.RESTART_EXCLUDING_NODE), 0.6
        text = f"{slower.name} needs {slower.factor:.1f} times as long as another for the same work."
    elif slowed is not None:
        said, confidence, root = (FaultClass.STRAGGLER, Scope.UNKNOWN, Remedy.WAIT), 0.5, slowed
        text = slowed.detail[:1].upper() + slowed.detail[1:] + "."
    else:
        text = "The program said that it was done." if finished else "No line says that anything failed."
    if outlived:
        text += f" Training went on after {outlived} line{'s' * (outlived > 1)} that can mean a fault."
    if files.survived:
        text += f" Nothing came of {files.survived} after the last step: the run survives the like, or went on to save."
    return Diagnosis(*said, (), (), root, (), text, confidence, steps, len(accounts), outlived)


def _idle_ms(account: Account) -> int:
    """How long other lines were printed after the last step; 0 where steps have already come as seldom."""
    return account.idle_ms if account.idle_ms > account.usual_ms else 0


def _slowed(accounts: Sequence[Account]) -> Line | None:
    """The first of the steps that took longer, for good, than the same run's steps did before."""
    for account in accounts:
        rhythm = account.course.slow
        if rhythm is not None and rhythm.first_slow is not None and rhythm.baseline is not None:
            return slow_steps(rhythm.seconds, rhythm.baseline, replace(rhythm.first_slow, file=account.name))
    return None


def _steps(files: Files) -> Steps:
    """Of several attempts those of the last one; only where it saved nothing, what others did."""
    accounts = files.accounts
    stepped = [account for account in accounts if account.first_step is not None]
    if not stepped:
        return _proposed(files)
    moving = [account for account in files.moved_last if account.first_step is not None] or stepped
    furthest = max(moving, key=lambda account: account.last_step or 0)
    return Steps(
        framework=_framework(accounts),
        first_step=min(account.first_step or 0 for account in moving),
        last_step=furthest.last_step,
        last_checkpoint_step=_saved(moving) if _saved(moving) is not None else _saved(accounts),
        last_epoch=furthest.last_epoch,
    )


def _framework(accounts: Sequence[Account]) -> str | None:
    """By most of the steps, or else by what its lines say beside them."""
    frameworks = sum((account.frameworks for account in accounts), Counter[str]())
    known = (name for name, _count in frameworks.most_common() if name != UNKNOWN)
    return next(known, next((account.marked for account in accounts if account.marked is not None), None))


def _saved(accounts: Sequence[Account]) -> int | None:
    """The last save, by its words alone where no known framework told of one."""
    known = [account.last_checkpoint for account in accounts if account.last_checkpoint is not None]
    by_words = [account.saved_by_words for account in accounts if account.saved_by_words is not None]
    return max(known or by_words, default=None)


def _proposed(files: Files) -> Steps:
    """What an unknown program counts up, where one does."""
    found = (proposed_steps(account.ends.pieces) for account in files.of_job[:MOST_PROPOSED])
    counted = [steps for steps in found if steps is not None]
    framework, saved = _framework(files.accounts), _saved(files.accounts)
    if not counted:
        return Steps(framework, None, None, saved)
    return Steps(framework, min(first for first, _last in counted), max(last for _first, last in counted), saved, True)
