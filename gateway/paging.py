"""Pages: decimal offsets for jobs and workflows, opaque tokens for Advice and audit events, as the original has them.

An opaque token carries a fingerprint of the query it belongs to: with another query it would skip or repeat.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

from gateway.errors import BadRequest

DEFAULT_LIMIT = 100
LARGEST_LIMIT = 250
LARGEST_AUDIT_LIMIT = 100
LARGEST_OFFSET = 10**12

Item = TypeVar("Item")


def decimal_offset(parameter: str, token: str) -> int:
    """Read a page token that is an offset. Raises BadRequest."""
    if not (token.isascii() and token.isdigit()) or int(token[:20]) > LARGEST_OFFSET:
        raise BadRequest(parameter, token, "expected a decimal offset; take it from nextPageToken of the page before")
    return int(token)


def page_offset(page_token: str | None, page_number: int | None, limit: int) -> int:
    """Where a page of jobs or workflows begins. Raises BadRequest."""
    if page_token and page_number is not None:
        raise BadRequest("pageNumber", page_number, "pageToken is given, too; give one of the two")
    if page_token:
        return decimal_offset("pageToken", page_token)
    return 0 if page_number is None else (page_number - 1) * limit


def cut(items: Sequence[Item], offset: int, limit: int) -> tuple[list[Item], str]:
    """Of `limit + 1` items read, those of the page, and the token of the next page ('' at the end)."""
    return list(items[:limit]), str(offset + limit) if len(items) > limit else ""


@dataclass(frozen=True)
class Cursor:
    """A place between two items: those after `key`, or (`backward`) those before it."""

    key: tuple[int | str, ...]
    backward: bool = False


def fingerprint(*query: object) -> str:
    """What tells one query from another."""
    return sha256(json.dumps(query, default=str).encode()).hexdigest()[:12]


def write_token(cursor: Cursor, query: str) -> str:
    """The opaque token of a place in the answer to a query."""
    document = json.dumps([query, int(cursor.backward), *cursor.key], separators=(",", ":"))
    return base64.urlsafe_b64encode(document.encode()).rstrip(b"=").decode()


def read_token(parameter: str, token: str, query: str, kinds: tuple[type[int] | type[str], ...]) -> Cursor:
    """Read an opaque token back; `kinds` are the types of its key. Raises BadRequest."""
    try:
        document = json.loads(base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True))
        known, backward, *key = document
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise BadRequest(parameter, token, "not a token of this interface; take it from the page before") from error
    if len(key) != len(kinds) or any(type(part) is not kind for part, kind in zip(key, kinds, strict=True)):
        raise BadRequest(parameter, token, "not a token of this list; take it from the page before")
    if any(isinstance(part, int) and abs(part) >= 2**63 for part in key):
        raise BadRequest(parameter, token, "not a token of this list; take it from the page before")
    if known != query:
        raise BadRequest(parameter, token, "it belongs to another query; keep the filters, or start without it")
    return Cursor(tuple(key), backward == 1)
