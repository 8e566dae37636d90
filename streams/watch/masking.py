"""Makes a line fit to be kept: secrets masked, text cut, digest taken."""

from __future__ import annotations

import re
from hashlib import sha256

MOST_CHARACTERS = 1000
MASK = "***"
# How much of a long line stands before its match in what is kept.
_BEFORE = 200

_SECRETS = (
    # user:password@ in a URL
    re.compile(r"(?P<keep>\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s:/@]{0,128}:)[^\s/@]{1,256}(?=@)"),
    # name=value and name: value with a telling name
    re.compile(
        r"(?i)(?P<keep>[A-Za-z0-9_-]{0,40}(?:password|passwd|secret|api[_-]?key|access[_-]?key|auth[_-]?token|_token|"
        r"access[_-]?token|private[_-]?key|credentials?)[\"']?\s{0,3}[=:]\s{0,3}[\"']?)[^\s\"',;&]{3,512}"
    ),
    re.compile(r"(?i)(?P<keep>\b(?:Bearer|Basic)\s{1,3})[A-Za-z0-9._~+/=-]{8,2048}"),
    # query parameters of signed URLs
    re.compile(r"(?i)(?P<keep>[?&](?:[A-Za-z0-9-]{0,20}(?:signature|token|sig|key|credential))=)[^&\s\"']{4,2048}"),
    # tokens known by their form: AWS, GitHub, Hugging Face, Slack, OpenAI and NVIDIA, Google, JWT, W&B
    re.compile(
        r"(?P<keep>)\b(?:(?:AKIA|ASIA)[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255}|hf_[A-Za-z0-9]{20,255}"
        r"|xox[abprs]-[A-Za-z0-9-]{10,255}|sk-[A-Za-z0-9_-]{20,255}|nvapi-[A-Za-z0-9_-]{20,255}|AIza[A-Za-z0-9_-]{30,60}"
        r"|eyJ[A-Za-z0-9_-]{10,1000}\.[A-Za-z0-9_-]{10,1000}\.[A-Za-z0-9_-]{5,1000}|glpat-[A-Za-z0-9_-]{20,60})"
    ),
)


def masked(text: str) -> str:
    """Return the text with what looks like a secret replaced by `***`."""
    for secret in _SECRETS:
        text = secret.sub(lambda match: match.group("keep") + MASK, text)
    return text


def kept_text(line: bytes, at: int) -> str:
    """Return what is kept of a line: decoded, masked, at most 1,000 characters with those around `at` among them.

    Masking comes before cutting, with some text around, so that no half of a secret is left at the edge.
    """
    low = 0 if len(line) <= MOST_CHARACTERS else max(0, at - _BEFORE)
    around = line[max(0, low - 2 * MOST_CHARACTERS) : low + 4 * MOST_CHARACTERS]
    text = masked(around.decode("utf-8", "replace"))
    if low and len(text) > MOST_CHARACTERS:
        before = masked(line[max(0, low - 2 * MOST_CHARACTERS) : low].decode("utf-8", "replace"))
        text = text[min(len(before), len(text) - MOST_CHARACTERS) :]
    return text[:MOST_CHARACTERS].replace("\x00", "\ufffd").strip()


def digest_of(text: str) -> str:
    """`sha256:` and the hash of a kept text."""
    return "sha256:" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
