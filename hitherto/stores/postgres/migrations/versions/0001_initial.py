"""The first schema."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    statements = Path(__file__).parent.parent.joinpath("0001_initial.sql").read_text(encoding="utf-8")
    op.get_bind().exec_driver_sql(statements)


def downgrade() -> None:
    op.get_bind().exec_driver_sql(
        "drop view hitherto.memory; "
        "drop table hitherto.digest, hitherto.receipt, hitherto.message, hitherto.conversation"
    )
