"""The schema of 0.1, as SQL: the files of `migrations/0108_baseline`, and the job queue's schema from its package."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from typing import Final

_FILES: Final = (
    "log",
    "digests",
    "ledger",
    "documents",
    "search",
    "facts",
    "contexts",
    "runs",
    "keys",
    "shown",
    "functions",
    "views",
)
"""In this order: each uses only what those before it make."""

_LAST: Final = ("across", "row_security")
"""What needs the queue's tables, or all of ours."""

# procrastinate's statements and functions name its tables without a schema. Its functions get theirs for good, so that
# a job can be put into the queue on any connection, behind a pooler that keeps no session's settings too.
_QUEUE_IN_ITS_PLACE: Final = """
do $$
declare one record;
begin
    for one in
        select p.oid::regprocedure as signature from pg_proc p
        where p.pronamespace = 'hitherto'::regnamespace and p.proname like 'procrastinate\\_%'
    loop
        execute format('alter function %s set search_path = hitherto, pg_temp', one.signature);
    end loop;
end $$;
grant usage on sequence hitherto.procrastinate_jobs_id_seq, hitherto.procrastinate_events_id_seq,
    hitherto.procrastinate_periodic_defers_id_seq to public;
"""


def scripts() -> Iterator[str]:
    """Yields what makes the tables and all else in the schema `hitherto`, which must be there; to be executed in this
    order and in one transaction."""
    from procrastinate.schema import SchemaManager

    folder = resources.files(__package__ or "").joinpath("migrations", "0108_baseline")
    for name in _FILES:
        yield folder.joinpath(f"{name}.sql").read_text(encoding="utf-8")
    yield "select set_config('hitherto.search_path', current_setting('search_path'), true)"
    yield "set local search_path to hitherto"
    yield SchemaManager.get_schema()
    yield "select set_config('search_path', current_setting('hitherto.search_path'), true)"
    yield _QUEUE_IN_ITS_PLACE
    for name in _LAST:
        yield folder.joinpath(f"{name}.sql").read_text(encoding="utf-8")
