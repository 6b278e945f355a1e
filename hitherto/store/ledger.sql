-- The ledger: model calls recorded, added up, and detached from deleted conversations.

-- name: insert_call
-- Record a call, within the unit of work that it was made for.
insert into hitherto.model_call (tenant, key, user_id, agent, conversation, digest, purpose, model, tokens_in, tokens_cached,
    tokens_out, latency_ms, cost, cause)
values (%(tenant)s, %(key)s, %(user)s, %(agent)s, %(ref)s, %(digest)s, %(purpose)s, %(model)s, %(tokens_in)s, %(tokens_cached)s,
    %(tokens_out)s, %(latency_ms)s, %(cost)s, %(cause)s)
on conflict (tenant, key) do nothing;

-- name: note_call
-- Record a call that was made for a conversation of that name, or for none. A later deletion waits for the lock and
-- then finds the row; if one is under way already, the call is recorded without the conversation. A user is named only
-- while something of theirs is kept, so that a call which ends after an erasure does not bring a name back; likewise, nothing
-- is recorded and returned where nothing of the tenant is kept.
with c as (
    select ref from hitherto.conversation
    where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s
      and (%(digest)s::bigint is null or exists (
          select 1 from hitherto.digest d where d.tenant = %(tenant)s and d.id = %(digest)s and d.conversation = ref))
    for key share skip locked
), user_talks as (
    select 1 from hitherto.conversation where tenant = %(tenant)s and user_id = %(user)s limit 1 for key share skip locked
), user_is_indexed as (
    select 1 from hitherto.search_scope where tenant = %(tenant)s and user_id = %(user)s limit 1 for key share skip locked
), tenant_talks as (
    select 1 from hitherto.conversation where tenant = %(tenant)s limit 1 for key share skip locked
), tenant_is_indexed as (
    select 1 from hitherto.search_scope where tenant = %(tenant)s limit 1 for key share skip locked
), kept as (
    select exists (select 1 from user_talks) or exists (select 1 from user_is_indexed) as user_,
           exists (select 1 from tenant_talks) or exists (select 1 from tenant_is_indexed) as tenant
)
insert into hitherto.model_call (tenant, key, user_id, agent, conversation, digest, purpose, model, tokens_in, tokens_cached,
    tokens_out, latency_ms, cost, cause)
select %(tenant)s, %(key)s::uuid, case when kept.user_ then %(user)s else '' end, %(agent)s, c.ref,
       case when c.ref is not null then %(digest)s::bigint end, %(purpose)s, %(model)s, %(tokens_in)s::bigint,
       %(tokens_cached)s::bigint, %(tokens_out)s::bigint, %(latency_ms)s::bigint, %(cost)s::float8, %(cause)s
from kept
left join c on true
where kept.tenant
on conflict (tenant, key) do update set key = excluded.key
returning key;

-- name: note_nameless_calls
-- Calls of a tenant that is gone: recorded for none.
insert into hitherto.model_call (tenant, key, user_id, agent, purpose, model, tokens_in, tokens_cached, tokens_out, latency_ms,
    cost, cause, created_at)
select %(tenant)s, gen_random_uuid(), '', '', c.* 
from unnest(%(purposes)s::text[], %(models)s::text[], %(tokens_in)s::bigint[], %(tokens_cached)s::bigint[],
    %(tokens_out)s::bigint[], %(latency_ms)s::bigint[], %(costs)s::float8[], %(causes)s::text[], %(created_at)s::timestamptz[]) as c
returning tenant;

-- name: take_calls
-- Delete calls of a tenant that is being erased, to record them for none.
delete from hitherto.model_call
where tenant = %(tenant)s and key = any(array(select key from hitherto.model_call where tenant = %(tenant)s limit %(limit)s))
returning purpose, model, tokens_in, tokens_cached, tokens_out, latency_ms, cost, cause, created_at;

-- name: forget_calls_of
-- A deleted conversation's calls stay, but no longer name the conversation or its digests.
update hitherto.model_call set conversation = null, digest = null
where tenant = %(tenant)s and conversation = %(ref)s;

-- name: spent
-- The cost and the tokens of the calls of a tenant, or of a user of it, on a day in UTC (null: today), read from an index
-- that has all of it.
select coalesce(sum(cost), 0) as cost, coalesce(sum(coalesce(tokens_in, 0) + coalesce(tokens_out, 0)), 0)::bigint as tokens
from hitherto.model_call
where tenant = %(tenant)s and (%(user)s::text is null or user_id = %(user)s)
  and created_at >= coalesce(%(day)s::date, (statement_timestamp() at time zone 'utc')::date)::timestamp at time zone 'utc'
  and created_at < (coalesce(%(day)s::date, (statement_timestamp() at time zone 'utc')::date) + 1)::timestamp
      at time zone 'utc';

-- name: has_other_users
-- Whether another user of the tenant has a conversation: then the first or the last by name is another.
select coalesce((select user_id from hitherto.conversation where tenant = %(tenant)s order by user_id limit 1)
                <> %(user)s, false)
    or coalesce((select user_id from hitherto.conversation where tenant = %(tenant)s order by user_id desc limit 1)
                <> %(user)s, false);

-- name: costs
-- The calls of one tenant or of all, summed up by tenant, user, model, purpose or day; days are in UTC.
select c.part as group, count(*) as calls, count(cause) as failed, count(*) - count(cost) as unpriced,
       coalesce(sum(tokens_in), 0)::bigint as tokens_in, coalesce(sum(tokens_cached), 0)::bigint as tokens_cached,
       coalesce(sum(tokens_out), 0)::bigint as tokens_out, coalesce(sum(cost), 0) as cost, sum(latency_ms)::bigint as latency_ms
from (
    select case
               when %(by)s = 'tenant' then tenant
               when %(by)s = 'user' then user_id
               when %(by)s = 'model' then model
               when %(by)s = 'purpose' then purpose
               when %(by)s = 'day' then to_char(created_at at time zone 'utc', 'YYYY-MM-DD')
           end as part, *
    from hitherto.model_call
    where (%(tenant)s::text is null or tenant = %(tenant)s)
      and (%(since)s::date is null or created_at >= %(since)s::date::timestamp at time zone 'utc')
      and (%(until)s::date is null or created_at < (%(until)s::date + 1)::timestamp at time zone 'utc')
) c
group by c.part
order by case when %(by)s = 'day' then c.part end desc, coalesce(sum(cost), 0) desc, count(*) desc, c.part collate "C";
