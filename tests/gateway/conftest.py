"""The interface over a real PostgreSQL with a few histories in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from gateway.app import create_app
from gateway.database import engine_of
from infra.local.endpoints import Endpoints
from projections import migrate, store
from tests.gateway.api import Api, fill
from tests.histories import gpu_xid_failure, observed_only
from tests.projections.parts import database


@pytest.fixture(scope="module")
def url(stack: Endpoints) -> Iterator[str]:
    """A database with a recovered job 42, an observed one 43, and an array task 123_4."""
    with database(stack.postgres) as url:
        migrate.upgrade(url)
        engine = store.engine_of(url)
        fill(engine, [gpu_xid_failure(), observed_only(), gpu_xid_failure("123_4", workflow_id="array")])
        engine.dispose()
        yield url


@pytest.fixture(scope="module")
def engine(url: str) -> Iterator[Engine]:
    engine = engine_of(url)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def api(engine: Engine) -> Api:
    return Api(create_app(engine))
