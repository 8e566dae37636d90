"""The rules of logic 1 as they were, for history that was decided by them. Never edited."""
