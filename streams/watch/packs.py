"""Signature and format packs: what a fault, a training step and a checkpoint look like, as data files.

A pack is a TOML file with `[[signature]]`, `[[format]]` and `[[phase]]` tables. Shipped packs lie in the folder `packs`
beside this module, a site adds folders of its own. Every entry carries lines that it must find and lines that it must
not; they are tried when the pack is loaded, so that a pack which does not do what it says never runs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from schemas.vocabulary import FaultClass, LineRole, Phase, Remedy, Scope
from streams.watch.patterns import BadPattern, Pattern, compile_pattern

SIGNATURE_KEYS = {
    *("id", "pattern", "at_start", "unless", "class", "scope", "remedy", "role", "precedence", "detail"),
    *("context", "unless_context", "unless_after", "loud"),
}
PHASE_KEYS = {"id", "pattern", "at_start", "unless", "phase"}
FORMAT_KEYS = {
    *("framework", "step", "saved", "loaded", "mark", "loss"),
    *("step_examples", "saved_examples", "loaded_examples", "mark_examples"),
}
VALUE_KEYS = {"seconds_per_step", "milliseconds_per_step", "steps_per_second"}
COMMON_KEYS = {"examples", "counter_examples", "source"}


class BadPack(ValueError):
    """A pack that can't be used; the message names the file, the entry, the reason and the way out."""


@dataclass(frozen=True)
class Signature:
    """What one kind of fault prints. One of class `benign_noise` makes a line silent that others would match."""

    id: str
    pattern: Pattern
    unless: Pattern | None
    fault_class: FaultClass
    scope: Scope
    remedy: Remedy
    role: LineRole
    precedence: int
    detail: str
    examples: tuple[str, ...]
    counter_examples: tuple[str, ...]
    source: str
    place: str
    """File and entry, for messages."""
    context: Pattern | None = None
    """What must stand in the lines just before, such as a frame of a traceback; its groups count, too."""
    unless_context: Pattern | None = None
    unless_after: Pattern | None = None
    """What must not stand in the lines just before, or just after, as far as they are known at the time."""
    loud: bool = False
    """It counts also in a line that a signature of class `benign_noise` would silence, save one of precedence 100."""


@dataclass(frozen=True)
class PhaseSign:
    """A line that says that the program does something else than stepping, or is done."""

    id: str
    pattern: Pattern
    unless: Pattern | None
    phase: Phase
    examples: tuple[str, ...]
    counter_examples: tuple[str, ...]
    source: str
    place: str
    """File and entry, for messages."""


@dataclass(frozen=True)
class FormatPart:
    """One kind of line of a framework: `step`, `saved` or `loaded`."""

    pattern: Pattern
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Format:
    """How one framework prints progress and checkpoints. Groups: step (also step2 to step5), total, epoch, path."""

    framework: str
    step: FormatPart
    saved: FormatPart | None
    loaded: FormatPart | None
    seconds_per_step: Pattern | None
    milliseconds_per_step: Pattern | None
    steps_per_second: Pattern | None
    loss: Pattern | None
    counter_examples: tuple[str, ...]
    source: str
    place: str
    """File and entry, for messages."""
    mark: FormatPart | None = None
    """Lines by which the framework is known although they carry no step."""


@dataclass(frozen=True)
class Packs:
    """All entries, in the order in which they were read."""

    signatures: tuple[Signature, ...]
    formats: tuple[Format, ...]
    phases: tuple[PhaseSign, ...] = ()


def load_packs(folders: tuple[Path, ...] = ()) -> Packs:
    """Read the shipped packs, then those of the given folders (or a single file). Raises BadPack.

    A later signature or phase with a known id, or a later format of a known framework, replaces the earlier one.
    """
    signatures: dict[str, Signature] = {}
    formats: dict[str, Format] = {}
    phases: dict[str, PhaseSign] = {}
    for name, document in _documents(folders):
        unknown = document.keys() - {"signature", "format", "phase"}
        if unknown:
            raise BadPack(f"{name}: there is no table {min(unknown)!r}; allowed: [[signature]], [[format]], [[phase]]")
        for entry in document.get("signature", []):
            signature = _signature(name, entry)
            signatures[signature.id] = signature
        for entry in document.get("format", []):
            known = _format(name, entry)
            formats[known.framework] = known
        for entry in document.get("phase", []):
            sign = _phase(name, entry)
            phases[sign.id] = sign
    return Packs(tuple(signatures.values()), tuple(formats.values()), tuple(phases.values()))


def _documents(folders: tuple[Path, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    shipped = Path(str(files("streams.watch"))) / "packs"
    for folder in (shipped, *folders):
        if folder.suffix != ".toml" and not folder.is_dir():
            raise BadPack(f"watch.packs names {folder}, which is no folder; create it or leave it out")
        for path in [folder] if folder.suffix == ".toml" else sorted(folder.glob("*.toml")):
            try:
                yield str(path), tomllib.loads(path.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
                raise BadPack(f"{path} can't be read as TOML: {error}") from error


def _signature(file: str, entry: Mapping[str, Any]) -> Signature:
    read = _Entry(file, f"signature {entry.get('id', '(without id)')}", entry, SIGNATURE_KEYS | COMMON_KEYS)
    at_start = read.flag("at_start")
    pattern = read.pattern("pattern", at_start=at_start)
    precedence = entry.get("precedence", 50)
    if not isinstance(precedence, int) or not 0 <= precedence <= 100:
        raise read.bad(f"precedence must be a whole number from 0 to 100, not {precedence!r}")
    try:
        fault_class = FaultClass(read.text("class"))
        scope = Scope(read.text("scope"))
        remedy = Remedy(read.text("remedy"))
        role = LineRole(read.text("role"))
    except ValueError as error:
        raise read.bad(f"{error}: see the vocabularies in docs/glossary.md") from error
    return Signature(
        id=read.text("id"),
        pattern=pattern,
        unless=read.optional("unless"),
        fault_class=fault_class,
        scope=scope,
        remedy=remedy,
        role=role,
        precedence=precedence,
        detail=read.detail(pattern, read.optional("context")),
        examples=read.lines("examples", least=1),
        counter_examples=read.lines("counter_examples"),
        source=read.text("source"),
        place=read.place,
        context=read.optional("context"),
        unless_context=read.optional("unless_context"),
        unless_after=read.optional("unless_after"),
        loud=read.flag("loud"),
    )


def _phase(file: str, entry: Mapping[str, Any]) -> PhaseSign:
    read = _Entry(file, f"phase {entry.get('id', '(without id)')}", entry, PHASE_KEYS | COMMON_KEYS)
    try:
        phase = Phase(read.text("phase"))
    except ValueError as error:
        raise read.bad(f"{error}: see the vocabularies in docs/glossary.md") from error
    return PhaseSign(
        id=read.text("id"),
        pattern=read.pattern("pattern", at_start=read.flag("at_start")),
        unless=read.optional("unless"),
        phase=phase,
        examples=read.lines("examples", least=1),
        counter_examples=read.lines("counter_examples"),
        source=read.text("source"),
        place=read.place,
    )


def _format(file: str, entry: Mapping[str, Any]) -> Format:
    read = _Entry(
        file, f"format {entry.get('framework', '(without framework)')}", entry, FORMAT_KEYS | VALUE_KEYS | COMMON_KEYS
    )

    def part(name: str) -> FormatPart | None:
        if name not in entry:
            return None
        return FormatPart(read.pattern(name), read.lines(f"{name}_examples", least=1))

    step = part("step")
    if step is None or "step" not in step.pattern.groups:
        raise read.bad("step is needed, with a group (?P<step>...)")
    return Format(
        framework=read.text("framework"),
        step=step,
        saved=part("saved"),
        loaded=part("loaded"),
        seconds_per_step=read.optional("seconds_per_step"),
        milliseconds_per_step=read.optional("milliseconds_per_step"),
        steps_per_second=read.optional("steps_per_second"),
        loss=read.optional("loss"),
        counter_examples=read.lines("counter_examples"),
        source=read.text("source"),
        place=read.place,
        mark=part("mark"),
    )


@dataclass(frozen=True)
class _Entry:
    """One table of a pack, read with errors that say where."""

    file: str
    name: str
    body: Mapping[str, Any]
    allowed: set[str]

    def __post_init__(self) -> None:
        unknown = self.body.keys() - self.allowed
        if unknown:
            raise self.bad(f"there is no key {min(unknown)!r}; allowed: {', '.join(sorted(self.allowed))}")

    @property
    def place(self) -> str:
        return f"{self.file}: {self.name}"

    def bad(self, reason: str) -> BadPack:
        return BadPack(f"{self.place}: {reason}")

    def text(self, key: str) -> str:
        value = self.body.get(key)
        if not isinstance(value, str) or not value:
            raise self.bad(f"{key} must be a text, not {value!r}")
        return value

    def flag(self, key: str) -> bool:
        value = self.body.get(key, False)
        if not isinstance(value, bool):
            raise self.bad(f"{key} must be true or false, not {value!r}")
        return value

    def lines(self, key: str, *, least: int = 0) -> tuple[str, ...]:
        value = self.body.get(key, [])
        if not isinstance(value, list) or not all(isinstance(line, str) for line in value) or len(value) < least:
            raise self.bad(f"{key} must be a list of at least {least} lines, not {value!r}")
        return tuple(value)

    def pattern(self, key: str, *, at_start: bool = False) -> Pattern:
        try:
            return compile_pattern(self.text(key), at_start=at_start)
        except BadPattern as error:
            raise self.bad(f"{key} is refused: {error}") from error

    def optional(self, key: str) -> Pattern | None:
        return self.pattern(key) if key in self.body else None

    def detail(self, *patterns: Pattern | None) -> str:
        template = self.text("detail")
        names = [name for pattern in patterns if pattern is not None for name in pattern.groups]
        try:
            template.format_map(dict.fromkeys(names, ""))
        except (KeyError, ValueError, IndexError) as error:
            groups = ", ".join(names) or "none"
            raise self.bad(f"detail names {error}; the pattern's groups are: {groups}") from error
        return template
