"""Benchmarks: each figure beside what a user would pick instead, or beside the empty machinery, in the same run."""
