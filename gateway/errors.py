"""Errors as JSON `{code, message, details}`: gRPC's code, and a message that names the parameter and the way out."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy.exc import InterfaceError, OperationalError, ProgrammingError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException

log = structlog.get_logger(__name__)


class Code(IntEnum):
    """gRPC's status codes, as far as they are used here."""

    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class ErrorBody(BaseModel):
    """Every error looks like this."""

    code: int
    message: str
    details: list[dict[str, Any]]


class BadRequest(Exception):
    """A parameter can't be taken. The message says what it is, what is wrong and what to give instead."""

    def __init__(self, parameter: str, value: object, problem: str) -> None:
        super().__init__(f"{parameter} is {value!r}: {problem}")
        self.detail = {"parameter": parameter, "value": str(value), "problem": problem}


class NotFound(Exception):
    """What was asked for by name does not exist. The message says where to look for what does."""


def install(app: FastAPI) -> None:
    """Have every failure answered in the one form."""

    @app.exception_handler(BadRequest)
    def bad(_request: Request, error: BadRequest) -> JSONResponse:
        return _answer(400, Code.INVALID_ARGUMENT, str(error), [error.detail])

    @app.exception_handler(NotFound)
    def missing(_request: Request, error: NotFound) -> JSONResponse:
        return _answer(404, Code.NOT_FOUND, str(error))

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        details = [_detail(request, one) for one in error.errors()]
        message = "; ".join(f"{detail['parameter']} is {detail['value']!r}: {detail['problem']}" for detail in details)
        return _answer(400, Code.INVALID_ARGUMENT, message, details)

    @app.exception_handler(HTTPException)
    def http(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 404:
            message = f"there is nothing at {request.url.path}; /openapi.json lists what there is"
            return _answer(404, Code.NOT_FOUND, message)
        return _answer(error.status_code, Code.UNIMPLEMENTED, f"{request.method} {request.url.path}: {error.detail}")

    @app.exception_handler(OperationalError)
    @app.exception_handler(InterfaceError)
    @app.exception_handler(PoolTimeout)
    def database(request: Request, error: SQLAlchemyError) -> JSONResponse:
        log.warning("PostgreSQL does not answer", path=request.url.path, error=str(error))
        return _unavailable("the database does not answer or took too long; try again in a few seconds")

    @app.exception_handler(ProgrammingError)
    def tables(request: Request, error: ProgrammingError) -> JSONResponse:
        log.error("the tables are not what this version reads", path=request.url.path, error=str(error.orig))
        return _unavailable("the database lacks tables of this version; `recovery project` makes them")

    @app.exception_handler(Exception)
    def internal(request: Request, error: Exception) -> JSONResponse:
        log.error("request failed", path=request.url.path, exc_info=error)
        return _answer(500, Code.INTERNAL, "something failed here; the gateway's log says what")


def _answer(status: int, code: Code, message: str, details: Sequence[dict[str, Any]] = ()) -> JSONResponse:
    body = ErrorBody(code=code, message=message, details=list(details))
    return JSONResponse(body.model_dump(mode="json"), status_code=status)


def _unavailable(message: str) -> JSONResponse:
    answer = _answer(503, Code.UNAVAILABLE, message)
    answer.headers["Retry-After"] = "2"
    return answer


def _detail(request: Request, error: dict[str, Any]) -> dict[str, Any]:
    """One finding of pydantic in the words of the interface."""
    name = str(error["loc"][1]) if len(error["loc"]) > 1 else str(error["loc"][0])
    problem = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if error["type"] == "extra_forbidden":
        problem = f"no such query parameter; there are: {', '.join(_known(request))}"
    elif error["type"] == "missing":
        return {"parameter": name, "value": "", "problem": "required; give it in the query"}
    return {"parameter": name, "value": str(error["input"]), "problem": problem}


def _known(request: Request) -> list[str]:
    """The query parameters of the route that was asked."""
    parameters = request.scope["route"].dependant.query_params
    models = [parameter.field_info.annotation for parameter in parameters]
    names = [
        field.alias or name
        for model in models
        if isinstance(model, type) and issubclass(model, BaseModel)
        for name, field in model.model_fields.items()
    ]
    return sorted(names)
