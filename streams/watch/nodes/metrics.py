"""Asks Prometheus what the metrics of nodes say, and makes a fact of each value that crosses a line.

Edges count, not levels: a counter that has stood for a week is no news to the job that runs now, nor is one that was
missing for a while, since its exporter was not scraped, and stands where it stood. Queries are evaluated at whole
periods of time, and the values before come from Prometheus itself, from where the last look stopped; so after a restart
nothing is missed, nothing is told anew, and the same edge has the same identity wherever it is seen.
"""

from __future__ import annotations

import heapq
import queue
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import httpx
import structlog

from recovery.metrics import counter, gauge
from recovery.node_queries import NodeQuery
from schemas.bookkeeping import SourceRead
from schemas.facts import Evidence, NodeFault
from schemas.identity import Position, derived_id
from schemas.nodes import NodeFaultSeen
from schemas.vocabulary import Remedy, Scope, Witness
from streams.sources.http import Address
from streams.watch.masking import MOST_CHARACTERS, digest_of, masked
from streams.watch.nodes.lines import host_name, is_nameless, node_name

log = structlog.get_logger(__name__)

TIMEOUT_S = 10.0
MOST_BACK_MS = 3_600_000
"""The value before is not looked for further back than this; the node decider has forgotten who was there."""
LOOK_BACK_STEP_MS = 60_000
"""How far apart the moments are at which a query is evaluated when its past is looked at."""
MOST_MISSING = 100_000
"""Series of a query whose value is remembered while they are missing."""
FAILED = counter("watch_node_queries_failed", "Queries of node metrics that Prometheus did not answer.", "query")
NAMELESS = gauge(
    "watch_node_series_nameless",
    "Series of a query of node metrics whose label names no node, at the last look.",
    "query",
)

Series = tuple[tuple[str, str], ...]


class QueryFailed(Exception):
    """Prometheus did not answer a query; the message says what it said and names its address."""


@dataclass(frozen=True)
class Look:
    """What one evaluation of a query gave, and how far the query was evaluated with it."""

    faults: tuple[NodeFaultSeen, ...]
    read: SourceRead
    nameless: tuple[Series, ...] = ()
    """Series whose label is missing, or is an address: a node has a name."""


@dataclass(frozen=True)
class _Known:
    """The last value that a series had, and in how many looks since it was missing."""

    value: float
    missed: int = 0


class Prometheus:
    """The HTTP API's instant queries. Safe to use from one thread at a time.

    The address may carry a user and a password, which are sent and never shown.
    """

    def __init__(self, url: str) -> None:
        self._url = f"{url.rstrip('/')}/api/v1/query"
        self._shown = f"{Address(url).shown.rstrip('/')}/api/v1/query"
        self._client = httpx.Client(timeout=TIMEOUT_S)

    def values(self, query: str, at_ms: int) -> dict[Series, float]:
        """The finite values of all series of a query at one time. Raises QueryFailed."""
        try:
            answer = self._client.get(self._url, params={"query": query, "time": f"{at_ms / 1000:.3f}"})
            body = answer.json()
        except (httpx.HTTPError, ValueError, RecursionError) as error:
            raise QueryFailed(f"{self._shown} does not answer as Prometheus does: {error!r}") from error
        try:
            if body["status"] != "success":
                raise QueryFailed(f"{self._shown} refuses {query!r}: {body.get('errorType')}: {body.get('error')}")
            if body["data"]["resultType"] != "vector":
                raise QueryFailed(f"{query!r} gives a {body['data']['resultType']}, not one value a series")
            return dict(_samples(body["data"]["result"]))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise QueryFailed(f"{self._shown} gives no result that Prometheus would: {error!r}") from error

    def close(self) -> None:
        self._client.close()


class Query:
    """One configured query, and where it stands."""

    def __init__(self, asked: NodeQuery, cluster: str, period_ms: int, position: SourceRead | None) -> None:
        self._asked = asked
        self._cluster = cluster
        self._period_ms = period_ms
        self.source = f"metric:{asked.name}"
        self._at_ms = None if position is None else position.offset
        self._known: dict[Series, _Known] | None = None

    def look(self, prometheus: Prometheus, now_ms: int) -> Look | None:
        """Evaluate at the last whole period; None where that was done. Raises QueryFailed, and is then asked again."""
        at_ms = now_ms // self._period_ms * self._period_ms
        if self._at_ms is not None and at_ms <= self._at_ms:
            return None
        if self._known is None:
            self._known = self._past(prometheus, at_ms)
        values = prometheus.values(self._asked.query, at_ms)
        faults = tuple(self._faults(values, self._known, at_ms, now_ms))
        self._known, self._at_ms = self._with(self._known, values), at_ms
        nameless = tuple(series for series in values if is_nameless(self._host(series)))
        return Look(faults, self._read(at_ms, now_ms), nameless)

    def complaint(self, nameless: Sequence[Series]) -> str:
        """What is wrong with series that name no node, with one of them."""
        labels = ", ".join(f'{name}="{text}"' for name, text in nameless[0])
        return f"the label {self._asked.node_label} names no node in {len(nameless)} series, such as {{{labels}}}"

    def _host(self, series: Series) -> str:
        return host_name(dict(series).get(self._asked.node_label, ""))

    def _past(self, prometheus: Prometheus, at_ms: int) -> dict[Series, _Known]:
        """The last value of each series where the last look stopped, or where it was missing then, before that."""
        query, since_ms = self._asked.query, at_ms - self._period_ms
        if self._at_ms is not None and at_ms - self._at_ms <= MOST_BACK_MS:
            since_ms = self._at_ms
        step_ms = max(self._period_ms, LOOK_BACK_STEP_MS)
        back = f"last_over_time((\n{query}\n)[{MOST_BACK_MS}ms:{step_ms}ms])"  # the query may end in a comment
        known = self._with({}, prometheus.values(back, since_ms))
        return self._with(known, prometheus.values(query, since_ms))

    def _with(self, known: Mapping[Series, _Known], values: Mapping[Series, float]) -> dict[Series, _Known]:
        """What is known with these values: of series that are missing the last one, for as many looks as count."""
        most = MOST_BACK_MS // self._period_ms
        missing = {
            series: replace(last, missed=last.missed + 1)
            for series, last in known.items()
            if series not in values and last.missed < most
        }
        newest = heapq.nsmallest(MOST_MISSING, missing.items(), key=lambda one: one[1].missed)
        return dict(newest) | {series: _Known(value) for series, value in values.items()}

    def _faults(
        self, values: Mapping[Series, float], known: Mapping[Series, _Known], at_ms: int, now_ms: int
    ) -> Iterator[NodeFaultSeen]:
        for ordinal, series in enumerate(sorted(values)):
            host = self._host(series)
            before = known.get(series)
            if host and self._is_edge(values[series], None if before is None else before.value):
                yield self._fact(host, series, values[series], Position(self.source, 0, at_ms, ordinal), now_ms)

    def _is_edge(self, value: float, before: float | None) -> bool:
        limit = self._asked.limit
        if self._asked.when == "grows":
            return before is not None and value - before > limit
        if self._asked.when == "changes":
            return value > limit and value != before
        return value > limit and (before is None or before <= limit)

    def _fact(self, host: str, series: Series, value: float, position: Position, now_ms: int) -> NodeFaultSeen:
        asked, node = self._asked, node_name(host)
        labels = ", ".join(f'{name}="{text}"' for name, text in series)
        text = masked(f"{{{labels}}} = {value:g}, asked as {asked.query}")[:MOST_CHARACTERS]
        evidence = Evidence("", 0, 0, position.offset, now_ms, host, None, text, digest_of(text))
        excluding = asked.remedy is Remedy.RESTART_EXCLUDING_NODE
        return NodeFaultSeen(
            event_id=derived_id("node", self._cluster, node, position.source, position.offset, position.ordinal),
            cause="",
            position=position,
            fault=NodeFault(
                cluster=self._cluster,
                node=node,
                witness=Witness.NODE_METRIC,
                signature=self.source,
                fault_class=asked.fault_class,
                scope=Scope.NODE if excluding else Scope.UNKNOWN,
                remedy=asked.remedy,
                role=asked.role,
                precedence=asked.precedence,
                detail=_detail(asked.detail, value, dict(series)),
                evidence=evidence,
            ),
        )

    def _read(self, at_ms: int, now_ms: int) -> SourceRead:
        event_id = derived_id("position", self.source, 0, at_ms)
        return SourceRead(event_id, "", self.source, "", 0, at_ms, 0, None, now_ms)


class NodeMetrics:
    """Asks in a thread of its own, so that a slow Prometheus holds nobody up; `looks` gives what has come."""

    def __init__(self, prometheus: Prometheus, queries: Sequence[Query], period_s: float) -> None:
        self._prometheus = prometheus
        self._queries = queries
        self._period_s = period_s
        self._looks: queue.SimpleQueue[Look] = queue.SimpleQueue()
        self._said: dict[str, str] = {}
        self._complained: set[str] = set()
        self._done = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="node-metrics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def looks(self) -> Iterator[Look]:
        """What was found since the last call, without waiting. Raises what ended the thread."""
        if self._failure is not None:
            raise self._failure
        while True:
            try:
                yield self._looks.get_nowait()
            except queue.Empty:
                return

    def close(self) -> None:
        """Stop asking. A question that is under way is given up."""
        self._done.set()
        self._thread.join(timeout=1.0)
        self._prometheus.close()

    def _run(self) -> None:
        try:
            while not self._done.is_set():
                for query in self._queries:
                    self._ask(query)
                self._done.wait(self._period_s / 4)
        except Exception as error:  # noqa: BLE001 - raised again where the process notices
            self._failure = error

    def _ask(self, query: Query) -> None:
        try:
            look = query.look(self._prometheus, time.time_ns() // 1_000_000)
        except QueryFailed as error:
            FAILED.labels(query.source).inc()
            self._say(query.source, str(error))
            return
        self._say(query.source, "")
        if look is not None:
            self._looks.put(look)
            self._complain(query, look.nameless)

    def _complain(self, query: Query, nameless: Sequence[Series]) -> None:
        """Say once of a query that series of it name no node: their faults reach no job."""
        NAMELESS.labels(query.source).set(len(nameless))
        if nameless and query.source not in self._complained:
            self._complained.add(query.source)
            log.warning(
                "node metrics join no job",
                query=query.source,
                problem=masked(query.complaint(nameless)),
                next="set node_label of the query to a label that has the node's name, or add one by relabelling",
            )

    def _say(self, source: str, problem: str) -> None:
        """Say once that something is wrong with a query, and once that it is well again."""
        if self._said.get(source, "") == problem:
            return
        self._said[source] = problem
        if problem:
            log.warning("node metrics can't be read", query=source, problem=problem, next="ask again")
        else:
            log.info("node metrics are read", query=source)


def _samples(result: Iterable[Any]) -> Iterator[tuple[Series, float]]:
    for sample in result:
        value = float(sample["value"][1])
        if isfinite(value):
            yield tuple(sorted((_clean(name), _clean(text)) for name, text in sample["metric"].items())), value


def _clean(text: object) -> str:
    """Text that any event takes: JSON may hold halves of characters."""
    return str(text).encode("utf-8", "replace").decode()


class _Labels(dict[str, str]):
    """A label that a series lacks is left out of the words."""

    def __missing__(self, _name: str) -> str:
        return ""


def _detail(template: str, value: float, labels: Mapping[str, str]) -> str:
    return masked(" ".join(template.format_map(_Labels({**labels, "value": f"{value:g}"})).split()))
