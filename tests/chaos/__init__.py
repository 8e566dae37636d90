"""Chaos on the real local stack: jobs that fail in known ways while our processes and what they rely on are killed."""
