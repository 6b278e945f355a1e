"""The schema of 0.1: see `baseline`."""

from __future__ import annotations

from alembic import op

from hitherto.stores.postgres import baseline

revision = "0108"
down_revision = None


def upgrade() -> None:
    connection = op.get_bind()
    for statements in baseline.scripts():
        connection.exec_driver_sql(statements.replace("%", "%%"))
