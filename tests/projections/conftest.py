"""A database and topics of a test's own, on the shared stack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from infra.local.endpoints import Endpoints
from projections import migrate
from projections.store import engine_of
from tests.projections.parts import Topics, database, make_topics


@pytest.fixture
def url(stack: Endpoints) -> Iterator[str]:
    """A database with the tables of this version."""
    with database(stack.postgres) as url:
        migrate.upgrade(url)
        yield url


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = engine_of(url)
    yield engine
    engine.dispose()


@pytest.fixture
def topics(stack: Endpoints) -> Topics:
    """A journal and a decision topic of two partitions each."""
    return make_topics(stack.kafka)
