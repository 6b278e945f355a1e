-- Facts: read, and added and changed by hand. A statement that shows facts names their owner, or takes what others
-- share from the part shared_facts. One that changes a fact by its id alone runs after the owner was checked.

-- name: subject
-- A subject as it was set.
select s.id, s.name, array(
    select m.user_id from hitherto.subject_member m where m.tenant = %(tenant)s and m.subject = s.id order by m.no)
from hitherto.subject s
where s.tenant = %(tenant)s and s.id = %(subject)s;

-- part: members
-- The members of the subject `l`, and their bytes.
select coalesce(array_agg(m.user_id order by m.no), '{}') as members, coalesce(sum(octet_length(m.user_id)), 0) as size
from hitherto.subject_member m
where m.tenant = %(tenant)s and m.subject = l.id

-- name: subjects
-- Subjects of a tenant by id, as many as a page has room for. The members of those that are not on it are not read.
with recursive listed as materialized (
    select s.id, s.name, row_number() over (order by s.id collate "C") as nth
    from hitherto.subject s
    where s.tenant = %(tenant)s and s.id collate "C" > %(after)s::text
    order by s.id collate "C" limit %(limit)s
), page (nth, id, name, members, sizes) as (
    select l.nth, l.id, l.name, m.members, m.size + %(entry)s::integer
    from listed l cross join lateral ({members}) m
    where l.nth = 1
    union all
    select l.nth, l.id, l.name, m.members, p.sizes + m.size + %(entry)s::integer
    from page p
    cross join lateral (select * from listed l where l.nth = p.nth + 1 limit 1) l
    cross join lateral ({members}) m
    where p.sizes + m.size + %(entry)s::integer <= %(size)s::bigint
)
select id, name, members from page order by nth;

-- name: set_subject
-- Create a subject, or set its name if one is given. Its row is locked from then on.
insert into hitherto.subject as s (tenant, id, name) values (%(tenant)s, %(subject)s, coalesce(%(name)s, %(subject)s))
on conflict (tenant, id) do update set name = coalesce(%(name)s, s.name), updated_at = excluded.updated_at;

-- name: forget_members
-- Remove all members of a subject.
delete from hitherto.subject_member where tenant = %(tenant)s and subject = %(subject)s;

-- name: set_members
-- Insert the members of a subject.
insert into hitherto.subject_member (tenant, subject, no, user_id)
select s.tenant, s.id, m.no, m.user_id
from hitherto.subject s
cross join unnest(%(members)s::text[]) with ordinality as m (user_id, no)
where s.tenant = %(tenant)s and s.id = %(subject)s
returning no;

-- name: make_fact_subject
-- Insert the row that stands for a scope's facts about a subject; nothing if it is there.
insert into hitherto.fact_subject (tenant, user_id, agent, subject)
values (%(tenant)s, %(user)s, %(agent)s, %(subject)s)
on conflict (tenant, user_id, agent, subject) do nothing;

-- name: hold_fact_subject
-- Lock a scope's facts about a subject, before any of them is read or changed.
select subject from hitherto.fact_subject
where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and subject = %(subject)s
for no key update;

-- name: current_facts
-- The current facts of a scope about a subject, each with when it was last said, by a message or a person.
select f.id, f.category, f.content, f.confidence, f.confirmed, coalesce(greatest(case when f.confirmed then (
           select max(v.at) from hitherto.fact_event v
           where v.tenant = %(tenant)s and v.fact = f.id and v.by_user is not null
             and v.action in ('added', 'edited', 'confirmed', 'restored')) end, (
           select max(e.said_at) from hitherto.fact_evidence e
           where e.tenant = %(tenant)s and e.fact = f.id and not e.retracted)), f.extracted_at) as said_at
from ({shown_facts}) f
where f.user_id = %(user)s and f.agent = %(agent)s and f.subject = %(subject)s
  and f.state = 'current'
order by f.id;

-- name: known
-- What a context may show, as two rows of columns: the scope's own facts about a subject, with that subject; and the
-- newest `most_shared` that other members share with the user. Of the last ten digests that began, the last that ended says
-- which facts are taken. (Columns are read in a fraction of the time that rows
-- take. Each part is read in the order of an index; `offset 0` keeps that order for the columns.)
with about as materialized (
    select coalesce((
        select c.subject from hitherto.conversation c
        where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(conversation)s
    ), %(subject)s) as subject, coalesce((
        select greatest(c.created_at, (
            select max(d.completed_at) from (
                select d.completed_at from hitherto.digest d
                where d.tenant = %(tenant)s and d.conversation = c.ref and d.status = 'completed' and d.action <> 'facts'
                order by d.id desc limit 10
            ) d))
        from hitherto.conversation c
        where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(conversation)s
    ), 'infinity') as taken
), space as materialized (
    select (
        select p.id from hitherto.search_space p where p.name = %(name)s and p.dimensions = %(dimensions)s
    ) as id
)
select about.subject, space.id, s.name, array(
           select m.user_id from hitherto.subject_member m
           where m.tenant = %(tenant)s and m.subject = about.subject order by m.no),
       f.figures, f.categories, f.contents, f.terms, f.counts, f.codes, exists (
           {expiring_conversations}), f.taken
from about
cross join space
left join lateral (
    select name from hitherto.subject s where s.tenant = %(tenant)s and s.id = about.subject limit 1
) s on true
cross join lateral (
    select string_agg(f.figures, ''::bytea) as figures, string_agg(f.category, '') as categories,
           string_agg(f.content, '') as contents, string_agg(f.hashes, ''::bytea) as terms,
           string_agg(f.counts, ''::bytea) as counts,
           string_agg(case when f.space = space.id then f.code end, ''::bytea) as codes,
           max(f.id) filter (where f.extracted_at <= about.taken) as taken
    from (
        select id, figures, category, content, hashes, counts, space, code, extracted_at from ({shown_facts}) f
        where %(facts)s and f.user_id = %(user)s and f.agent = %(agent)s and f.subject = about.subject
          and f.state = 'current'
        order by f.id offset 0
    ) f
) f
union all
select null, null, null, null, f.figures, f.categories, f.contents, f.terms, f.counts, f.codes, null, f.taken
from about
cross join space
cross join lateral (
    select string_agg(f.figures, ''::bytea) as figures, string_agg(f.category, '') as categories,
           string_agg(f.content, '') as contents, string_agg(f.hashes, ''::bytea) as terms,
           string_agg(f.counts, ''::bytea) as counts,
           string_agg(case when f.space = space.id then f.code end, ''::bytea) as codes,
           max(f.id) filter (where f.extracted_at <= about.taken) as taken
    from (
        select f.*
        from (select f.id from ({shared_facts}) f where %(facts)s order by f.id desc limit %(most_shared)s) n
        cross join lateral (select * from hitherto.fact f where f.tenant = %(tenant)s and f.id = n.id limit 1) f
        order by f.id offset 0
    ) f
) f;

-- name: facts
-- A page of facts: the scope's own, those of the user's other agents, and those that others share with the user.
select f.id, f.user_id, f.agent, f.subject, f.category, f.content, f.visibility, f.state, f.confidence, f.confirmed,
       f.repeated, f.version, f.metadata::text, f.extracted_at, f.updated_at, f.ended_at, f.superseded_by
from (
    (select f.* from ({shown_facts}) f
     where %(mine)s and f.user_id = %(user)s and f.agent = %(agent)s and f.id > %(after)s
       and (%(subject)s::text is null or f.subject = %(subject)s)
       and (%(category)s::text is null or f.category = %(category)s)
       and (%(state)s::text is null or f.state = %(state)s)
       and (%(confirmed)s::boolean is null or f.confirmed = %(confirmed)s)
     order by f.id limit %(limit)s)
    union all
    (select f.* from ({shown_facts}) f
     where %(mine)s and %(all_agents)s and f.user_id = %(user)s and f.agent <> %(agent)s
       and f.id > %(after)s
       and (%(subject)s::text is null or f.subject = %(subject)s)
       and (%(category)s::text is null or f.category = %(category)s)
       and (%(state)s::text is null or f.state = %(state)s)
       and (%(confirmed)s::boolean is null or f.confirmed = %(confirmed)s)
     order by f.id limit %(limit)s)
    union all
    (select f.*
     from (
         select distinct m.subject from hitherto.subject_member m
         where m.tenant = %(tenant)s and m.user_id = %(user)s
           and (%(subject)s::text is null or m.subject = %(subject)s)
     ) about
     cross join lateral (
         select f.* from ({shared_facts}) f
         where f.id > %(after)s and (%(category)s::text is null or f.category = %(category)s)
         order by f.id limit %(limit)s
     ) f
     where %(shared)s and coalesce(%(state)s::text, 'current') = 'current'
     order by f.id limit %(limit)s)
    order by id limit %(limit)s
) f
order by f.id;

-- name: facts_said_in
-- A page of the user's own facts that messages of one conversation say; if asked for, of the conversations of that name
-- of all the user's agents.
select f.id, f.user_id, f.agent, f.subject, f.category, f.content, f.visibility, f.state, f.confidence, f.confirmed,
       f.repeated, f.version, f.metadata::text, f.extracted_at, f.updated_at, f.ended_at, f.superseded_by
from (
    select distinct e.fact as id
    from unnest(array(
        select %(agent)s::text
        union
        select b.agent from hitherto.fact_subject b where %(all_agents)s and b.tenant = %(tenant)s and b.user_id = %(user)s
    )) as a (agent)
    cross join lateral (
        select ref from hitherto.conversation c
        where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = a.agent and c.id = %(conversation)s limit 1
    ) c
    cross join lateral (
        select e.fact from hitherto.fact_evidence e
        where e.tenant = %(tenant)s and e.conversation = c.ref and not e.retracted offset 0
    ) e
    where %(mine)s and e.fact > %(after)s
    order by id offset 0
) e
cross join lateral (
    select * from ({shown_facts}) f where f.id = e.id limit 1
) f
where f.user_id = %(user)s and (%(all_agents)s or f.agent = %(agent)s)
  and (%(subject)s::text is null or f.subject = %(subject)s)
  and (%(category)s::text is null or f.category = %(category)s)
  and (%(state)s::text is null or f.state = %(state)s)
  and (%(confirmed)s::boolean is null or f.confirmed = %(confirmed)s)
order by e.id limit %(limit)s;

-- name: fact
-- One fact: the user's own in any state, or one that is shared with the user.
select f.id, f.user_id, f.agent, f.subject, f.category, f.content, f.visibility, f.state, f.confidence, f.confirmed,
       f.repeated, f.version, f.metadata::text, f.extracted_at, f.updated_at, f.ended_at, f.superseded_by
from (
    (select f.* from ({shown_facts}) f
     where f.id = %(id)s and f.user_id = %(user)s and (%(all_agents)s or f.agent = %(agent)s))
    union all
    (select f.*
     from (select subject from hitherto.fact f where f.tenant = %(tenant)s and f.id = %(id)s limit 1) about
     cross join lateral ({shared_facts}) f
     where f.id = %(id)s)
) f;

-- name: replaced_facts
-- The last of the scope's own facts whose place one of them took. (`is true` keeps the planner from going through all facts
-- of the user.)
select f.id, f.user_id, f.agent, f.subject, f.category, f.content, f.visibility, f.state, f.confidence, f.confirmed,
       f.repeated, f.version, f.metadata::text, f.extracted_at, f.updated_at, f.ended_at, f.superseded_by
from (
    select * from ({shown_facts}) f
    where f.superseded_by = %(id)s
      and (f.user_id = %(user)s and f.agent = %(agent)s and f.state = 'superseded') is true
    order by f.ended_at desc, f.id desc limit %(limit)s
) f
order by f.ended_at, f.id;

-- name: evidence
-- The messages that say some of the user's own facts, of each the first `most_evidence`. One that a fork has too is named once.
select e.fact, c.id, e.seq, e.said_at
from unnest(%(ids)s::bigint[]) as i (id)
cross join lateral (
    select * from hitherto.fact_evidence e
    where e.tenant = %(tenant)s and e.fact = i.id and not e.retracted and not exists (
        select 1 from hitherto.fork f
        cross join lateral (
            select 1 from hitherto.fact_evidence o
            where o.tenant = %(tenant)s and o.fact = i.id and o.conversation = f.source and o.seq = e.seq and not o.retracted limit 1
        ) o
        where f.tenant = %(tenant)s and f.conversation = e.conversation and f.end_seq >= e.seq offset 0)
    order by e.said_at, e.conversation, e.seq limit %(most_evidence)s
) e
cross join lateral (
    select id from hitherto.conversation c
    where c.tenant = %(tenant)s and c.ref = e.conversation and c.user_id = %(user)s limit 1
) c
order by e.said_at, e.conversation, e.seq;

-- name: messages_of_fact
-- The first messages that say one of the user's own facts, those that were taken back too; or those that may mention it.
select c.id, e.seq
from (
    select * from hitherto.fact_evidence e
    where e.tenant = %(tenant)s and e.fact = %(id)s and e.mention = %(mention)s
    order by e.said_at, e.conversation, e.seq limit %(most_evidence)s
) e
cross join lateral (
    select id from hitherto.conversation c
    where c.tenant = %(tenant)s and c.ref = e.conversation and c.user_id = %(user)s limit 1
) c
order by e.said_at, e.conversation, e.seq;

-- name: fact_history
-- A page of what happened to a fact of the user's own.
select e.action, e.at, e.by_user, e.version, e.category, e.content, e.visibility
from (
    select tenant, id from ({shown_facts}) f
    where f.id = %(id)s and f.user_id = %(user)s and (%(all_agents)s or f.agent = %(agent)s)
    limit 1
) f
cross join lateral (
    select * from hitherto.fact_event e where e.tenant = %(tenant)s and e.fact = f.id
    order by e.no offset %(after)s limit %(limit)s
) e
order by e.no;

-- name: fact_versions
-- Facts as they read at one version each: the user's own, and those that are shared with the user and were shared at
-- that version. A version whose content was erased is left out.
select f.id, f.user_id, f.agent, f.subject, v.category, v.content, v.visibility, f.state, f.confidence, f.confirmed,
       f.repeated, v.version, f.metadata::text, f.extracted_at, f.updated_at, f.ended_at, f.superseded_by
from unnest(%(ids)s::bigint[], %(versions)s::integer[]) as n (id, version)
cross join lateral (
    select user_id, subject from hitherto.fact f where f.tenant = %(tenant)s and f.id = n.id limit 1
) about
cross join lateral (
    (select f.* from ({shown_facts}) f
     where f.id = n.id and f.user_id = %(user)s and f.agent = %(agent)s and f.state <> 'deleted')
    union all
    (select f.* from ({shared_facts}) f where f.id = n.id)
) f
cross join lateral (
    select * from hitherto.fact_event v
    where v.tenant = %(tenant)s and v.fact = n.id and v.version = n.version order by v.no desc limit 1
) v
where (v.content <> '' or f.content = '') and (f.user_id = %(user)s or v.visibility = 'shared');

-- name: hold_subject_of_fact
-- Lock the row that stands for the scope and subject of one of the user's own facts.
select b.subject from hitherto.fact_subject b
where b.tenant = %(tenant)s and b.user_id = %(user)s
  and b.agent = (
      select f.agent from hitherto.fact f
      where f.tenant = %(tenant)s and f.id = %(id)s and f.user_id = %(user)s and (%(all_agents)s or f.agent = %(agent)s))
  and b.subject = (
      select f.subject from hitherto.fact f
      where f.tenant = %(tenant)s and f.id = %(id)s and f.user_id = %(user)s and (%(all_agents)s or f.agent = %(agent)s))
for no key update;

-- name: held_fact
-- That fact, which cannot change while its scope and subject are locked; and the id of another current fact that says
-- what it says, or is to say after an edit.
select f.agent, f.subject, f.category, f.fingerprint, f.state, f.version, f.visibility, f.content, nullif((
    select o.id from hitherto.fact o
    where o.tenant = %(tenant)s and o.user_id = %(user)s and o.agent = f.agent and o.subject = f.subject
      and o.fingerprint = f.then and o.state = 'current'), f.id)
from (
    select *, case when %(action)s = 'edited' then %(fingerprint)s else fingerprint end as then
    from hitherto.fact f where f.tenant = %(tenant)s and f.id = %(id)s limit 1
) f
where f.user_id = %(user)s and (%(all_agents)s or f.agent = %(agent)s);

-- name: alike
-- The current fact of a scope and subject that says the same, and whether a person has added it.
select f.id, f.category, f.metadata::text, f.confirmed, exists (
    select 1 from hitherto.fact_event e where e.tenant = %(tenant)s and e.fact = f.id and e.action = 'added' offset 0)
from hitherto.fact f
where f.tenant = %(tenant)s and f.user_id = %(user)s and f.agent = %(agent)s and f.subject = %(subject)s
  and f.fingerprint = %(fingerprint)s and f.state = 'current';

-- name: keep_fact
-- Confirm a fact that a user adds by hand though it is there, and set its category.
update hitherto.fact
set category = %(category)s, metadata = %(metadata)s, confidence = 1, confirmed = true, version = version + 1,
    updated_at = greatest(hitherto.clock(), updated_at)
where tenant = %(tenant)s and id = %(id)s;

-- name: edit_fact
-- Edit a fact, which confirms it. If its content changes, it is indexed anew.
update hitherto.fact
set category = %(category)s, content = %(content)s, fingerprint = %(fingerprint)s, tokens = %(tokens)s,
    metadata = %(metadata)s, length = %(length)s, hashes = %(hashes)s, counts = %(counts)s, confidence = 1, confirmed = true,
    version = version + 1, updated_at = greatest(hitherto.clock(), updated_at),
    space = case when content = %(content)s then space end, code = case when content = %(content)s then code end,
    indexed = indexed and content = %(content)s
where tenant = %(tenant)s and id = %(id)s;

-- name: confirm_fact
-- Confirm a fact.
update hitherto.fact
set confidence = 1, confirmed = true, version = version + 1, updated_at = greatest(hitherto.clock(), updated_at)
where tenant = %(tenant)s and id = %(id)s;

-- name: restore_fact
-- Make a fact current again: private, confirmed, and to be indexed anew.
update hitherto.fact
set state = 'current', visibility = 'private', ended_at = null, superseded_by = null, confidence = 1, confirmed = true, indexed = false,
    version = version + 1, updated_at = greatest(hitherto.clock(), updated_at)
where tenant = %(tenant)s and id = %(id)s;

-- name: change_visibility
-- Share a fact, or make it private.
update hitherto.fact
set visibility = %(visibility)s, version = version + 1, updated_at = greatest(hitherto.clock(), updated_at)
where tenant = %(tenant)s and id = %(id)s;

-- name: delete_fact
-- Delete what a fact says, and said before, and its evidence; its id, category and dates stay. Of one that an agent has
-- remembered, the messages are kept in mind as retracted ones: no digest may have read them yet.
with now as materialized (
    select hitherto.clock() as at
), events as (
    update hitherto.fact_event set content = '' where tenant = %(tenant)s and fact = %(id)s
), remembered as materialized (
    select exists (
        select 1 from hitherto.fact_event e
        where e.tenant = %(tenant)s and e.fact = %(id)s and e.action = 'remembered' offset 0) as so
), unread as (
    update hitherto.fact_evidence set retracted = true
    where tenant = %(tenant)s and fact = %(id)s and (select so from remembered)
), evidence as (
    delete from hitherto.fact_evidence
    where tenant = %(tenant)s and fact = %(id)s and not mention and not (select so from remembered)
)
update hitherto.fact f
set state = 'deleted', superseded_by = case when state = 'superseded' then superseded_by end, content = '', fingerprint = '', metadata = '{}', tokens = 0, length = 0, hashes = '', counts = '',
    space = null, code = null, indexed = false, version = version + 1, updated_at = greatest(now.at, updated_at),
    ended_at = coalesce(ended_at, greatest(now.at, updated_at))
from now
where f.tenant = %(tenant)s and f.id = %(id)s;

-- name: note_fact
-- Add to a fact's history what was done, and how the fact reads from now on.
insert into hitherto.fact_event (tenant, fact, no, action, at, by_user, version, category, content, visibility)
select f.tenant, f.id,
       coalesce((select max(e.no) from hitherto.fact_event e where e.tenant = %(tenant)s and e.fact = f.id), 0) + 1,
       %(action)s, f.updated_at, %(user)s, f.version, f.category, f.content, f.visibility
from hitherto.fact f
where f.tenant = %(tenant)s and f.id = %(id)s
returning no;
