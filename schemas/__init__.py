"""The language every process speaks: events and their Avro schemas, identity, topics and the codec.

`identity`, `vocabulary`, `facts`, `decisions`, `policy` and `aps` are pure, and all that
`streams.decide` may import.
"""
