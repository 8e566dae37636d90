"""Reads the tables of a pack's TOML text, with errors that say where, what is wrong, and what would be right."""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from string import Formatter
from typing import Any, TypeVar

from schemas.patterns import BadPattern
from streams.watch.matching.patterns import Pattern, compile_pattern

_HEADER = re.compile(r"(?m)^[ \t]*\[\[[ \t]*(\w+)[ \t]*\]\]")
_AT_LINE = re.compile(r"at line (\d+)")
_NAMES = {"format": "framework"}
"""By which key an entry is called, where it is not its id."""

Word = TypeVar("Word", bound=StrEnum)


class BadPack(ValueError):
    """A pack that can't be used; the message names the file, the line, the entry, the reason and the way out."""


@dataclass(frozen=True)
class PackEntry:
    """One table of a pack. `line` 0: it is not known, since the table was written in another way than `[[name]]`."""

    file: str
    name: str
    body: Mapping[str, Any]
    line: int
    text_of_it: str

    @property
    def place(self) -> str:
        return self._place(self.line)

    def bad(self, reason: str, key: str = "") -> BadPack:
        """The refusal, with the line of the key if it stands there."""
        found = self._found(key) if key else None
        below = 0 if found is None else self.text_of_it.count("\n", 0, found.start())
        return BadPack(f"{self._place(self.line + below)}: {reason}")

    def refuse_keys_beside(self, allowed: set[str]) -> None:
        unknown = self.body.keys() - allowed
        if unknown:
            first = min(unknown)
            raise self.bad(f"there is no key {first!r}; allowed: {', '.join(sorted(allowed))}", first)

    def text(self, key: str) -> str:
        if key not in self.body:
            raise self.bad(f"{key} is missing")
        value = self.body[key]
        if not isinstance(value, str) or not value:
            raise self.bad(f"{key} must be a text that is not empty, not {value!r}", key)
        return value

    def word(self, key: str, words: type[Word]) -> Word:
        """One of a vocabulary."""
        allowed = ", ".join(word.value for word in words)
        if key not in self.body:
            raise self.bad(f"{key} is missing; it is one of: {allowed}")
        value = self.body[key]
        if value not in list(words):
            raise self.bad(f"{key} is {value!r}, but must be one of: {allowed}", key)
        return words(value)

    def number(self, key: str, default: int, *, most: int) -> int:
        value = self.body.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            raise self.bad(f"{key} must be a whole number from 0 to {most}, not {value!r}", key)
        return value

    def flag(self, key: str) -> bool:
        value = self.body.get(key, False)
        if not isinstance(value, bool):
            raise self.bad(f"{key} must be true or false, not {value!r}", key)
        return value

    def lines(self, key: str, *, least: int = 0) -> tuple[str, ...]:
        value = self.body.get(key, [])
        if key not in self.body and least:
            raise self.bad(f"{key} is missing: give a list with a line that the pattern finds")
        if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
            raise self.bad(f"{key} must be a list of texts, not {value!r}", key)
        if len(value) < least:
            raise self.bad(f"{key} is empty: give a line that the pattern finds", key)
        return tuple(value)

    def pattern(self, key: str, *, at_start: bool = False, behind_launchers: bool = False, group: str = "") -> Pattern:
        try:
            pattern = compile_pattern(self.text(key), at_start=at_start, behind_launchers=behind_launchers)
        except BadPattern as error:
            raise self.bad(f"{key} is refused: {error}", key) from error
        if group and group not in pattern.groups:
            raise self.bad(f"{key} needs a group (?P<{group}>...) around what is to be read", key)
        return pattern

    def optional(self, key: str, *, group: str = "") -> Pattern | None:
        return self.pattern(key, group=group) if key in self.body else None

    def detail(self, *patterns: Pattern | None) -> str:
        """A template over the groups of these patterns."""
        template = self.text("detail")
        names = [name for pattern in patterns if pattern is not None for name in pattern.groups]
        groups = f"the pattern's groups are: {', '.join(names) or 'none'}"
        try:
            fields = [field for field in Formatter().parse(template) if field[1] is not None]
        except ValueError as error:
            raise self.bad(
                f"detail can't be read ({error}); a brace by itself is written twice; {groups}", "detail"
            ) from error
        for _text, name, form, conversion in fields:
            if form or conversion or not str(name).isidentifier():
                raise self.bad(f"detail may have nothing but the name of a group in braces; {groups}", "detail")
            if name not in names:
                raise self.bad(f"detail names {name!r}; {groups}", "detail")
        return template

    def places(self, *keys: str) -> dict[str, str]:
        """Where each text of these lists stands: on its own line, where that is found."""
        return {text: self._place_of(key, text) for key in keys for text in self.body.get(key, ())}

    def _place_of(self, key: str, text: str) -> str:
        header = self._found(key)
        if header is None:
            return self.place
        forms = (f"'{text}'", json.dumps(text, ensure_ascii=False), text)
        found = (at for form in forms if (at := self.text_of_it.find(form, header.end())) >= 0)
        return self._place(self.line + self.text_of_it.count("\n", 0, next(found, header.start())))

    def _found(self, key: str) -> re.Match[str] | None:
        """Where a key stands."""
        return re.search(rf"(?m)^[ \t]*[\"']?{re.escape(key)}[\"']?[ \t]*=", self.text_of_it)

    def _place(self, line: int) -> str:
        return f"{self.file}:{line}: {self.name}" if line else f"{self.file}: {self.name}"


def tables(file: str, text: str, kinds: tuple[str, ...]) -> Iterator[tuple[str, PackEntry]]:
    """Give the kind of each table, and the table. Raises BadPack."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = _AT_LINE.search(str(error))
        where = file if line is None else f"{file}:{line.group(1)}"
        raise BadPack(f"{where}: it can't be read as TOML: {error}") from error
    allowed = ", ".join(f"[[{kind}]]" for kind in kinds)
    unknown = document.keys() - set(kinds)
    if unknown:
        raise BadPack(f"{_line_of(file, text, min(unknown))}: there is no table {min(unknown)!r}; allowed: {allowed}")
    headers = list(_HEADER.finditer(text))
    starts = [header.start() for header in headers] + [len(text)]
    for kind in kinds:
        bodies = document.get(kind, [])
        if not isinstance(bodies, list) or not all(isinstance(body, dict) for body in bodies):
            raise BadPack(f"{_line_of(file, text, kind)}: {kind} must be written as [[{kind}]], in two brackets")
        own = [header.start() for header in headers if header.group(1) == kind]
        for number, body in enumerate(bodies):
            start = own[number] if len(own) == len(bodies) else -1
            end = starts[bisect_right(starts, start)]
            name = body.get(_NAMES.get(kind, "id"), f"number {number + 1}")
            line_no = 0 if start < 0 else text.count("\n", 0, start) + 1
            yield kind, PackEntry(file, f"{kind} {name}", body, line_no, text[start:end] if line_no else "")


def _line_of(file: str, text: str, name: str) -> str:
    """The place where a table or key of this name is written first."""
    found = re.search(rf"(?m)^[ \t]*\[*[ \t]*{re.escape(name)}\b", text)
    return file if found is None else f"{file}:{text.count(chr(10), 0, found.start()) + 1}"
