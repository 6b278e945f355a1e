-- Views for operators, with the names that other systems' tables have: set search_path to other_systems, and queries written
-- for those tables run on them. Each has a column "tenant" beside. Nothing can be written through them: each is a join. They
-- read with the rights of whoever asks, so that row-level security holds. Ids of messages sort as their numbers do. What stands
-- in braces is a part of the store's statements, for the tenant of the row that it is `of`.

create schema if not exists other_systems;

-- Every summary of a conversation with the one that it was built on.
create or replace view other_systems.memory with (security_invoker = true) as
select d.id                 as memory_id,
       c.id                 as conversation_id,
       case when hitherto.expiring(c.next_expiry) then '' else d.text end as memory_text,
       d.start_seq::integer as start_sequence,
       d.end_seq::integer   as end_sequence,
       d.base_id            as base_memory_id,
       d.status             as status,
       d.created_at         as created_at,
       d.generation_time_ms as generation_time_ms,
       c.tenant             as tenant,
       c.user_id            as user_id,
       c.agent              as agent
from hitherto.digest d
join hitherto.conversation c on c.tenant = d.tenant and c.ref = d.conversation
where d.action = 'summarize';

-- What the user and the agent said; active is what the summary does not cover yet.
create or replace view other_systems.memory_entries with (security_invoker = true) as
select m.conversation || '-' || lpad(m.seq::text, 12, '0') as id, c.user_id, c.id as session_id, c.agent as agent_id,
       json_build_object('role', m.role, 'content', m.text)::text as content, m.metadata::text as entry_metadata,
       coalesce(m.said_at, m.created_at) as created_at, coalesce(m.said_at, m.created_at) as updated_at, m.expires_at,
       m.retracted_rev is null and m.seq >= c.view_start and m.seq > coalesce(s.end_seq, -1) as is_active, c.tenant
from hitherto.conversation c
left join lateral ({standing_summary of c}) s on true
join hitherto.message m on m.tenant = c.tenant and m.conversation = c.ref
where m.kind = 'text' and not m.erased and (m.expires_at is null or m.expires_at > statement_timestamp());

-- The newest summary of each conversation, for others to show.
create or replace view other_systems.conversation_summaries with (security_invoker = true) as
select s.id, c.id as conversation_id, c.user_id, c.agent as agent_id, s.text as summary, s.created_at, s.completed_at as updated_at,
       c.tenant
from hitherto.conversation c
cross join lateral ({standing_summary of c}) s
where not hitherto.expiring(c.next_expiry);

-- The same.
create or replace view other_systems.memory_session_summaries with (security_invoker = true) as
select id::text as id, user_id, conversation_id as session_id, agent_id, summary, created_at, updated_at, tenant
from other_systems.conversation_summaries;

-- Searchable digests of parts of conversations; a range ends before message_range_end.
create or replace view other_systems.conversation_chunks with (security_invoker = true) as
select d.id, c.id as conversation_id, c.user_id, nullif(c.subject, '') as legacy_id, d.text as content,
       d.start_seq::integer as message_range_start, d.end_seq::integer + 1 as message_range_end, d.created_at, c.tenant, c.agent
from hitherto.digest d
join hitherto.conversation c on c.tenant = d.tenant and c.ref = d.conversation
where d.action = 'chunk' and d.status = 'completed' and d.visible_rev is not null and d.hidden_rev is null
  and d.end_seq >= c.view_start and not hitherto.expiring(c.next_expiry);

-- Facts that hold now, but for those of which each message has expired and nobody confirmed.
create or replace view other_systems.legacy_facts with (security_invoker = true) as
select f.id, f.subject as legacy_id, f.user_id, f.category, f.content, f.visibility,
       (select c.id from hitherto.fact_evidence e
        join hitherto.conversation c on c.tenant = e.tenant and c.ref = e.conversation
        where e.tenant = f.tenant and e.fact = f.id and not e.retracted
        order by e.said_at, e.seq limit 1) as source_conversation_id,
       f.extracted_at, f.updated_at, f.tenant, f.agent
from ({shown_facts of f}) f
where f.state = 'current';

-- Conversations, with what each says of its own strategy; null where the agent or the settings decide.
create or replace view other_systems.agent_conversations with (security_invoker = true) as
select c.ref as id, c.id as conversation_id, c.user_id, c.agent as agent_id,
       coalesce(c.title, left(({opening of c}), 60)) as title,
       c.policy ->> 'name' as memory_strategy, (c.cross_session ->> 'latest')::boolean as memory_injection,
       c.next_seq as message_count, c.created_at, c.said_at as updated_at, c.tenant
from hitherto.conversation c
cross join (select) as read_only;

-- Every message, whatever is still shown to the model.
create or replace view other_systems.agent_messages with (security_invoker = true) as
select m.conversation || '-' || lpad(m.seq::text, 12, '0') as id, c.id as conversation_id, m.seq, m.role, m.kind, m.text as content,
       m.payload as item, m.retracted_rev is not null or m.seq < c.view_start as hidden,
       coalesce(m.said_at, m.created_at) as created_at, c.user_id, c.agent as agent_id, c.tenant
from hitherto.conversation c
join hitherto.message m on m.tenant = c.tenant and m.conversation = c.ref
where not m.erased and (m.expires_at is null or m.expires_at > statement_timestamp());

-- Conversations with the running synopsis, and how many messages it covers.
create or replace view other_systems.chat_sessions with (security_invoker = true) as
select c.id, c.user_id, coalesce(c.title, left(({opening of c}), 60)) as name,
       coalesce(s.summary, '') as summary, coalesce(s.summarized_count, 0)::integer as summarized_count, c.created_at,
       c.said_at as updated_at, c.agent, c.tenant
from hitherto.conversation c
left join lateral ({summary of c}) s on true;

-- What users asked and what was answered in the end, as far as it is shown.
create or replace view other_systems.chat_messages with (security_invoker = true) as
select m.conversation || '-' || lpad(m.seq::text, 12, '0') as id, c.id as session_id, m.role, m.text as content,
       coalesce(m.said_at, m.created_at) as created_at, m.seq, c.user_id, c.agent, c.tenant
from hitherto.conversation c
join hitherto.message m on m.tenant = c.tenant and m.conversation = c.ref
where m.kind = 'text' and m.role in ('user', 'assistant') and m.seq >= c.view_start and m.retracted_rev is null
  and not m.erased and (m.expires_at is null or m.expires_at > statement_timestamp());

-- What agents did, event by event. The payload is null once a message of the run is erased or has expired.
create or replace view other_systems.agent_run_events with (security_invoker = true) as
select r.id || '-' || lpad(e.no::text, 12, '0') as id, r.id as run_id, r.conversation as conversation_id, e.no as seq, e.kind as event_type,
       e.name, e.call_id, case when not (hitherto.expiring(c.next_expiry) and hitherto.quotes(e.kind)) then e.payload end as payload,
       e.created_at, r.status as run_status, r.user_id, r.agent as agent_id, r.tenant
from hitherto.run r
join hitherto.run_event e on e.tenant = r.tenant and e.run = r.id
left join hitherto.conversation c
    on c.tenant = r.tenant and c.user_id = r.user_id and c.agent = r.agent and c.id = r.conversation;
