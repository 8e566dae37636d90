"""What is shown of the log of a process that does not run."""

from pathlib import Path

import pytest

from recovery.last_words import LONGEST, last_words


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("", None),
        ("\n \n", None),
        ("one\ntwo\n\n", "two"),
        ('{"event": "stopped by a setting", "error": "a is b", "level": "error"}\n', "stopped by a setting: a is b"),
        ('{"event": "stopped", "level": "info"}\n', "stopped"),
        ('{"level": "info"}\n', '{"level": "info"}'),
        ("[1]\n", "[1]"),
        ("x" * 100_000 + "\nlast", "last"),
        ("y" * 100_000, "y" * LONGEST),
        ("caf\xe9 \udcff", "café \ufffd"),
    ],
)
def test_the_last_line_is_told_in_words(log: str, said: str | None, tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(log.encode("utf-8", "surrogateescape"))
    assert last_words(file) == said


def test_a_log_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert last_words(tmp_path / "none.log") is None
