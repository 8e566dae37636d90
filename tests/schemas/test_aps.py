"""What a job's owner may write into a comment: nothing of it reaches a record that can't hold it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from schemas.aps import Aps
from schemas.aps_comment import MOST, InvalidAps, parse_aps
from schemas.patterns import compiled

DETECTION = "anomaly_detection_config"
PROGRESS, CHECKPOINT = "log_based_progress_pattern", "log_based_checkpoint_pattern"
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


def test_the_patterns_of_a_job_are_taken_as_they_stand() -> None:
    step, saved = r"^it (?P<step>\d+) ", r"saved (?P<step>\d+) to (?P<path>\S+)"
    aps = parse_aps(comment(**{DETECTION: {PROGRESS: step, CHECKPOINT: saved}}))
    assert aps == Aps(log_based_progress_pattern=step, log_based_checkpoint_pattern=saved)


@pytest.mark.parametrize("key", [PROGRESS, CHECKPOINT])
@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (7, "must be a text, not 7"),
        ("it \ud800", "has half a character"),
        ("", "must have 1 to 300 characters, not 0"),
        (r"(?P<step>\d+)" + "x" * 300, "must have 1 to 300 characters, not 313"),
        (r"it \d+ ", r"needs a group (?P<step>\d+)"),
        (r"it (?P<step>\d+", "RE2 can't read it: missing )"),
        (r"(?<=it )(?P<step>\d+)", "RE2 can't read it: invalid perl operator"),
        (r"(?P<step>\d*)", "matches an empty line"),
        (r"it (?P<step>\d{1,900})", "too large for RE2 to be fast"),
        (r"(?:a?b?){80}c(?P<step>\d)", "too large for RE2 to be fast"),
        (r"\Ait (?P<step>\d+) ", r"it would never match: \A is the beginning of all that is read; write ^"),
        (r"it (?P<step>\d+)\z", r"it would never match: \z is the end of all that is read; write $"),
        (r"it (?P<step>\d+)\n", "it would never match: a line is searched without its end"),
        ("it (?P<step>\\d+)\r", "it would never match: a line is searched without its end"),
        (r"(?-m)^it (?P<step>\d+)", "it would never match: with (?-m)"),
        (r"(?i-sm:^it (?P<step>\d+))", "it would never match: with (?-m)"),
        (r"it (?P<step>)\d+ ", "its group step can hold no digit"),
        (r"it (?P<step>[a-z]+(?:\s{2}|\D)) \d+", "its group step can hold no digit"),
        (r"^it (?P<step>\d+)|^at (?P<step2>\d+)|^in", "^ stands in it more than 2 times"),
    ],
)
def test_a_pattern_that_no_job_may_bring_is_refused_with_its_key(key: str, pattern: object, said: str) -> None:
    with pytest.raises(InvalidAps, match=re.escape(said)) as refused:
        parse_aps(comment(**{DETECTION: {key: pattern}}))
    assert str(refused.value).startswith(key)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^it (?P<step>\d+) [^\n]+$",
        r"it (?P<step>(?:\w+ )?[^ ]+)",
        r"\QC:\new^\E (?P<step>[0-9,]{1,9})",
        r"(?P<step>(?i)x(?:a|.)) \\A",
        r"(?i)(?:^|[\^^]|^\s*)it (?P<step>[[:digit:]]+)",
    ],
)
def test_what_only_looks_as_if_it_never_matched_is_taken(pattern: str) -> None:
    assert parse_aps(comment(**{DETECTION: {PROGRESS: pattern}})) is not None


def test_a_refused_pattern_is_answered_with_one_that_can_be_copied_into_the_comment() -> None:
    with pytest.raises(InvalidAps) as refused:
        parse_aps(comment(**{DETECTION: {PROGRESS: "it"}}))
    example = str(refused.value).partition("An example: ")[2].partition(", not ")[0]
    assert parse_aps(f'{{"APS":{{"{DETECTION}":{{"{PROGRESS}":{example}}}}}}}') is not None


def test_the_example_of_the_guide_is_what_a_comment_may_say() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "packs.md").read_text(encoding="utf-8")
    [example] = re.findall(r"--comment='(.*)'", guide)
    aps = parse_aps(example)
    assert aps is not None
    for pattern, line in (
        (aps.log_based_progress_pattern, "it 120 loss 3.207"),
        (aps.log_based_checkpoint_pattern, "wrote state 120 to /ckpt/120.pt"),
    ):
        assert pattern is not None
        assert line in guide
        found = compiled(pattern).search(line.encode())
        assert found is not None
        assert found[1] == b"120"
