"""What can't be read is told, and is never taken for a run that is well."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from recovery.cli import app
from recovery.commands import diagnose as command
from streams.diagnose.reading import Unreadable, nothing_in, pieces, samples

OOM = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.20 GiB.\n"
NOISE = random.Random(1).randbytes(200_000)
PACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def run(*words: str, given: bytes | None = None) -> Result:
    return CliRunner().invoke(app, list(words), input=given)


def untold(_name: str, _read: int, _size: int) -> None:
    return None


@pytest.mark.parametrize("packed", PACKERS.values(), ids=PACKERS.keys())
def test_a_compressed_file_is_read_as_what_it_holds_whatever_it_is_called(
    packed: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    text = b"".join(b"line %d\n" % number for number in range(2_000)) + OOM.encode()
    path = tmp_path / "job.log"
    path.write_bytes(packed(text[:9]) + packed(text[9:]))
    assert b"".join(piece.data for piece in pieces(str(path), untold)) == text
    said = run("diagnose", str(path))
    assert said.exit_code == 0
    assert "job.log:2001:" in said.stdout
    assert "2001: cuda-oom" in run("signatures", "test", str(path)).stdout
    assert "cuda oom" in run("diagnose", "-", given=path.read_bytes()).stdout


@pytest.mark.parametrize(
    "words", [("diagnose",), ("diagnose", "--json"), ("formats", "detect"), ("signatures", "test")]
)
@pytest.mark.parametrize(
    ("data", "what"), [(b"", "empty"), (bytes(5_000), "empty"), (NOISE, "binary"), (gzip.compress(NOISE), "binary")]
)
def test_of_what_is_empty_or_no_text_it_is_told_that_nothing_was_read(
    words: tuple[str, ...], data: bytes, what: str, tmp_path: Path
) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(data)
    for said, name in ((run(*words, str(path)), str(path)), (run(*words, "-", given=data), "standard input")):
        assert said.exit_code == 1
        assert said.stdout == ""
        assert f"nothing was read from {name}: it is {what}" in said.stderr


def test_one_file_that_holds_nothing_is_told_and_the_others_are_diagnosed(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "job.log").write_text(OOM)
    said = run("diagnose", str(tmp_path / "empty"), str(tmp_path / "job.log"))
    assert said.exit_code == 0
    assert "cuda oom" in said.stdout
    assert "empty: it is empty" in said.stderr


def test_names_that_can_t_be_read_are_told_and_the_others_are_diagnosed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "cut.gz").write_bytes(gzip.compress(random.Random(1).randbytes(50_000).hex().encode())[:-20_000])
    (tmp_path / "job.log").write_text(OOM)
    names = [str(tmp_path / name) for name in ("folder", "nowhere", "cut.gz", "job.log")]
    said = run("diagnose", *names)
    assert (said.exit_code, "cuda oom" in said.stdout) == (0, True)
    for name, why in (
        ("folder", "Is a directory; give the files in it"),
        ("nowhere", "No such file"),
        ("cut.gz", "cut"),
    ):
        assert any(f"warning: {tmp_path / name}" in line and why in line for line in said.stderr.splitlines())
    none = run("diagnose", *names[:3])
    assert (none.exit_code, none.stdout) == (2, "")
    assert "folder/*" in none.stderr
    assert "nowhere" in none.stderr


def test_all_exit_codes_are_told() -> None:
    told = " ".join(run("diagnose", "--help").stdout.split())
    for code in ("Exits with 0", "with 1 where", "with 2 where"):
        assert code in told


@pytest.mark.parametrize(
    "text",
    [
        bytes(2 << 20) + b"a log that was truncated under its writer\n",
        "loss: 1,5 \x1b[32mgrün\x1b[0m\r".encode("latin-1") * 9,
        "шаг 5 потери 2.3\n".encode("cp1251") * 9,
        b"\r 41%|\xe2\x96\x88 | 366/903\x08\x08" * 9,
    ],
)
def test_text_of_any_encoding_and_with_holes_is_text(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "job.log").write_bytes(text)
    assert nothing_in(str(tmp_path / "job.log")) is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (gzip.compress(NOISE)[:-90_000], "its compressed data is cut off; decompress what there is"),
        (gzip.compress(NOISE)[:-8] + bytes(8), "its compressed data is damaged"),
        (b"\x28\xb5\x2f\xfd....", "is compressed with zstd; decompress it: zstd -dc"),
    ],
)
def test_compressed_data_that_can_t_be_read_is_told_with_the_way_out(data: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "job.gz").write_bytes(data)
    with pytest.raises(Unreadable, match=said):
        list(pieces(str(tmp_path / "job.gz"), untold))


@pytest.mark.parametrize("packed", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_samples_are_the_first_and_the_last_lines(
    packed: Callable[[bytes], bytes], small_blocks: int, tmp_path: Path
) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(packed(b"".join(b"%08d\n" % number for number in range(20_000))))
    taken = list(samples(str(path), untold, small_blocks, 2 * small_blocks))
    data = b"".join(piece.data for piece in taken)
    assert data.startswith(b"00000000\n00000001\n")
    assert data.endswith(b"\n00019999\n")
    assert 2 * small_blocks < len(data) < 5 * small_blocks
    assert all(piece.data == b"%08d\n" % (piece.offset // 9) + piece.data[9:] for piece in taken)


def test_progress_is_a_plain_line_now_and_then_where_no_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    monkeypatch.setattr(command, "TELL_EVERY_S", 0.0)
    shown = command.Shown(every_s=0)
    shown.read("a.log", 5 << 20, 9 << 20)
    shown.clear()
    assert pipe.getvalue() == "reading a.log: 5 MB of 9\n"
