"""Hostile job output: lines that packs know, mutated, and lines that no program should print. The same for a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import cache

from streams.watch.matching.packs import load_packs

LONGEST_REPEAT = 20_000
_ENDS = (b"\n", b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\x0b", b"\x00\n", b"", "\u2028".encode())
_CODECS = ("utf-8", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "shift_jis", "gb18030", "cp037")
_PREFIXES = (
    b"[rank%d]: ",
    b"%d: ",
    b"[1,%d]<stdout>:",
    b"(pid=%d, ip=10.0.0.1) ",
    b"node%d: ",
    b"Aug  1 10:00:05 node%d kernel: ",
    b"<6>1 2026-08-01T10:00:05Z gpu-%d kernel - - - ",
    b"[2026-08-01 10:00:%02d,123] [INFO] ",
    b"\x1b[36m(Actor pid=%d)\x1b[0m ",
    b"2026-13-45T99:99:%d.999999999+99:99 ",
)
# What patterns, time stamps, number readers and JSON readers have trouble with when it comes often.
_REPEATED = (
    *(bytes([byte]) for byte in b'19-.,:=/a \t\\([{"<|%\r\x00\xff'),
    *(b"\x1b[", b"\x1b[31m", b"\xe2\x80", b"|\xe2\x96\x88", b"1,", b"1.", b"0:", b"a@", b"://", b"://a:b", b"it/s"),
    *(
        b"node1 ",
        b"rank 1 ",
        b"[rank1]: ",
        b"password=",
        b"ERROR ",
        b"Error: ",
        b"step 1 ",
        b"iteration 1/",
        b"loss: 1 ",
    ),
    *(b"00:00:00 ", b"2026-08-01 ", b"Xid ", b"CUDA error ", b"NCCL WARN ", b"Killed ", b"srun: error: "),
    *(b"Traceback (most recent call last):", b'File "a", line 1 ', b"hf_aaaaaaaaaaaaaaaaaaaaaaa ", b"eyJaaaaaaaaaa."),
    *(b'{"message":', b"[["),
)
_NUMBERS = (
    b"0",
    b"-1",
    b"9" * 30,
    b"1e999",
    b"nan",
    b"inf",
    b"1,,,1",
    b"0x41",
    "٣".encode(),
    b"1.2.3",
    b"18446744073709551616",
)


@cache
def known_lines() -> tuple[bytes, ...]:
    """The examples and counter-examples of all shipped packs."""
    packs = load_packs()
    texts = [text for one in packs.signatures for text in (*one.examples, *one.counter_examples)]
    for form in packs.formats:
        parts = (form.step, form.saved, form.loaded, form.mark)
        texts += [text for part in parts if part is not None for text in part.examples]
        texts += form.counter_examples
    texts += [text for sign in packs.phases for text in (*sign.examples, *sign.counter_examples)]
    return tuple(text.encode() for text in texts)


class Lines:
    """A generator of lines and of files made of them."""

    def __init__(self, seed: str) -> None:
        self.chance = random.Random(seed)
        self._mutations: tuple[Callable[[bytes], bytes], ...] = (
            self._flipped,
            self._cut,
            self._joined,
            self._recoded,
            self._coloured,
            self._prefixed,
            self._numbered,
            self._repeated,
            self._with_noise,
            self._as_json,
        )

    def file(self, count: int) -> bytes:
        """So many lines, mostly of one temper: hostile input comes in floods, not one line at a time."""
        floods = (self.line, self.line, self._progress_bar, self._binary, self._flood_of(self.line()))
        temper = self.chance.choice(floods)
        lines = [(temper if self.chance.random() < 0.8 else self.line)() for _ in range(count)]
        return b"".join(line + self.chance.choice(_ENDS) for line in lines)

    def line(self) -> bytes:
        """A known line with some mutations, or noise."""
        if self.chance.random() < 0.1:
            return self._binary()
        line = self.chance.choice(known_lines())
        for _ in range(self.chance.choice((0, 1, 1, 2, 3, 5))):
            line = self.chance.choice(self._mutations)(line)
        return line

    def floods(self, size: int) -> Iterator[bytes]:
        """One line each of whatever comes often, after a letter and after a known line: what backtracks, never ends."""
        for piece in _REPEATED:
            for head in (b"a", self.chance.choice(known_lines())):
                yield head + piece * (size // len(piece))

    def _flood_of(self, line: bytes) -> Callable[[], bytes]:
        return lambda: self._numbered(line)

    def _binary(self) -> bytes:
        return self.chance.randbytes(self.chance.choice((1, 7, 80, 400)))

    def _progress_bar(self) -> bytes:
        bars = (
            f"\r{n:3d}%|{'█' * (n // 10):10}| {n}/100 [00:{n % 60:02d}<01:00, {n}.5it/s]"
            for n in range(0, 101, self.chance.choice((7, 20, 50)))
        )
        return "".join(bars).encode()

    def _place(self, line: bytes) -> int:
        return self.chance.randrange(len(line) + 1)

    def _flipped(self, line: bytes) -> bytes:
        changed = bytearray(line)
        for _ in range(self.chance.choice((1, 3, 10))):
            if changed:
                changed[self.chance.randrange(len(changed))] = self.chance.randrange(256)
        return bytes(changed)

    def _cut(self, line: bytes) -> bytes:
        return line[: self._place(line)] if self.chance.random() < 0.5 else line[self._place(line) :]

    def _joined(self, line: bytes) -> bytes:
        return line[: self._place(line)] + self.chance.choice(known_lines())

    def _recoded(self, line: bytes) -> bytes:
        return line.decode("utf-8", "replace").encode(self.chance.choice(_CODECS), "replace")

    def _coloured(self, line: bytes) -> bytes:
        for _ in range(self.chance.choice((1, 4))):
            place = self._place(line)
            line = (
                line[:place]
                + self.chance.choice((b"\x1b[31m", b"\x1b[0m", b"\x1b[", b"\x1b[?25l\x1b[2K"))
                + line[place:]
            )
        return line

    def _prefixed(self, line: bytes) -> bytes:
        return self.chance.choice(_PREFIXES) % self.chance.randrange(10**6) + line

    def _numbered(self, line: bytes) -> bytes:
        """Another number in place of each digit that stands there."""
        digits = self.chance.choice((*_NUMBERS, str(self.chance.randrange(10**6)).encode()))
        return b"".join(
            digits if bytes([byte]).isdigit() and self.chance.random() < 0.3 else bytes([byte]) for byte in line
        )

    def _repeated(self, line: bytes) -> bytes:
        piece = self.chance.choice(_REPEATED)
        count = self.chance.choice((10, 10, 10, 100, 100, 100, 1_000, LONGEST_REPEAT)) // len(piece)
        place = self._place(line)
        return line[:place] + piece * count + line[place:]

    def _with_noise(self, line: bytes) -> bytes:
        place = self._place(line)
        return line[:place] + self.chance.choice((b"\x00" * 3, b"\x00\xff\xfe", self._binary())) + line[place:]

    def _as_json(self, line: bytes) -> bytes:
        document: dict[str, object] = {
            "message": line.decode("utf-8", "replace"),
            "timestamp": self.chance.choice((0, -1, 1e300, "x", None, [])),
        }
        return json.dumps(document | {"job_id": self.chance.choice((7, "7", None, {}, "9" * 9_000))}).encode()


def pieces(data: bytes, chance: random.Random) -> Iterator[bytes]:
    """The data in a few pieces, cut anywhere."""
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice((0, 1, 3, 8))))
    for low, high in zip([0, *cuts], [*cuts, len(data)], strict=True):
        yield data[low:high]
