"""Runs migrations on the connection that `schema.ensure` hands over."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table_schema="hitherto",
    transaction_per_migration=False,
)
context.run_migrations()
