"""Who is who: jobs, attempts, positions and the deterministic ids derived from them.

A Slurm job id alone names nothing for long: ids are reused, and a requeue keeps the id. An attempt is therefore
(cluster, job, incarnation, index): the incarnation is the submit time of attempt 0, the index Slurm's restart count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha1
from typing import Annotated, NewType
from uuid import UUID

JobKey = NewType("JobKey", str)
"""`cluster/job_id`: the record key that gives all facts of one job one order."""

# A fixed, arbitrary namespace: ids must be the same on every machine, for ever.
NAMESPACE = UUID("6d8f8a52-7a0e-5c4e-9b8e-3f0c2f7d1a64")
_NAMESPACE_BYTES = NAMESPACE.bytes
_VARIANTS = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}

# `123` a job, `123_4` a task of an array, `200+1` a component of a heterogeneous job.
JOB_ID = re.compile(r"\d+(?:_\d+|\+\d+)?")
CLUSTER = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class InvalidIdentity(ValueError):
    """A text that names no job or attempt; its message shows the text and the form that is expected."""


def derived_id(*parts: str | int) -> str:
    """Return the UUIDv5 of `parts`: the same parts give the same id in every process and every replay."""
    return _uuid5("\x1f".join([str(part) for part in parts]))


def ordinal_id(cause: str, ordinal: int) -> str:
    """Return `derived_id(cause, ordinal)`, for those who need one for each event of a cause."""
    return _uuid5(f"{cause}\x1f{ordinal}")


def _uuid5(name: str) -> str:
    """As uuid.uuid5 does, at a third of its time: version 5, and the variant of RFC 4122 in two bits of a digit."""
    h = sha1(_NAMESPACE_BYTES + name.encode(), usedforsecurity=False).hexdigest()
    return f"{h[:8]}-{h[8:12]}-5{h[13:16]}-{_VARIANTS[h[16]]}{h[17:20]}-{h[20:32]}"


@lru_cache(maxsize=16384)
def job_key(cluster: str, job_id: str) -> JobKey:
    """Return the record key of a job. Raises InvalidIdentity for what is no cluster name or no job id.

    A bare array id is indistinguishable from a job id here; the scheduler adapter never produces one.
    """
    if not CLUSTER.fullmatch(cluster):
        raise InvalidIdentity(f"{cluster!r} is no cluster name: expected letters, digits, '_', '-' or '.'")
    if not JOB_ID.fullmatch(job_id):
        raise InvalidIdentity(f"{job_id!r} is no Slurm job id: expected 123, 123_4 (array) or 123+1 (heterogeneous)")
    return JobKey(f"{cluster}/{job_id}")


@dataclass(frozen=True, order=True)
class AttemptId:
    """One execution of one job."""

    cluster: Annotated[str, "Slurm's ClusterName"]
    job_id: Annotated[str, "123, 123_4 for an array task, 200+1 for a heterogeneous component"]
    incarnation: Annotated[int, "submit time of attempt 0, seconds since the epoch; 0 while unknown"]
    index: Annotated[int, "Slurm's restart count; the first attempt is 0"]

    @property
    def job(self) -> JobKey:
        return JobKey(f"{self.cluster}/{self.job_id}")

    @property
    def heimdall_job_id(self) -> str:
        """The API's stable UUID of this attempt."""
        return _stable_id(self.cluster, self.job_id, self.incarnation, self.index)

    @cached_property
    def key(self) -> str:
        """`cluster/job_id@incarnation/index`: the record key of the attempt's Advice."""
        return f"{self.cluster}/{self.job_id}@{self.incarnation}/{self.index}"

    def __str__(self) -> str:
        return self.key

    def successor(self) -> AttemptId:
        return AttemptId(self.cluster, self.job_id, self.incarnation, self.index + 1)

    @classmethod
    def parse(cls, text: str) -> AttemptId:
        """Read the form that `key` writes. Raises InvalidIdentity."""
        match = re.fullmatch(r"([^/@]+)/([^/@]+)@(\d+)/(\d+)", text)
        if match is None:
            raise InvalidIdentity(f"{text!r} names no attempt: expected cluster/job@incarnation/index")
        cluster, job_id, incarnation, index = match.groups()
        job_key(cluster, job_id)
        return cls(cluster, job_id, int(incarnation), int(index))


@lru_cache(maxsize=4096)
def _stable_id(cluster: str, job_id: str, incarnation: int, index: int) -> str:
    """Kept beside the ids themselves, which every decoded record makes anew."""
    return derived_id("attempt", cluster, job_id, incarnation, index)


@dataclass(frozen=True, order=True)
class Position:
    """Where a fact stands in its source. Facts of one source are compared by (epoch, offset, ordinal).

    For a file the epoch counts its identities and truncations (Slurm truncates the same file at requeue unless
    told to append) and the offset is in bytes; for the scheduler the offset is the time of the look in ms; for a
    topic it is the record's offset. The ordinal tells apart several facts read at one offset.
    """

    source: Annotated[str, "file:<path>, slurm:<cluster>, topic:<name>/<partition>, relay:<timer>, person:<name>"]
    epoch: Annotated[int, "counts the source's beginnings; 0 where it has only one"]
    offset: Annotated[int, "bytes, milliseconds or records, as the source counts"]
    ordinal: Annotated[int, "several facts at one offset, in order"] = 0
