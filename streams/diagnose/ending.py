"""How the job ended, by all of its files together: those of its ranks, of its attempts, and of its nodes."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.vocabulary import FaultClass, LineRole, Remedy, Scope
from streams.decide.roots import TIER, root_line
from streams.decide.state import Line
from streams.decide.weighing import Earlier
from streams.diagnose.account import Account, Sighting
from streams.diagnose.hosts import host_of_line, is_elsewhere, is_of_node

# Training that moves on this long after something in another file has outlived it.
OUTLIVED_MS = 60_000
_OF_PROGRAMS = {
    FaultClass.CUDA_OOM,
    FaultClass.USER_CODE,
    FaultClass.DATA,
    FaultClass.NUMERIC_NAN,
    FaultClass.SOFTWARE_ENV,
    FaultClass.PREEMPTION,
}


def of_job(accounts: Sequence[Account]) -> list[Account]:
    """The files that are the job's own, and not a node's."""
    return [one for one in accounts if _is_program(one) or not one.hosts.is_node_log]


def elsewhere(accounts: Sequence[Account]) -> dict[str, str]:
    """The hosts of nodes' logs that are none of the job's, each with the file that has its lines."""
    own = of_job(accounts)
    jobs = [one.hosts for one in own]
    said = [one.line for account in own for one in account.faults]
    ranks = max((line.evidence.rank for line in said if line.evidence.rank is not None), default=-1) + 1
    peers = [line.peer for line in said if line.peer is not None]
    explained = any(
        _explains(one.line) and not _is_outlived(one, account, accounts) for account in own for one in account.faults
    )
    found: dict[str, str] = {}
    for account in accounts:
        if account in own or not jobs:
            continue
        for sighting in account.faults:
            host = _host(sighting)
            if host is not None and host not in found and is_elsewhere(host, jobs, ranks, peers, explained=explained):
                found[host] = account.name
    return found


def _explains(line: Line) -> bool:
    """Whether a line of the job tells by itself why it failed, and where if that matters: no node has to confirm it."""
    if line.role is not LineRole.CAUSE or line.precedence < TIER:
        return False
    return line.fault_class in _OF_PROGRAMS or (line.scope is Scope.NODE and line.evidence.node is not None)


def _host(sighting: Sighting) -> str | None:
    return host_of_line(sighting.line.evidence.text.encode())


def standing(accounts: Sequence[Account], away: dict[str, str]) -> list[Sighting]:
    """The faults on nodes of the job that training did not outlive, in whichever file it moved on."""
    own = of_job(accounts)
    return [
        sighting
        for account in accounts
        for sighting in account.faults
        if not _is_outlived(sighting, account, accounts) and (account in own or _host(sighting) not in away)
    ]


def outlived_in(accounts: Sequence[Account]) -> int:
    """How many lines may have meant a fault, had training not gone on after them, in their file or another."""
    by_others = sum(_is_outlived(one, account, accounts) for account in accounts for one in account.faults)
    return sum(account.outlived for account in accounts) + by_others


def earlier(accounts: Sequence[Account]) -> tuple[Earlier, ...]:
    """How earlier attempts failed: those that a file tells before it starts over, and files that others outlived."""
    ended = [
        Earlier(root_line([one.line for one in account.faults]).signature, account.last_step)
        for account in accounts
        if account.faults
        and account.last_step is not None
        and all(_is_outlived(one, account, accounts) for one in account.faults)
    ]
    return (*(one for account in accounts for one in account.earlier), *ended)


def _is_outlived(sighting: Sighting, account: Account, accounts: Sequence[Account]) -> bool:
    seen_ms = sighting.line.evidence.read_ms
    for other in () if _is_why_steps_are_slow(sighting, accounts) else accounts:
        if other is account:
            continue
        if seen_ms and other.advanced_ms:
            if other.advanced_ms > account.advanced_ms and other.advanced_ms >= seen_ms + OUTLIVED_MS:
                return True
        elif other.finished and _is_further(other, account):
            return True
    return False


def _is_why_steps_are_slow(sighting: Sighting, accounts: Sequence[Account]) -> bool:
    line = sighting.line
    is_device = line.fault_class is FaultClass.STRAGGLER and line.remedy is Remedy.RESTART_EXCLUDING_NODE
    return is_device and any(account.course.slow is not None for account in accounts)


def _is_further(one: Account, other: Account) -> bool:
    return one.last_step is not None and other.last_step is not None and one.last_step > other.last_step


def moved_last(accounts: Sequence[Account]) -> list[Account]:
    """The job's files with steps or an end, without those of earlier attempts: another one moved on after them."""
    moving = [one for one in accounts if _is_program(one)]
    return [one for one in moving if not any(_is_later(other, one) for other in moving)]


def _is_later(one: Account, other: Account) -> bool:
    """Whether training went on in one file after another had no more of it."""
    first_ms, then_ms = max(other.advanced_ms, other.finished_ms), max(one.advanced_ms, one.finished_ms)
    if first_ms and then_ms:
        return then_ms > first_ms + OUTLIVED_MS
    return other.finished and not one.finished and _is_further(one, other)


def ended_well(accounts: Sequence[Account]) -> bool:
    """Whether the last word of the job is that it was done."""
    return any(one.finished for one in moved_last(accounts))


def is_beside(sighting: Sighting, accounts: Sequence[Account]) -> bool:
    """Whether a node says this of itself, in a file in which no program tells how it went."""
    file = sighting.line.evidence.file
    account = next(one for one in accounts if one.name == file)
    if _is_program(account):
        return False
    return account.hosts.is_node_log or is_of_node(sighting.line.evidence.text.encode())


def _is_program(account: Account) -> bool:
    return account.last_step is not None or account.finished
