"""The schema of 0.1: the files of `baseline`."""

from __future__ import annotations

from alembic import op

from hitherto.store import schema

revision = "0116"
down_revision = None


def upgrade() -> None:
    connection = op.get_bind()
    for statements in schema.baseline():
        connection.exec_driver_sql(statements.replace("%", "%%"))
