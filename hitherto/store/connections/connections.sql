-- Connections: what each tells the server when it is made, and what is asked about one that has fallen silent.

-- name: greet
-- The server notices a client that has gone as soon as a client notices the server. Returns which backend this is, and
-- when it was started, in microseconds: a number of a process is used again.
select set_config('tcp_keepalives_idle', %(idle)s::text, false),
       set_config('tcp_keepalives_interval', %(interval)s::text, false),
       set_config('tcp_keepalives_count', %(count)s::text, false),
       set_config('tcp_user_timeout', %(timeout)s::text, false),
       pg_backend_pid(),
       (select (extract(epoch from backend_start) * 1000000)::bigint from pg_stat_activity
        where pid = pg_backend_pid());

-- name: backends
-- The backends of this role, and whether each is at work. One that is not waits for its client.
select pid, (extract(epoch from backend_start) * 1000000)::bigint, wait_event_type is distinct from 'Client'
from pg_stat_activity
where datname = current_database() and usename = session_user;

-- name: end_backends
-- End backends whose clients have given them up, with the transactions and locks they may hold.
select pg_terminate_backend(a.pid)
from pg_stat_activity a
join unnest(%(pids)s::int[], %(starts)s::bigint[]) as given (pid, start) on given.pid = a.pid
where (extract(epoch from a.backend_start) * 1000000)::bigint = given.start;

-- name: end_abandoned
-- End transactions of this role that hold locks on our tables, and have long waited for their clients. The
-- server's own limit, idle_in_transaction_session_timeout, does not see those that have sent a flush after their sync,
-- as psycopg's pipelines do, nor those in the middle of a pipeline.
select pg_terminate_backend(a.pid)
from pg_stat_activity a
where a.datname = current_database() and a.usename = session_user
  and a.application_name = current_setting('application_name')
  and a.backend_xid is not null and a.wait_event = 'ClientRead'
  and greatest(a.query_start, a.state_change) < statement_timestamp() - %(silent)s::interval
  and exists (
      select 1 from pg_locks l join pg_class c on c.oid = l.relation
      where l.pid = a.pid and l.database = a.datid and c.relnamespace = to_regnamespace('hitherto')
  );
