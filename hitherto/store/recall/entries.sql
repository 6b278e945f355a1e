-- Entries of the index: written, given vectors, and deleted with their sources.

-- name: index_hold_conversations
-- Lock conversations, as units of work do before anything else.
select ref from hitherto.conversation where tenant = %(tenant)s and ref = any(%(refs)s::bigint[])
order by ref for no key update;

-- name: index_seen_messages
-- Record that messages up to here are indexed, unless they are to be indexed again since, or a clear that hid some of
-- them when they were read was undone.
update hitherto.conversation set indexed_seq = %(stop)s
where tenant = %(tenant)s and ref = %(origin)s and indexed_seq = %(start)s and view_start >= %(view_start)s;

-- name: index_seen_digest
-- Record that this digest is indexed, if it still reads as it did, or still does not belong in an index.
update hitherto.digest d set indexed = true
where d.tenant = %(tenant)s and d.id = %(digest)s and d.status = 'completed' and hashtext(coalesce((
    select l.text from ({live_digests}) l where l.id = %(digest)s limit 1), '')) = %(stop)s;

-- name: index_seen_document
-- Record that this document is indexed.
update hitherto.document set indexed = true where tenant = %(tenant)s and id = %(document)s;

-- name: index_hold_facts
-- Lock facts by id, the order in which everybody locks several.
select id from hitherto.fact where tenant = %(tenant)s and id = any(%(facts)s::bigint[]) order by id for no key update;

-- name: index_seen_facts
-- Record that those facts are indexed that still read as they did.
update hitherto.fact set indexed = true
where tenant = %(tenant)s and id = any(array(
    select s.id
    from unnest(%(facts)s::bigint[], %(versions)s::integer[]) as s (id, version)
    cross join lateral (
        select version, state from hitherto.fact f where f.tenant = %(tenant)s and f.id = s.id limit 1
    ) f
    where f.version = s.version and f.state = 'current'))
returning id;

-- name: index_entries
-- Insert entries, those whose source is still there and has none.
insert into hitherto.search_entry (tenant, scope, no, kind, origin, place, start_char, end_char, length, said_at, said_offset, author,
                                   hashes, counts)
select s.tenant, s.ref, e.*
from hitherto.search_scope s
cross join unnest(%(nos)s::bigint[], %(kinds)s::smallint[], %(origins)s::bigint[], %(places)s::bigint[], %(starts)s::integer[],
    %(ends)s::integer[], %(lengths)s::integer[], %(times)s::timestamptz[], %(offsets)s::integer[], %(authors)s::text[], %(hashes)b::bytea[],
    %(counts)b::bytea[]) as e (no, kind, origin, place, start_char, end_char, length, said_at, said_offset, author, hashes, counts)
where s.tenant = %(tenant)s and s.ref = %(ref)s and case
    when e.kind = 1 then exists (
        select 1 from hitherto.message m
        where m.tenant = %(tenant)s and m.conversation = e.origin and m.seq = e.place and not m.erased
          and m.retracted_rev is null and m.seq >= (
              select view_start from hitherto.conversation c where c.tenant = %(tenant)s and c.ref = m.conversation limit 1)
        offset 0)
    when e.kind = 2 then exists (
        select 1 from hitherto.digest d
        where d.tenant = %(tenant)s and d.id = e.place and d.status = 'completed' and d.hidden_rev is null
          and d.end_seq >= (
              select view_start from hitherto.conversation c where c.tenant = %(tenant)s and c.ref = d.conversation limit 1)
        offset 0)
    when e.kind = 3 then exists (
        select 1 from hitherto.document d where d.tenant = %(tenant)s and d.id = e.origin offset 0)
    else exists (
        select 1 from hitherto.fact f where f.tenant = %(tenant)s and f.id = e.origin and f.state = 'current' offset 0)
    end
on conflict (tenant, kind, origin, place, start_char) do nothing
returning no;

-- name: index_grown
-- Record up to where the scope has entries; vectors of them are wanted in every space that is being filled.
with filling as (
    update hitherto.search_filling set behind = true where tenant = %(tenant)s and scope = %(ref)s
)
update hitherto.search_scope set next_no = %(next_no)s where tenant = %(tenant)s and ref = %(ref)s;

-- name: index_older_summaries
-- Delete the entries of summaries that are no longer the standing one of their conversation (of the ten newest such).
with stale as (
    select d.id from hitherto.digest d
    where d.tenant = %(tenant)s and d.conversation = %(origin)s and d.action = 'summarize' and d.indexed and d.id <> (
        select s.id from hitherto.digest s
        where s.tenant = %(tenant)s and s.conversation = d.conversation and s.action = 'summarize'
          and s.visible_rev is not null and s.hidden_rev is null
        order by s.end_seq desc, s.id desc limit 1)
    order by d.id desc limit 10
), gone as (
    delete from hitherto.search_entry e using stale
    where e.tenant = %(tenant)s and e.kind = 2 and e.origin = %(origin)s and e.place = stale.id
    returning e.scope, e.no
), {unindexed}
select 1;

-- name: index_hold_facts_of
-- Lock the facts of some entries likewise, before the scope's index.
select id from hitherto.fact
where tenant = %(tenant)s and id = any(array(
    select e.origin from unnest(%(nos)s::bigint[]) as n (no)
    cross join lateral (
        select kind, origin from hitherto.search_entry e
        where e.tenant = %(tenant)s and e.scope = %(ref)s and e.no = n.no limit 1
    ) e
    where e.kind = 4))
order by id for no key update;

-- name: index_facts_of
-- The facts of some entries, each by its first one.
select e.no, e.origin
from unnest(%(nos)s::bigint[]) as n (no)
cross join lateral (
    select no, kind, origin, start_char from hitherto.search_entry e
    where e.tenant = %(tenant)s and e.scope = %(ref)s and e.no = n.no limit 1
) e
where e.kind = 4 and e.start_char = 0;

-- name: index_vectors
-- The vectors of entries that are still there.
insert into hitherto.search_vector (tenant, scope, space, no, code, vector)
select e.tenant, e.scope, %(space)s, e.no, n.code, n.vector
from unnest(%(nos)s::bigint[], %(codes)b::bytea[], %(vectors)b::bytea[]) as n (no, code, vector)
cross join lateral (
    select tenant, scope, no from hitherto.search_entry e
    where e.tenant = %(tenant)s and e.scope = %(ref)s and e.no = n.no limit 1
) e
on conflict (tenant, scope, space, no) do nothing
returning no;

-- name: index_fact_codes
-- Copy the codes of facts' vectors to the facts, where contexts read them.
update hitherto.fact f set space = %(space)s, code = n.code
from unnest(%(facts)s::bigint[], %(codes)b::bytea[]) as n (fact, code)
where f.tenant = %(tenant)s and f.id = any(%(facts)s::bigint[]) and f.id = n.fact;

-- name: index_embedded
-- Record up to where the scope's entries have vectors.
update hitherto.search_filling f
set embedded = greatest(embedded, %(to)s), behind = %(to)s < (
    select next_no from hitherto.search_scope s where s.tenant = %(tenant)s and s.ref = f.scope limit 1)
where tenant = %(tenant)s and scope = %(ref)s and space = %(space)s;

-- name: index_hold_scope
-- Lock a scope's index before entries of it are deleted. So a worker that packs or embeds is waited for, and what it
-- has written is seen.
select ref from hitherto.search_scope
where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s for no key update;

-- name: index_hold_scopes
-- Lock the index of all scopes of a user, by id.
select ref from hitherto.search_scope where tenant = %(tenant)s and user_id = %(user)s order by ref for no key update;

-- name: reindex_messages
-- A clear was undone: index the messages again that it hid.
update hitherto.conversation set indexed_seq = least(indexed_seq, %(view_start)s) where tenant = %(tenant)s and ref = %(ref)s;

-- name: reindex_digests
-- Index a conversation's digests again: those that can still be found.
update hitherto.digest set indexed = false
where tenant = %(tenant)s and conversation = %(ref)s and action in ('summarize', 'chunk') and indexed;

-- name: unindex_messages
-- Delete the entries of messages that are removed, with their vectors. Segments with such entries become stale, and are
-- rebuilt later. (A conversation's entries are all of one scope.)
with gone as (
    delete from hitherto.search_entry e
    where e.tenant = %(tenant)s and e.kind = 1 and e.origin = %(ref)s
      and e.place = any(array(
          select generate_series(lower(r), upper(r) - 1) from unnest(%(ranges)s::int8multirange) r))
    returning e.scope, e.no
), {unindexed}
select 1;

-- name: unindex_digests
-- Delete the entries of a conversation's digests likewise.
with gone as (
    delete from hitherto.search_entry e
    where e.tenant = %(tenant)s and e.kind = 2 and e.origin = %(ref)s
    returning e.scope, e.no
), {unindexed}
select 1;
