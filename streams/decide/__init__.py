"""The attempt decider: `decide(state, fact) -> (state, events)`, pure.

Nothing below here reads a clock, draws a random number, looks at the environment or does I/O, not even through
another module (a test and import-linter hold it to that): replaying a journal gives the same decisions, byte for byte.
"""
