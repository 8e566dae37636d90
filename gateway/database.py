"""The connection to the projections: a pool of read-only sessions whose waits are bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, cast

from fastapi import Depends, Request
from sqlalchemy import Connection, Engine, create_engine

_OPTIONS = "-c statement_timeout=10000 -c lock_timeout=5000 -c default_transaction_read_only=on"


def engine_of(url: str) -> Engine:
    """An engine that can't write: 5 s to connect, 10 s for a statement."""
    connect = {"connect_timeout": 5, "options": _OPTIONS}
    return create_engine(
        url,
        pool_size=5,
        max_overflow=15,
        pool_timeout=5,
        pool_pre_ping=True,
        isolation_level="REPEATABLE READ",
        connect_args=connect,
    )


def connection_of(request: Request) -> Iterator[Connection]:
    """One request, one snapshot: what an answer says of several tables belongs together."""
    engine = cast(Engine, request.app.state.engine)
    with engine.connect() as connection:
        yield connection


Database = Annotated[Connection, Depends(connection_of)]
