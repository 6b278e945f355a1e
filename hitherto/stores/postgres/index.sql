-- The search index: what a search reads, how entries are made, and how they go.

-- name: search_segments
-- The columns of the segments of all scopes that are searched; those that tell where an entry comes from if asked for.
select g.scope, g.segment, g.lengths, g.kinds, case when %(told)s then g.origins end, case when %(told)s then g.places end,
       case when %(told)s then g.times end
from hitherto.search_scope s
cross join lateral (
    select * from hitherto.search_segment g where g.tenant = s.tenant and g.scope = s.ref order by g.segment
) g
where hitherto.within(s.tenant, s.user_id, s.agent, %(tenant)s, %(user)s, %(agent)s, %(every_agent)s);

-- name: search_postings
-- Which entries in segments have one of the terms.
select p.scope, p.segment, p.term, p.offsets, p.counts
from hitherto.search_scope s
cross join lateral unnest(%(terms)s::bigint[]) as t (term)
cross join lateral (
    select * from hitherto.search_posting p where p.tenant = s.tenant and p.scope = s.ref and p.term = t.term offset 0
) p
where hitherto.within(s.tenant, s.user_id, s.agent, %(tenant)s, %(user)s, %(agent)s, %(every_agent)s);

-- name: search_tail
-- The entries that stand in no segment yet, a row a scope.
select e.scope, e.packed, string_agg(int8send(e.no), ''::bytea), string_agg(int4send(e.length), ''::bytea),
       string_agg(int2send(e.kind), ''::bytea), string_agg(int8send(e.origin), ''::bytea),
       string_agg(int8send(e.place), ''::bytea), string_agg(float8send(extract(epoch from e.said_at)::float8), ''::bytea),
       string_agg(int4send(octet_length(e.counts)), ''::bytea), string_agg(e.hashes, ''::bytea),
       string_agg(e.counts, ''::bytea)
from (
    select s.packed, e.* from hitherto.search_scope s
    cross join lateral (
        select * from hitherto.search_entry e where e.tenant = s.tenant and e.scope = s.ref and e.no >= s.packed offset 0
    ) e
    where hitherto.within(s.tenant, s.user_id, s.agent, %(tenant)s, %(user)s, %(agent)s, %(every_agent)s)
) e
group by e.scope, e.packed;

-- name: search_codes
-- The codes of segments, and of the entries whose codes stand in none, in the space to search in: of those that are asked
-- for the first in which every entry has a vector, else the one in which most have.
with space as materialized (
    select p.id, p.name, p.dimensions
    from unnest(%(names)s::text[], %(dimensions)s::integer[]) with ordinality as a (name, dimensions, at)
    join hitherto.search_space p on p.name = a.name and p.dimensions = a.dimensions
    cross join lateral (
        select coalesce(sum(least(f.embedded, s.next_no)), 0) as embedded, coalesce(sum(s.next_no), 0) as entries
        from hitherto.search_scope s
        left join hitherto.search_filling f on f.tenant = s.tenant and f.scope = s.ref and f.space = p.id
        where hitherto.within(s.tenant, s.user_id, s.agent, %(tenant)s, %(user)s, %(agent)s, %(every_agent)s)
    ) f
    where f.embedded > 0
    order by f.embedded >= f.entries desc, f.embedded desc, a.at
    limit 1
), f as (
    select f.*, space.name, space.dimensions from hitherto.search_scope s
    cross join space
    cross join lateral (
        select * from hitherto.search_filling f
        where f.tenant = s.tenant and f.scope = s.ref and f.space = space.id limit 1
    ) f
    where hitherto.within(s.tenant, s.user_id, s.agent, %(tenant)s, %(user)s, %(agent)s, %(every_agent)s)
)
select f.space, f.name, f.dimensions, f.scope, c.segment, null::bytea, c.codes
from f
cross join lateral (
    select segment, codes from hitherto.search_codes c
    where c.tenant = f.tenant and c.scope = f.scope and c.space = f.space offset 0
) c
union all
select f.space, f.name, f.dimensions, f.scope, null, string_agg(int8send(v.no), ''::bytea), string_agg(v.code, ''::bytea)
from f
cross join lateral (
    select no, code from hitherto.search_vector v
    where v.tenant = f.tenant and v.scope = f.scope and v.space = f.space and v.no >= f.coded offset 0
) v
group by f.space, f.name, f.dimensions, f.scope;

-- name: search_refs
-- The numbers of the scope's own conversations by their names.
select c.id, c.ref
from unnest(%(ids)s::text[]) as i (id)
cross join lateral (
    select * from hitherto.conversation c
    where hitherto.within(c.tenant, c.user_id, c.agent, %(tenant)s, %(user)s, %(agent)s, false) and c.agent = %(agent)s
      and c.id = i.id limit 1
) c;

-- name: search_waiting
-- The newest of what has no entry yet, of all scopes that are searched. Digests are found by what waits in the tenant, so
-- that the conversations of the scope need not be gone through; where very many wait, as after an upgrade, not all of them.
select * from (
    (select m.payload::text, 1 as kind, c.ref as origin, m.seq as place, left(m.text, %(text)s) as text,
            m.created_at as said_at, c.id, m.seq, m.seq, m.role, c.agent, null as title, null as doc_type, null as namespace,
            null as metadata
     from hitherto.conversation c
     cross join lateral (
         select * from hitherto.message m
         where m.tenant = c.tenant and m.conversation = c.ref and m.seq >= greatest(c.indexed_seq, c.view_start)
         order by m.seq desc limit %(limit)s
     ) m
     where hitherto.within(c.tenant, c.user_id, c.agent, %(tenant)s, %(user)s, %(agent)s, %(every_agent)s)
       and c.indexed_seq < c.next_seq and 1 = any(%(kinds)s)
       and m.kind in ('text', 'tool_call', 'tool_result') and not m.erased and m.retracted_rev is null
       and (m.expires_at is null or m.expires_at > statement_timestamp()) and m.text ~ '\S'
       and not exists (
           select from hitherto.search_entry e
           where e.tenant = c.tenant and e.kind = 1 and e.origin = c.ref and e.place = m.seq offset 0))
    union all
    (select null, 2, c.ref, d.id, left(d.text, %(text)s), (
                select created_at from hitherto.message m
                where m.tenant = c.tenant and m.conversation = c.ref and m.seq = d.end_seq limit 1), c.id, d.start_seq, d.end_seq, null, c.agent,
            null, null, null, null
     from (
         select * from hitherto.digest d
         where d.tenant = %(tenant)s and d.done in ('summarise', 'chunk') and d.status = 'completed' and not d.indexed
           and 2 = any(%(kinds)s)
         order by d.tenant, d.conversation, d.id limit 2000
     ) d
     cross join lateral (
         select * from hitherto.conversation c where c.tenant = d.tenant and c.ref = d.conversation limit 1
     ) c
     where hitherto.within(c.tenant, c.user_id, c.agent, %(tenant)s, %(user)s, %(agent)s, %(every_agent)s)
       and d.visible_rev is not null and d.hidden_rev is null and d.end_seq >= c.view_start and d.text ~ '\S'
       and (d.done = 'chunk' or d.id = (
           select s.id from hitherto.digest s
           where s.tenant = c.tenant and s.conversation = c.ref and s.done = 'summarise' and s.visible_rev is not null
             and s.hidden_rev is null and s.end_seq >= c.view_start
           order by s.end_seq desc, s.id desc limit 1)))
    union all
    (select null, 3, d.id, p.no, left(p.text, %(text)s), d.said_at, c.id, d.start_seq, d.end_seq, null, d.agent, d.title,
            d.doc_type, d.namespace, d.metadata::text
     from hitherto.document d
     cross join lateral (select * from hitherto.passage p where p.tenant = d.tenant and p.document = d.id) p
     left join lateral (
         select id from hitherto.conversation c where c.tenant = d.tenant and c.ref = d.conversation limit 1
     ) c on true
     where hitherto.within(d.tenant, d.user_id, d.agent, %(tenant)s, %(user)s, %(agent)s, %(every_agent)s)
       and not d.indexed and 3 = any(%(kinds)s))
) w
order by said_at desc, place desc
limit %(limit)s;

-- name: search_candidates
-- Entries as they stand now, with the messages near those that are messages, and their vectors.
with hit as (
    select e.tenant, e.scope, e.no, e.kind, e.origin, e.place, e.said_at, e.author
    from unnest(%(scopes)s::bigint[], %(nos)s::bigint[]) as k (scope, no)
    cross join lateral (
        select tenant, ref from hitherto.search_scope s
        where s.tenant = %(tenant)s and s.ref = k.scope
          and hitherto.within(s.tenant, s.user_id, s.agent, %(tenant)s, %(user)s, %(agent)s, %(every_agent)s) limit 1
    ) s
    cross join lateral (
        select * from hitherto.search_entry e where e.tenant = s.tenant and e.scope = s.ref and e.no = k.no limit 1
    ) e
), near as (
    select distinct on (n.scope, n.no) n.tenant, n.scope, n.no, n.kind, n.origin, n.place, n.said_at, n.author
    from hit h
    cross join lateral (
        select * from hitherto.search_entry n
        where n.tenant = h.tenant and n.kind = 1 and n.origin = h.origin
          and n.place between h.place - %(around)s and h.place + %(around)s offset 0
    ) n
    where h.kind = 1
), found as (
    select * from near
    union all
    select * from hit where kind <> 1
)
select e.scope, e.no, v.vector, e.author, e.kind, e.origin, e.place, w.text, e.said_at, w.id, w.start_seq, w.end_seq, w.role,
       w.agent, w.title, w.doc_type, w.namespace, w.metadata
from found e
cross join lateral (
    (select c.id, m.seq as start_seq, m.seq as end_seq, m.role, c.agent,
            left(m.text, %(text)s) as text, null::text as title, null::text as doc_type, null::text as metadata,
            null::text as namespace
     from hitherto.message m
     cross join lateral (
         select id, agent, view_start from hitherto.conversation c
         where c.tenant = m.tenant and c.ref = m.conversation limit 1
     ) c
     where e.kind = 1 and m.tenant = e.tenant and m.conversation = e.origin and m.seq = e.place
       and not m.erased and m.retracted_rev is null and m.seq >= c.view_start
       and (m.expires_at is null or m.expires_at > statement_timestamp()) limit 1)
    union all
    (select c.id, d.start_seq, d.end_seq, null, c.agent, left(d.text, %(text)s), null, null, null, null
     from hitherto.digest d
     cross join lateral (
         select * from hitherto.conversation c where c.tenant = d.tenant and c.ref = d.conversation limit 1
     ) c
     where e.kind = 2 and d.tenant = e.tenant and d.id = e.place and d.status = 'completed'
       and d.visible_rev is not null and d.hidden_rev is null and d.end_seq >= c.view_start
       and (d.done = 'chunk' or d.id = (
           select s.id from hitherto.digest s
           where s.tenant = c.tenant and s.conversation = c.ref and s.done = 'summarise' and s.visible_rev is not null
             and s.hidden_rev is null and s.end_seq >= c.view_start
           order by s.end_seq desc, s.id desc limit 1)) limit 1)
    union all
    (select c.id, d.start_seq, d.end_seq, null, d.agent, left(p.text, %(text)s), d.title, d.doc_type,
            d.metadata::text, d.namespace
     from hitherto.document d
     cross join lateral (
         select * from hitherto.passage p where p.tenant = d.tenant and p.document = d.id and p.no = e.place limit 1
     ) p
     left join lateral (
         select id from hitherto.conversation c where c.tenant = d.tenant and c.ref = d.conversation limit 1
     ) c on true
     where e.kind = 3 and d.tenant = e.tenant and d.id = e.origin limit 1)
) w
left join lateral (
    select vector from hitherto.search_vector v
    where v.tenant = e.tenant and v.scope = e.scope and v.space = %(space)s and v.no = e.no limit 1
) v on true
where e.kind = any(%(kinds)s);

-- name: index_due
-- Scopes, in the order of their names from one on, in which something has no entry or no vector, or is to be put in order.
-- Each part reads an index that holds such rows alone (in whose order they are asked for: no estimate of how many rows wait
-- is any good).
select tenant, user_id, agent from (
    (select tenant, user_id, agent from hitherto.conversation
     where indexed_seq < next_seq and (tenant, user_id, agent) > (%(tenant)s, %(user)s, %(agent)s)
     order by tenant, user_id, agent, ref limit %(limit)s)
    union
    (select c.tenant, c.user_id, c.agent
     from (
         select tenant, conversation from hitherto.digest
         where done in ('summarise', 'chunk') and status = 'completed' and not indexed order by tenant, conversation, id
     ) d
     cross join lateral (
         select * from hitherto.conversation c where c.tenant = d.tenant and c.ref = d.conversation limit 1
     ) c
     where (c.tenant, c.user_id, c.agent) > (%(tenant)s, %(user)s, %(agent)s) limit %(limit)s)
    union
    (select tenant, user_id, agent from hitherto.document
     where not indexed and (tenant, user_id, agent) > (%(tenant)s, %(user)s, %(agent)s)
     order by tenant, user_id, agent, id limit %(limit)s)
    union
    (select s.tenant, s.user_id, s.agent from hitherto.search_filling f
     cross join lateral (
         select * from hitherto.search_scope s where s.tenant = f.tenant and s.ref = f.scope limit 1
     ) s
     where f.behind and f.space = %(space)s
       and (s.tenant, s.user_id, s.agent) > (%(tenant)s, %(user)s, %(agent)s) limit %(limit)s)
    union
    (select tenant, user_id, agent from hitherto.search_scope
     where stale and (tenant, user_id, agent) > (%(tenant)s, %(user)s, %(agent)s)
     order by tenant, ref limit %(limit)s)
) due
order by tenant, user_id, agent
limit %(limit)s;

-- name: index_scope
-- Make the row of a scope's index; nothing if it is there.
insert into hitherto.search_scope (tenant, user_id, agent) values (%(tenant)s, %(user)s, %(agent)s)
on conflict (tenant, user_id, agent) do nothing;

-- name: index_claim
-- Take a scope's index, if nobody has it. (A claim is not held for longer than an hour: what lies beyond was set by a clock
-- that has been put back.)
with free as materialized (
    select tenant, ref from hitherto.search_scope
    where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s
      and (claimed_until < clock_timestamp() or claimed_until > clock_timestamp() + interval '2 hours')
    for no key update skip locked
)
update hitherto.search_scope s set attempt = attempt + 1, claimed_until = clock_timestamp() + %(lease)s
from free where s.tenant = free.tenant and s.ref = free.ref
returning s.ref, s.attempt;

-- name: index_prolong
-- Hold on to a claim.
update hitherto.search_scope set claimed_until = clock_timestamp() + %(lease)s
where tenant = %(tenant)s and ref = %(ref)s and attempt = %(attempt)s
returning ref;

-- name: index_release
-- Give a claim back.
update hitherto.search_scope set claimed_until = '-infinity', attempt = attempt + 1
where tenant = %(tenant)s and ref = %(ref)s and attempt = %(attempt)s;

-- name: index_hold
-- Hold the scope's row, if the claim still holds.
select next_no, packed from hitherto.search_scope
where tenant = %(tenant)s and ref = %(ref)s and attempt = %(attempt)s
for no key update;

-- name: index_messages
-- The next messages without an entry, with those among them that do not belong in an index (without text).
select c.indexed_seq, m.payload::text, 1, c.ref, m.seq,
       case when m.kind in ('text', 'tool_call', 'tool_result') and not m.erased and m.retracted_rev is null
                 and m.seq >= c.view_start and (m.expires_at is null or m.expires_at > statement_timestamp())
            then m.text else '' end,
       m.created_at, c.id, m.seq, m.seq, m.role, c.agent
from hitherto.search_scope s
cross join lateral (
    select * from hitherto.conversation c
    where c.tenant = s.tenant and c.user_id = s.user_id and c.agent = s.agent and c.indexed_seq < c.next_seq
    order by c.ref limit 100
) c
cross join lateral (
    select * from hitherto.message m
    where m.tenant = c.tenant and m.conversation = c.ref and m.seq >= c.indexed_seq order by m.seq limit %(limit)s
) m
where s.tenant = %(tenant)s and s.ref = %(ref)s
order by c.ref, m.seq
limit %(limit)s;

-- name: index_digests
-- The next digests without an entry, with those among them that do not belong in an index (without text).
select hashtext(d.text), 2, c.ref, d.id,
       case when d.visible_rev is not null and d.hidden_rev is null and d.end_seq >= c.view_start
                 and (d.done = 'chunk' or d.id = (
                     select s.id from hitherto.digest s
                     where s.tenant = c.tenant and s.conversation = c.ref and s.done = 'summarise'
                       and s.visible_rev is not null and s.hidden_rev is null and s.end_seq >= c.view_start
                     order by s.end_seq desc, s.id desc limit 1))
            then d.text else '' end,
       (select created_at from hitherto.message m
        where m.tenant = c.tenant and m.conversation = c.ref and m.seq = d.end_seq limit 1),
       c.id, d.start_seq, d.end_seq, null, c.agent
from hitherto.search_scope s
cross join lateral (
    select * from hitherto.conversation c where c.tenant = s.tenant and c.user_id = s.user_id and c.agent = s.agent
) c
cross join lateral (
    select * from hitherto.digest d
    where d.tenant = c.tenant and d.conversation = c.ref and d.done in ('summarise', 'chunk') and d.status = 'completed'
      and not d.indexed
    order by d.id limit %(limit)s
) d
where s.tenant = %(tenant)s and s.ref = %(ref)s
limit %(limit)s;

-- name: index_passages
-- The passages of the next documents without entries.
select 3, d.id, p.no, p.text, d.said_at, c.id, d.start_seq, d.end_seq, null, d.agent, d.title, d.doc_type, d.namespace,
       d.metadata::text
from hitherto.search_scope s
cross join lateral (
    select * from hitherto.document d
    where d.tenant = s.tenant and d.user_id = s.user_id and d.agent = s.agent and not d.indexed
    order by d.id limit 4
) d
left join lateral (select * from hitherto.passage p where p.tenant = d.tenant and p.document = d.id) p on true
left join lateral (
    select id from hitherto.conversation c where c.tenant = d.tenant and c.ref = d.conversation limit 1
) c on true
where s.tenant = %(tenant)s and s.ref = %(ref)s
order by d.id, p.no;

-- name: index_unembedded
-- The next entries without a vector in a space, with their texts; and up to where that is looked at.
select e.no, case e.kind
    when 1 then (select m.text from hitherto.message m
                 where m.tenant = e.tenant and m.conversation = e.origin and m.seq = e.place limit 1)
    when 2 then (select d.text from hitherto.digest d where d.tenant = e.tenant and d.id = e.place limit 1)
    else (select p.text from hitherto.passage p where p.tenant = e.tenant and p.document = e.origin and p.no = e.place limit 1)
    end
from hitherto.search_filling f
cross join lateral (
    select * from hitherto.search_entry e
    where e.tenant = f.tenant and e.scope = f.scope and e.no >= f.embedded order by e.no limit %(limit)s
) e
where f.tenant = %(tenant)s and f.scope = %(ref)s and f.space = %(space)s and f.behind;

-- name: index_untidy
-- Whether the scope has something to be put in order: enough entries, or codes, for a segment, or something gone from one.
select s.stale or s.next_no - s.packed >= %(size)s or exists (
    select from hitherto.search_filling f
    where f.tenant = s.tenant and f.scope = s.ref and least(f.embedded, s.packed) - f.coded >= %(size)s)
from hitherto.search_scope s
where s.tenant = %(tenant)s and s.ref = %(ref)s;

-- name: index_hold_conversations
-- Hold conversations, as their own verbs do before anything else of theirs.
select ref from hitherto.conversation where tenant = %(tenant)s and ref = any(%(refs)s::bigint[])
order by ref for no key update;

-- name: index_seen_messages
-- Messages up to here are indexed; unless something was put back meanwhile.
update hitherto.conversation set indexed_seq = %(stop)s
where tenant = %(tenant)s and ref = %(origin)s and indexed_seq = %(start)s;

-- name: index_seen_digest
-- This digest is indexed, if it still reads as it did.
update hitherto.digest set indexed = true
where tenant = %(tenant)s and id = %(digest)s and status = 'completed' and hashtext(text) = %(stop)s;

-- name: index_seen_document
-- This document is indexed.
update hitherto.document set indexed = true where tenant = %(tenant)s and id = %(document)s;

-- name: index_older_summaries
-- The entries of summaries that no longer stand for a conversation go.
with stale as (
    select d.id from hitherto.digest d
    where d.tenant = %(tenant)s and d.conversation = %(origin)s and d.done = 'summarise' and d.indexed and d.id <> (
        select s.id from hitherto.digest s
        where s.tenant = d.tenant and s.conversation = d.conversation and s.done = 'summarise'
          and s.visible_rev is not null and s.hidden_rev is null
        order by s.end_seq desc, s.id desc limit 1)
    order by d.id desc limit 10
), gone as (
    delete from hitherto.search_entry e using stale
    where e.tenant = %(tenant)s and e.kind = 2 and e.origin = %(origin)s and e.place = stale.id
    returning e.scope, e.no
), vectors as (
    delete from hitherto.search_vector
    where tenant = %(tenant)s and scope = (select scope from gone limit 1)
      and space = any(array(select id from hitherto.search_space)) and no = any(array(select no from gone))
), segments as (
    update hitherto.search_segment set stale = true
    where tenant = %(tenant)s and scope = (select scope from gone limit 1)
      and segment = any(array(select distinct (no / %(size)s)::integer from gone))
)
update hitherto.search_scope set stale = true
where tenant = %(tenant)s and ref = (select scope from gone limit 1) and packed > (select min(no) from gone);

-- name: index_entry
-- An entry, if what it is made of is still there and has none.
insert into hitherto.search_entry (tenant, scope, no, kind, origin, place, length, said_at, author, hashes, counts)
select %(tenant)s, %(ref)s, %(no)s, %(kind)s, %(origin)s, %(place)s, %(length)s, %(said_at)s, %(author)s, %(hashes)s,
       %(counts)s
where case %(kind)s
    when 1 then exists (
        select from hitherto.message m
        where m.tenant = %(tenant)s and m.conversation = %(origin)s and m.seq = %(place)s and not m.erased
          and m.retracted_rev is null and m.seq >= (
              select view_start from hitherto.conversation c where c.tenant = m.tenant and c.ref = m.conversation limit 1))
    when 2 then exists (
        select from hitherto.digest d
        where d.tenant = %(tenant)s and d.id = %(place)s and d.status = 'completed' and d.hidden_rev is null
          and d.end_seq >= (
              select view_start from hitherto.conversation c where c.tenant = d.tenant and c.ref = d.conversation limit 1))
    else exists (select from hitherto.document d where d.tenant = %(tenant)s and d.id = %(origin)s)
end
on conflict (tenant, kind, origin, place) do nothing;

-- name: index_grown
-- The scope has entries up to here; vectors of them are wanted in every space that is being filled, and in this one.
with filling as (
    update hitherto.search_filling set behind = true where tenant = %(tenant)s and scope = %(ref)s
)
update hitherto.search_scope set next_no = %(next_no)s where tenant = %(tenant)s and ref = %(ref)s;

-- name: index_space
-- The number of a space.
with made as (
    insert into hitherto.search_space (name, dimensions) values (%(name)s, %(dimensions)s)
    on conflict (name, dimensions) do nothing returning id
)
select id from made
union all
select id from hitherto.search_space where name = %(name)s and dimensions = %(dimensions)s
limit 1;

-- name: index_begin_filling
-- A space is to be filled in all scopes.
insert into hitherto.search_filling (tenant, scope, space)
select s.tenant, s.ref, %(space)s from hitherto.search_scope s
where not exists (
    select from hitherto.search_filling f where f.tenant = s.tenant and f.scope = s.ref and f.space = %(space)s)
on conflict do nothing;

-- name: index_fill
-- A space is to be filled in this scope too.
insert into hitherto.search_filling (tenant, scope, space) values (%(tenant)s, %(ref)s, %(space)s)
on conflict (tenant, scope, space) do nothing;

-- name: index_vector
-- The vector of an entry, if that is still there.
insert into hitherto.search_vector (tenant, scope, space, no, code, vector)
select %(tenant)s, %(ref)s, %(space)s, %(no)s, %(code)s, %(vector)s
where exists (select from hitherto.search_entry e where e.tenant = %(tenant)s and e.scope = %(ref)s and e.no = %(no)s)
on conflict (tenant, scope, space, no) do nothing;

-- name: index_embedded
-- Vectors of the scope's entries are there up to here.
update hitherto.search_filling f
set embedded = greatest(embedded, %(to)s), behind = %(to)s < (
    select next_no from hitherto.search_scope s where s.tenant = f.tenant and s.ref = f.scope limit 1)
where tenant = %(tenant)s and scope = %(ref)s and space = %(space)s;

-- name: index_caught_up
-- There is nothing left to be embedded.
update hitherto.search_filling f
set behind = false, embedded = (select next_no from hitherto.search_scope s where s.tenant = f.tenant and s.ref = f.scope limit 1)
where tenant = %(tenant)s and scope = %(ref)s and space = %(space)s and behind and not exists (
    select from hitherto.search_entry e where e.tenant = f.tenant and e.scope = f.scope and e.no >= f.embedded);

-- name: index_stale_segment
-- A segment that has something that is gone.
select segment from hitherto.search_segment
where tenant = %(tenant)s and scope = %(ref)s and stale order by segment limit 1;

-- name: index_members
-- The entries of a segment.
select no, kind, origin, place, length, extract(epoch from said_at)::float8, hashes, counts from hitherto.search_entry
where tenant = %(tenant)s and scope = %(ref)s and no >= %(first)s and no < %(stop)s order by no;

-- name: index_member_codes
-- The codes of a segment's entries in a space.
select no, code from hitherto.search_vector
where tenant = %(tenant)s and scope = %(ref)s and space = %(space)s and no >= %(first)s and no < %(stop)s;

-- name: index_fillings
-- How far the scope's spaces are filled.
select space, embedded, coded from hitherto.search_filling where tenant = %(tenant)s and scope = %(ref)s;

-- name: index_drop_segment
-- A segment that is made anew, or that has nothing left.
with postings as (
    delete from hitherto.search_posting where tenant = %(tenant)s and scope = %(ref)s and segment = %(segment)s
)
delete from hitherto.search_segment where tenant = %(tenant)s and scope = %(ref)s and segment = %(segment)s;

-- name: index_segment
-- The columns of a segment.
insert into hitherto.search_segment (tenant, scope, segment, lengths, kinds, origins, places, times)
values (%(tenant)s, %(ref)s, %(segment)s, %(lengths)s, %(kinds)s, %(origins)s, %(places)s, %(times)s);

-- name: index_postings
-- The postings of a segment.
insert into hitherto.search_posting (tenant, scope, term, segment, offsets, counts)
select %(tenant)s, %(ref)s, p.term, %(segment)s, p.offsets, p.counts
from unnest(%(terms)s::bigint[], %(offsets)s::bytea[], %(counts)s::bytea[]) as p (term, offsets, counts);

-- name: index_drop_codes
-- The codes of a segment that are made anew.
delete from hitherto.search_codes
where tenant = %(tenant)s and scope = %(ref)s and space = %(space)s and segment = %(segment)s;

-- name: index_codes
-- The codes of a segment.
insert into hitherto.search_codes (tenant, scope, space, segment, codes)
values (%(tenant)s, %(ref)s, %(space)s, %(segment)s, %(codes)s);

-- name: index_coded
-- The codes of the scope's entries stand in segments up to here.
update hitherto.search_filling set coded = %(coded)s where tenant = %(tenant)s and scope = %(ref)s and space = %(space)s;

-- name: index_packed
-- The scope's entries stand in segments up to here.
update hitherto.search_scope set packed = %(packed)s where tenant = %(tenant)s and ref = %(ref)s;

-- name: index_tidy
-- Nothing in the scope's segments is gone any more.
update hitherto.search_scope set stale = false
where tenant = %(tenant)s and ref = %(ref)s and not exists (
    select from hitherto.search_segment g where g.tenant = %(tenant)s and g.scope = %(ref)s and g.stale);

-- name: index_load
-- How many scopes have something without an entry, and without a vector in a space.
select (select count(*) from (
            select tenant, user_id, agent from hitherto.conversation where indexed_seq < next_seq
            union
            select tenant, user_id, agent from hitherto.document where not indexed
            union
            select c.tenant, c.user_id, c.agent from hitherto.digest d
            cross join lateral (
                select * from hitherto.conversation c where c.tenant = d.tenant and c.ref = d.conversation limit 1
            ) c
            where d.done in ('summarise', 'chunk') and d.status = 'completed' and not d.indexed) w),
       (select count(*) from hitherto.search_filling where behind and space = (
            select id from hitherto.search_space where name = %(name)s and dimensions = %(dimensions)s));

-- name: unindex_messages
-- The entries of messages that are taken away go, with their vectors; what stands in segments is put in order later. (A
-- conversation's entries are all of one scope. What goes with them is looked up by arrays and not joined: a planner that
-- takes them for many would read all vectors there are.)
with gone as (
    delete from hitherto.search_entry e
    where e.tenant = %(tenant)s and e.kind = 1 and e.origin = %(ref)s
      and (e.place = any(%(seqs)s::bigint[]) or e.place between %(first)s and %(last)s)
    returning e.scope, e.no
), vectors as (
    delete from hitherto.search_vector
    where tenant = %(tenant)s and scope = (select scope from gone limit 1)
      and space = any(array(select id from hitherto.search_space)) and no = any(array(select no from gone))
), segments as (
    update hitherto.search_segment set stale = true
    where tenant = %(tenant)s and scope = (select scope from gone limit 1)
      and segment = any(array(select distinct (no / %(size)s)::integer from gone))
)
update hitherto.search_scope set stale = true
where tenant = %(tenant)s and ref = (select scope from gone limit 1) and packed > (select min(no) from gone);

-- name: reindex_digests
-- Those of a conversation's digests that can still be found get their entries anew.
update hitherto.digest set indexed = false
where tenant = %(tenant)s and conversation = %(ref)s and done in ('summarise', 'chunk') and indexed;

-- name: index_hold_scope
-- Hold a scope's index, before entries of it go: what is being packed or embedded is waited for, and seen from then on.
select ref from hitherto.search_scope
where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s for no key update;

-- name: index_hold_scopes
-- Hold the index of all scopes of a user, in one order.
select ref from hitherto.search_scope where tenant = %(tenant)s and user_id = %(user)s order by ref for no key update;

-- name: unindex_digests
-- The entries of a conversation's digests go.
with gone as (
    delete from hitherto.search_entry e
    where e.tenant = %(tenant)s and e.kind = 2 and e.origin = %(ref)s
    returning e.scope, e.no
), vectors as (
    delete from hitherto.search_vector
    where tenant = %(tenant)s and scope = (select scope from gone limit 1)
      and space = any(array(select id from hitherto.search_space)) and no = any(array(select no from gone))
), segments as (
    update hitherto.search_segment set stale = true
    where tenant = %(tenant)s and scope = (select scope from gone limit 1)
      and segment = any(array(select distinct (no / %(size)s)::integer from gone))
)
update hitherto.search_scope set stale = true
where tenant = %(tenant)s and ref = (select scope from gone limit 1) and packed > (select min(no) from gone);

-- name: reindex_messages
-- A clear was taken back: what it hid is to be found again.
update hitherto.conversation set indexed_seq = least(indexed_seq, %(view_start)s) where tenant = %(tenant)s and ref = %(ref)s;
