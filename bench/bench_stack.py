"""How long the local stack takes to start: with nothing on disk but the downloads, and again with its data there."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from infra.local.stack import Stack

ROUNDS = 3


def seconds(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="recovery-bench-") as folder:
        stack = Stack(Path(folder))
        try:
            print(f"first start (empty data folder)  {seconds(lambda: stack.start(lambda _: None)):6.1f} s")
            for _ in range(ROUNDS):
                print(f"stop                             {seconds(stack.stop):6.1f} s")
                print(f"start again                      {seconds(lambda: stack.start(lambda _: None)):6.1f} s")
            print(f"start of what runs already       {seconds(lambda: stack.start(lambda _: None)):6.1f} s")
        finally:
            stack.stop()


if __name__ == "__main__":
    main()
