"""Stops the stack of a test session that was killed, and our processes on it: waits for its standard input to close."""

import shutil
import sys
from pathlib import Path

from infra.local.stack import Stack
from infra.local.supervisor import Supervisor


def main() -> None:
    folder = Path(sys.argv[1])
    sys.stdin.read()
    if folder.exists():
        Supervisor(folder).stop()
        Stack(folder).stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
