"""Policies are documents: named by their digest, refused where they can't be put in force, readable for ever."""

from __future__ import annotations

import json

import pytest

from schemas.policy import DEFAULT_POLICY, InvalidPolicy, Policy, digest_of


def test_a_document_comes_back_with_its_digest() -> None:
    policy = Policy(max_requeue_times=7, incident_quiet_s=2.5)
    again = Policy.parse(policy.document())
    assert again == policy
    assert again.digest() == digest_of(policy.document())


def test_a_document_of_the_past_without_todays_fields_is_read_and_keeps_its_name() -> None:
    old = json.dumps({"max_requeue_times": 2}).encode()
    assert Policy.parse(old).max_requeue_times == 2
    assert digest_of(old) != Policy.parse(old).digest()


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (b"[]", "JSON object"),
        (b"{", "JSON object"),
        (b'{"max_requeue_time": 3}', "max_requeue_time"),
        (b'{"max_requeue_times": "3"}', "max_requeue_times"),
        (b'{"max_requeue_times": -1}', "max_requeue_times"),
        (b'{"max_requeue_times": true}', "max_requeue_times"),
        (b'{"incident_quiet_s": NaN}', "NaN"),
        (b'{"incident_quiet_s": Infinity}', "Infinity"),
    ],
)
def test_a_bad_document_is_refused_with_its_fault_named(document: bytes, said: str) -> None:
    with pytest.raises(InvalidPolicy, match=said):
        Policy.parse(document)


def test_no_wait_on_a_held_attempt_may_outlast_the_watchdog() -> None:
    with pytest.raises(InvalidPolicy, match="watchdog"):
        Policy.parse(b'{"attribution_deadline_s": 900}')
    DEFAULT_POLICY.check()
