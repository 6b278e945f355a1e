-- Kept contexts.

-- name: keep_context_text
-- Instructions or tools, unless they are there.
insert into hitherto.context_text (tenant, hash, text)
values (%(tenant)s, sha256(convert_to(%(text)s, 'UTF8')), %(text)s)
on conflict do nothing;

-- name: hold_others
-- Wait for who may be about to erase what a context took from other conversations.
select o.ref from hitherto.conversation o
where o.tenant = %(tenant)s and o.ref = any(array(
    select o.ref from unnest(%(agents)s::text[], %(names)s::text[]) as n (agent, name)
    join hitherto.conversation o on o.tenant = %(tenant)s and o.user_id = %(user)s and o.agent = n.agent and o.id = n.name))
order by o.ref for share;

-- part: others_erased
-- Whether something that a context took from another conversation was erased, or all of that.
exists (
    select 1 from unnest(%(agents)s::text[], %(names)s::text[], %(taken)s::text[]) as n (agent, name, taken)
    left join hitherto.conversation o on o.tenant = %(tenant)s and o.user_id = %(user)s and o.agent = n.agent and o.id = n.name
    where o.ref is null or exists (
        select 1 from json_array_elements(o.erased) e
        where n.taken::int8multirange && int8range((e ->> 0)::bigint, (e ->> 1)::bigint, '[]')))

-- part: incoming_erased
-- Whether a message was appended to `c` and erased since the context was built: it may be the incoming one.
exists (
    select 1 from json_array_elements(c.erased) e
    where cardinality(%(incoming)s::bytea[]) > 0 and (e ->> 1)::bigint >= %(next_seq)s)

-- part: kept_context
-- The columns of a context, with the conversations that it took something from.
insert into hitherto.context (tenant, user_id, agent, conversation, kept_until, manifest, instructions, tools, shown, incoming,
    others)
select %(tenant)s, %(user)s, %(agent)s, %(conversation)s, hitherto.clock() + %(lifetime)s::interval, %(manifest)s,
       sha256(convert_to(%(instructions)s::text, 'UTF8')), sha256(convert_to(%(tools)s::text, 'UTF8')),
       %(shown)s::int8multirange, %(incoming)s::bytea[], array(
           select o.ref from unnest(%(agents)s::text[], %(names)s::text[]) as n (agent, name)
           join hitherto.conversation o on o.tenant = %(tenant)s and o.user_id = %(user)s and o.agent = n.agent and o.id = n.name)

-- name: keep_context
-- A context of a conversation. Not if that, or what the context showed of it or took from others, was erased meanwhile: the
-- lock waits for who may be about to.
{kept_context}
from hitherto.conversation c
where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(conversation)s
  and c.next_seq >= %(next_seq)s and not exists (
    select 1 from json_array_elements(c.erased) e
    where %(shown)s::int8multirange && int8range((e ->> 0)::bigint, (e ->> 1)::bigint, '[]'))
  and not {incoming_erased} and not {others_erased}
for share
returning id;

-- name: keep_first_context
-- A context that showed nothing of its conversation, which need not be there. Likewise.
{kept_context}
where not {others_erased} and not exists (
    select 1 from hitherto.conversation c
    where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(conversation)s
      and {incoming_erased})
returning id;

-- name: keep_newest_contexts
-- Delete the oldest contexts of a conversation, so that only so many stay.
delete from hitherto.context
where tenant = %(tenant)s and id in (
    select id from hitherto.context
    where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and conversation = %(conversation)s
    order by id desc offset %(newest)s);

-- name: contexts
-- The newest contexts of a conversation, as many as a page has room for.
select c.id, c.kept_at, c.manifest::text, c.instructions_text, c.tools_text
from (
    select c.id, c.kept_at, c.manifest, i.text as instructions_text, t.text as tools_text,
           sum(hitherto.bytes(c.manifest) + coalesce(octet_length(i.text), 0) + coalesce(octet_length(t.text), 0) + %(entry)s::integer)
               over (order by c.id desc) as sizes,
           row_number() over (order by c.id desc) as nth
    from hitherto.context c
    left join hitherto.context_text i on i.tenant = %(tenant)s and i.hash = c.instructions
    left join hitherto.context_text t on t.tenant = %(tenant)s and t.hash = c.tools
    where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.conversation = %(conversation)s
      and (%(before)s::bigint is null or c.id < %(before)s)
      and (c.kept_until is null or c.kept_until > statement_timestamp())
    order by c.id desc limit %(limit)s
) c
where c.sizes <= %(size)s::bigint or c.nth = 1
order by c.id desc;

-- name: tenants_with_ended_contexts
select * from hitherto.tenants_with_ended_contexts();

-- name: forget_contexts
-- Delete contexts of a tenant whose lifetime has ended.
delete from hitherto.context where tenant = %(tenant)s and kept_until <= statement_timestamp();

-- name: tenants_with_unused_texts
select * from hitherto.tenants_with_unused_texts();

-- name: hold_unused_texts
-- Lock instructions and tools of a tenant that no context has; those that somebody is about to use are left out.
select t.hash from hitherto.context_text t
where t.tenant = %(tenant)s
  and not exists (select 1 from hitherto.context c where c.tenant = %(tenant)s and c.instructions = t.hash)
  and not exists (select 1 from hitherto.context c where c.tenant = %(tenant)s and c.tools = t.hash)
order by t.hash for update skip locked;

-- name: drop_unused_texts
-- Delete those of them that no context has by now.
delete from hitherto.context_text t
where t.tenant = %(tenant)s and t.hash = any(%(hashes)s::bytea[])
  and not exists (select 1 from hitherto.context c where c.tenant = %(tenant)s and c.instructions = t.hash)
  and not exists (select 1 from hitherto.context c where c.tenant = %(tenant)s and c.tools = t.hash);
