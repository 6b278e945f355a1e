"""Every kind of stage."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"

# What was taken back is told by nothing in the schema before: its messages would be shown again, with sums that do not
# ascend. The rows of other stages are derived; without them, the messages themselves are there again.
_DOWN = """
do $$ begin
    if exists (select from hitherto.message where retracted_rev is not null) then
        raise exception 'messages were taken back, which revision 0001 cannot say; delete their conversations first';
    end if;
end $$;
revoke usage on sequence hitherto.digest_id_seq from public;
drop table hitherto.agent;
drop index hitherto.conversation_digested, hitherto.digest_reach, hitherto.digest_standing;
update hitherto.digest d set base_id = null
from hitherto.digest b
where b.tenant = d.tenant and b.id = d.base_id and b.done not in ('summarise', 'clear');
delete from hitherto.digest
where done not in ('summarise', 'clear') or (done = 'clear' and status = 'superseded');
set constraints all immediate;
alter table hitherto.digest
    drop column freed, drop column since, drop column kept_from, drop column opaque, drop column family,
    drop column hidden_rev,
    alter column tokens type integer,
    drop constraint digest_done_check,
    add constraint digest_done_check check (done in ('summarise', 'clear'));
create index digest_standing on hitherto.digest (tenant, conversation, end_seq desc, id desc)
    where status = 'completed' and done = 'summarise';
alter table hitherto.message drop column sum_results, drop column retracted_rev;
comment on table hitherto.message is
    'The log: append-only, seq dense from 0; payload is the original item, byte for byte.';
alter table hitherto.conversation
    drop column results, drop column view_results, drop column frontiers, drop column late, drop column failed,
    drop column retracted,
    drop column injection, drop column injected, drop column digested_at;
"""


def upgrade() -> None:
    statements = Path(__file__).parent.parent.joinpath("0002_stages.sql").read_text(encoding="utf-8")
    op.get_bind().exec_driver_sql(statements)


def downgrade() -> None:
    op.get_bind().exec_driver_sql(_DOWN)
