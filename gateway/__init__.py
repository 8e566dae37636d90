"""The HTTP interface: reads of the projections, named and shaped as the original's `/v1`. It writes nothing."""
