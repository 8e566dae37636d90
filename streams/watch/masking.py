"""Makes a line fit to be kept: secrets masked, text cut, digest taken."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from streams.watch.secrets import MASK, hidden

MOST_CHARACTERS = 1000
# How much of a long line stands before its match in what is kept.
_BEFORE = 200
MOST_ROUNDS = 8
# So little of a secret tells nothing, and may be a part of any word.
_LEAST_TELLING = 4


def masked(text: str) -> str:
    """Return the text with what looks like a secret replaced by `***`.

    What is left of it may look like one, too: what is told is masked until nothing changes.
    """
    for _ in range(MOST_ROUNDS):
        before, text = text, hidden(text, lambda _secret: MASK)
        if text == before:
            break
    return text


def masker(line: bytes, at: int) -> Callable[[str], str]:
    """Return what masks the captures of a pattern that matches at `at` in a line.

    The whole line says what is a secret: what was captured may lack its name, or be cut in the middle of it.
    """
    secrets: list[str] = []

    def hide(secret: str) -> str:
        secrets.append(secret)
        return MASK

    def mask(captured: str) -> str:
        for secret in secrets:
            captured = _without(captured, secret)
        return masked(captured)

    hidden(_around(line, at), hide)
    return mask


def kept_text(line: bytes, at: int) -> str:
    """Return what is kept of a line: decoded, masked, at most 1,000 characters with those around `at` among them.

    Masking comes before cutting, with some text around, so that no half of a secret is left at the edge.
    """
    low = _low(line, at)
    text = masked(_around(line, at))
    if low and len(text) > MOST_CHARACTERS:
        before = masked(line[max(0, low - 2 * MOST_CHARACTERS) : low].decode("utf-8", "replace"))
        text = text[min(len(before), len(text) - MOST_CHARACTERS) :]
    return text[:MOST_CHARACTERS].replace("\x00", "\ufffd").strip()


def digest_of(text: str) -> str:
    """`sha256:` and the hash of a kept text."""
    return "sha256:" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _low(line: bytes, at: int) -> int:
    """Where what is kept of a line begins."""
    return 0 if len(line) <= MOST_CHARACTERS else max(0, at - _BEFORE)


def _around(line: bytes, at: int) -> str:
    """What is kept of a line, and some text around it."""
    low = _low(line, at)
    return line[max(0, low - 2 * MOST_CHARACTERS) : low + 4 * MOST_CHARACTERS].decode("utf-8", "replace")


def _without(captured: str, secret: str) -> str:
    """What was captured without the secret, and without what a cut left of it at the end or at the beginning."""
    if len(secret) < _LEAST_TELLING:
        return captured
    if len(captured) >= _LEAST_TELLING and captured in secret:
        return MASK
    captured = captured.replace(secret, MASK)
    head, tail = secret[:_LEAST_TELLING], secret[-_LEAST_TELLING:]
    at = captured.find(head, max(0, len(captured) - len(secret)))
    while at >= 0 and not secret.startswith(captured[at:]):
        at = captured.find(head, at + 1)
    captured = captured if at < 0 else captured[:at] + MASK
    at = captured.rfind(tail, 0, len(secret))
    while at >= 0 and not secret.endswith(captured[: at + _LEAST_TELLING]):
        at = captured.rfind(tail, 0, at + _LEAST_TELLING - 1)
    return captured if at < 0 else MASK + captured[at + _LEAST_TELLING :]
