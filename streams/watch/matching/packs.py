"""Signature and format packs: what a fault, a training step and a checkpoint look like, as data files.

A pack is a TOML file with `[[signature]]`, `[[format]]` and `[[phase]]` tables. Shipped packs lie in the folder `packs`
beside this module, a site adds folders of its own. Every entry carries lines that it must find and lines that it must
not; they are tried when the pack is loaded, so that a pack which does not do what it says never runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from schemas.vocabulary import FaultClass, LineRole, Phase, Remedy, Scope
from streams.watch.matching.pack_entry import BadPack, PackEntry, tables
from streams.watch.matching.patterns import Pattern

__all__ = ["BadPack", "Format", "FormatPart", "Packs", "PhaseSign", "Signature", "load_packs", "read_pack"]

SIGNATURE_KEYS = {
    *("id", "pattern", "at_start", "unless", "class", "scope", "remedy", "role", "precedence", "detail"),
    *("context", "unless_context", "unless_after", "loud", "examples"),
}
PHASE_KEYS = {"id", "pattern", "at_start", "unless", "phase", "examples"}
FORMAT_KEYS = {
    *("framework", "step", "first_epoch", "saved", "saved_early", "loaded", "time_below", "mark", "loss"),
    *("step_examples", "saved_examples", "loaded_examples", "mark_examples"),
}
VALUE_KEYS = {"seconds_per_step", "milliseconds_per_step", "steps_per_second"}
COMMON_KEYS = {"counter_examples", "source"}


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
    """File, line and entry, for messages."""
    context: Pattern | None = None
    """What must stand in the lines just before, such as a frame of a traceback; its groups count, too."""
    unless_context: Pattern | None = None
    unless_after: Pattern | None = None
    """What must not stand in the lines just before, or just after, as far as they are known at the time."""
    loud: bool = False
    """It counts also in a line that a signature of class `benign_noise` would silence, save one of precedence 100."""
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Where each example and counter-example stands."""


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
    """File, line and entry, for messages."""
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Where each example and counter-example stands."""


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
    """File, line and entry, for messages."""
    mark: FormatPart | None = None
    """Lines by which the framework is known although they carry no step."""
    first_epoch: int = 0
    """What the framework calls its first epoch."""
    saved_early: bool = False
    """`saved` is printed before the save is written, save for lines with a group `done`: that it was is known once
    training went on."""
    time_below: bool = False
    """The time of a step may stand in one of the lines below it, before the next step."""
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Where each example and counter-example stands."""


@dataclass(frozen=True)
class Packs:
    """All entries, in the order in which they were read."""

    signatures: tuple[Signature, ...]
    formats: tuple[Format, ...]
    phases: tuple[PhaseSign, ...] = ()
    files: tuple[tuple[str, int], ...] = ()
    """Each file that was read, and how many entries it has."""
    replaced: tuple[tuple[str, str], ...] = ()
    """Places of the entries that took another's place, and of those they replaced."""


_Any = Signature | Format | PhaseSign
_Key = tuple[str, str]
"""What kind of entry it is, and what it is called."""


def load_packs(folders: tuple[Path, ...] = ()) -> Packs:
    """Read the shipped packs, then those of the given folders (or a single file). Raises BadPack.

    An entry replaces that of the same id (of a format: the same framework) in a folder before it; in one folder an id
    may stand only once.
    """
    known: dict[_Key, _Any] = {}
    read: list[tuple[str, int]] = []
    replaced: list[tuple[str, str]] = []
    for folder in (Path(str(files("streams.watch"))) / "packs", *folders):
        own: dict[_Key, _Any] = {}
        for path in _files(folder):
            entries = list(_entries(str(path), _text(path)))
            read.append((str(path), len(entries)))
            _add(own, entries)
        replaced += [(entry.place, known[key].place) for key, entry in own.items() if key in known]
        known |= own
    return _packs(known, tuple(read), tuple(replaced))


def read_pack(name: str, text: str) -> Packs:
    """Read one pack from its text; `name` stands in messages for its file. Raises BadPack."""
    own: dict[_Key, _Any] = {}
    _add(own, list(_entries(name, text)))
    return _packs(own, ((name, len(own)),), ())


def _packs(known: dict[_Key, _Any], read: tuple[tuple[str, int], ...], replaced: tuple[tuple[str, str], ...]) -> Packs:
    return Packs(
        tuple(entry for entry in known.values() if isinstance(entry, Signature)),
        tuple(entry for entry in known.values() if isinstance(entry, Format)),
        tuple(entry for entry in known.values() if isinstance(entry, PhaseSign)),
        read,
        replaced,
    )


def _add(own: dict[_Key, _Any], entries: list[tuple[_Key, _Any]]) -> None:
    for key, entry in entries:
        if key in own:
            raise BadPack(f"{entry.place} stands already at {own[key].place}; rename one of the two, or take it out")
        own[key] = entry


def _files(folder: Path) -> list[Path]:
    if folder.suffix == ".toml" and not folder.is_dir():
        return [folder]
    if not folder.is_dir():
        raise BadPack(f"watch.packs names {folder}, which is no folder; create it or leave it out")
    return sorted(folder.glob("*.toml"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadPack(f"{path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadPack(f"{path} can't be read: it is no text in UTF-8 ({error.reason} at byte {error.start})") from error


def _entries(name: str, text: str) -> Iterator[tuple[_Key, _Any]]:
    for kind, read in tables(name, text, ("signature", "format", "phase")):
        if kind == "signature":
            signature = _signature(read)
            yield (kind, signature.id), signature
        elif kind == "format":
            known = _format(read)
            yield (kind, known.framework), known
        else:
            sign = _phase(read)
            yield (kind, sign.id), sign


def _signature(read: PackEntry) -> Signature:
    read.refuse_keys_beside(SIGNATURE_KEYS | COMMON_KEYS)
    pattern = read.pattern("pattern", at_start=read.flag("at_start"))
    return Signature(
        id=read.text("id"),
        pattern=pattern,
        unless=read.optional("unless"),
        fault_class=read.word("class", FaultClass),
        scope=read.word("scope", Scope),
        remedy=read.word("remedy", Remedy),
        role=read.word("role", LineRole),
        precedence=read.number("precedence", 50, most=100),
        detail=read.detail(pattern, read.optional("context")),
        examples=read.lines("examples", least=1),
        counter_examples=read.lines("counter_examples"),
        source=read.text("source"),
        place=read.place,
        context=read.optional("context"),
        unless_context=read.optional("unless_context"),
        unless_after=read.optional("unless_after"),
        loud=read.flag("loud"),
        places=read.places("examples", "counter_examples"),
    )


def _phase(read: PackEntry) -> PhaseSign:
    read.refuse_keys_beside(PHASE_KEYS | COMMON_KEYS)
    return PhaseSign(
        id=read.text("id"),
        pattern=read.pattern("pattern", at_start=read.flag("at_start")),
        unless=read.optional("unless"),
        phase=read.word("phase", Phase),
        examples=read.lines("examples", least=1),
        counter_examples=read.lines("counter_examples"),
        source=read.text("source"),
        place=read.place,
        places=read.places("examples", "counter_examples"),
    )


def _format(read: PackEntry) -> Format:
    read.refuse_keys_beside(FORMAT_KEYS | VALUE_KEYS | COMMON_KEYS)

    def part(name: str) -> FormatPart | None:
        if name not in read.body:
            return None
        return FormatPart(read.pattern(name, behind_launchers=True), read.lines(f"{name}_examples", least=1))

    saved_early, time_below = read.flag("saved_early"), read.flag("time_below")
    if saved_early and "saved" not in read.body:
        raise read.bad(
            "saved_early says when saved is printed, and there is no saved; add it, or take this out", "saved_early"
        )
    if time_below and not VALUE_KEYS & read.body.keys():
        keys = ", ".join(sorted(VALUE_KEYS))
        raise read.bad(
            f"time_below says where a step's time stands, and no key reads it; add one of: {keys}", "time_below"
        )
    step = FormatPart(read.pattern("step", behind_launchers=True, group="step"), read.lines("step_examples", least=1))
    return Format(
        framework=read.text("framework"),
        step=step,
        saved=part("saved"),
        loaded=part("loaded"),
        seconds_per_step=read.optional("seconds_per_step", group="value"),
        milliseconds_per_step=read.optional("milliseconds_per_step", group="value"),
        steps_per_second=read.optional("steps_per_second", group="value"),
        loss=read.optional("loss", group="value"),
        counter_examples=read.lines("counter_examples"),
        source=read.text("source"),
        place=read.place,
        mark=part("mark"),
        first_epoch=read.number("first_epoch", 0, most=1),
        saved_early=saved_early,
        time_below=time_below,
        places=read.places(*(f"{part}_examples" for part in ("step", "saved", "loaded", "mark", "counter"))),
    )
