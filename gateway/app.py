"""The application: all routes, one form of error."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from sqlalchemy import Engine

from gateway import advice, audit, errors, health, jobs, timeline, workflows
from gateway.errors import ErrorBody

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "A parameter can't be taken; the message says which and why."},
    404: {"model": ErrorBody, "description": "What was named is not known."},
    503: {"model": ErrorBody, "description": "The database does not answer; try again."},
    "default": {"model": ErrorBody, "description": "Any other error, in the same form."},
}


def create_app(engine: Engine) -> FastAPI:
    """The HTTP interface over the projections that `engine` reaches."""
    app = FastAPI(
        title="Recovery Gateway",
        version="1",
        description="Attempts, workflows, Advice and the audit trail of training jobs, and why each was restarted.",
        redoc_url=None,
    )
    app.state.engine = engine
    for module in (jobs, timeline, workflows, advice, audit):
        app.include_router(module.router, responses=ERRORS)
    app.include_router(health.router)
    errors.install(app)
    return app
