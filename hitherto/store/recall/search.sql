-- What a search reads of the index, and of the sources that have no entry yet.

-- part: private_elsewhere
-- The private conversations of what is searched, but for the one that is named.
select ref from hitherto.conversation c
where c.tenant = %(tenant)s and hitherto.within(c.user_id, c.agent, %(user)s, %(agent)s, %(all_agents)s) and c.private
  and (c.agent = %(agent)s and c.id = %(named)s::text) is not true

-- name: search_segments
-- The columns of the segments of all scopes that are searched; origins, places and times only if asked for, or where
-- something is private.
select g.scope, g.segment, g.lengths, g.kinds, case when t.told then g.origins end, case when t.told then g.places end,
       case when t.told then g.times end
from (select %(told)s or exists ({private_elsewhere}) as told) t
cross join hitherto.search_scope s
cross join lateral (
    select * from hitherto.search_segment g where g.tenant = %(tenant)s and g.scope = s.ref order by g.segment
) g
where s.tenant = %(tenant)s and hitherto.within(s.user_id, s.agent, %(user)s, %(agent)s, %(all_agents)s);

-- name: search_postings
-- Which entries in segments have one of the terms.
select p.scope, p.segment, p.term, p.offsets, p.counts
from hitherto.search_scope s
cross join lateral unnest(%(terms)s::bigint[]) as t (term)
cross join lateral (
    select * from hitherto.search_posting p where p.tenant = %(tenant)s and p.scope = s.ref and p.term = t.term offset 0
) p
where s.tenant = %(tenant)s and hitherto.within(s.user_id, s.agent, %(user)s, %(agent)s, %(all_agents)s);

-- name: search_tail
-- The entries that are in no segment yet, as one row of columns per scope. Both ends of their range are named, here and for
-- codes: of a range with one end, the planner expects a third of the table.
select e.scope, e.packed, string_agg(int8send(e.no), ''::bytea), string_agg(int4send(e.length), ''::bytea),
       string_agg(int2send(e.kind), ''::bytea), string_agg(boolsend(e.start_char > 0), ''::bytea),
       string_agg(int8send(e.origin), ''::bytea),
       string_agg(int8send(e.place), ''::bytea), string_agg(float8send(extract(epoch from e.said_at)::float8), ''::bytea),
       string_agg(int4send(octet_length(e.counts)), ''::bytea), string_agg(e.hashes, ''::bytea),
       string_agg(e.counts, ''::bytea)
from (
    select s.packed, e.* from hitherto.search_scope s
    cross join lateral (
        select * from hitherto.search_entry e where e.tenant = %(tenant)s and e.scope = s.ref and e.no >= s.packed and e.no < s.next_no offset 0
    ) e
    where s.tenant = %(tenant)s and hitherto.within(s.user_id, s.agent, %(user)s, %(agent)s, %(all_agents)s)
) e
group by e.scope, e.packed;

-- name: search_codes
-- The codes in the space to search in: those of segments, and those of entries whose codes are in none. The space is
-- the first of those asked for in which every entry has a vector, else the one in which most have.
with space as materialized (
    select p.id, p.name, p.dimensions
    from unnest(%(names)s::text[], %(dimensions)s::integer[]) with ordinality as a (name, dimensions, at)
    join hitherto.search_space p on p.name = a.name and p.dimensions = a.dimensions
    cross join lateral (
        select coalesce(sum(least(f.embedded, s.next_no)), 0) as embedded, coalesce(sum(s.next_no), 0) as entries
        from hitherto.search_scope s
        left join hitherto.search_filling f on f.tenant = %(tenant)s and f.scope = s.ref and f.space = p.id
        where s.tenant = %(tenant)s and hitherto.within(s.user_id, s.agent, %(user)s, %(agent)s, %(all_agents)s)
    ) f
    where f.embedded > 0
    order by f.embedded >= f.entries desc, f.embedded desc, a.at
    limit 1
), f as (
    select f.*, s.next_no, space.name, space.dimensions from hitherto.search_scope s
    cross join space
    cross join lateral (
        select * from hitherto.search_filling f
        where f.tenant = %(tenant)s and f.scope = s.ref and f.space = space.id limit 1
    ) f
    where s.tenant = %(tenant)s and hitherto.within(s.user_id, s.agent, %(user)s, %(agent)s, %(all_agents)s)
)
select f.space, f.name, f.dimensions, f.scope, c.segment, null::bytea, c.codes
from f
cross join lateral (
    select segment, codes from hitherto.search_codes c
    where c.tenant = %(tenant)s and c.scope = f.scope and c.space = f.space offset 0
) c
union all
select f.space, f.name, f.dimensions, f.scope, null, string_agg(int8send(v.no), ''::bytea), string_agg(v.code, ''::bytea)
from f
cross join lateral (
    select no, code from hitherto.search_vector v
    where v.tenant = %(tenant)s and v.scope = f.scope and v.space = f.space and v.no >= f.coded and v.no < f.next_no offset 0
) v
group by f.space, f.name, f.dimensions, f.scope;

-- part: named
-- The scope's own conversations of these names, in their order.
select i.at, c.id, c.ref, c.view_start, c.retracted, c.erased from unnest(%(ids)s::text[]) with ordinality as i (id, at)
cross join lateral (
    select * from hitherto.conversation c
    where c.tenant = %(tenant)s and hitherto.within(c.user_id, c.agent, %(user)s, %(agent)s, false) and c.agent = %(agent)s
      and c.id = i.id limit 1
) c

-- name: search_refs
-- The numbers of the scope's own conversations by their names, and of those that have messages of them too: up to which one,
-- and which of these it shows.
select c.id, c.ref, k.ref, k.through, (
    select ({shows}) * int8multirange(int8range(null, k.through, '[]')) from (select c.view_start, c.retracted, c.erased) h)
from ({named}) c
cross join lateral (select null::bigint as ref, null::bigint as through union all select * from ({relatives}) k) k
order by c.at;

-- name: search_copies
-- Of the digests with entries that rest on messages in common with such a conversation, each with the copy that this one uses,
-- if any.
select c.ref, r.ref, e.place, o.id
from ({named}) c
cross join lateral (select * from ({relatives}) k) r
cross join lateral (
    select place from hitherto.search_entry e
    where e.tenant = %(tenant)s and e.kind = 2 and e.origin = r.ref and e.start_char = 0 offset 0
) e
cross join lateral (
    select * from hitherto.digest d where d.tenant = %(tenant)s and d.id = e.place and d.end_seq <= r.through limit 1
) d
left join lateral (
    select o.id from (select c.ref, c.view_start, r.through) k cross join lateral ({copy}) o where {in_use}
) o on true;

-- name: search_about
-- The numbers of the conversations about a subject. In two parts, as the index on the subject leaves out conversations
-- about the user.
select ref from (
    select c.ref from hitherto.conversation c
    where c.tenant = %(tenant)s and hitherto.within(c.user_id, c.agent, %(user)s, %(agent)s, %(all_agents)s)
      and c.subject = %(subject)s and c.subject <> ''
    union all
    select c.ref from hitherto.conversation c
    where c.tenant = %(tenant)s and hitherto.within(c.user_id, c.agent, %(user)s, %(agent)s, %(all_agents)s)
      and c.subject = '' and %(subject)s = ''
) c
order by ref;

-- part: until
-- Whether nothing that `d` rests on is later than what is asked for.
(%(until)s::timestamptz is null or coalesce((
     select created_at from hitherto.message m
     where m.tenant = %(tenant)s and m.conversation = d.conversation and m.seq = d.end_seq limit 1), d.created_at) <= %(until)s)

-- name: search_unseen
-- What is not to be searched, by kind and origin, from a place on: what is private, or later than what is asked for.
with c as materialized ({private_elsewhere})
select k.kind, c.ref, 0::bigint from c cross join (values (1), (2)) k (kind)
union all
select 3, d.id, 0 from c
cross join lateral (select id from hitherto.document d where d.tenant = %(tenant)s and d.conversation = c.ref offset 0) d
union all
select k.kind, c.ref, case k.kind
           when 1 then coalesce((
               select m.seq + 1 from hitherto.message m
               where m.tenant = %(tenant)s and m.conversation = c.ref and m.created_at <= %(until)s
               order by m.seq desc limit 1), 0)
           else coalesce((
               select d.id + 1 from hitherto.digest d
               where d.tenant = %(tenant)s and d.conversation = c.ref and {until}
               order by d.id desc limit 1), 0)
       end
from hitherto.conversation c cross join (values (1), (2)) k (kind)
where c.tenant = %(tenant)s and hitherto.within(c.user_id, c.agent, %(user)s, %(agent)s, %(all_agents)s)
  and %(until)s::timestamptz is not null and c.updated_at > %(until)s
union all
select 3, d.id, 0 from hitherto.document d
where d.tenant = %(tenant)s and hitherto.within(d.user_id, d.agent, %(user)s, %(agent)s, %(all_agents)s)
  and %(until)s::timestamptz is not null and d.created_at > %(until)s and not {until};

-- name: search_due
-- Whether the tenant has expired messages that are not erased yet.
select exists ({expiring_conversations});

-- part: waits_in_common
-- Whether messages of the conversation `c` that have no entry yet are those of a relative too.
exists (
    select 1 from hitherto.fork f where f.tenant = %(tenant)s and f.conversation = c.ref and f.end_seq >= c.indexed_seq offset 0)
or exists (
    select 1 from hitherto.fork f where f.tenant = %(tenant)s and f.source = c.ref and f.end_seq >= c.indexed_seq offset 0)

-- name: search_waiting
-- The newest sources without an entry, of all scopes that are searched. A message or digest of several forks is that of the
-- first, or of the one that is named. Digests are found by what waits in the tenant, so that the conversations of the scope
-- need not be gone through; where very many wait, as after an upgrade, not all of them are found. Of a large message, the
-- item is not read for its author.
select * from (
    (select case when m.size < 20000 then m.payload::text end, 1 as kind, c.ref as origin, m.seq as place, left(m.text, %(text)s) as text,
            coalesce(m.said_at, m.created_at) as said_at, m.said_offset, c.id, m.seq, m.seq, m.role, c.agent, c.subject, c.title, null as doc_type,
            null as namespace, null as metadata, c.private
     from hitherto.conversation c
     cross join lateral (
         select array_agg(k.ref) as refs, array_agg(k.through) as throughs from ({relatives}) k
         where ({waits_in_common})
     ) o
     cross join lateral (
         select * from hitherto.message m
         where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq >= greatest(c.indexed_seq, c.view_start)
         order by m.seq desc limit %(limit)s
     ) m
     where c.tenant = %(tenant)s and hitherto.within(c.user_id, c.agent, %(user)s, %(agent)s, %(all_agents)s)
       and c.indexed_seq < c.next_seq and 1 = any(%(kinds)s)
       and m.kind in ('text', 'tool_call', 'tool_result') and not m.erased and m.retracted_rev is null
       and (m.expires_at is null or m.expires_at > statement_timestamp()) and m.text ~ '\S'
       and (%(until)s::timestamptz is null or m.created_at <= %(until)s) and not {forgetting}
       and not exists (
           select 1 from unnest(o.refs, o.throughs) as k (ref, through)
           where k.through >= m.seq and (exists (
               select 1 from hitherto.search_entry e
               where e.tenant = %(tenant)s and e.kind = 1 and e.origin = k.ref and e.place = m.seq offset 0)
             or k.ref < c.ref and c.id <> all(%(ids)s::text[]) and exists (
               select 1 from hitherto.message x
               where x.tenant = %(tenant)s and x.conversation = k.ref and x.seq = m.seq and x.retracted_rev is null and not x.erased
                 and x.seq >= (
                     select view_start from hitherto.conversation h
                     where h.tenant = %(tenant)s and h.ref = k.ref limit 1) offset 0)))
       and not exists (
           select 1 from hitherto.search_entry e
           where e.tenant = %(tenant)s and e.kind = 1 and e.origin = c.ref and e.place = m.seq offset 0))
    union all
    (select null, 2, d.conversation, d.id, left(d.text, %(text)s), (
                select coalesce(said_at, created_at) from hitherto.message m
                where m.tenant = %(tenant)s and m.conversation = d.conversation and m.seq = d.end_seq limit 1), (
                select said_offset from hitherto.message m
                where m.tenant = %(tenant)s and m.conversation = d.conversation and m.seq = d.end_seq limit 1),
            d.conversation_id, d.start_seq, d.end_seq, null, d.agent, d.subject, d.conversation_title, null, null, null, d.private
     from (
         select d.* from (
             select id from hitherto.digest d
             where d.tenant = %(tenant)s and d.action in ('summarize', 'chunk') and d.status = 'completed' and not d.indexed
               and 2 = any(%(kinds)s)
             order by d.tenant, d.conversation, d.id limit 2000
         ) w
         cross join lateral (select * from ({shown_digests}) d where d.id = w.id limit 1) d
         where hitherto.within(d.user_id, d.agent, %(user)s, %(agent)s, %(all_agents)s) and d.text ~ '\S' and {until}
         offset 0
     ) d
     where not exists (
         select 1 from (select d.conversation as ref) c
         cross join lateral ({family}) k
         cross join lateral ({copy}) o
         where exists (
             select 1 from hitherto.search_entry e
             where e.tenant = %(tenant)s and e.kind = 2 and e.origin = k.ref and e.place = o.id offset 0)
           or k.ref < d.conversation and d.conversation_id <> all(%(ids)s::text[]) and {in_use}))
    union all
    (select null, 3, d.id, p.no, left(p.text, %(text)s), d.said_at, ({offset_of_document}),
            d.conversation_id, d.start_seq, d.end_seq, null, d.agent, d.subject, d.title, d.doc_type, d.namespace, d.metadata::text, d.private
     from ({shown_documents}) d
     cross join lateral (select * from hitherto.passage p where p.tenant = %(tenant)s and p.document = d.id) p
     where hitherto.within(d.user_id, d.agent, %(user)s, %(agent)s, %(all_agents)s)
       and not d.indexed and 3 = any(%(kinds)s) and {until})
    union all
    (select null, 4, f.id, 0, left(f.content, %(text)s), {time_of_fact}, ({offset_of_fact}), null, null, null, null, f.agent, f.subject, null,
            null, null, null, false
     from ({shown_facts}) f
     where hitherto.within(f.user_id, f.agent, %(user)s, %(agent)s, %(all_agents)s)
       and f.state = 'current' and not f.indexed and 4 = any(%(kinds)s)
     order by f.extracted_at desc limit %(limit)s)
) w
order by said_at desc, place desc
limit %(limit)s;

-- name: search_candidates
-- The sources of entries as they are now, and the messages near those that are messages and near further ones, each with
-- its entries and their vectors.
with hit as (
    select distinct e.tenant, e.scope, e.kind, e.origin, e.place
    from unnest(%(scopes)s::bigint[], %(nos)s::bigint[]) as k (scope, no)
    cross join lateral (
        select tenant, ref from hitherto.search_scope s
        where s.tenant = %(tenant)s and s.ref = k.scope
          and hitherto.within(s.user_id, s.agent, %(user)s, %(agent)s, %(all_agents)s) limit 1
    ) s
    cross join lateral (
        select * from hitherto.search_entry e where e.tenant = %(tenant)s and e.scope = s.ref and e.no = k.no limit 1
    ) e
    union all
    select %(tenant)s, null, 1, b.origin, b.place from unnest(%(origins)s::bigint[], %(places)s::bigint[]) as b (origin, place)
), near as (
    select distinct on (n.scope, n.no) n.*
    from hit h
    cross join lateral (
        select * from hitherto.search_entry n
        where n.tenant = %(tenant)s and n.kind = h.kind and n.origin = h.origin
          and n.place between h.place - case h.kind when 1 then %(around)s else 0 end
                          and h.place + case h.kind when 1 then %(around)s else 0 end offset 0
    ) n
), found as (
    select n.tenant, n.scope, n.kind, n.origin, n.place, n.said_at, n.said_offset, n.author,
           string_agg(int8send(n.no) || int4send(n.start_char) || int4send(n.end_char) || boolsend(v.vector is not null),
                      ''::bytea order by n.start_char) as passages,
           string_agg(v.vector, ''::bytea order by n.start_char) as vectors
    from near n
    left join lateral (
        select vector from hitherto.search_vector v
        where v.tenant = %(tenant)s and v.scope = n.scope and v.space = %(space)s and v.no = n.no limit 1
    ) v on true
    group by n.tenant, n.scope, n.kind, n.origin, n.place, n.said_at, n.said_offset, n.author
)
select e.scope, e.passages, e.vectors, e.author, e.kind, coalesce(w.origin, e.origin), e.own_place, w.text, e.said_at, e.said_offset, w.id,
       w.start_seq, w.end_seq, w.role, w.agent, w.subject, w.title, w.doc_type, w.namespace, w.metadata, w.private
from (
    select e.*, coalesce((
               select own from unnest(%(relatives)s::bigint[], %(throughs)s::bigint[], %(owns)s::bigint[]) as n (ref, through, own)
               where e.kind = 1 and n.ref = e.origin and n.through >= e.place limit 1), e.origin) as own_origin,
           coalesce((
               select copy from unnest(%(digests)s::bigint[], %(copies)s::bigint[]) as n (digest, copy)
               where e.kind = 2 and n.digest = e.place limit 1), e.place) as own_place
    from found e offset 0
) e
cross join lateral (
    (select c.id, m.seq as start_seq, m.seq as end_seq, m.role, c.agent, c.subject, left(m.text, %(text)s) as text, c.title,
            null::text as doc_type, null::text as metadata, null::text as namespace, c.private, m.conversation as origin
     from hitherto.message m
     cross join lateral (
         select id, agent, subject, title, private, view_start from hitherto.conversation c
         where c.tenant = %(tenant)s and c.ref = m.conversation limit 1
     ) c
     where e.kind = 1 and m.tenant = %(tenant)s and m.conversation = e.own_origin and m.seq = e.place
       and not m.erased and m.retracted_rev is null and m.seq >= c.view_start
       and (m.expires_at is null or m.expires_at > statement_timestamp())
       and (%(until)s::timestamptz is null or m.created_at <= %(until)s) and not {forgetting} limit 1)
    union all
    (select d.conversation_id, d.start_seq, d.end_seq, null, d.agent, d.subject, left(d.text, %(text)s), d.conversation_title,
            null, null, null, d.private, d.conversation
     from ({shown_digests}) d where e.kind = 2 and d.id = e.own_place and {until} limit 1)
    union all
    (select d.conversation_id, d.start_seq, d.end_seq, null, d.agent, d.subject, left(p.text, %(text)s), d.title, d.doc_type,
            d.metadata::text, d.namespace, d.private, null
     from ({shown_documents}) d
     cross join lateral (
         select * from hitherto.passage p where p.tenant = %(tenant)s and p.document = d.id and p.no = e.place limit 1
     ) p
     where e.kind = 3 and d.id = e.origin and {until} limit 1)
    union all
    (select null, null, null, null, f.agent, f.subject, left(f.content, %(text)s), null, null, null, null, false, null
     from ({shown_facts}) f
     where e.kind = 4 and f.id = e.origin and f.state = 'current' limit 1)
) w
where e.kind = any(%(kinds)s);
