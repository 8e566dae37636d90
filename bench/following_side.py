"""Writes lines to many files at a steady pace: `python -m bench.following_side LINES_A_SECOND FILE...`.

Each file goes through the same log from a place of its own, with the time of writing in its lines.
"""

from __future__ import annotations

import os
import re
import sys
import time
from datetime import UTC, datetime
from itertools import count

from bench.logs import MEGABYTE, lines

TICK_S = 0.01
APART = 7
_STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}")


def main() -> None:
    pace, *paths = sys.argv[1:]
    files = [os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) for path in paths]
    log = [_STAMP.sub("{now}", line) + "\n" for line in lines(MEGABYTE, chatty=True)]
    a_second, began = float(pace) * len(files), time.monotonic()
    for number in count():
        early_s = began + number / a_second - time.monotonic()
        if early_s > 0:
            time.sleep(max(early_s, TICK_S))
        turn, file = divmod(number, len(files))
        line = log[(turn + APART * file) % len(log)]
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        os.write(files[file], line.replace("{now}", now).encode())


if __name__ == "__main__":
    main()
