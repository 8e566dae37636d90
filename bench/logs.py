"""Job output to read: what eight ranks of a training job print, chatty or quiet, the same for every run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

MEGABYTE = 1 << 20
STEP_EVERY = 20
"""In a chatty log every 20th line is a step, as where each step is logged beside what eight ranks print."""

_QUIET = (
    "[2026-08-01 10:{m:02}:{s:02}.{f:06}] [rank{r}] micro batch {n} of 64 done, {t:.1f} tokens/s, queue depth {q}",
    "[rank{r}]: dataloader worker {q} prefetched shard {n:06} of the training split ({t:.1f} MB in {q}.{s:02} s)",
    " > rank {r}: memory (MB) allocated: {t:.2f} | max allocated: 70312.4 | reserved: 74310.0 | step {n}",
    "gpu-a00{r}: forward {t:.2f} ms, backward {t:.2f} ms, optimizer {q}.{s:02} ms, pipeline bubble {s}.1 %",
)
_STEP = (
    " [2026-08-01 10:{m:02}:{s:02}.{f:06}] iteration {n:8}/  500000 | consumed samples: {n:12} | elapsed time per"
    " iteration (ms): {t:.1f} | learning rate: 1.500000E-04 | global batch size:  1024 | lm loss: 2.4{s:02}345E+00"
    " | loss scale: 1.0 | grad norm: 0.412 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)


def lines(size: int, *, chatty: bool) -> Iterator[str]:
    """Lines of about `size` bytes in all."""
    chance = random.Random(7)
    written = number = 0
    while written < size:
        number += 1
        form = _STEP if chatty and number % STEP_EVERY == 0 else chance.choice(_QUIET)
        line = form.format(
            m=number // 2400 % 60,
            s=number // 40 % 60,
            f=chance.randrange(1_000_000),
            r=chance.randrange(8),
            n=number,
            t=chance.uniform(900, 32_000),
            q=chance.randrange(10),
        )
        written += len(line) + 1
        yield line


def write(path: Path, megabytes: int, *, chatty: bool) -> int:
    """Write a log of so many MB (2**20 bytes), made of 8 MB that repeat; return its size in bytes."""
    piece = ("\n".join(lines(min(8, megabytes) * MEGABYTE, chatty=chatty)) + "\n").encode()
    with path.open("wb") as file:
        for _ in range(max(1, megabytes // 8)):
            file.write(piece)
    return path.stat().st_size
