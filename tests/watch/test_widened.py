"""What hyperscan looks for is in every line that the pattern matches: nothing is lost by looking for less."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.logs import lines
from schemas.vocabulary import FaultClass
from streams.watch.matching.packs import Signature, load_packs
from streams.watch.matching.widened import widened
from tests.watch.parts import matcher

DATA = Path(__file__).with_name("data")

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


@settings(max_examples=300)
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
        (r"loss scale[:= ]+0\.0", r"loss scale[:= ]+0\.0"),
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


def test_a_healthy_line_is_read_for_its_step_and_for_nothing_else() -> None:
    """hyperscan stops at each candidate, and RE2 reads it: a word of healthy lines would slow every job's log down."""
    healthy = "".join(f"{line}\n" for line in lines(200_000, chatty=True)).encode()
    for known in map(json.loads, "".join(file.read_text() for file in DATA.glob("*formats.jsonl")).splitlines()):
        healthy += "".join(f"{line}\n" for line in known["examples"]["step"]).encode()
    stopped: dict[bytes, set[int]] = {}

    def hit(number: int, _low: int, to: int, _flags: int, _context: object) -> None:
        low, end = healthy.rfind(b"\n", 0, to) + 1, healthy.find(b"\n", to)
        stopped.setdefault(healthy[low:end], set()).add(number)

    matcher()._database.scan(healthy, match_event_handler=hit)
    signatures = load_packs().signatures
    faults = sorted((one for one in signatures if one.fault_class is not FaultClass.BENIGN_NOISE), key=_weight)
    meant = matcher()._meant
    numbers = {line: [n for one in ids for n in meant[one]] for line, ids in stopped.items()}
    wrong = {line: [faults[n].id for n in known if n < len(faults)] for line, known in numbers.items()}
    assert {line: ids for line, ids in wrong.items() if ids} == {}


def _weight(signature: Signature) -> int:
    return -signature.precedence


def test_a_line_is_found_whatever_stands_before_it() -> None:
    """Of several expressions that begin with `^\\s*`, hyperscan has lost matches behind some lines."""
    before = [
        b"Infiniband device 'mlx5_11' port 1 status:",
        b"[rank0]: Traceback (most recent call last):",
        b"step 1/9",
    ]
    examples = [text.encode() for one in load_packs().signatures for text in one.examples if "\n" not in text]
    lost = [(first, line) for line in examples for first in before if not _hits(line) <= _hits(line, first + b"\n")]
    assert len(examples) > 500
    assert lost == []


def _hits(line: bytes, before: bytes = b"") -> set[int]:
    """The expressions that hyperscan finds in a line."""
    found: set[int] = set()

    def hit(number: int, _low: int, to: int, _flags: int, _context: object) -> None:
        if to > len(before):
            found.add(number)

    matcher()._database.scan(before + line + b"\n", match_event_handler=hit)
    return found
