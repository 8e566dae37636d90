"""What these tests share: packs that are read once."""

from tests.packs import few_shipped, own_cache, read_once

__all__ = ["few_shipped", "own_cache", "read_once"]
