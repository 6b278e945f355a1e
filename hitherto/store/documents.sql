-- Documents: kept, archived, read and removed.

-- name: keep_document
-- Insert a document: one of a user's own, or an imported one, which may be archived; nothing if its content is there.
insert into hitherto.document (tenant, user_id, agent, namespace, doc_type, title, content, metadata, fingerprint,
    conversation, digest, start_seq, end_seq, said_at, created_at)
values (%(tenant)s, %(user)s, %(agent)s, %(namespace)s, %(doc_type)s, %(title)s, %(content)s, %(metadata)s, %(fingerprint)s,
    %(ref)s, %(digest)s, %(start)s, %(end)s, hitherto.clock(%(said_at)s), hitherto.clock(%(created_at)s))
on conflict do nothing
returning id;

-- name: keep_passages
-- Insert the passages of the document with that content, unless it has some.
insert into hitherto.passage (tenant, document, no, text, start_at, tokens)
select d.tenant, d.id, p.no - 1, p.text, p.start_at, p.tokens
from hitherto.document d
cross join unnest(%(texts)b::text[], %(starts)s::integer[], %(tokens)s::integer[])
    with ordinality as p (text, start_at, tokens, no)
where d.tenant = %(tenant)s and d.user_id = %(user)s and d.agent = %(agent)s and d.namespace = %(namespace)s
  and d.fingerprint = %(fingerprint)s
  and not exists (select 1 from hitherto.passage o where o.tenant = %(tenant)s and o.document = d.id offset 0)
returning document;

-- name: kept_document
-- The user's own document with that content.
select id from hitherto.document
where tenant = %(tenant)s and user_id = %(user)s and agent = '' and namespace = %(namespace)s
  and fingerprint = %(fingerprint)s;

-- name: archive_document
-- Insert the document of a digest that is about to be completed; nothing if the digest is no longer in progress. The
-- document stands for the messages that are new to the digest.
insert into hitherto.document (tenant, user_id, agent, namespace, doc_type, title, content, metadata, fingerprint,
    conversation, digest, start_seq, end_seq, said_at)
select g.tenant, %(user)s, %(agent)s, %(namespace)s, %(doc_type)s, %(title)s, %(content)s, %(metadata)s,
    %(fingerprint)s, g.conversation, g.id,
    greatest(g.start_seq, coalesce((
        select b.end_seq + 1 from hitherto.digest b
        where b.tenant = %(tenant)s and b.conversation = g.conversation and b.id = g.base_id limit 1), 0)),
    g.end_seq, hitherto.clock(%(said_at)s)
from hitherto.digest g
where g.tenant = %(tenant)s and g.conversation = %(ref)s and g.id = %(digest)s and g.status = 'processing'
on conflict do nothing
returning id;

-- name: documents
-- Documents of a user but for archives of private conversations, the newest kept first, their texts cut short; as many as a
-- page has room for.
select d.id, d.namespace, d.doc_type, d.title, left(d.content, %(text)s) as text, d.metadata::text,
       (select count(*) from hitherto.passage p where p.tenant = %(tenant)s and p.document = d.id) as passages, d.created_at,
       d.said_at, ({offset_of_document}) as said_offset, d.agent, d.conversation_id as conversation, d.digest, d.start_seq as start, d.end_seq as end
from (
    select d.*, sum(octet_length(d.metadata::text) + octet_length(left(d.content, %(text)s)) + %(entry)s::integer) over (order by d.id desc) as sizes,
           row_number() over (order by d.id desc) as nth
    from ({shown_documents}) d
    where hitherto.within(d.user_id, d.agent, %(user)s, %(agent)s, %(all_agents)s) and not d.private
      and (%(namespace)s::text is null or d.namespace = %(namespace)s)
      and (%(doc_type)s::text is null or d.doc_type = %(doc_type)s)
      and hitherto.has_metadata(d.metadata, %(metadata)s::jsonb)
      and (%(before)s::bigint is null or d.id < %(before)s)
    order by d.id desc
    limit %(limit)s
) d
where d.sizes <= %(size)s::bigint or d.nth = 1
order by d.id desc;

-- name: document
-- One document in full.
select d.id, d.namespace, d.doc_type, d.title, d.content as text, d.metadata::text,
       (select count(*) from hitherto.passage p where p.tenant = %(tenant)s and p.document = d.id) as passages, d.created_at,
       d.said_at, ({offset_of_document}) as said_offset, d.agent, d.conversation_id as conversation, d.digest, d.start_seq as start, d.end_seq as end
from ({shown_documents}) d
where hitherto.within(d.user_id, d.agent, %(user)s, %(agent)s, %(all_agents)s) and d.id = %(id)s;

-- name: passages
-- The passages of one document.
select p.text, p.start_at, p.tokens
from ({shown_documents}) d
cross join lateral (select * from hitherto.passage p where p.tenant = %(tenant)s and p.document = d.id offset 0) p
where hitherto.within(d.user_id, d.agent, %(user)s, %(agent)s, %(all_agents)s) and d.id = %(id)s
order by p.no;

-- name: discard_document
-- Delete one document, with its passages, their entries in the index and their vectors. Segments with such entries
-- become stale, and are rebuilt later.
with d as (
    delete from hitherto.document d
    where d.tenant = %(tenant)s and hitherto.within(d.user_id, d.agent, %(user)s, %(agent)s, %(all_agents)s) and d.id = %(id)s
    returning d.id
), gone as (
    delete from hitherto.search_entry
    where tenant = %(tenant)s and kind = 3 and origin = any(array(select id from d))
    returning scope, no
), {unindexed}
select id from d;

-- name: hold_documents
-- Lock the documents of a conversation. As for an indexing worker, this comes before the lock on the scope's index.
select id from hitherto.document where tenant = %(tenant)s and conversation = %(ref)s order by id for update;

-- name: hold_document
-- Lock one document, before the scope's index.
select id from hitherto.document d
where d.tenant = %(tenant)s and hitherto.within(d.user_id, d.agent, %(user)s, %(agent)s, %(all_agents)s) and d.id = %(id)s
for update;

-- name: remove_documents
-- Delete archived documents of a conversation likewise: those of some digests, and those that stand for any message in
-- these ranges.
with d as (
    delete from hitherto.document d
    where d.tenant = %(tenant)s and d.conversation = %(ref)s
      and (d.digest = any(%(digests)s::bigint[]) or exists (
          select 1 from unnest(%(ranges)s::int8multirange) r where lower(r) <= d.end_seq and upper(r) > d.start_seq))
    returning d.id
), gone as (
    delete from hitherto.search_entry
    where tenant = %(tenant)s and kind = 3 and origin = any(array(select id from d))
    returning scope, no
), {unindexed}
select 1;
