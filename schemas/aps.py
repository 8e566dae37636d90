"""The Advisor Policy Spec: what a job's owner asks for, as JSON in Slurm's `--comment`.

Only a well-formed object under the key `APS` (or `HEIMDALL`) enrols a job; anything else never authorises an action.
Names and defaults: the original's guide for running a job.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from schemas.vocabulary import Mode

WRAPPERS = ("APS", "HEIMDALL")
MAX_WORKFLOW_ID = 256
MOST = 2**31 - 1
"""Above any number that means something, and as milliseconds still far from what a record can hold."""

INTERVALS_OF_THRESHOLD = 4
"""So often at least progress is recorded in the time after which silence of the training loop is looked at."""


class InvalidAps(ValueError):
    """A comment that claims to be an APS and is not one; the message names the key and what is allowed."""


@dataclass(frozen=True)
class Aps:
    """A valid policy of one job."""

    workflow_id: Annotated[str | None, "groups the job's attempts with other jobs; opaque"] = None
    workflow_name: Annotated[str | None, "used as workflow id where there is none"] = None
    environment: Annotated[str | None, "exact, case-sensitive name of the installation that may act"] = None
    mode: Annotated[Mode | None, "observe or act; None takes the controller's default"] = None
    auto_resume_mode: Annotated[str | None, "requeue, or None: the job wants no recovery"] = None
    max_requeue_times: Annotated[int | None, "restarts asked for; the site's limit still bounds it"] = None
    log_file_paths_shared_across_attempts: Annotated[bool, "several attempts append to one file"] = False
    progress_interval_s: Annotated[int, "least seconds between two recorded progress facts"] = 60
    log_based_crash_detection_enabled: Annotated[bool, "off: a failed scheduler state counts at once"] = True
    log_based_timeout_enabled: Annotated[bool, "hang detection by missing output"] = True
    log_based_timeout_threshold_pretraining: Annotated[int, "seconds before the training loop"] = 960
    log_based_timeout_threshold_trainingloop: Annotated[int, "seconds in the training loop"] = 840

    def silence_ms(self, *, in_loop: bool) -> int:
        """How long the job may be silent, at most: within its training loop, or before it."""
        loop, before = self.log_based_timeout_threshold_trainingloop, self.log_based_timeout_threshold_pretraining
        return (loop if in_loop else before) * 1000

    @property
    def progress_kept_every_ms(self) -> int:
        """How often progress is recorded: a hang threshold below the interval could not be told by it."""
        interval_ms = self.progress_interval_s * 1000
        if not self.log_based_timeout_enabled:
            return interval_ms
        return min(interval_ms, self.log_based_timeout_threshold_trainingloop * 1000 // INTERVALS_OF_THRESHOLD)


def parse_aps(comment: str) -> Aps | None:
    """Return the job's policy, or None for a comment that does not speak of one. Raises InvalidAps."""
    text = comment.strip()
    if not any(wrapper in text for wrapper in WRAPPERS):
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidAps(
            f"the comment names APS but is not JSON ({error}); quote it: --comment='{{\"APS\":{{...}}}}'"
        ) from error
    if not isinstance(document, dict):
        raise InvalidAps("the comment must be a JSON object with the key APS")
    found = [wrapper for wrapper in WRAPPERS if wrapper in document]
    if not found:
        return None
    if len(found) > 1:
        raise InvalidAps("the comment has both APS and HEIMDALL: keep one")
    body = document[found[0]]
    if not isinstance(body, dict):
        raise InvalidAps(f"{found[0]} must be an object, not {type(body).__name__}")
    return _read(body)


def _read(body: dict[str, Any]) -> Aps:
    detection = body.get("anomaly_detection_config", {})
    if not isinstance(detection, dict):
        raise InvalidAps(f"anomaly_detection_config must be an object, not {detection!r}")
    mode = _text(body, "mode")
    if mode not in (None, Mode.OBSERVE, Mode.ACT):
        raise InvalidAps(f"mode must be observe or act, not {mode!r}")
    resume = _text(body, "auto_resume_mode")
    if resume not in (None, "requeue"):
        raise InvalidAps(f"auto_resume_mode must be requeue, not {resume!r}")
    workflow_id = _text(body, "workflow_id")
    if workflow_id is not None and not 1 <= len(workflow_id) <= MAX_WORKFLOW_ID:
        raise InvalidAps(f"workflow_id must have 1 to {MAX_WORKFLOW_ID} characters, not {len(workflow_id)}")
    return Aps(
        workflow_id=workflow_id,
        workflow_name=_text(body, "workflow_name"),
        environment=_text(body, "environment"),
        mode=Mode(mode) if mode is not None else None,
        auto_resume_mode=resume,
        max_requeue_times=_integer(body, "max_requeue_times", least=0),
        log_file_paths_shared_across_attempts=_flag(body, "log_file_paths_shared_across_attempts", default=False),
        progress_interval_s=_integer(body, "progress_interval", least=1) or 60,
        log_based_crash_detection_enabled=_flag(detection, "log_based_crash_detection_enabled", default=True),
        log_based_timeout_enabled=_flag(detection, "log_based_timeout_enabled", default=True),
        log_based_timeout_threshold_pretraining=_integer(detection, "log_based_timeout_threshold_pretraining", least=1)
        or 960,
        log_based_timeout_threshold_trainingloop=_integer(
            detection, "log_based_timeout_threshold_trainingloop", least=1
        )
        or 840,
    )


def _text(body: dict[str, Any], key: str) -> str | None:
    value = body.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidAps(f"{key} must be a text, not {value!r}")
    try:
        (value or "").encode()
    except UnicodeEncodeError as error:
        raise InvalidAps(f"{key} has half a character ({error.reason}): {value!r}") from error
    return value


def _integer(body: dict[str, Any], key: str, *, least: int) -> int | None:
    value = body.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        raise InvalidAps(f"{key} must be a whole number from {least} to {MOST}, not {value!r}")
    return value


def _flag(body: dict[str, Any], key: str, *, default: bool) -> bool:
    value = body.get(key, default)
    if not isinstance(value, bool):
        raise InvalidAps(f"{key} must be true or false, not {value!r}")
    return value
