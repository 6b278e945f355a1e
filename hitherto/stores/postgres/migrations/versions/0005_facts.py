"""Facts about subjects."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0005"
down_revision = "0004"

# The entries of facts go from the index, as nobody knows them there.
_DOWN = """
lock table hitherto.conversation in access exclusive mode;
select hitherto.unindexed(tenant, scope, array_agg(no)) from hitherto.search_entry where kind = 4
group by tenant, scope;
delete from hitherto.search_entry where kind = 4;
comment on table hitherto.search_entry is
    'One thing that can be found: message (kind 1), digest (2) or passage (3), with the hashes of its terms; '
    'no word of it but its speaker''s name.';
drop function hitherto.unindexed(text, bigint, bigint[]);
drop function hitherto.shared_with(text, text, text, text);
drop view hitherto.legacy_facts;
drop table hitherto.fact_event, hitherto.fact_evidence, hitherto.fact, hitherto.fact_book, hitherto.subject_member,
    hitherto.subject;
drop index hitherto.conversation_about;
alter table hitherto.conversation drop column subject, drop column extracted;
"""


def upgrade() -> None:
    statements = Path(__file__).parent.parent.joinpath("0005_facts.sql").read_text(encoding="utf-8")
    op.get_bind().exec_driver_sql(statements)


def downgrade() -> None:
    op.get_bind().exec_driver_sql(_DOWN)
