"""Stops the stack of a test session that was killed: run beside it, waits for its standard input to close."""

import shutil
import sys
from pathlib import Path

from infra.local.stack import Stack


def main() -> None:
    folder = Path(sys.argv[1])
    sys.stdin.read()
    if folder.exists():
        Stack(folder).stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
