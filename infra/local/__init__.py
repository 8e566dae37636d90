"""The embedded stack: real Kafka, registry, PostgreSQL and Slurm on one machine, without Docker or a system Java.

Imports nothing, so that `infra.local.training` also runs under a plain Python on a compute node.
"""
