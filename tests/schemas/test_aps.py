"""What a job's owner may write into a comment: nothing of it reaches a record that can't hold it."""

from __future__ import annotations

import json
import sys

import pytest

from schemas.aps import MOST, Aps, InvalidAps, parse_aps

DETECTION = "anomaly_detection_config"
WAIT = "log_based_timeout_threshold_trainingloop"


def comment(**body: object) -> str:
    return json.dumps({"APS": body})


def test_the_greatest_numbers_that_are_allowed_are_taken() -> None:
    aps = parse_aps(comment(max_requeue_times=MOST, **{DETECTION: {WAIT: MOST}}))
    assert aps == Aps(max_requeue_times=MOST, log_based_timeout_threshold_trainingloop=MOST)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (comment(max_requeue_times=MOST + 1), f"max_requeue_times must be a whole number from 0 to {MOST}"),
        (comment(max_requeue_times=2**70), f"max_requeue_times must be a whole number from 0 to {MOST}"),
        (comment(progress_interval=0), f"progress_interval must be a whole number from 1 to {MOST}"),
        (comment(**{DETECTION: {WAIT: 2**62}}), f"{WAIT} must be a whole number from 1 to {MOST}"),
        (comment(workflow_name="\ud800"), "workflow_name has half a character"),
        (comment(environment="lab\udcff"), "environment has half a character"),
        ('{"APS":' + "[" * sys.getrecursionlimit() * 50, "is not JSON"),
    ],
)
def test_what_no_record_can_hold_is_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(InvalidAps, match=said.replace("(", r"\(")) as refused:
        parse_aps(text)
    str(refused.value).encode()
