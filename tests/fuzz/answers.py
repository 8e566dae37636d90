"""What log stores might answer, whole and damaged, and what is read of it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from streams.sources.http import Address
from streams.sources.lines import SourceLine, SourceProblem
from streams.sources.loki import Loki, LokiFields
from streams.sources.victorialogs import VictoriaLogs, VictoriaLogsFields
from streams.sources.windows import NS, Waits, lines_of
from tests.fuzz.lines import pieces
from tests.watch.parts import T0

NOWHERE, WAITS = Address("http://127.0.0.1:9"), Waits(0, 0, 1)
MOST_LINES = 100
_NOW = str(T0 * NS)
_TIMES: tuple[Any, ...] = (_NOW, _NOW, T0, -1, "-1", "9" * 30, "9" * 5_000, 1e300, None, "2026-08-01T10:00:00Z", [], "")
_LABELS: tuple[Any, ...] = (
    {"job_id": "7", "slurm_job_attempt": "0"},
    {},
    [],
    "job_id",
    None,
    {"job_id": {}, "filename": 7},
    7,
)


def read_answers(data: bytes, chance: random.Random) -> Iterator[tuple[SourceLine, ...]]:
    """The lines of each answer that is one; what is none has to be said, not raised."""
    victorialogs = VictoriaLogs("main", NOWHERE, "*", VictoriaLogsFields(), WAITS)
    loki = Loki("main", NOWHERE, '{job_id="7"}', LokiFields(), WAITS)
    texts = [line.decode("utf-8", "replace") for line in data.split(b"\n")[:MOST_LINES]]
    for store, whole in ((victorialogs, _of_victorialogs(texts, chance)), (loki, _of_loki(texts, chance))):
        place = chance.randrange(len(whole) + 1)
        for answer in (whole, data, whole[:place], whole[:place] + chance.randbytes(3) + whole[place:]):
            store._asking = Said(answer, chance)  # type: ignore[assignment]
            try:
                page = store.page(T0 * NS, (T0 + 1_000) * NS)
            except SourceProblem:
                continue
            yield lines_of(store.name, page.entries)


def _of_victorialogs(texts: list[str], chance: random.Random) -> bytes:
    time = chance.choice(_TIMES)
    labels = chance.choice(_LABELS)
    known = labels if isinstance(labels, dict) else {"job_id": labels}
    return "\n".join(json.dumps({"_msg": text, "_time": time} | known) for text in texts).encode()


def _of_loki(texts: list[str], chance: random.Random) -> bytes:
    time = chance.choice(_TIMES)
    labels = chance.choice(_LABELS)
    return json.dumps({"data": {"result": [{"stream": labels, "values": [[time, text] for text in texts]}]}}).encode()


class Said:
    """Gives one answer, cut anywhere, to whatever is asked."""

    def __init__(self, answer: bytes, chance: random.Random) -> None:
        self._pieces = tuple(pieces(answer, chance))

    @contextmanager
    def answer(self, _path: str, _parameters: Mapping[str, str], **_how: bool) -> Iterator[Iterator[bytes]]:
        yield iter(self._pieces)
