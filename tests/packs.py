"""Packs for tests, read and compiled no more often than a test needs: all of them take a second to compile."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from streams import watch
from streams.watch.matching import packs

SHIPPED = Path(watch.__file__).parent / "packs"
FEW = ("gpu.toml",)


@pytest.fixture(scope="package", autouse=True)
def read_once() -> Iterator[None]:
    """A text that was read is not read again: what comes of it is immutable."""
    entries = packs._entries

    @cache
    def known(name: str, text: str) -> tuple[Any, ...]:
        return tuple(entries(name, text))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packs, "_entries", known)
        yield


@pytest.fixture
def few_shipped(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Of the packs that are shipped one alone, for tests of what happens with a site's own beside them."""
    root = tmp_path_factory.mktemp("shipped")
    (root / "packs").mkdir()
    for name in FEW:
        (root / "packs" / name).symlink_to(SHIPPED / name)
    monkeypatch.setattr(packs, "files", lambda _package: root)


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Small databases by the hundred are kept apart: they would push out those of the shipped packs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
