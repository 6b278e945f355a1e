"""Digests that survive: claims, tries, the ledger, and the schema of the job queue from its installed package."""

from __future__ import annotations

from pathlib import Path

from alembic import op
from procrastinate.schema import SchemaManager

revision = "0003"
down_revision = "0002"

# procrastinate's statements and functions name its tables without a schema. Its functions get theirs for good, so that
# a job can be put into the queue on any connection, behind a pooler that keeps no session's settings too.
_QUEUE_IN_ITS_PLACE = """
do $$
declare one record;
begin
    for one in
        select p.oid::regprocedure as signature from pg_proc p
        where p.pronamespace = 'hitherto'::regnamespace and p.proname like 'procrastinate\\_%%'
    loop
        execute format('alter function %%s set search_path = hitherto, pg_temp', one.signature);
    end loop;
end $$;
grant usage on sequence hitherto.procrastinate_jobs_id_seq, hitherto.procrastinate_events_id_seq,
    hitherto.procrastinate_periodic_defers_id_seq to public;
"""

# Its functions give rows of its tables, whose triggers call others of them.
_DOWN = """
do $$
declare one record;
begin
    for one in
        select p.oid::regprocedure as signature from pg_proc p
        where p.pronamespace = 'hitherto'::regnamespace and p.proname like 'procrastinate\\_%%'
    loop
        execute format('drop function %%s cascade', one.signature);
    end loop;
end $$;
drop table hitherto.procrastinate_periodic_defers, hitherto.procrastinate_events, hitherto.procrastinate_jobs,
    hitherto.procrastinate_workers;
drop type hitherto.procrastinate_job_to_defer_v1, hitherto.procrastinate_job_event_type,
    hitherto.procrastinate_job_status;
drop table hitherto.model_call;
drop index hitherto.conversation_resting, hitherto.digest_due;
update hitherto.conversation set failed = failures > 0;
alter table hitherto.conversation drop column failures, drop column resume_at;
alter table hitherto.digest drop column tries, drop column claimed, drop column due_at;
"""


def upgrade() -> None:
    statements = Path(__file__).parent.parent.joinpath("0003_pipeline.sql").read_text(encoding="utf-8")
    connection = op.get_bind()
    connection.exec_driver_sql(statements)
    path = connection.exec_driver_sql("show search_path").scalar_one()
    connection.exec_driver_sql("set local search_path to hitherto")
    connection.exec_driver_sql(SchemaManager.get_schema().replace("%", "%%"))
    connection.exec_driver_sql("select set_config('search_path', %s, true)", (path,))
    connection.exec_driver_sql(_QUEUE_IN_ITS_PLACE)


def downgrade() -> None:
    op.get_bind().exec_driver_sql(_DOWN)
