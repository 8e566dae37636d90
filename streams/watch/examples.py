"""Tries the examples that every pack entry carries: a pack that does not do what it says never runs."""

from __future__ import annotations

from collections.abc import Iterator

from streams.watch.matcher import Found, Matcher
from streams.watch.packs import BadPack, Format, Packs, Signature


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


def _signature_problems(signature: Signature, matcher: Matcher) -> Iterator[str]:
    for line in signature.examples:
        captured = signature.pattern.search(line.encode())
        if captured is None or (signature.unless is not None and signature.unless.search(line.encode()) is not None):
            yield f"{signature.place}: the example {line!r} does not match its own pattern"
    for line in signature.counter_examples:
        found = _only(matcher, line)
        if found is not None and found.fault is not None and found.fault.signature.id == signature.id:
            yield f"{signature.place}: the counter-example {line!r} matches"


def _format_problems(known: Format, matcher: Matcher) -> Iterator[str]:
    parts = {"step": known.step, "saved": known.saved, "loaded": known.loaded}
    for name, part in parts.items():
        for line in part.examples if part is not None else ():
            if part is not None and part.pattern.search(line.encode()) is None:
                yield f"{known.place}: the {name} example {line!r} does not match its own pattern"
    for line in known.counter_examples:
        found = _only(matcher, line)
        for said in (found.progress, found.saved, found.loaded) if found is not None else ():
            if said is not None and said.framework == known.framework:
                yield f"{known.place}: the counter-example {line!r} matches"


def _only(matcher: Matcher, line: str) -> Found | None:
    found = matcher.scan(line.encode() + b"\n")
    return found[0] if found else None
