"""Tries the examples that every pack entry carries: a pack that does not do what it says never runs."""

from __future__ import annotations

from collections.abc import Iterator

from streams.watch.matching.matcher import Found, Matcher, matched
from streams.watch.matching.packs import BadPack, Format, Packs, PhaseSign, Signature
from streams.watch.matching.surroundings import Surroundings


def load_matcher(packs: Packs) -> Matcher:
    """Compile the packs and try every example. Raises BadPack with the file, the entry and the line."""
    matcher = Matcher(packs)
    for problem in problems(packs, matcher):
        raise BadPack(problem)
    return matcher


def problems(packs: Packs, matcher: Matcher) -> Iterator[str]:
    """Give one sentence for each example that is not found, or counter-example that is."""
    for signature in packs.signatures:
        yield from _signature_problems(signature, matcher)
    for known in packs.formats:
        yield from _format_problems(known, matcher)
    for sign in packs.phases:
        yield from _phase_problems(sign, matcher)


def _signature_problems(signature: Signature, matcher: Matcher) -> Iterator[str]:
    for example in signature.examples:
        before, line = split_example(example)
        if matched(signature, line, Surroundings(b"", before + line, len(before), line)) is None:
            yield f"{_place(signature, example)}: the example {example!r} does not match its own pattern"
    for counter_example in signature.counter_examples:
        found = _only(matcher, counter_example)
        if found is not None and found.fault is not None and found.fault.signature.id == signature.id:
            yield f"{_place(signature, counter_example)}: the counter-example {counter_example!r} matches"


def _format_problems(known: Format, matcher: Matcher) -> Iterator[str]:
    parts = {"step": known.step, "saved": known.saved, "loaded": known.loaded, "mark": known.mark}
    for name, part in parts.items():
        for line in part.examples if part is not None else ():
            if part is not None and part.pattern.search(line.encode()) is None:
                yield f"{_place(known, line)}: the {name} example {line!r} does not match its own pattern"
    for line in known.counter_examples:
        found = _only(matcher, line)
        for said in (found.progress, found.saved, found.loaded) if found is not None else ():
            if said is not None and said.framework == known.framework:
                yield f"{_place(known, line)}: the counter-example {line!r} matches"


def _phase_problems(sign: PhaseSign, matcher: Matcher) -> Iterator[str]:
    for line in sign.examples:
        found = _only(matcher, line)
        if found is None or found.phase is not sign.phase:
            yield f"{_place(sign, line)}: the example {line!r} is not read as {sign.phase.value}"
    for line in sign.counter_examples:
        found = _only(matcher, line)
        if found is not None and found.phase is sign.phase:
            yield f"{_place(sign, line)}: the counter-example {line!r} matches"


def _place(entry: Signature | Format | PhaseSign, line: str) -> str:
    """Where the example stands, or at least its entry."""
    return entry.places.get(line, entry.place)


def split_example(example: str) -> tuple[bytes, bytes]:
    """The lines before the decisive one, and that one: an example may have several lines, of which the last counts."""
    before, newline, line = example.rpartition("\n")
    return (before + newline).encode(), line.encode()


def _only(matcher: Matcher, example: str) -> Found | None:
    """What the example's last line says."""
    before, line = split_example(example)
    found = [one for one in matcher.scan(before + line + b"\n") if one.start == len(before)]
    return found[0] if found else None
