"""Packs do what they say, or are refused with the place and the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.watch.matching.examples import load_matcher, problems, split_example
from streams.watch.matching.matcher import Matcher
from streams.watch.matching.packs import BadPack, load_packs
from tests.watch.parts import matcher

SHIPPED = load_packs()
GOOD = """
[[signature]]
id = "site-fan"
pattern = 'fan (?P<fan>\\d+) failed'
class = "host_hardware"
scope = "node"
remedy = "restart_excluding_node"
role = "cause"
precedence = 80
detail = "fan {fan} failed"
examples = ["bmc: fan 3 failed"]
counter_examples = ["fans of the team failed to come"]
source = "our site"
"""


def folder(tmp_path: Path, text: str) -> tuple[Path, ...]:
    (tmp_path / "site.toml").write_text(text)
    return (tmp_path,)


@pytest.mark.parametrize("signature", SHIPPED.signatures, ids=lambda signature: signature.id)
def test_every_example_of_a_shipped_signature_is_found_and_no_counter_example(signature: object) -> None:
    known = next(one for one in SHIPPED.signatures if one is signature)
    for example in known.examples:
        _before, line = split_example(example)
        found = matcher().scan(b"before\n" + example.encode() + b"\nafter\n")
        faults = [one.fault for one in found if one.line == line and one.fault is not None]
        assert faults or known.fault_class == "benign_noise", example
        assert all(fault.signature.precedence >= known.precedence for fault in faults)
    for counter in known.counter_examples:
        ids = [one.fault.signature.id for one in matcher().scan(counter.encode() + b"\n") if one.fault]
        assert known.id not in ids


@pytest.mark.parametrize("known", SHIPPED.formats, ids=lambda known: known.framework)
def test_every_example_of_a_shipped_format_is_read_as_that_framework(known: object) -> None:
    form = next(one for one in SHIPPED.formats if one is known)
    for line in form.step.examples:
        [found] = matcher().scan(line.encode() + b"\n")
        assert found.progress is not None
        assert found.progress.framework == form.framework
    for line in form.saved.examples if form.saved else ():
        [found] = matcher().scan(line.encode() + b"\n")
        assert found.saved is not None
        assert found.saved.framework == form.framework
    for line in form.counter_examples:
        for found in matcher().scan(line.encode() + b"\n"):
            assert (found.progress, found.saved, found.loaded) == (None, None, None), line


@pytest.mark.usefixtures("few_shipped")
def test_a_site_adds_its_own_folder_and_replaces_an_entry_by_its_id(tmp_path: Path) -> None:
    shipped = load_packs()
    replaced = GOOD.replace("site-fan", "xid-off-the-bus")
    packs = load_packs(folder(tmp_path, GOOD + replaced))
    assert len(packs.signatures) == len(shipped.signatures) + 1
    [found] = load_matcher(packs).scan(b"bmc: fan 3 failed\n")
    assert found.fault is not None
    assert found.fault.detail == "fan 3 failed"
    assert "fan" in next(one for one in packs.signatures if one.id == "xid-off-the-bus").detail


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (r"fan (?P<fan>\\d+) failed", r"fan (?P<fan>\\d+ failed", "RE2 can't read it"),
        (r"fan (?P<fan>\\d+) failed", r"(?<=x)(?P<fan>\\d)", "RE2 can't read it"),
        (r"fan (?P<fan>\\d+) failed", r"(?P<fan>\\d*)", "hyperscan can't search for it"),
        ("host_hardware", "host_hardwear", "class is 'host_hardwear', but must be one of: gpu_hardware, "),
        ("precedence = 80", "precedence = 800", "precedence must be a whole number from 0 to 100, not 800"),
        ("{fan} failed", "{fun} failed", "the pattern's groups are: fan"),
        ('role = "cause"', 'rule = "cause"', "there is no key 'rule'"),
        ('examples = ["bmc: fan 3 failed"]', "", "examples is missing"),
        ("fan 3 failed", "fan three failed", "does not match its own pattern"),
        ("fans of the team failed", "my fan 4 failed", "the counter-example 'my fan 4 failed to come' matches"),
        ("[[signature]]", "[[signatures]]", "there is no table 'signatures'"),
        ("[[signature]]", "[[signature]", "can't be read as TOML"),
    ],
)
@pytest.mark.usefixtures("few_shipped")
def test_a_bad_pack_is_refused_with_file_entry_and_reason(tmp_path: Path, before: str, after: str, said: str) -> None:
    before, after = before.replace("\\\\", "\\"), after.replace("\\\\", "\\")
    assert before in GOOD
    with pytest.raises(BadPack) as refusal:
        load_matcher(load_packs(folder(tmp_path, GOOD.replace(before, after, 1))))
    assert said in str(refusal.value)
    assert "site.toml" in str(refusal.value)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadPack, match="which is no folder"):
        load_packs((tmp_path / "nowhere",))


def test_the_check_of_examples_finds_a_pattern_that_misses_its_example() -> None:
    assert list(problems(SHIPPED, Matcher(SHIPPED))) == []
