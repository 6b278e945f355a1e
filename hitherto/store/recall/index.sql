-- Indexing: which scopes have work, who has claimed them, and what is to be indexed.

-- name: index_due
-- Scopes that come after one by name, in their order, and in which something has no entry or no vector, or a segment is
-- to be rebuilt. Each part reads an index of such rows alone (and in that index's order, because no estimate of how
-- many rows wait is any good).
select * from hitherto.scopes_to_index(%(after_tenant)s, %(user)s, %(agent)s, %(space)s, %(limit)s);

-- name: index_scope
-- Insert the row of a scope's index; nothing if it is there.
insert into hitherto.search_scope (tenant, user_id, agent) values (%(tenant)s, %(user)s, %(agent)s)
on conflict (tenant, user_id, agent) do nothing;

-- name: index_claim
-- Claim a scope's index, if nobody has. (No claim lasts longer than an hour: one that ends later than two hours from
-- now was set before the clock was put back, and has ended.)
with free as materialized (
    select tenant, ref from hitherto.search_scope
    where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s
      and (claimed_until < hitherto.clock() or claimed_until > hitherto.clock() + interval '2 hours')
    for no key update skip locked
)
update hitherto.search_scope s set attempt = attempt + 1, claimed_until = hitherto.clock() + %(lease)s::interval
from free where s.tenant = %(tenant)s and s.ref = free.ref
returning s.ref, s.attempt;

-- name: index_prolong
-- Extend a claim.
update hitherto.search_scope set claimed_until = hitherto.clock() + %(lease)s::interval
where tenant = %(tenant)s and ref = %(ref)s and attempt = %(attempt)s
returning ref;

-- name: index_release
-- Give a claim back.
update hitherto.search_scope set claimed_until = '-infinity', attempt = attempt + 1
where tenant = %(tenant)s and ref = %(ref)s and attempt = %(attempt)s;

-- name: index_hold
-- Lock the scope's row, if the claim is still held.
select next_no, packed from hitherto.search_scope
where tenant = %(tenant)s and ref = %(ref)s and attempt = %(attempt)s
for no key update;

-- name: index_messages
-- The next messages without an entry, with those among them that do not belong in an index (without text), and the
-- conversations that have each too, of which one alone has an entry.
select k.refs, c.indexed_seq, c.view_start, m.payload::text, 1, c.ref, m.seq,
       case when m.kind in ('text', 'tool_call', 'tool_result') and not m.erased and m.retracted_rev is null
                 and m.seq >= c.view_start and (m.expires_at is null or m.expires_at > statement_timestamp())
                 and not exists (
                     select 1 from unnest(k.refs) as n (ref)
                     cross join lateral (
                         select 1 from hitherto.search_entry e
                         where e.tenant = %(tenant)s and e.kind = 1 and e.origin = n.ref and e.place = m.seq limit 1
                     ) e)
            then m.text else '' end,
       coalesce(m.said_at, m.created_at), m.said_offset, c.id, m.seq, m.seq, m.role, c.agent, c.subject
from hitherto.search_scope s
cross join lateral (
    select * from hitherto.conversation c
    where c.tenant = %(tenant)s and c.user_id = s.user_id and c.agent = s.agent and c.indexed_seq < c.next_seq
    order by c.ref limit 100
) c
cross join lateral (
    select array_agg(k.ref) as refs, array_agg(k.through) as throughs from ({relatives}) k
    where ({waits_in_common})
) o
cross join lateral (
    select * from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq >= c.indexed_seq order by m.seq limit %(limit)s
) m
left join lateral (
    select array_agg(k.ref) as refs from unnest(o.refs, o.throughs) as k (ref, through) where k.through >= m.seq
) k on true
where s.tenant = %(tenant)s and s.ref = %(ref)s
order by c.ref, m.seq
limit %(limit)s;

-- name: index_digests
-- The next digests without an entry, with those among them that do not belong in an index (without text), and the copies of
-- each, of which one alone has an entry.
select o.ids, hashtext(d.found), 2, c.ref, d.id, case when o.indexed then '' else d.found end,
       (select coalesce(said_at, created_at) from hitherto.message m
        where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq = d.end_seq limit 1),
       (select said_offset from hitherto.message m
        where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq = d.end_seq limit 1),
       c.id, d.start_seq, d.end_seq, null, c.agent, c.subject
from hitherto.search_scope s
cross join lateral (
    select * from hitherto.conversation c where c.tenant = %(tenant)s and c.user_id = s.user_id and c.agent = s.agent
) c
cross join lateral (
    select *, coalesce((
               select l.text from ({live_digests}) l where l.id = d.id limit 1), '') as found
    from hitherto.digest d
    where d.tenant = %(tenant)s and d.conversation = c.ref and d.action in ('summarize', 'chunk') and d.status = 'completed'
      and not d.indexed
    order by d.id limit %(limit)s
) d
cross join lateral (
    select array_agg(o.id) as ids, bool_or(exists (
        select 1 from hitherto.search_entry e where e.tenant = %(tenant)s and e.kind = 2 and e.origin = k.ref and e.place = o.id offset 0)
    ) as indexed
    from ({relatives}) k cross join lateral ({copy}) o
) o
where s.tenant = %(tenant)s and s.ref = %(ref)s
limit %(limit)s;

-- name: index_passages
-- The passages of the next documents without entries.
select 3, d.id, p.no, p.text, d.said_at, ({offset_of_document}),
       c.id, d.start_seq, d.end_seq, null, d.agent, c.subject, d.title, d.doc_type,
       d.namespace, d.metadata::text
from hitherto.search_scope s
cross join lateral (
    select * from hitherto.document d
    where d.tenant = %(tenant)s and d.user_id = s.user_id and d.agent = s.agent and not d.indexed
    order by d.id limit 4
) d
left join lateral (select * from hitherto.passage p where p.tenant = %(tenant)s and p.document = d.id) p on true
left join lateral (
    select id, subject from hitherto.conversation c where c.tenant = %(tenant)s and c.ref = d.conversation limit 1
) c on true
where s.tenant = %(tenant)s and s.ref = %(ref)s
order by d.id, p.no;

-- name: index_facts
-- The next facts without an entry, with the version of each.
select f.version, 4, f.id, 0, f.content, {time_of_fact}, ({offset_of_fact}), null, null, null, null, f.agent, f.subject
from hitherto.search_scope s
cross join lateral (
    select * from hitherto.fact f
    where f.tenant = %(tenant)s and f.user_id = s.user_id and f.agent = s.agent and f.state = 'current' and not f.indexed
    order by f.id limit %(limit)s
) f
where s.tenant = %(tenant)s and s.ref = %(ref)s
order by f.id;

-- name: index_unembedded
-- The next entries without a vector in a space, with their passages.
select e.no, substring(case e.kind
    when 1 then (select m.text from hitherto.message m
                 where m.tenant = %(tenant)s and m.conversation = e.origin and m.seq = e.place limit 1)
    when 2 then (select d.text from hitherto.digest d where d.tenant = %(tenant)s and d.id = e.place limit 1)
    when 3 then (select p.text from hitherto.passage p
                 where p.tenant = %(tenant)s and p.document = e.origin and p.no = e.place limit 1)
    else (select f.content from hitherto.fact f where f.tenant = %(tenant)s and f.id = e.origin limit 1)
    end from e.start_char + 1 for e.end_char - e.start_char)
from hitherto.search_filling f
cross join lateral (
    select * from hitherto.search_entry e
    where e.tenant = %(tenant)s and e.scope = f.scope and e.no >= f.embedded order by e.no limit %(limit)s
) e
where f.tenant = %(tenant)s and f.scope = %(ref)s and f.space = %(space)s and f.behind;

-- name: index_untidy
-- Whether the scope has something to pack or to rebuild: enough entries, or codes, for a segment, or a segment with
-- deleted entries.
select s.stale or s.next_no - s.packed >= %(size)s or exists (
    select 1 from hitherto.search_filling f
    where f.tenant = %(tenant)s and f.scope = s.ref and least(f.embedded, s.packed) - f.coded >= %(size)s)
from hitherto.search_scope s
where s.tenant = %(tenant)s and s.ref = %(ref)s;

-- name: index_space
-- The id of a space, which is created if need be; nothing if another transaction has just created it.
with made as (
    insert into hitherto.search_space (name, dimensions) values (%(name)s, %(dimensions)s)
    on conflict (name, dimensions) do nothing returning id
)
select id from made
union all
select id from hitherto.search_space where name = %(name)s and dimensions = %(dimensions)s
limit 1;

-- name: tenants_without_vectors
select * from hitherto.tenants_without_vectors(%(space)s);

-- name: index_begin_filling
-- Vectors of a space are wanted in all scopes of a tenant from now on.
insert into hitherto.search_filling (tenant, scope, space)
select s.tenant, s.ref, %(space)s from hitherto.search_scope s
where s.tenant = %(tenant)s and not exists (
    select 1 from hitherto.search_filling f where f.tenant = %(tenant)s and f.scope = s.ref and f.space = %(space)s)
on conflict do nothing
returning scope;

-- name: index_fill
-- Vectors of a space are wanted in this scope too, unless an erasure has removed the scope.
insert into hitherto.search_filling (tenant, scope, space)
select s.tenant, s.ref, %(space)s from hitherto.search_scope s
where s.tenant = %(tenant)s and s.ref = %(ref)s and not exists (
    select 1 from hitherto.search_filling f where f.tenant = %(tenant)s and f.scope = s.ref and f.space = %(space)s)
for key share
on conflict (tenant, scope, space) do nothing
returning scope;

-- name: index_caught_up
-- If no entry lacks a vector in a space, record that.
update hitherto.search_filling f set behind = false, embedded = s.next_no
from hitherto.search_scope s
where s.tenant = %(tenant)s and s.ref = %(ref)s
  and f.tenant = %(tenant)s and f.scope = %(ref)s and f.space = %(space)s and f.behind and not exists (
    select 1 from hitherto.search_entry e where e.tenant = %(tenant)s and e.scope = f.scope and e.no >= f.embedded);

-- name: index_backlog
-- How many scopes have something without an entry, without a vector in a space, and in stale segments.
select * from hitherto.index_backlog(%(name)s, %(dimensions)s, %(tenant)s);
