"""Keeps PostgreSQL tables in step with the events: attempts, workflows, advice, timeline and audit.

The tables are only ever a projection: drop them and `rebuild` makes the same ones again from Kafka.
"""
