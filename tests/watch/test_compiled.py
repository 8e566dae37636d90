"""Compiled patterns are kept, and nothing that is kept can harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hyperscan
import pytest

from streams.watch.matching import compiled

WORDS = [b"fallen off the bus", b"out of memory"]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "recovery" / "hyperscan"


def found(known: Any) -> list[int]:
    hits: list[int] = []
    known.scan(b"CUDA out of memory", match_event_handler=lambda number, *_: hits.append(number))
    return hits


def test_what_was_compiled_once_is_read_and_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(compiled.database(WORDS, 0)) == [1]
    monkeypatch.setattr(compiled, "_compile", lambda *_: pytest.fail("compiled again"))
    assert found(compiled.database(WORDS, 0)) == [1]


def test_other_expressions_and_flags_are_other_databases() -> None:
    assert found(compiled.database(WORDS, 0)) == [1]
    assert found(compiled.database(WORDS[::-1], 0)) == [0]
    assert found(compiled.database([b"OUT OF MEMORY"], hyperscan.HS_FLAG_CASELESS)) == [0]
    assert found(compiled.database([b"OUT OF MEMORY"], 0)) == []


@pytest.mark.parametrize("content", [b"", b"nonsense" * 1000], ids=["empty", "nonsense"])
def test_a_file_that_is_no_database_is_made_again(cache: Path, content: bytes) -> None:
    compiled.database(WORDS, 0)
    [kept] = cache.iterdir()
    kept.write_bytes(content)
    assert found(compiled.database(WORDS, 0)) == [1]
    assert len(kept.read_bytes()) > len(WORDS[0])


def test_one_that_was_damaged_is_made_again(cache: Path) -> None:
    compiled.database(WORDS, 0)
    [kept] = cache.iterdir()
    data = kept.read_bytes()
    middle = len(data) // 2
    kept.write_bytes(data[:middle] + b"damaged!" + data[middle + 8 :])
    assert found(compiled.database(WORDS, 0)) == [1]
    assert kept.read_bytes() == data


def test_where_nothing_can_be_kept_it_is_compiled_each_time(cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("a file where the folder should be")
    assert found(compiled.database(WORDS, 0)) == [1]
    assert found(compiled.database(WORDS, 0)) == [1]


def test_only_the_last_ones_are_kept(cache: Path) -> None:
    for number in range(compiled.MOST_KEPT + 5):
        compiled.database([f"word {number}".encode()], 0)
    assert len(list(cache.iterdir())) == compiled.MOST_KEPT
