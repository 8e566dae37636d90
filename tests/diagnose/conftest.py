"""What these tests share: packs that are read once, files of many blocks."""

import pytest

from tests.packs import few_shipped, own_cache, read_once

__all__ = ["few_shipped", "own_cache", "read_once"]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> int:
    """Files are read in blocks of 16 KB, so that a small one has many; gives that size."""
    size = 1 << 14
    monkeypatch.setattr("streams.diagnose.reading.BLOCK_BYTES", size)
    return size
