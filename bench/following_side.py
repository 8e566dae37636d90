"""Writes lines to many files at a steady pace: `python -m bench.following_side LINES_A_SECOND FILE...`."""

from __future__ import annotations

import os
import sys
import time
from itertools import cycle, islice

from bench.logs import MEGABYTE, lines

TICK_S = 0.01


def main() -> None:
    pace, *paths = sys.argv[1:]
    files = [os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) for path in paths]
    said = cycle([f"{line}\n".encode() for line in lines(MEGABYTE, chatty=True)])
    turn = cycle(files)
    a_second, written, began = float(pace) * len(files), 0, time.monotonic()
    while True:
        due = int((time.monotonic() - began) * a_second) - written
        for line, file in zip(islice(said, due), turn, strict=False):
            os.write(file, line)
        written += due
        time.sleep(TICK_S)


if __name__ == "__main__":
    main()
