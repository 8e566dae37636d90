"""Whether the gateway lives, and how old what it shows may be."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from gateway.models import PartitionState, Readiness
from gateway.tables import ATTEMPTS, OFFSETS
from gateway.times import rfc3339

router = APIRouter(tags=["health"])


@router.get("/healthz")
def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "alive"}


@router.get("/readyz", response_model=Readiness)
def readyz(request: Request) -> JSONResponse:
    """200 when the tables can be read, 503 when not; either way how far behind the events they are.

    A projector that stands still makes answers old, not wrong: it shows in staleSeconds and lag, and stops nobody.
    """
    try:
        with request.app.state.engine.connect() as connection:
            connection.execute(select(ATTEMPTS.c.job_id).limit(1))
            order = (OFFSETS.c.topic, OFFSETS.c.partition)
            rows = connection.execute(select(OFFSETS).order_by(*order)).mappings().all()
    except SQLAlchemyError as error:
        reason = f"the tables can't be read: {str(getattr(error, 'orig', error)).splitlines()[0]}"
        return _answer(503, Readiness(ready=False, reason=reason, stale_seconds=None, lag=None, partitions=[]))
    looked = [row["looked_ms"] for row in rows]
    oldest = None if not looked or None in looked else min(looked)
    lags = [row["lag"] for row in rows if row["lag"] is not None]
    return _answer(
        200,
        Readiness(
            ready=True,
            reason="the tables can be read" if oldest is not None else "the projector has not looked at all partitions",
            stale_seconds=None if oldest is None else max(0.0, round(time.time() - oldest / 1000, 3)),
            lag=sum(lags) if lags else None,
            partitions=[
                PartitionState(
                    topic=row["topic"],
                    partition=row["partition"],
                    next_offset=str(row["next_offset"]),
                    lag=row["lag"],
                    last_record_time=rfc3339(row["record_ms"]),
                    looked_at=rfc3339(row["looked_ms"]),
                )
                for row in rows
            ],
        ),
    )


def _answer(status: int, readiness: Readiness) -> JSONResponse:
    return JSONResponse(readiness.model_dump(mode="json", by_alias=True), status_code=status)
