"""The Advisor Policy Spec: what a job's owner asks for. How it is written in a comment: `schemas/aps_comment.py`.

Names and defaults: the original's guide for running a job.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from schemas.vocabulary import Mode

INTERVALS_OF_THRESHOLD = 4
"""So often at least progress is recorded in the time after which silence of the training loop is looked at."""


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
    log_based_progress_pattern: Annotated[str | None, "RE2 pattern of the job's own step lines; group step"] = None
    log_based_checkpoint_pattern: Annotated[
        str | None, "RE2 pattern of its lines that say that a save is complete and durable; group step"
    ] = None

    def silence_ms(self, *, in_loop: bool) -> int:
        """How long the job may be silent, at most: within its training loop, or before it."""
        loop, before = self.log_based_timeout_threshold_trainingloop, self.log_based_timeout_threshold_pretraining
        return (loop if in_loop else before) * 1000

    @cached_property
    def progress_kept_every_ms(self) -> int:
        """How often progress is recorded: a hang threshold below the interval could not be told by it."""
        interval_ms = self.progress_interval_s * 1000
        if not self.log_based_timeout_enabled:
            return interval_ms
        return min(interval_ms, self.log_based_timeout_threshold_trainingloop * 1000 // INTERVALS_OF_THRESHOLD)
