"""Recall: documents and their passages, and the search index."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"

_DOWN = """
drop table hitherto.search_codes, hitherto.search_vector, hitherto.search_posting, hitherto.search_segment,
    hitherto.search_entry, hitherto.search_filling, hitherto.search_space, hitherto.search_scope,
    hitherto.passage, hitherto.document;
drop index hitherto.digest_waiting, hitherto.conversation_waiting;
alter table hitherto.digest drop column indexed;
alter table hitherto.conversation drop column indexed_seq;
drop function hitherto.within(text, text, text, text, text, text, boolean);
"""


def upgrade() -> None:
    statements = Path(__file__).parent.parent.joinpath("0004_recall.sql").read_text(encoding="utf-8")
    op.get_bind().exec_driver_sql(statements)


def downgrade() -> None:
    op.get_bind().exec_driver_sql(_DOWN)
