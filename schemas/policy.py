"""The site's recovery policy: an immutable document, named by its digest.

The scheduler controller stamps the digest in force on every observation; deciders load documents by digest alone, so
that a replay years later decides with the policy of the day.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from typing import Annotated

LOGIC = 2
"""The version of the deciding rules that this code adds; it also runs every earlier one."""

SUPPORTED_LOGIC = frozenset({1, 2})


class InvalidPolicy(ValueError):
    """A policy document that can't be put in force; the message names the field and what is allowed."""


@dataclass(frozen=True)
class Policy:
    """Limits and delays of one site. Durations are seconds."""

    max_requeue_times: Annotated[int, "restarts of one job, whatever it asks for"] = 3
    max_failures_without_checkpoint: Annotated[int, "failures in a row without a new checkpoint, then stop"] = 3
    max_excluded_nodes: Annotated[int, "nodes that recovery may exclude for one job"] = 4
    incident_quiet_s: Annotated[float, "an incident is attributed after this long without a new line"] = 5.0
    incident_final_quiet_s: Annotated[float, "the same once the scheduler says that the attempt has ended"] = 1.5
    incident_max_s: Annotated[float, "an incident is attributed after this long whatever still comes"] = 40.0
    crash_fallback_delay_s: Annotated[float, "a failed state with no crash line opens an incident after this"] = 10.0
    running_grace_s: Annotated[float, "an attempt that printed a fault may still end by itself for this long"] = 30.0
    advice_valid_s: Annotated[float, "Advice against a running attempt holds this long unless renewed"] = 300.0
    attribution_deadline_s: Annotated[float, "how long to wait for the attribution provider; 0 asks nobody"] = 0.0
    stall_answer_s: Annotated[float, "how long to wait for the answer whether a silent attempt still prints"] = 60.0
    stall_recent_s: Annotated[float, "output no older than this, or half the budget, is recent: no silence"] = 60.0
    stall_patience: Annotated[
        int, "output that grows this many configured thresholds long without a step is a hang too"
    ] = 3
    straggler_factor: Annotated[float, "steps this much slower than the attempt's own baseline are slow"] = 1.5
    straggler_samples: Annotated[int, "so many slow progress facts in a row are a straggler"] = 5
    straggler_recovery: Annotated[int, "1: a straggler is restarted; 0: it is only recorded"] = 0
    job_close_s: Annotated[float, "a job's state closes this long after its last attempt is final"] = 86_400.0
    watchdog_timeout_s: Annotated[float, "the watchdog releases a hold after this; every wait above is shorter"] = 600.0
    cluster_epoch: Annotated[int, "leads every Advice generation; raised by a restore from backup"] = 0

    def restart_limit(self, asked: int | None) -> int:
        """Restarts that a job may have: the site's limit, or the one that it `asked` for where that is lower."""
        return self.max_requeue_times if asked is None else min(self.max_requeue_times, asked)

    def document(self) -> bytes:
        """The canonical JSON of this policy."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":")).encode()

    def digest(self) -> str:
        """The name of this policy: that of its canonical document."""
        return digest_of(self.document())

    @classmethod
    def parse(cls, document: bytes) -> Policy:
        """Read a policy document. Raises InvalidPolicy."""
        try:
            body = json.loads(document, parse_constant=_no_number)
        except ValueError as error:
            raise InvalidPolicy(f"a policy is a JSON object: {error}") from error
        if not isinstance(body, dict):
            raise InvalidPolicy(f"a policy is a JSON object, not {type(body).__name__}")
        known = {field.name: field.type for field in fields(cls)}
        for name, value in body.items():
            if name not in known:
                raise InvalidPolicy(f"{name!r} is no policy field; there are: {', '.join(sorted(known))}")
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise InvalidPolicy(f"{name} must be a number of at least 0, not {value!r}")
        policy = cls(**body)
        policy.check()
        return policy

    def check(self) -> None:
        """Raise InvalidPolicy where a wait on a held attempt could outlast the watchdog."""
        longest = max(self.incident_max_s, self.crash_fallback_delay_s) + self.attribution_deadline_s
        if longest >= self.watchdog_timeout_s:
            raise InvalidPolicy(
                f"a held attempt may wait {longest:g} s for a decision, but the watchdog releases it after"
                f" {self.watchdog_timeout_s:g} s: raise watchdog_timeout_s or shorten the waits"
            )


def digest_of(document: bytes) -> str:
    """`sha256:` and the hash of a document as it was published. It stays right when later code adds fields."""
    return "sha256:" + hashlib.sha256(document).hexdigest()


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


DEFAULT_POLICY = Policy()
