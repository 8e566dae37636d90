"""What hyperscan looks for is in every line that the pattern matches: nothing is lost by looking for less."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.watch.packs import load_packs
from streams.watch.widened import widened

WORDS = st.sampled_from(
    ["rank 3", "node", "hash", "checksum", "mismatch", "detected", "hang", "timeout", " ", ": ", "x"]
)
PIECES = st.sampled_from(
    [
        "rank",
        r"\b",
        ".*",
        r"\S+",
        r"\D{0,20}",
        "(?:hash|checksum) ",
        "(?P<what>mismatch|detected)",
        "(?:hang|rank.*detected)",
        "(?:timeout)?",
        r"[^:]*: ",
        r"\d+",
        "x{2,}",
        "|",
        "^",
    ]
)
PATTERNS = st.lists(PIECES, min_size=1, max_size=8).map(lambda parts: _once("".join(parts)))


def _once(pattern: str) -> str:
    """A name may stand in a pattern only once."""
    head, found, rest = pattern.partition("(?P<what>")
    return head + found + rest.replace("(?P<what>", "(?:")


@settings(max_examples=500)
@given(PATTERNS, st.lists(WORDS, max_size=10).map("".join))
def test_where_a_pattern_matches_its_widened_form_does(pattern: str, line: str) -> None:
    if re.search(pattern, line):
        assert re.search(widened(pattern), line), widened(pattern)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"(?:rank|node).*(?:hash|checksum) mismatch", r"(?:hash|checksum) mismatch"),
        (r"size mismatch for \S+", "size mismatch for "),
        (r"(?i)job.*preempted|spot interruption", r"(?i)preempted|spot interruption"),
        (r"(?i:mlx5.{0,80}(?:health compromised|link is lost))", "(?i:(?:health compromised|link is lost))"),
        (r"a.*b", r"a.*b"),
        (r"\b(?:rank|task)s? \S{1,12} (?:has )?(?:died|failed)", r" (?:has )?(?:died|failed)"),
        (r": (?P<node>[A-Za-z][\w.-]*)(?: port \d+)?: Connection refused", r"(?: port \d+)?: Connection refused"),
        (r"x(?:timeout|rank.*mismatch)", r"(?:timeout|mismatch)"),
        (r"[.*]{3} failed to start", r"[.*]{3} failed to start"),
    ],
)
def test_of_what_gaps_join_the_heaviest_piece_is_looked_for(pattern: str, expected: str) -> None:
    assert widened(pattern) == expected


def test_every_shipped_pattern_keeps_its_words() -> None:
    for signature in load_packs().signatures:
        re.compile(widened(signature.pattern.text))
