"""How the job ended, by all of its files together: those of its ranks, of its attempts, and of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from schemas.vocabulary import FaultClass, LineRole, Remedy, Scope
from streams.decide.roots import CERTAIN, TIER, moment, root_line
from streams.decide.state import Line
from streams.decide.weighing import Earlier
from streams.diagnose.account import Account, Sighting, telling
from streams.diagnose.clocks import may_be_at
from streams.diagnose.hosts import host_of_line, is_elsewhere, is_of_node

# Training that moves on this long after something in another file has outlived it.
OUTLIVED_MS = 60_000
# What a node says so long after the job's last line did not end the job, where the job's own lines tell what did.
LATE_MS = 600_000
_OF_PROGRAMS = {
    FaultClass.CUDA_OOM,
    FaultClass.USER_CODE,
    FaultClass.DATA,
    FaultClass.NUMERIC_NAN,
    FaultClass.SOFTWARE_ENV,
    FaultClass.PREEMPTION,
}


@dataclass(frozen=True)
class Files:
    """All files that were given, and what they are to each other."""

    accounts: Sequence[Account]

    @cached_property
    def of_job(self) -> list[Account]:
        """The files that are the job's own, and not a node's."""
        return [one for one in self.accounts if _is_program(one) or not one.hosts.is_node_log]

    @cached_property
    def elsewhere(self) -> dict[str, str]:
        """The hosts of nodes' logs that are none of the job's, each with the file that has its lines."""
        jobs = [one.hosts for one in self.of_job]
        said = [one.line for account in self.of_job for one in account.faults]
        ranks = max((line.evidence.rank for line in said if line.evidence.rank is not None), default=-1) + 1
        peers = [line.peer for line in said if line.peer is not None]
        hosts = {host: account.name for account, _one, host in self._of_nodes if host is not None} if jobs else {}
        return {
            host: name
            for host, name in hosts.items()
            if is_elsewhere(host, jobs, ranks, peers, explained=self._is_explained)
        }

    @cached_property
    def late(self) -> dict[str, str]:
        """The nodes' logs that tell of faults after the job's end, and of which hosts."""
        return {host or account.name: account.name for account, one, host in self._of_nodes if self._is_late(one)}

    @cached_property
    def moved_past(self) -> list[Line]:
        """What the job's nodes said of broken hardware before training went on."""
        nodes = [(account, one) for account, one, host in self._of_nodes if host not in self.elsewhere]
        certain = [(account, one) for account, one in nodes if one.line.precedence >= CERTAIN]
        return sorted((one.line for account, one in certain if self._is_outlived(one, account)), key=moment)

    @cached_property
    def standing(self) -> list[Sighting]:
        """The faults that may explain the end."""
        return telling(self._lasting)

    @cached_property
    def outlived(self) -> int:
        """How many lines may have meant a fault, had training not gone on after them, in their file or another."""
        own = [(account, one) for account in self.of_job for one in account.faults]
        nodes = [(account, one) for account, one, host in self._of_nodes if host not in self.elsewhere]
        by_others = sum(self._is_outlived(one, account) for account, one in own + nodes)
        return sum(account.outlived for account in self.accounts) + by_others

    @property
    def survived(self) -> int:
        """How many lines explain no end, for the run went on as it should after them, or after the like of them."""
        return len(self._lasting) - len(self.standing)

    @cached_property
    def earlier(self) -> tuple[Earlier, ...]:
        """How earlier attempts failed: what a file tells before it starts over, and files that others outlived."""
        ended = [Earlier(root.signature, account.last_step) for account, root in self._outlived_roots]
        return (*(one for account in self.accounts for one in account.earlier), *ended)

    @cached_property
    def failed_before(self) -> tuple[Line, ...]:
        """Why earlier attempts failed, as far as files tell it."""
        told = (one for account in self.accounts for one in account.failed_before)
        roots = (*told, *(root for _account, root in self._outlived_roots))
        return tuple(sorted(roots, key=moment))

    @cached_property
    def moved_last(self) -> list[Account]:
        """The job's files with steps or an end, without those of earlier attempts: another one moved on after them."""
        moving = [one for one in self.accounts if _is_program(one)]
        last_ms = max((_moved_ms(one) for one in moving), default=0)
        return [one for one in moving if not self._is_earlier(one, last_ms)]

    @cached_property
    def ended_well(self) -> bool:
        """Whether the last word of the job is that it was done."""
        return any(one.finished for one in self.moved_last)

    def is_beside(self, sighting: Sighting) -> bool:
        """Whether a node says this of itself, in a file in which no program tells how it went."""
        account = next(one for one in self.accounts if one.name == sighting.line.evidence.file)
        if _is_program(account):
            return False
        return account.hosts.is_node_log or is_of_node(sighting.line.evidence.text.encode())

    @cached_property
    def _lasting(self) -> list[Sighting]:
        """The faults on nodes of the job, in its time, that training did not outlive, in whichever file it moved on."""
        own = [(account, one) for account in self.of_job for one in account.faults]
        nodes = [
            (account, one)
            for account, one, host in self._of_nodes
            if host not in self.elsewhere and not self._is_late(one)
        ]
        return [one for account, one in own + nodes if not self._is_outlived(one, account)]

    @cached_property
    def _of_nodes(self) -> list[tuple[Account, Sighting, str | None]]:
        """What nodes' logs say, each with the host that says so."""
        own = {one.name for one in self.of_job}
        return [
            (account, one, host_of_line(one.line.evidence.text.encode()))
            for account in self.accounts
            if account.name not in own
            for one in account.faults
        ]

    @cached_property
    def _outlived_roots(self) -> list[tuple[Account, Line]]:
        """Of each file that others outlived, why it failed."""
        return [
            (account, root_line([one.line for one in account.faults]))
            for account in self.accounts
            if account.faults
            and account.last_step is not None
            and all(self._is_outlived(one, account) for one in account.faults)
        ]

    @cached_property
    def _is_explained(self) -> bool:
        return any(
            _explains(one.line) and not one.survived and not self._is_outlived(one, account)
            for account in self.of_job
            for one in account.faults
        )

    @cached_property
    def _advanced(self) -> Account:
        """The file in which training moved on last."""
        return max(self.accounts, key=lambda account: account.advanced_ms)

    @property
    def _advanced_ms(self) -> int:
        return self._advanced.advanced_ms

    @cached_property
    def _is_slow(self) -> bool:
        return any(account.course.slow is not None for account in self.accounts)

    @cached_property
    def _finished(self) -> list[Account]:
        return [account for account in self.accounts if account.finished]

    def _is_late(self, sighting: Sighting) -> bool:
        seen_ms, last_ms = sighting.line.evidence.read_ms, max((one.now_ms for one in self.of_job), default=0)
        return bool(seen_ms and last_ms) and seen_ms > last_ms + LATE_MS and self._is_explained

    def _is_outlived(self, sighting: Sighting, account: Account) -> bool:
        line, seen_ms = sighting.line, sighting.line.evidence.read_ms
        is_device = line.fault_class is FaultClass.STRAGGLER and line.remedy is Remedy.RESTART_EXCLUDING_NODE
        if is_device and self._is_slow:
            return False
        if seen_ms and self._advanced_ms:
            went_on = self._advanced_ms > account.advanced_ms and self._advanced_ms >= seen_ms + OUTLIVED_MS
            return went_on and not self._may_have_stopped_it(line, account)
        return any(_is_further(other, account) for other in self._finished if other is not account)

    def _may_have_stopped_it(self, line: Line, account: Account) -> bool:
        """Whether broken hardware spoke at the last step, if its node's clock is of another zone than the job's."""
        if line.precedence < CERTAIN or _is_program(account) or not account.hosts.is_node_log:
            return False
        both_named = account.offset_ms is not None and self._advanced.offset_ms is not None
        return not both_named and may_be_at(self._advanced_ms, line.evidence.read_ms)

    def _is_earlier(self, one: Account, last_ms: int) -> bool:
        """Whether training went on in another file after this one had no more of it."""
        if _moved_ms(one):
            return last_ms > _moved_ms(one) + OUTLIVED_MS
        return not one.finished and any(_is_further(other, one) for other in self._finished)


def _explains(line: Line) -> bool:
    """Whether a line of the job tells by itself why it failed, and where if that matters: no node has to confirm it."""
    if line.role is not LineRole.CAUSE or line.precedence < TIER:
        return False
    return line.fault_class in _OF_PROGRAMS or (line.scope is Scope.NODE and line.evidence.node is not None)


def _moved_ms(account: Account) -> int:
    return max(account.advanced_ms, account.finished_ms)


def _is_further(one: Account, other: Account) -> bool:
    return one.last_step is not None and other.last_step is not None and one.last_step > other.last_step


def _is_program(account: Account) -> bool:
    return account.last_step is not None or account.finished
