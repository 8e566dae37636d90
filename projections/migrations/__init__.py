"""Alembic's folder. Run it with `projections.migrate.upgrade(url)`; a published revision never changes."""
