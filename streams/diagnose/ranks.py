"""Which ranks a diagnosis is about: by its root, by those that met the same, by their files' names, by the launcher."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from schemas.vocabulary import LineRole, Remedy
from streams.decide.cause import Cause
from streams.decide.roots import BETWEEN_RANKS, ENDED_BY_SCHEDULER
from streams.decide.state import Line
from streams.decide.weighing import LAUNCHERS_SUMMARY
from streams.diagnose.account import Account, Sighting

# `rank2.log`, `logs/rank_2.out`, `worker2`; a local rank is none of the job.
_IN_NAME = re.compile(r"(?i)(?:^|[/_.-])(?<!local[_.-])(?:rank|worker)[_.-]?(\d{1,6})(?![\da-z])")


def met_by(cause: Cause, lines: Sequence[Line], silent_rank: int | None) -> tuple[int, ...]:
    """The ranks that failed: those that a line blames, that fell silent, or that met the fault themselves."""
    root = cause.root
    if root.blamed_rank is not None:
        return (root.blamed_rank,)
    if silent_rank is not None and cause.fault_class in BETWEEN_RANKS:
        return (silent_rank,)
    alike = {line.evidence.rank for line in lines if _is_alike(line, root)} | {root.evidence.rank}
    met = tuple(sorted(rank for rank in alike if rank is not None))
    summary = None if met else launchers_word(cause, lines)
    return met if summary is None or summary.blamed_rank is None else (summary.blamed_rank,)


def met_alike(root: Line | None, others: Sequence[Line], ranks: Sequence[int]) -> tuple[Line, ...]:
    """What other ranks met at first hand, just as the root: no consequences of it."""
    if root is None or len(ranks) < 2:
        return ()
    return tuple(line for line in others if _is_alike(line, root) and line.evidence.rank != root.evidence.rank)


def launchers_word(cause: Cause, lines: Sequence[Line]) -> Line | None:
    """Which rank the launcher saw fail first, where the root does not say who met it, and all its agents saw one."""
    root = cause.root
    if root.evidence.node is not None or cause.fault_class in ENDED_BY_SCHEDULER or cause.remedy is Remedy.IGNORE:
        return None
    seen = {line.blamed_rank: line for line in lines if line.signature == LAUNCHERS_SUMMARY}
    first = next(iter(seen.values()), None)
    return first if len(seen) == 1 and first is not root and root.evidence.rank in {None, *seen} else None


def with_ranks_of_files(accounts: Sequence[Account]) -> list[Account]:
    """The accounts, where a file's name tells its rank and its lines tell no other: one of several that are alike."""
    ranks = _of_names([account.name for account in accounts])
    return [_of_rank(account, ranks[account.name]) if account.name in ranks else account for account in accounts]


def _of_names(names: Sequence[str]) -> dict[str, int]:
    """Names that differ in their ranks alone. A number that two of them have is none of the job's."""
    found = {name: matches[-1] for name in names if (matches := list(_IN_NAME.finditer(name)))}
    ranks = {name: int(match[1]) for name, match in found.items()}
    alike = {name[: match.start(1)] + name[match.end(1) :] for name, match in found.items()}
    return ranks if len(alike) == 1 and len(set(ranks.values())) == len(ranks) > 1 else {}


def _of_rank(account: Account, rank: int) -> Account:
    told = {one.line.evidence.rank for one in account.faults} - {None} | account.voices.heard_ms.keys()
    if not told <= {rank}:
        return account
    heard_ms = account.voices.heard_ms or {rank: account.now_ms}
    faults = [_by(one, rank) for one in account.faults]
    return replace(account, faults=faults, voices=replace(account.voices, heard_ms=heard_ms))


def _by(one: Sighting, rank: int) -> Sighting:
    return replace(one, line=replace(one.line, evidence=replace(one.line.evidence, rank=rank)))


def _is_alike(line: Line, root: Line) -> bool:
    own = root.role is LineRole.CAUSE and root.fault_class not in BETWEEN_RANKS
    return own and line.signature == root.signature and line.detail == root.detail and line.blamed_rank is None
