"""The schema of 0.1: the files of `0108_baseline`, and the job queue's schema from its installed package."""

from __future__ import annotations

from pathlib import Path

from alembic import op
from procrastinate.schema import SchemaManager

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
)
"""In this order: each uses only what those before it make."""

LAST = ("across", "row_security")
"""What needs the queue's tables, or all of ours."""

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


def upgrade() -> None:
    connection = op.get_bind()
    folder = Path(__file__).parent.parent / "0108_baseline"
    for name in FILES:
        connection.exec_driver_sql((folder / f"{name}.sql").read_text(encoding="utf-8"))
    path = connection.exec_driver_sql("show search_path").scalar_one()
    connection.exec_driver_sql("set local search_path to hitherto")
    connection.exec_driver_sql(SchemaManager.get_schema().replace("%", "%%"))
    connection.exec_driver_sql("select set_config('search_path', %s, true)", (path,))
    connection.exec_driver_sql(_QUEUE_IN_ITS_PLACE)
    for name in LAST:
        connection.exec_driver_sql((folder / f"{name}.sql").read_text(encoding="utf-8").replace("%", "%%"))
