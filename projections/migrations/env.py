"""Alembic runs this; the connection is given by `projections.migrate`."""

from alembic import context

from projections.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
