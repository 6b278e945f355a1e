"""The schema of 0.1: the files of `0108_baseline`."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0108"
down_revision = None

FILES = (
    "log",
    "digests",
    "ledger",
    "documents",
    "search",
    "facts",
    "contexts",
    "runs",
    "keys",
    "functions",
    "views",
    "across",
    "row_security",
    "server",
)
"""In this order: each uses only what those before it make."""


def upgrade() -> None:
    connection = op.get_bind()
    folder = Path(__file__).parent.parent / "0108_baseline"
    for name in FILES:
        connection.exec_driver_sql((folder / f"{name}.sql").read_text(encoding="utf-8").replace("%", "%%"))
