-- What a database looks like from outside: these queries change nothing, and need no right but to connect
-- (examine_revision only runs where examine_schema has found its right).

-- name: examine_server
-- The server's version, our role, whether it takes no writes, and the settings by which writes survive a crash.
select current_setting('server_version'), current_setting('server_version_num')::integer, current_user::text,
       pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean,
       current_setting('fsync')::boolean, current_setting('full_page_writes')::boolean;

-- name: ping
-- A round trip.
select 1;

-- name: examine_schema
-- The schema as the catalog has it, which even a role without rights on the schema may read: whether it exists, may be
-- used, may be created or upgraded, whether its revision may be read, who owns it, and whether row-level security holds.
select n.oid is not null,
       coalesce(has_schema_privilege(n.oid, 'usage'), false),
       case when n.oid is null then has_database_privilege(current_database(), 'create')
            else has_schema_privilege(n.oid, 'create')
                 and not exists (select 1 from pg_class c where c.relnamespace = n.oid and not pg_has_role(c.relowner, 'usage'))
       end,
       coalesce((select has_table_privilege(c.oid, 'select') from pg_class c
                 where c.relnamespace = n.oid and c.relname = 'alembic_version'), false),
       pg_get_userbyid(n.nspowner)::text,
       coalesce((select row_security_active(c.oid) from pg_class c
                 where c.relnamespace = n.oid and c.relname = 'message'), false)
from (select 1) one
left join pg_namespace n on n.nspname = 'hitherto';

-- name: examine_revision
-- Which revision the schema is at.
select version_num from hitherto.alembic_version;

-- name: examine_rights
-- The rights that a store needs and the role lacks. Identity columns need no right to their sequence, but ids of
-- digests are taken from theirs beforehand. The `case` keeps has_sequence_privilege() from being called for other
-- relations.
select c.relname::text || ': ' || string_agg(needed.right, ', ' order by needed.at)
from pg_class c
join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'hitherto'
cross join lateral (
    values (1, 'SELECT', true), (2, 'INSERT', false), (3, 'UPDATE', false), (4, 'DELETE', false)
) as needed (at, "right", reads)
where c.relkind in ('r', 'p') and (c.relname <> 'alembic_version' or needed.reads)
  and not has_table_privilege(c.oid, needed.right)
group by c.relname
union all
select c.relname::text || ': USAGE'
from pg_class c
join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'hitherto'
where case when c.relkind = 'S' then not has_sequence_privilege(c.oid, 'usage') end
  and (c.relname = 'digest_id_seq' or not exists (select 1 from pg_depend d where d.objid = c.oid and d.deptype = 'i'))
order by 1;

-- name: examine_undigested
-- Long conversations without a policy of their own or of their agent, and without a digest of any kind.
select count(*)
from (
    select 1 from hitherto.conversation c
    where c.tokens - c.view_tokens > %(tokens)s and c.policy is null and c.updated_at < now() - interval '1 minute'
      and not exists (select 1 from hitherto.digest d where d.tenant = c.tenant and d.conversation = c.ref)
      and not exists (select 1 from hitherto.agent a where a.tenant = c.tenant and a.agent = c.agent and a.policy is not null)
    limit %(limit)s
) c;
