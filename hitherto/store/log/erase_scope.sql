-- Erasing a user or a tenant. A user of '' stands for the whole tenant.

-- name: begin_erasure
-- Record the erasure; one that was recorded before is of what is there now.
insert into hitherto.erasure (tenant, user_id) values (%(tenant)s, %(user)s)
on conflict (tenant, user_id) do update set requested_at = excluded.requested_at
returning requested_at;

-- name: hold_indexes
-- Lock the indexes of the scopes, so that a worker that packs or embeds is waited for.
select ref from hitherto.search_scope
where tenant = %(tenant)s and (%(user)s = '' or user_id = %(user)s) order by ref for update;

-- name: drop_indexes
-- Delete all that the index has of some scopes. Their rows stay, for who adds something meanwhile.
with vectors as (
    delete from hitherto.search_vector where tenant = %(tenant)s and scope = any(%(refs)s::bigint[])
), codes as (
    delete from hitherto.search_codes where tenant = %(tenant)s and scope = any(%(refs)s::bigint[])
), postings as (
    delete from hitherto.search_posting where tenant = %(tenant)s and scope = any(%(refs)s::bigint[])
), segments as (
    delete from hitherto.search_segment where tenant = %(tenant)s and scope = any(%(refs)s::bigint[])
)
delete from hitherto.search_entry where tenant = %(tenant)s and scope = any(%(refs)s::bigint[]);

-- name: erasures
-- The erasures that have not ended.
select * from hitherto.begun_erasures();

-- name: conversations_to_erase
-- Conversations that were there when an erasure began, and forks of them.
select user_id, agent, id, '', null, '{}', next_seq, tokens, rev, created_at, updated_at, said_at, ref from hitherto.conversation
where tenant = %(tenant)s and (%(user)s = '' or user_id = %(user)s) and (created_at <= %(requested_at)s or exists (
    select 1 from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = ref and m.seq = 0 and m.created_at <= %(requested_at)s offset 0))
limit %(limit)s;

-- name: hold_erasure
-- Lock an erasure: who asks for it again has it too before the scopes' indexes.
select 1 from hitherto.erasure where tenant = %(tenant)s and user_id = %(user)s for update;

-- name: hold_documents_of
-- Lock documents by id. Documents, and then facts, come before the scopes' indexes, as everywhere.
select id from hitherto.document
where tenant = %(tenant)s and (%(user)s = '' or user_id = %(user)s) and created_at <= %(requested_at)s
order by id for update;

-- name: hold_fact_subjects_of
-- Lock the subjects of facts: everybody does so before he locks facts.
select subject from hitherto.fact_subject
where tenant = %(tenant)s and (%(user)s = '' or user_id = %(user)s) order by user_id, agent, subject for update;

-- name: hold_facts_of
-- Lock facts by id.
select id from hitherto.fact
where tenant = %(tenant)s and (%(user)s = '' or user_id = %(user)s) and extracted_at <= %(requested_at)s
order by id for update;

-- name: erase_documents_of
-- Delete documents, with their passages.
delete from hitherto.document
where tenant = %(tenant)s and (%(user)s = '' or user_id = %(user)s) and created_at <= %(requested_at)s;

-- name: erase_facts_of
-- Delete facts, with their evidence and history.
delete from hitherto.fact
where tenant = %(tenant)s and (%(user)s = '' or user_id = %(user)s) and extracted_at <= %(requested_at)s;

-- name: unindex_erased
-- Delete the entries of documents and facts that are gone, of one scope.
with gone as (
    delete from hitherto.search_entry e
    where e.tenant = %(tenant)s and e.scope = %(ref)s and (
        e.kind = 3 and not exists (
            select 1 from hitherto.document d where d.tenant = %(tenant)s and d.id = e.origin offset 0)
        or e.kind = 4 and not exists (
            select 1 from hitherto.fact f where f.tenant = %(tenant)s and f.id = e.origin offset 0))
    returning e.scope, e.no
), {unindexed}
select 1;

-- name: forget_names
-- Delete what still names the user or the tenant, after the scopes' indexes were locked: in the history of others' facts,
-- among the members of subjects, in kept contexts and runs, in the user's time zone, and in rows that only serve to lock facts.
with members as (
    delete from hitherto.subject_member where tenant = %(tenant)s and (%(user)s = '' or user_id = %(user)s)
), contexts as (
    delete from hitherto.context
    where tenant = %(tenant)s and (%(user)s = '' or user_id = %(user)s)
      -- Facts are there until now.
      and (kept_at <= %(requested_at)s or manifest ->> 'facts' is not null)
), runs as (
    delete from hitherto.run
    where tenant = %(tenant)s and (%(user)s = '' or user_id = %(user)s) and started_at <= %(requested_at)s
), zones as (
    delete from hitherto.user_zone
    where tenant = %(tenant)s and (%(user)s = '' or user_id = %(user)s) and updated_at <= %(requested_at)s
), locks as (
    delete from hitherto.fact_subject s
    where s.tenant = %(tenant)s and (%(user)s = '' or s.user_id = %(user)s) and not exists (
        select 1 from hitherto.fact f where f.tenant = %(tenant)s and f.user_id = s.user_id and f.agent = s.agent)
)
update hitherto.fact_event set by_user = null where tenant = %(tenant)s and by_user = %(user)s;

-- name: forget_user_in_calls
-- The costs of a user's calls stay.
update hitherto.model_call set user_id = '' where tenant = %(tenant)s and user_id = %(user)s;

-- name: forget_tenant
-- Delete what is set for a whole tenant.
with agents as (
    delete from hitherto.agent where tenant = %(tenant)s and updated_at <= %(requested_at)s
)
delete from hitherto.subject where tenant = %(tenant)s and updated_at <= %(requested_at)s;

-- name: drop_scopes
-- Delete the rows of scopes of which nothing is left.
with gone as (
    delete from hitherto.search_scope s
    where s.tenant = %(tenant)s and s.ref = any(%(refs)s::bigint[])
      and not exists (select 1 from hitherto.search_entry e where e.tenant = %(tenant)s and e.scope = s.ref)
      and not exists (
          select 1 from hitherto.conversation c where c.tenant = %(tenant)s and c.user_id = s.user_id and c.agent = s.agent)
    returning tenant, ref
)
delete from hitherto.search_filling f using gone where f.tenant = %(tenant)s and f.scope = gone.ref;

-- name: end_erasure
-- The erasure is done, unless it was asked for again meanwhile.
delete from hitherto.erasure where tenant = %(tenant)s and user_id = %(user)s and requested_at = %(requested_at)s;

-- name: conversations_about
-- The conversations that are about a subject.
select user_id, agent, id, ref from hitherto.conversation where tenant = %(tenant)s and subject = %(subject)s;

-- name: kept_about
-- How many conversations are about a subject, with how many messages, how many documents were archived from them, and
-- how many facts about it hold.
select c.conversations, c.messages,
       (select count(*) from hitherto.document d
        join hitherto.conversation c on c.tenant = %(tenant)s and c.ref = d.conversation
        where d.tenant = %(tenant)s and c.subject = %(subject)s),
       (select count(*) from hitherto.fact f
        where f.tenant = %(tenant)s and f.subject = %(subject)s and f.state = 'current')
from (
    select count(*) as conversations, coalesce(sum(next_seq), 0)::bigint as messages
    from hitherto.conversation c where c.tenant = %(tenant)s and c.subject = %(subject)s
) c;

-- name: hold_fact_subjects_about
-- Lock a subject in every scope that has facts about it: everybody does so before he locks facts.
select 1 from hitherto.fact_subject
where tenant = %(tenant)s and subject = %(subject)s order by user_id, agent for update;

-- name: hold_facts_about
-- Lock facts about a subject by id.
select id from hitherto.fact where tenant = %(tenant)s and subject = %(subject)s order by id for update;

-- name: hold_indexes_about
-- Lock the indexes of the scopes that have facts about a subject.
select s.ref from hitherto.search_scope s
where s.tenant = %(tenant)s and exists (
    select 1 from hitherto.fact f
    where f.tenant = %(tenant)s and f.user_id = s.user_id and f.agent = s.agent and f.subject = %(subject)s)
order by s.ref for update;

-- name: erase_facts_about
-- Delete facts about a subject, with their evidence and history.
delete from hitherto.fact where tenant = %(tenant)s and subject = %(subject)s;

-- name: forget_subject
-- Delete what still names a subject: kept contexts that showed facts about it, rows that only serve to lock facts, itself with
-- its members.
with contexts as (
    delete from hitherto.context where tenant = %(tenant)s and manifest -> 'facts' ->> 'subject' = %(subject)s
), locks as (
    delete from hitherto.fact_subject where tenant = %(tenant)s and subject = %(subject)s
)
delete from hitherto.subject where tenant = %(tenant)s and id = %(subject)s;
