-- Exports: everything that is kept, read as it is and written as it was.

-- name: export_conversations
-- A page of conversations by ref.
select user_id, agent, id, '', null, '{}', next_seq, tokens, rev, created_at, updated_at, said_at, ref from hitherto.conversation
where tenant = %(tenant)s and (%(user)s::text is null or user_id = %(user)s)
  and (%(agent)s::text is null or agent = %(agent)s) and ref > %(after)s
order by ref limit %(limit)s;

-- name: export_conversation
-- What a conversation has beside its head.
select title, metadata::text, ttl, created_at, updated_at, ref from hitherto.conversation
where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s;

-- name: export_numbers
-- The numbers of some digests among those of their conversation, counted from 1.
select n.id, n.number
from (
    select d.id, row_number() over (order by d.id) as number from hitherto.digest d
    where d.tenant = %(tenant)s and d.conversation = (
        select l.conversation from hitherto.digest l where l.tenant = %(tenant)s and l.id = any(%(digests)s::bigint[]) limit 1)
) n
where n.id = any(%(digests)s::bigint[]);

-- name: export_open_calls
-- The calls of a conversation's view that have no result.
select o.call_id, o.seq, o.group_seq, o.turn, o.tool
from hitherto.conversation c
join hitherto.open_call o on o.tenant = %(tenant)s and o.conversation = c.ref and o.seq >= c.view_start
where c.tenant = %(tenant)s and c.ref = %(ref)s order by o.seq, o.call_id;

-- name: export_forgettings
-- The turns of a conversation in which its agent was asked to forget something.
select turn, seq, at from hitherto.forgetting where tenant = %(tenant)s and conversation = %(ref)s order by turn, at;

-- name: import_forgettings
-- These turns of a conversation.
insert into hitherto.forgetting (tenant, conversation, turn, seq, at, user_id, agent)
select %(tenant)s, %(ref)s, f.turn, f.seq, f.at, %(user)s, %(agent)s
from unnest(%(turns)s::bigint[], %(seqs)s::bigint[], %(times)s::timestamptz[]) as f (turn, seq, at)
on conflict do nothing
returning turn;

-- name: export_branches
-- Which messages of a conversation follow another than the one before, and the seq behind that which each follows.
select start_seq, parent_seq + 1 from hitherto.branch where tenant = %(tenant)s and conversation = %(ref)s order by start_seq;

-- name: import_branches
insert into hitherto.branch (tenant, conversation, start_seq, parent_seq)
select %(tenant)s, %(ref)s, b.start_seq, b.behind - 1 from unnest(%(starts)s::bigint[], %(behinds)s::bigint[]) b (start_seq, behind)
returning start_seq;

-- name: export_absences
-- Which messages of a conversation were taken back for a while.
select start_seq, end_seq, from_rev, until_rev from hitherto.absence
where tenant = %(tenant)s and conversation = %(ref)s order by until_rev, start_seq;

-- name: import_absences
with absences as (
    insert into hitherto.absence (tenant, conversation, start_seq, end_seq, from_rev, until_rev)
    select %(tenant)s, %(ref)s, a.*
    from unnest(%(starts)s::bigint[], %(ends)s::bigint[], %(froms)s::bigint[], %(untils)s::bigint[]) a
    returning until_rev
)
update hitherto.conversation set switched_rev = (select max(u) from unnest(%(untils)s::bigint[]) u)
where tenant = %(tenant)s and ref = %(ref)s;

-- name: export_fork
-- Of the conversations before it that have its first messages too, the one that has most of them.
select k.id, coalesce(k.through, f.end_seq) + 1, f.rev
from (select %(ref)s::bigint as ref) c
cross join lateral (
    select * from hitherto.fork f where f.tenant = %(tenant)s and f.conversation = c.ref limit 1
) f
left join lateral (
    select o.id, k.through from ({relatives}) k
    cross join lateral (
        select id from hitherto.conversation o where o.tenant = %(tenant)s and o.ref = k.ref limit 1
    ) o
    where k.ref < c.ref
    order by k.through desc, k.ref limit 1
) k on true;

-- name: import_fork
-- A fork, of the conversation among these that was there before and has most of the messages that are said to be in
-- common, up to the first that differs.
insert into hitherto.fork (tenant, conversation, source, end_seq, rev)
select %(tenant)s, %(ref)s, s.ref, coalesce(s.messages, %(messages)s) - 1, %(rev)s
from (select 1) one
left join lateral (
    select o.ref, c.messages
    from unnest(%(sources)s::text[], %(shares)s::bigint[]) as n (id, messages)
    cross join lateral (
        select ref from hitherto.conversation o
        where o.tenant = %(tenant)s and o.user_id = %(user)s and o.agent = %(agent)s and o.id = n.id limit 1
    ) o
    cross join lateral (
        select least(n.messages, min(m.seq)) as messages from hitherto.message m
        left join lateral (
            select true as same from hitherto.message p
            where p.tenant = %(tenant)s and p.conversation = o.ref and p.seq = m.seq and p.rev = m.rev
              and p.created_at = m.created_at and (p.erased or m.erased or p.payload::text = m.payload::text) limit 1
        ) s on true
        where m.tenant = %(tenant)s and m.conversation = %(ref)s and m.seq < n.messages and s.same is null
    ) c
    where o.ref < %(ref)s and c.messages > 0
    order by c.messages desc, o.ref limit 1
) s on true
returning conversation;

-- name: export_receipts
-- A page of the receipts of a conversation.
select encode(key_hash, 'hex') as key_hash, start_seq as start, end_seq as end, rev, fingerprint, created_at from hitherto.receipt
where tenant = %(tenant)s and conversation = ({named_conversation})
  and (start_seq, key_hash) > (%(start)s::bigint, decode(%(key_hash)s, 'hex'))
order by start_seq, receipt.key_hash limit %(limit)s;

-- part: exported_documents
-- With their passages, which are about as large as they are.
select d.user_id, d.fingerprint, d.id, d.namespace, d.doc_type, d.title, d.content, d.metadata::text, d.created_at, d.said_at,
       d.agent, d.digest, d.start_seq, d.end_seq, (
           select json_agg(json_build_array(p.text, p.start_at, p.tokens) order by p.no) from hitherto.passage p
           where p.tenant = %(tenant)s and p.document = d.id)
from (
    select d.*, sum(2 * octet_length(d.content) + octet_length(d.metadata::text) + %(entry)s::integer) over (order by d.id) as sizes,
           row_number() over (order by d.id) as nth
    from hitherto.document d
    where d.tenant = %(tenant)s and d.id > %(after)s

-- part: end_of_exported_documents
    order by d.id limit %(limit)s
) d
where d.sizes <= %(size)s::bigint or d.nth = 1
order by d.id

-- name: export_documents
-- A page of the documents that users have added.
{exported_documents} and (%(user)s::text is null or d.user_id = %(user)s) and d.conversation is null {end_of_exported_documents};

-- name: export_archived
-- A page of those that were archived from a conversation.
{exported_documents} and d.conversation = ({named_conversation}) {end_of_exported_documents};

-- name: export_facts
-- A page of facts with their sources and their history. Those of a fact beyond the page are not counted.
with recursive listed as (
    select f.*, row_number() over (order by f.id) as nth from hitherto.fact f
    where f.tenant = %(tenant)s and (%(user)s::text is null or f.user_id = %(user)s)
      and (%(agent)s::text is null or f.agent = %(agent)s) and f.id > %(after)s
    order by f.id limit %(limit)s
), page (nth, sizes) as (
    select 0::bigint, 0::bigint
    union all
    select f.nth, p.sizes + s.size
    from page p
    cross join lateral (select f.nth, f.id from listed f where f.nth = p.nth + 1 limit 1) f
    cross join lateral (
        select %(entry)s::integer * ((
                   select count(*) from hitherto.fact_evidence e where e.tenant = %(tenant)s and e.fact = f.id) + (
                   select count(*) from hitherto.fact_event v where v.tenant = %(tenant)s and v.fact = f.id)) as size
        limit 1
    ) s
    where p.nth = 0 or p.sizes + s.size <= %(size)s::bigint
)
select f.id, f.user_id, f.agent, f.subject, f.category, f.content, f.visibility, f.state, f.confidence, f.confirmed,
       f.repeated, f.version, f.metadata::text, f.extracted_at, f.updated_at, f.ended_at, f.superseded_by,
       f.fingerprint, f.tokens, (
           select json_agg(json_build_array(c.id, e.seq, e.said_at, e.retracted, e.mention) order by e.said_at, e.conversation, e.seq)
           from hitherto.fact_evidence e
           join hitherto.conversation c on c.tenant = %(tenant)s and c.ref = e.conversation
           where e.tenant = %(tenant)s and e.fact = f.id), (
           select json_agg(json_build_array(v.action, v.at, v.by_user, v.version, v.category, v.content, v.visibility)
                           order by v.no)
           from hitherto.fact_event v where v.tenant = %(tenant)s and v.fact = f.id)
from listed f where f.nth <= (select max(nth) from page)
order by f.id;

-- name: export_calls
-- A page of the ledger, with the number of the digest among its conversation's.
select m.key, m.user_id as user, m.agent, c.id as conversation, case when c.id is not null then (
           select count(*) from hitherto.digest d
           where d.tenant = %(tenant)s and d.conversation = m.conversation and d.id <= m.digest) end as digest,
       m.purpose, m.model, m.tokens_in, m.tokens_cached, m.tokens_out, m.latency_ms, m.cost, m.cause, m.created_at
from hitherto.model_call m
left join hitherto.conversation c on c.tenant = %(tenant)s and c.ref = m.conversation
where m.tenant = %(tenant)s and (%(user)s::text is null or m.user_id = %(user)s)
  and (%(agent)s::text is null or m.agent = %(agent)s) and m.key > %(after)s
order by m.key limit %(limit)s;

-- name: export_runs
-- A page of runs of conversations that are there.
select r.user_id as user, r.agent, {run_columns}
from hitherto.run r
join hitherto.conversation c
    on c.tenant = %(tenant)s and c.user_id = r.user_id and c.agent = r.agent and c.id = r.conversation
where r.tenant = %(tenant)s and (%(user)s::text is null or r.user_id = %(user)s)
  and (%(agent)s::text is null or r.agent = %(agent)s) and r.id > %(after)s
order by r.id limit %(limit)s;

-- name: export_run_events
-- A page of the events of a run.
select e.no, e.kind, e.name, e.call_id, e.payload::text as raw, e.created_at
from (
    select e.*, sum(e.size + %(entry)s::integer) over (order by e.no) as sizes, row_number() over (order by e.no) as nth
    from hitherto.run_event e
    where e.tenant = %(tenant)s and e.run = %(run)s and e.no > %(after)s
    order by e.no limit %(limit)s
) e
where e.sizes <= %(size)s::bigint or e.nth = 1
order by e.no;

-- name: import_run
-- A run as it was; nothing if it is there.
insert into hitherto.run (tenant, id, user_id, agent, conversation, strategy, injection, start_seq, end_seq, status, freed, events,
    erased, started_at, ended_at)
values (%(tenant)s, %(id)s, %(user)s, %(agent)s, %(conversation)s, %(strategy)s, %(injection)s, %(start)s, %(end)s, %(status)s,
    %(freed)s, %(events)s, true, %(started_at)s, %(ended_at)s)
on conflict do nothing;

-- name: import_run_events
-- Events of a run as they were.
insert into hitherto.run_event (tenant, run, no, kind, name, call_id, payload, created_at)
select r.tenant, r.id, e.no, e.kind, e.name, e.call_id, e.payload::json, e.created_at
from hitherto.run r
cross join unnest(%(nos)s::bigint[], %(kinds)s::text[], %(names)s::text[], %(call_ids)s::text[], %(payloads)b::text[],
    %(times)s::timestamptz[]) as e (no, kind, name, call_id, payload, created_at)
where r.tenant = %(tenant)s and r.id = %(run)s
returning no;

-- name: export_agents
-- What is set for the agents of a tenant.
select agent, policy::text, cross_session::text, ttl, time_zone from hitherto.agent where tenant = %(tenant)s order by agent;

-- name: export_users
-- A page of what is set for users.
select user_id, time_zone from hitherto.user_zone
where tenant = %(tenant)s and (%(user)s::text is null or user_id = %(user)s) and user_id > %(after)s
order by user_id limit %(limit)s;

-- name: import_user
-- What is set for a user; nothing if something is.
insert into hitherto.user_zone (tenant, user_id, time_zone, updated_at)
values (%(tenant)s, %(user)s, %(time_zone)s, clock_timestamp())
on conflict (tenant, user_id) do nothing;

-- name: import_ids
-- Ids for digests.
select nextval('hitherto.digest_id_seq') from generate_series(1, %(count)s);

-- name: import_dates
-- When a conversation began, and what was retracted in it at which revisions.
update hitherto.conversation set created_at = %(created_at)s, retracted = %(retracted)s
where tenant = %(tenant)s and ref = %(ref)s;

-- name: import_digest
-- A digest as it was. One in progress is due since it was begun; a sweep finds it.
insert into hitherto.digest (tenant, id, conversation, stage, spec, policy, needs, action, start_seq, end_seq, kept_from,
    since, base_id, status, attempt, tries, due_at, items, opaque, family, text, tokens, freed, model, prompt_version,
    generation_time_ms, error, fired_rev, visible_rev, hidden_rev, created_at, completed_at)
values (%(tenant)s, %(id)s, %(ref)s, %(stage)s, %(spec)s, %(policy)s, %(needs)s, %(action)s, %(start)s, %(end)s, %(kept_from)s,
    %(since)s, %(base)s, %(status)s, %(attempt)s, %(tries)s, %(due_at)s,
    %(items)s, %(opaque)s, %(family)s, %(text)s, %(tokens)s, %(freed)s, %(model)s, %(prompt_version)s,
    %(generation_time_ms)s, %(error)s, %(fired_rev)s, %(visible_rev)s, %(hidden_rev)s, %(created_at)s, %(completed_at)s);

-- name: import_receipts
-- Receipts as they were; one of a conversation of that name that was deleted tells of this one from now on.
insert into hitherto.receipt (tenant, key_hash, conversation, fingerprint, start_seq, end_seq, rev, created_at)
select c.tenant, decode(r.key_hash, 'hex'), c.ref, r.fingerprint, r.start_seq, r.end_seq, r.rev, r.created_at
from hitherto.conversation c
cross join unnest(%(key_hashes)s::text[], %(fingerprints)s::text[], %(starts)s::bigint[], %(ends)s::bigint[], %(revs)s::bigint[],
    %(times)s::timestamptz[]) as r (key_hash, fingerprint, start_seq, end_seq, rev, created_at)
where c.tenant = %(tenant)s and c.ref = %(ref)s
on conflict (tenant, key_hash) do update
set conversation = excluded.conversation, fingerprint = excluded.fingerprint, start_seq = excluded.start_seq,
    end_seq = excluded.end_seq, rev = excluded.rev, created_at = excluded.created_at
where receipt.conversation is null
returning start_seq;

-- name: import_latest
-- Set the digest of a conversation's instructions: a number of another conversation's digests.
update hitherto.conversation c
set latest_digest = (
    select d.id from hitherto.conversation o
    join hitherto.digest d on d.tenant = %(tenant)s and d.conversation = o.ref
    where o.tenant = %(tenant)s and o.user_id = c.user_id and o.agent = c.agent and o.id = %(of)s
    order by d.id limit 1 offset %(digest)s - 1)
where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(conversation)s
  and c.latest_digest is null;

-- name: import_call
-- A call in the ledger as it was; nothing if it is there.
with c as (
    select ref from hitherto.conversation
    where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s
)
insert into hitherto.model_call (tenant, key, user_id, agent, conversation, digest, purpose, model, tokens_in, tokens_cached,
    tokens_out, latency_ms, cost, cause, created_at)
select %(tenant)s, %(key)s, %(user)s, %(agent)s, (select ref from c), (
           select d.id from hitherto.digest d
           where d.tenant = %(tenant)s and d.conversation = (select ref from c) and %(digest)s::bigint is not null
           order by d.id limit 1 offset greatest(%(digest)s::bigint, 1) - 1),
       %(purpose)s, %(model)s, %(tokens_in)s, %(tokens_cached)s, %(tokens_out)s, %(latency_ms)s, %(cost)s, %(cause)s,
       %(created_at)s
on conflict (tenant, key) do nothing
returning key;

-- name: imported_fact
-- The fact that an exported one is already: the one extracted then, perhaps edited or deleted since; else a current one
-- of the same content, as it is.
select f.id from hitherto.fact f
where f.tenant = %(tenant)s and f.user_id = %(user)s and f.agent = %(agent)s and f.subject = %(subject)s
  and (f.extracted_at = %(extracted_at)s and (f.fingerprint = %(fingerprint)s or f.state = 'deleted' or exists (
           select 1 from hitherto.fact_event v
           where v.tenant = %(tenant)s and v.fact = f.id and v.no = 1 and v.content = (%(contents)s::text[])[1]))
       or f.fingerprint = %(fingerprint)s and f.state = 'current' and %(state)s = 'current')
order by f.extracted_at = %(extracted_at)s desc, f.id limit 1;

-- name: import_fact
-- A fact as it was, with its sources as far as their conversations are there, and its history. (A source may be the message
-- that is appended next.)
with f as (
    insert into hitherto.fact (tenant, user_id, agent, subject, category, content, fingerprint, visibility, state, confidence,
        confirmed, repeated, version, metadata, tokens, length, hashes, counts, extracted_at, updated_at, ended_at)
    values (%(tenant)s, %(user)s, %(agent)s, %(subject)s, %(category)s, %(content)s, %(fingerprint)s, %(visibility)s, %(state)s,
        %(confidence)s, %(confirmed)s, %(repeated)s, %(version)s, %(metadata)s, %(tokens)s, %(length)s, %(hashes)s, %(counts)s,
        %(extracted_at)s, %(updated_at)s, %(ended_at)s)
    returning tenant, id
), sources as (
    insert into hitherto.fact_evidence (tenant, fact, conversation, seq, said_at, retracted, mention)
    select f.tenant, f.id, c.ref, s.seq, s.said_at, s.retracted, s.mention
    from f
    cross join unnest(%(conversations)s::text[], %(seqs)s::bigint[], %(times)s::timestamptz[], %(retracted)s::boolean[],
        %(mentions)s::boolean[]) as s (conversation, seq, said_at, retracted, mention)
    join hitherto.conversation c on c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s
        and c.id = s.conversation and s.seq <= c.next_seq
    on conflict do nothing
    returning fact
), events as (
    insert into hitherto.fact_event (tenant, fact, no, action, at, by_user, version, category, content, visibility)
    select f.tenant, f.id, v.no, v.action, v.at, v.by_user, v.version, v.category, v.content, v.visibility
    from f
    cross join unnest(%(actions)s::text[], %(ats)s::timestamptz[], %(bys)s::text[], %(versions)s::integer[],
        %(categories)s::text[], %(contents)s::text[], %(visibilities)s::text[])
        with ordinality as v (action, at, by_user, version, category, content, visibility, no)
    returning fact
)
select id from f;

-- name: import_replaced
-- Which facts were replaced by which.
update hitherto.fact f set superseded_by = r.by
from unnest(%(facts)s::bigint[], %(by)s::bigint[]) as r (fact, by)
where f.tenant = %(tenant)s and f.id = r.fact and f.state = 'superseded' and f.superseded_by is null;
