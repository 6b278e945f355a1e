-- Facts: read, added and changed by hand. Every statement names the owner, or goes by the rule of what is shared.

-- name: subject
-- A subject as it was set.
select s.id, s.name, array(
    select m.user_id from hitherto.subject_member m where m.tenant = s.tenant and m.subject = s.id order by m.no)
from hitherto.subject s
where s.tenant = %(tenant)s and s.id = %(subject)s;

-- name: subjects
-- All subjects of a tenant.
select s.id, s.name, array(
    select m.user_id from hitherto.subject_member m where m.tenant = s.tenant and m.subject = s.id order by m.no)
from hitherto.subject s
where s.tenant = %(tenant)s
order by s.id collate "C";

-- name: set_subject
-- Set a subject's name, if one is given; who sets it holds it.
insert into hitherto.subject as s (tenant, id, name) values (%(tenant)s, %(subject)s, coalesce(%(name)s, %(subject)s))
on conflict (tenant, id) do update set name = coalesce(%(name)s, s.name), updated_at = excluded.updated_at;

-- name: forget_members
-- A subject has no members.
delete from hitherto.subject_member where tenant = %(tenant)s and subject = %(subject)s;

-- name: set_members
-- A subject has these members.
insert into hitherto.subject_member (tenant, subject, no, user_id)
select %(tenant)s, %(subject)s, m.no, m.user_id
from unnest(%(members)s::text[]) with ordinality as m (user_id, no);

-- name: make_fact_subject
-- Make the row of a scope and a subject; nothing if it is there.
insert into hitherto.fact_subject (tenant, user_id, agent, subject)
values (%(tenant)s, %(user)s, %(agent)s, %(subject)s)
on conflict (tenant, user_id, agent, subject) do nothing;

-- name: hold_fact_subject
-- Hold a scope's facts about a subject, before any of them is read or changed.
select subject from hitherto.fact_subject
where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and subject = %(subject)s
for no key update;

-- name: current_facts
-- The current facts of a scope about a subject.
select f.id, f.category, f.content, f.confidence, f.confirmed, coalesce(greatest(case when f.confirmed then (
           select max(v.at) from hitherto.fact_event v
           where v.tenant = f.tenant and v.fact = f.id and v.by_user is not null
             and v.did in ('added', 'edited', 'confirmed', 'restored')) end, (
           select max(e.said_at) from hitherto.fact_evidence e
           where e.tenant = f.tenant and e.fact = f.id and not e.retracted)), f.extracted_at) as said_at
from hitherto.shown_facts(%(tenant)s) f
where f.tenant = %(tenant)s and f.user_id = %(user)s and f.agent = %(agent)s and f.subject = %(subject)s
  and f.state = 'current'
order by f.id;

-- name: known
-- What a context may show: a row of columns for a scope's own facts about a subject, with what that is, and one for those
-- that other members share with the user. (Columns are read in a fraction of the time that rows take. Each part is read in
-- the order of an index; `offset 0` keeps what the columns are made of from being read in another.)
with about as materialized (
    select coalesce((
        select c.subject from hitherto.conversation c
        where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(conversation)s
    ), %(subject)s) as subject
), space as materialized (
    select (
        select p.id from hitherto.search_space p where p.name = %(name)s and p.dimensions = %(dimensions)s
    ) as id
)
select about.subject, space.id, s.name, array(
           select m.user_id from hitherto.subject_member m
           where m.tenant = %(tenant)s and m.subject = about.subject order by m.no),
       f.figures, f.categories, f.contents, f.terms, f.counts, f.codes, exists (
           select from hitherto.expiring_conversation c where c.tenant = %(tenant)s)
from about
cross join space
left join lateral (
    select name from hitherto.subject s where s.tenant = %(tenant)s and s.id = about.subject limit 1
) s on true
cross join lateral (
    select string_agg(f.figures, ''::bytea) as figures, string_agg(f.category, '') as categories,
           string_agg(f.content, '') as contents, string_agg(f.hashes, ''::bytea) as terms,
           string_agg(f.counts, ''::bytea) as counts,
           string_agg(case when f.space = space.id then f.code end, ''::bytea) as codes
    from (
        select figures, category, content, hashes, counts, space, code from hitherto.shown_facts(%(tenant)s) f
        where %(facts)s and f.tenant = %(tenant)s and f.user_id = %(user)s and f.agent = %(agent)s and f.subject = about.subject
          and f.state = 'current'
        order by f.id offset 0
    ) f
) f
union all
select null, null, null, null, f.figures, f.categories, f.contents, f.terms, f.counts, f.codes, null
from about
cross join space
cross join lateral (
    select string_agg(f.figures, ''::bytea) as figures, string_agg(f.category, '') as categories,
           string_agg(f.content, '') as contents, string_agg(f.hashes, ''::bytea) as terms,
           string_agg(f.counts, ''::bytea) as counts,
           string_agg(case when f.space = space.id then f.code end, ''::bytea) as codes
    from (
        select figures, category, content, hashes, counts, space, code
        from hitherto.shared_with(%(tenant)s, %(user)s, %(agent)s, about.subject) f
        where %(facts)s
        order by f.id offset 0
    ) f
) f;

-- name: facts
-- A page of facts: the scope's own, those of the user's other agents, and those that others share with him.
select f.id, f.user_id, f.agent, f.subject, f.category, f.content, f.visibility, f.state, f.confidence, f.confirmed,
       f.repeated, f.version, f.metadata::text, f.extracted_at, f.updated_at, f.ended_at, f.superseded_by
from (
    (select f.* from hitherto.shown_facts(%(tenant)s) f
     where %(mine)s and f.tenant = %(tenant)s and f.user_id = %(user)s and f.agent = %(agent)s and f.id > %(after)s
       and (%(subject)s::text is null or f.subject = %(subject)s)
       and (%(category)s::text is null or f.category = %(category)s)
       and (%(state)s::text is null or f.state = %(state)s)
     order by f.id limit %(limit)s)
    union all
    (select f.* from hitherto.shown_facts(%(tenant)s) f
     where %(mine)s and %(all_agents)s and f.tenant = %(tenant)s and f.user_id = %(user)s and f.agent <> %(agent)s
       and f.id > %(after)s
       and (%(subject)s::text is null or f.subject = %(subject)s)
       and (%(category)s::text is null or f.category = %(category)s)
       and (%(state)s::text is null or f.state = %(state)s)
     order by f.id limit %(limit)s)
    union all
    (select f.*
     from (
         select distinct m.subject from hitherto.subject_member m
         where m.tenant = %(tenant)s and m.user_id = %(user)s
           and (%(subject)s::text is null or m.subject = %(subject)s)
     ) m
     cross join lateral (
         select f.* from hitherto.shared_with(%(tenant)s, %(user)s, %(agent)s, m.subject) f
         where f.id > %(after)s and (%(category)s::text is null or f.category = %(category)s)
         order by f.id limit %(limit)s
     ) f
     where %(shared)s and coalesce(%(state)s::text, 'current') = 'current'
     order by f.id limit %(limit)s)
    order by id limit %(limit)s
) f
order by f.id;

-- name: facts_said_in
-- A page of the user's own facts that messages of one conversation say; or, if so asked, of all his agents' of that name.
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
    select * from hitherto.shown_facts(%(tenant)s) f where f.tenant = %(tenant)s and f.id = e.id limit 1
) f
where f.user_id = %(user)s and (%(all_agents)s or f.agent = %(agent)s)
  and (%(subject)s::text is null or f.subject = %(subject)s)
  and (%(category)s::text is null or f.category = %(category)s)
  and (%(state)s::text is null or f.state = %(state)s)
order by e.id limit %(limit)s;

-- name: fact
-- One fact likewise: the user's own in any state, or one that is shared with him.
select f.id, f.user_id, f.agent, f.subject, f.category, f.content, f.visibility, f.state, f.confidence, f.confirmed,
       f.repeated, f.version, f.metadata::text, f.extracted_at, f.updated_at, f.ended_at, f.superseded_by
from (
    (select f.* from hitherto.shown_facts(%(tenant)s) f
     where f.tenant = %(tenant)s and f.id = %(id)s and f.user_id = %(user)s and (%(all_agents)s or f.agent = %(agent)s))
    union all
    (select f.*
     from (select subject from hitherto.fact f where f.tenant = %(tenant)s and f.id = %(id)s limit 1) about
     cross join lateral hitherto.shared_with(%(tenant)s, %(user)s, %(agent)s, about.subject) f
     where f.id = %(id)s)
) f;

-- name: evidence
-- The messages that say some of the user's own facts.
select e.fact, c.id, e.seq, e.said_at
from unnest(%(ids)s::bigint[]) as i (id)
cross join lateral (
    select * from hitherto.fact_evidence e where e.tenant = %(tenant)s and e.fact = i.id and not e.retracted offset 0
) e
cross join lateral (
    select id from hitherto.conversation c
    where c.tenant = e.tenant and c.ref = e.conversation and c.user_id = %(user)s limit 1
) c
order by e.said_at, e.conversation, e.seq;

-- name: fact_history
-- What happened to a fact of the user's own.
select e.did, e.at, e.by_user, e.version, e.category, e.content, e.visibility
from (
    select tenant, id from hitherto.shown_facts(%(tenant)s) f
    where f.tenant = %(tenant)s and f.id = %(id)s and f.user_id = %(user)s and (%(all_agents)s or f.agent = %(agent)s)
    limit 1
) f
cross join lateral (
    select * from hitherto.fact_event e where e.tenant = f.tenant and e.fact = f.id order by e.no offset 0
) e
order by e.no;

-- name: fact_versions
-- Facts as they read at a version each: the user's own, and those that are shared with him and were so then. Of what was
-- blanked nothing is left to be shown.
select f.id, f.user_id, f.agent, f.subject, v.category, v.content, v.visibility, f.state, f.confidence, f.confirmed,
       f.repeated, v.version, f.metadata::text, f.extracted_at, f.updated_at, f.ended_at, f.superseded_by
from unnest(%(ids)s::bigint[], %(versions)s::integer[]) as n (id, version)
cross join lateral (
    select user_id, subject from hitherto.fact f where f.tenant = %(tenant)s and f.id = n.id limit 1
) about
cross join lateral (
    (select f.* from hitherto.shown_facts(%(tenant)s) f
     where f.tenant = %(tenant)s and f.id = n.id and f.user_id = %(user)s and f.agent = %(agent)s and f.state <> 'deleted')
    union all
    (select f.* from hitherto.shared_with(%(tenant)s, %(user)s, %(agent)s, about.subject) f where f.id = n.id)
) f
cross join lateral (
    select * from hitherto.fact_event v
    where v.tenant = %(tenant)s and v.fact = n.id and v.version = n.version order by v.no desc limit 1
) v
where (v.content <> '' or f.content = '') and (f.user_id = %(user)s or v.visibility = 'shared');

-- name: hold_subject_of_fact
-- Hold the scope and subject that a fact of the user's own is about.
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
-- That fact, which stays as it is as long as its scope and subject are held; and the other current one that says what it says, or is to.
select f.agent, f.subject, f.category, f.fingerprint, f.state, f.version, f.visibility, f.content, nullif((
    select o.id from hitherto.fact o
    where o.tenant = %(tenant)s and o.user_id = %(user)s and o.agent = f.agent and o.subject = f.subject
      and o.fingerprint = f.then and o.state = 'current'), f.id)
from (
    select *, case when %(did)s = 'edited' then %(fingerprint)s else fingerprint end as then
    from hitherto.fact f where f.tenant = %(tenant)s and f.id = %(id)s limit 1
) f
where f.user_id = %(user)s and (%(all_agents)s or f.agent = %(agent)s);

-- name: alike
-- The current fact of a scope and subject that says the same, and whether a person has added it.
select f.id, f.category, f.metadata::text, f.confirmed, exists (
    select from hitherto.fact_event e where e.tenant = f.tenant and e.fact = f.id and e.did = 'added' offset 0)
from hitherto.fact f
where f.tenant = %(tenant)s and f.user_id = %(user)s and f.agent = %(agent)s and f.subject = %(subject)s
  and f.fingerprint = %(fingerprint)s and f.state = 'current';

-- name: keep_fact
-- A fact is kept by hand, in a category.
update hitherto.fact
set category = %(category)s, metadata = %(metadata)s, confidence = 1, confirmed = true, version = version + 1,
    updated_at = greatest(clock_timestamp(), updated_at)
where tenant = %(tenant)s and id = %(id)s;

-- name: edit_fact
-- A fact reads otherwise, and is confirmed. Where its content is another one, it is indexed anew.
update hitherto.fact
set category = %(category)s, content = %(content)s, fingerprint = %(fingerprint)s, tokens = %(tokens)s,
    metadata = %(metadata)s, length = %(length)s, hashes = %(hashes)s, counts = %(counts)s, confidence = 1, confirmed = true,
    version = version + 1, updated_at = greatest(clock_timestamp(), updated_at),
    space = case when content = %(content)s then space end, code = case when content = %(content)s then code end,
    indexed = indexed and content = %(content)s
where tenant = %(tenant)s and id = %(id)s;

-- name: confirm_fact
-- A fact is confirmed.
update hitherto.fact
set confidence = 1, confirmed = true, version = version + 1, updated_at = greatest(clock_timestamp(), updated_at)
where tenant = %(tenant)s and id = %(id)s;

-- name: restore_fact
-- A fact holds again, for its owner alone, and is confirmed and indexed anew.
update hitherto.fact
set state = 'current', visibility = 'private', ended_at = null, superseded_by = null, confidence = 1, confirmed = true, indexed = false,
    version = version + 1, updated_at = greatest(clock_timestamp(), updated_at)
where tenant = %(tenant)s and id = %(id)s;

-- name: show_fact
-- A fact is shared, or shared no more.
update hitherto.fact
set visibility = %(visibility)s, version = version + 1, updated_at = greatest(clock_timestamp(), updated_at)
where tenant = %(tenant)s and id = %(id)s;

-- name: blank_fact
-- Of a fact nothing is left but its number, its category and its dates; nor of what it was.
with now as materialized (
    select clock_timestamp() as at
), events as (
    update hitherto.fact_event set content = '' where tenant = %(tenant)s and fact = %(id)s
), evidence as (
    delete from hitherto.fact_evidence where tenant = %(tenant)s and fact = %(id)s
)
update hitherto.fact
set state = 'deleted', content = '', fingerprint = '', metadata = '{}', tokens = 0, length = 0, hashes = '', counts = '',
    space = null, code = null, indexed = false, version = version + 1, updated_at = greatest(now.at, updated_at),
    ended_at = coalesce(ended_at, greatest(now.at, updated_at))
from now
where tenant = %(tenant)s and id = %(id)s;

-- name: note_fact
-- What happened to a fact, and how it reads from now on.
insert into hitherto.fact_event (tenant, fact, no, did, at, by_user, version, category, content, visibility)
select f.tenant, f.id,
       coalesce((select max(e.no) from hitherto.fact_event e where e.tenant = f.tenant and e.fact = f.id), 0) + 1,
       %(did)s, f.updated_at, %(user)s, f.version, f.category, f.content, f.visibility
from hitherto.fact f
where f.tenant = %(tenant)s and f.id = %(id)s;
