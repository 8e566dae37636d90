"""Brings a database to the tables of this version."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

LOCK = 7_305_806_131
"""Of PostgreSQL's advisory locks: two processes that start together migrate one after the other."""


def upgrade(url: str) -> None:
    """Create or migrate the tables; does nothing where they are current. Raises sqlalchemy's OperationalError."""
    engine = create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": 5})
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.set_main_option("path_separator", "os")
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
