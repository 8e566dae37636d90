"""Reads the Advisor Policy Spec from Slurm's `--comment`, where it stands as JSON.

Only a well-formed object under the key `APS` (or `HEIMDALL`) enrols a job; anything else never authorises an action.
"""

from __future__ import annotations

import json
from typing import Any

from schemas.aps import Aps
from schemas.patterns import BadPattern, check_of_job
from schemas.vocabulary import Mode

WRAPPERS = ("APS", "HEIMDALL")
MAX_WORKFLOW_ID = 256
MOST = 2**31 - 1
"""Above any number that means something, and as milliseconds still far from what a record can hold."""
PROGRESS, CHECKPOINT = "log_based_progress_pattern", "log_based_checkpoint_pattern"


class InvalidAps(ValueError):
    """A comment that claims to be an APS and is not one; the message names the key and what is allowed."""


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
        log_based_progress_pattern=_pattern(detection, PROGRESS),
        log_based_checkpoint_pattern=_pattern(detection, CHECKPOINT),
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


def _pattern(body: dict[str, Any], key: str) -> str | None:
    """What watch looks for in the lines of this job alone."""
    text = _text(body, key)
    try:
        if text is not None:
            check_of_job(text)
    except BadPattern as error:
        example = r"^it (?P<step>\d+) "
        raise InvalidAps(f"{key} is refused: {error}. An example: {json.dumps(example)}, not {text!r}") from error
    return text


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
