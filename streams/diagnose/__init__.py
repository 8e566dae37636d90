"""Diagnose: what a dead run's files say, by the same patterns and rules as the running system; no Kafka, no cluster."""
