"""Metrics: one registry a process, names that start with `recovery_`, and the few metrics that several rooms share.

A metric of one room is defined in that room, with the functions below. Names carry their unit (`…_seconds`);
Prometheus' client adds `_total` to counters.
"""

from prometheus_client import (
    GC_COLLECTOR,
    PLATFORM_COLLECTOR,
    PROCESS_COLLECTOR,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

REGISTRY = CollectorRegistry()
for _collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
    REGISTRY.register(_collector)

# From one Kafka round trip to a job that waits for nodes.
LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


def counter(name: str, text: str, *labels: str) -> Counter:
    """Return the counter `recovery_<name>_total`. Raises ValueError when the name is taken."""
    return Counter(f"recovery_{name}", text, labels, registry=REGISTRY)


def gauge(name: str, text: str, *labels: str) -> Gauge:
    """Return the gauge `recovery_<name>`. Raises ValueError when the name is taken."""
    return Gauge(f"recovery_{name}", text, labels, registry=REGISTRY)


def latency(name: str, text: str, *labels: str) -> Histogram:
    """Return the histogram `recovery_<name>_seconds`. Raises ValueError when the name is taken."""
    return Histogram(f"recovery_{name}_seconds", text, labels, registry=REGISTRY, buckets=LATENCY_BUCKETS)


FACTS_WRITTEN = counter("facts_written", "Facts written to Kafka, by event type.", "type")
PARKED_NAME = "recovery_parked_total"
PARKED = counter("parked", "Records that could not be handled and were parked, by source topic.", "topic")
HIDDEN_NAME = "recovery_hidden_records"
HIDDEN = gauge(
    "hidden_records", "Records behind a transaction that is open for too long: nobody can read them.", "topic"
)
LAG_NAME = "recovery_lag_records"
LAG = gauge("lag_records", "Records that a reader of this process has yet to read.", "topic", "group")

FACTS_DECIDED_NAME = "recovery_facts_decided_total"
INTENTS_NAME = "recovery_sac_intents_open"
SINCE_LINE_NAME = "recovery_since_line_seconds"
"""What `recovery status` shows of a decider, the scheduler controller and the projector; defined in their rooms."""


def exposition() -> bytes:
    """Return all metrics of this process in Prometheus' text format."""
    return generate_latest(REGISTRY)
