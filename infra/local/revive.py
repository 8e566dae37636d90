"""Starts one part of a stack again: a process of the supervisor's, for a part that died."""

import sys
import time
from pathlib import Path

from infra.local.parts import StackError
from infra.local.stack import Stack


def main(folder: Path, part: str) -> int:
    """Returns the exit code. What is said last is why it failed, on one line."""
    try:
        Stack(folder, keep_ports=True).revive(part, _say)
    except StackError as error:
        _say(str(error))
        _say(f"{part} is not back: {str(error).splitlines()[0]}")
        return 1
    _say(f"{part} is back")
    return 0


def _say(sentence: str) -> None:
    print(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
