-- Facts in a unit of work: learned, and withdrawn or erased with the messages that they rest on. The caller has locked
-- the subjects, the facts and, where entries are deleted, the scope's index. Each statement sees what the one before
-- has written.

-- part: note_facts
-- Adds to the history of each of these facts what was done, by whom, and how it reads from now on.
insert into hitherto.fact_event (tenant, fact, no, action, at, by_user, version, category, content, visibility)
select f.tenant, f.id,
       coalesce((select max(e.no) from hitherto.fact_event e where e.tenant = %(tenant)s and e.fact = f.id), 0) + 1,
       f.action, f.at, f.by_user, f.version, f.category, f.content, f.visibility
from

-- name: hold_fact_subjects
-- Lock the subjects with facts that rest on messages of these ranges, by id: everybody who locks several does so in
-- this order.
select b.subject from hitherto.fact_subject b
where b.tenant = %(tenant)s and b.user_id = %(user)s and b.agent = %(agent)s and b.subject = any(array(
    select distinct f.subject
    from unnest(%(firsts)b::bigint[], %(lasts)b::bigint[]) as r (first, last)
    cross join lateral (
        select e.fact from hitherto.fact_evidence e
        where e.tenant = %(tenant)s and e.conversation = %(ref)s and e.seq between r.first and r.last offset 0
    ) e
    cross join lateral (
        select f.subject from hitherto.fact f where f.tenant = %(tenant)s and f.id = e.fact limit 1
    ) f))
order by b.subject
for no key update;

-- name: hold_facts
-- Lock facts by id, the order in which everybody locks several: those that rest on messages of these ranges, with all
-- that these have superseded; and of the subject those with these ids, fingerprints or categories, or in the category
-- of one of `categories_of`.
with recursive resting (id) as (
    select e.fact
    from unnest(%(firsts)b::bigint[], %(lasts)b::bigint[]) as r (first, last)
    cross join lateral (
        select e.fact from hitherto.fact_evidence e
        where e.tenant = %(tenant)s and e.conversation = %(ref)s and e.seq between r.first and r.last offset 0
    ) e
    union
    select f.id from resting r
    cross join lateral (
        select f.id from hitherto.fact f
        where f.tenant = %(tenant)s and f.superseded_by = r.id offset 0
    ) f
)
select id from hitherto.fact
where tenant = %(tenant)s and id = any(array(
    select id from resting
    union
    select f.id
    from unnest(%(facts)s::bigint[]) as n (id)
    cross join lateral (
        select f.id from hitherto.fact f
        where f.tenant = %(tenant)s and f.id = n.id and f.user_id = %(user)s and f.agent = %(agent)s
          and f.subject = %(subject)s limit 1
    ) f
    union
    select f.id
    from unnest(%(fingerprints)s::text[]) as n (fingerprint)
    cross join lateral (
        select f.id from hitherto.fact f
        where f.tenant = %(tenant)s and f.user_id = %(user)s and f.agent = %(agent)s and f.subject = %(subject)s
          and f.fingerprint = n.fingerprint and f.state = 'current' limit 1
    ) f
    union
    select f.id from hitherto.fact f
    where f.tenant = %(tenant)s and f.user_id = %(user)s and f.agent = %(agent)s and f.subject = %(subject)s
      and f.state = 'current'
      and cardinality(%(categories)s::text[]) + cardinality(%(categories_of)s::bigint[]) > 0 and f.category = any(array(
          select unnest(%(categories)s::text[])
          union
          select o.category
          from unnest(%(categories_of)s::bigint[]) as n (id)
          cross join lateral (select * from hitherto.fact o where o.tenant = %(tenant)s and o.id = n.id limit 1) o
          where o.user_id = %(user)s and o.agent = %(agent)s and o.subject = %(subject)s))))
order by id
for no key update;

-- name: learn_fact
-- Insert a fact, with the messages that say it. If the subject has it already, it was said again, unless all these
-- messages are its evidence already. The message `coming` may be one that is appended next. Returns its id, and whether
-- it is new.
with now as materialized (
    select hitherto.clock(%(now)s) as at
), made as (
    insert into hitherto.fact (tenant, user_id, agent, subject, category, content, fingerprint, confidence, confirmed,
        metadata, tokens, length, hashes, counts, extracted_at, updated_at)
    select %(tenant)s, %(user)s, %(agent)s, %(subject)s, %(category)s, %(content)s, %(fingerprint)s, %(confidence)s,
           %(by)s::text is not null, %(metadata)s, %(tokens)s, %(length)s, %(hashes)s, %(counts)s, now.at, now.at
    from now
    on conflict (tenant, user_id, agent, subject, fingerprint) where state = 'current' do nothing
    returning tenant, id, version, category, content, visibility, updated_at as at
), there as (
    select f.tenant, f.id, f.version, f.category, f.content, f.visibility, greatest(now.at, f.updated_at) as at
    from hitherto.fact f, now
    where f.tenant = %(tenant)s and f.user_id = %(user)s and f.agent = %(agent)s and f.subject = %(subject)s
      and f.fingerprint = %(fingerprint)s and f.state = 'current'
), fact as (
    select true as new, * from made
    union all
    select false, * from there where not exists (select 1 from made)
), evidence as (
    insert into hitherto.fact_evidence (tenant, fact, conversation, seq, said_at)
    select f.tenant, f.id, m.conversation, m.seq, m.said_at
    from fact f
    cross join unnest(%(seqs)s::bigint[]) as s (seq)
    cross join lateral (
        (select conversation, seq, coalesce(said_at, created_at) as said_at from hitherto.message m
         where m.tenant = %(tenant)s and m.conversation = %(ref)s and m.seq = s.seq limit 1)
        union all
        select %(ref)s::bigint, s.seq, now.at from now where s.seq = %(coming)s::bigint
    ) m
    on conflict (tenant, fact, conversation, seq) do nothing
    returning fact
), again as (
    update hitherto.fact f set repeated = f.repeated + 1, updated_at = t.at
    from there t
    where f.tenant = %(tenant)s and f.id = t.id and not exists (select 1 from made) and exists (select 1 from evidence)
), events as (
    {note_facts} (
        select *, case when new or %(action)s = 'remembered' then %(action)s else 'repeated' end as action, %(by)s as by_user
        from fact where new or exists (select 1 from evidence)
    ) f
    returning fact
)
select id, new from fact;

-- name: remembered
-- How many facts the agent has remembered of a message, and how many in the last 24 hours.
with now as materialized (
    select hitherto.clock() - interval '24 hours' as since
)
select (
    select count(*) from hitherto.fact_evidence v
    where v.tenant = %(tenant)s and v.conversation = %(ref)s and v.seq = %(seq)s and exists (
        select 1 from hitherto.fact_event e
        where e.tenant = %(tenant)s and e.fact = v.fact and e.action = 'remembered' offset 0)
), (
    select count(*) from hitherto.fact f
    where f.tenant = %(tenant)s and f.user_id = %(user)s and f.agent = %(agent)s and f.updated_at > now.since and exists (
        select 1 from hitherto.fact_event e
        where e.tenant = %(tenant)s and e.fact = f.id and e.action = 'remembered' and e.at > now.since offset 0)
)
from now;

-- name: forgettings
-- How often an agent was asked to forget in a turn, and in the last 24 hours.
select (
    select count(*) from hitherto.forgetting g
    where g.tenant = %(tenant)s and g.conversation = %(ref)s and g.turn = %(turn)s
), (
    -- Forks have copies.
    select count(distinct (g.turn, g.seq, g.at)) from hitherto.forgetting g
    where g.tenant = %(tenant)s and g.user_id = %(user)s and g.agent = %(agent)s
      and g.at > hitherto.clock() - interval '24 hours'
);

-- name: note_forgetting
-- An agent is asked to forget in a turn, which may be one that begins next. (The conversation may have been made for it.)
with c as (
    update hitherto.conversation set private = %(private)s
    where tenant = %(tenant)s and ref = %(ref)s and private <> %(private)s
)
insert into hitherto.forgetting (tenant, conversation, turn, seq, at, user_id, agent)
values (%(tenant)s, %(ref)s, %(turn)s, %(seq)s, hitherto.clock(), %(user)s, %(agent)s);

-- name: asked_to_forget
-- The messages from `first` to `last` of the turns in which an agent was asked to forget.
select m.seq from hitherto.message m
where m.tenant = %(tenant)s and m.conversation = %(ref)s and m.seq between %(first)s and %(last)s and {forgetting}
order by m.seq;

-- name: drop_forgettings
-- The turn that was to begin next does not come: something was taken back.
delete from hitherto.forgetting where tenant = %(tenant)s and conversation = %(ref)s and seq >= %(next_seq)s;

-- name: facts_to_forget
-- One of the scope's own facts, behind what goes with it: those about its subject that are worded alike, what all of these
-- had replaced, and what is worded like that and has ended too.
with recursive own as materialized (
    select id, subject, fingerprint, state, superseded_by from hitherto.fact
    where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s
), gone (id, subject, fingerprint) as (
    select id, subject, fingerprint from own where id = %(id)s
    union
    select o.id, o.subject, o.fingerprint from gone g
    cross join own o
    where o.superseded_by = g.id
       or o.subject = g.subject and o.fingerprint = g.fingerprint
          and (g.id = %(id)s or o.state in ('superseded', 'withdrawn'))
)
select g.id from gone g where g.id in (select id from own where state <> 'deleted') order by g.id = %(id)s, g.id;

-- name: note_mentions
-- Messages that may mention a fact of the scope's own which is to be forgotten.
insert into hitherto.fact_evidence (tenant, fact, conversation, seq, said_at, retracted, mention)
select %(tenant)s, f.id, c.ref, m.seq, m.said_at, true, true
from unnest(%(names)s::text[], %(seqs)s::bigint[]) as n (name, seq)
cross join lateral (
    select id from hitherto.fact f
    where f.tenant = %(tenant)s and f.id = %(id)s and f.user_id = %(user)s and f.agent = %(agent)s limit 1
) f
cross join lateral (
    select ref from hitherto.conversation c
    where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = n.name limit 1
) c
cross join lateral (
    select seq, coalesce(said_at, created_at) as said_at from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq = n.seq limit 1
) m
on conflict (tenant, fact, conversation, seq) do nothing
returning fact;

-- name: forgotten
-- The messages from `first` to `last` of which an agent had remembered a fact that was deleted, and those of turns in
-- which it was asked to forget one.
select distinct v.seq
from hitherto.fact_evidence v
cross join lateral (
    select state from hitherto.fact f
    where f.tenant = %(tenant)s and f.id = v.fact and f.user_id = %(user)s and f.agent = %(agent)s limit 1
) f
where v.tenant = %(tenant)s and v.conversation = %(ref)s and v.seq between %(first)s and %(last)s and f.state = 'deleted'
union
select m.seq from hitherto.message m
where m.tenant = %(tenant)s and m.conversation = %(ref)s and m.seq between %(first)s and %(last)s and {forgetting}
order by seq;

-- name: repeat_fact
-- A fact of the subject was said again, unless all these messages are its evidence already; it gets another category,
-- if one is given. Returns its fingerprint and its category; nothing if it was not said again.
with there as (
    select tenant, id, version + other::integer as version, coalesce(%(category)s::text, category) as category,
           case when other then '{}' else metadata end as metadata, content, fingerprint, visibility,
           greatest(hitherto.clock(), updated_at) as at
    from (
        select *, coalesce(category <> %(category)s::text, false) as other
        from hitherto.fact f where f.tenant = %(tenant)s and f.id = %(id)s limit 1
    ) f
    where user_id = %(user)s and agent = %(agent)s and subject = %(subject)s and state = 'current'
), evidence as (
    insert into hitherto.fact_evidence (tenant, fact, conversation, seq, said_at)
    select f.tenant, f.id, m.conversation, m.seq, m.said_at
    from there f
    cross join unnest(%(seqs)s::bigint[]) as s (seq)
    cross join lateral (
        select conversation, seq, coalesce(said_at, created_at) as said_at from hitherto.message m
        where m.tenant = %(tenant)s and m.conversation = %(ref)s and m.seq = s.seq limit 1
    ) m
    on conflict (tenant, fact, conversation, seq) do nothing
    returning fact
), again as (
    update hitherto.fact f
    set repeated = f.repeated + 1, confidence = %(confidence)s, category = t.category, metadata = t.metadata,
        version = t.version, updated_at = t.at
    from there t where f.tenant = %(tenant)s and f.id = t.id and exists (select 1 from evidence)
), events as (
    {note_facts} (select *, 'repeated' as action, null as by_user from there where exists (select 1 from evidence)) f
    returning fact
)
select fingerprint, category from there where exists (select 1 from evidence);

-- name: say_in_relatives
-- What these messages say about the subject, they say in the relatives that have them too. One that is being written
-- meanwhile is passed over: nothing waits for another conversation here.
insert into hitherto.fact_evidence (tenant, fact, conversation, seq, said_at, retracted)
select f.tenant, f.id, m.conversation, m.seq, e.said_at, m.retracted_rev is not null
from (select %(ref)s::bigint as ref) c
cross join lateral ({relatives}) k
cross join lateral (
    select ref from hitherto.conversation h
    where h.tenant = %(tenant)s and h.ref = k.ref and not h.private limit 1 for key share skip locked
) h
cross join unnest(%(seqs)s::bigint[]) as s (seq)
cross join lateral (
    select conversation, seq, retracted_rev from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = h.ref and m.seq = s.seq and not m.erased limit 1 for share skip locked
) m
cross join lateral (
    select fact, said_at from hitherto.fact_evidence e
    where e.tenant = %(tenant)s and e.conversation = c.ref and e.seq = s.seq and not e.mention offset 0
) e
cross join lateral (
    select tenant, id from hitherto.fact f
    where f.tenant = %(tenant)s and f.id = e.fact and f.user_id = %(user)s and f.agent = %(agent)s and f.subject = %(subject)s
      and f.state <> 'deleted' limit 1
) f
where k.through >= s.seq
on conflict (tenant, fact, conversation, seq) do nothing
returning fact;

-- name: facts_left
-- Which of these facts are there, and not deleted.
select f.id from unnest(%(ids)s::bigint[]) as n (id)
cross join lateral (
    select id, state from hitherto.fact f
    where f.tenant = %(tenant)s and f.id = n.id and f.user_id = %(user)s and f.agent = %(agent)s limit 1
) f
where f.state <> 'deleted';

-- name: supersede_facts
-- Supersede facts of the subject by the one with this fingerprint; with `single_valued`, all others of its category
-- too. Deletes their entries.
with successor as (
    select id from hitherto.fact
    where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and subject = %(subject)s
      and fingerprint = %(fingerprint)s and state = 'current'
), now as materialized (
    select hitherto.clock() as at
), ending as (
    select f.id
    from unnest(%(facts)s::bigint[]) as n (id)
    cross join lateral (select * from hitherto.fact f where f.tenant = %(tenant)s and f.id = n.id limit 1) f
    where f.user_id = %(user)s and f.agent = %(agent)s and f.subject = %(subject)s and f.state = 'current'
    union
    select f.id from hitherto.fact f
    where %(single_valued)s and f.tenant = %(tenant)s and f.user_id = %(user)s and f.agent = %(agent)s and f.subject = %(subject)s
      and f.state = 'current' and f.category = %(category)s
), ended as (
    update hitherto.fact f
    set state = 'superseded', superseded_by = s.id, ended_at = greatest(now.at, f.updated_at),
        updated_at = greatest(now.at, f.updated_at), indexed = false, space = null, code = null
    from successor s, now
    where f.tenant = %(tenant)s and f.id = any(array(select id from ending)) and f.id <> s.id
    returning f.tenant, f.id, f.version, f.category, f.content, f.visibility, f.updated_at as at
), events as (
    {note_facts} (select *, 'superseded' as action, %(by)s as by_user from ended) f
    returning no
), gone as (
    delete from hitherto.search_entry
    where tenant = %(tenant)s and kind = 4 and origin = any(array(select id from ended))
    returning scope, no
), {unindexed}
select 1;

-- name: withdraw_facts
-- Messages of these ranges were retracted, and are no evidence any more. Withdraw the current facts that nobody
-- confirmed and that have no other evidence, and delete their entries.
with lost as materialized (
    select e.fact, e.seq
    from unnest(%(firsts)b::bigint[], %(lasts)b::bigint[]) as r (first, last)
    cross join lateral (
        select e.fact, e.seq from hitherto.fact_evidence e
        where e.tenant = %(tenant)s and e.conversation = %(ref)s and e.seq between r.first and r.last and not e.retracted
        offset 0
    ) e
), evidence as (
    update hitherto.fact_evidence set retracted = true
    where tenant = %(tenant)s and conversation = %(ref)s and seq = any(array(select seq from lost))
), ending as (
    select f.id
    from (select distinct fact from lost) l
    cross join lateral (
        select id, state, confirmed from hitherto.fact f
        where f.tenant = %(tenant)s and f.id = l.fact and f.user_id = %(user)s and f.agent = %(agent)s limit 1
    ) f
    where f.state = 'current' and not f.confirmed and not exists (
        select 1 from hitherto.fact_evidence o
        where o.tenant = %(tenant)s and o.fact = f.id and not o.retracted
          and not (o.conversation = %(ref)s and o.seq = any(array(select seq from lost)))
        offset 0)
), now as materialized (
    select hitherto.clock() as at
), ended as (
    update hitherto.fact f
    set state = 'withdrawn', ended_at = greatest(now.at, f.updated_at), updated_at = greatest(now.at, f.updated_at),
        indexed = false, space = null, code = null
    from now
    where f.tenant = %(tenant)s and f.id = any(array(select id from ending))
    returning f.tenant, f.id, f.version, f.category, f.content, f.visibility, f.updated_at as at
), events as (
    {note_facts} (select *, 'withdrawn' as action, null as by_user from ended) f
    returning no
), gone as (
    delete from hitherto.search_entry
    where tenant = %(tenant)s and kind = 4 and origin = any(array(select id from ended))
    returning scope, no
), {unindexed}
select 1;

-- name: restore_replaced
-- Restore, as private, what was superseded by facts that are withdrawn with these messages: of several that say the
-- same the newest, and none that says what a current one says. A fact whose messages are all retracted, and that nobody
-- confirmed, is passed over for those that it had superseded itself.
with recursive gone (id) as (
    select f.id
    from unnest(%(firsts)b::bigint[], %(lasts)b::bigint[]) as r (first, last)
    cross join lateral (
        select e.fact from hitherto.fact_evidence e
        where e.tenant = %(tenant)s and e.conversation = %(ref)s and e.seq between r.first and r.last offset 0
    ) e
    cross join lateral (
        select id, state from hitherto.fact f
        where f.tenant = %(tenant)s and f.id = e.fact and f.user_id = %(user)s and f.agent = %(agent)s limit 1
    ) f
    where f.state = 'withdrawn'
    union
    select f.id
    from gone g
    cross join lateral (
        select id, state, confirmed from hitherto.fact f where f.tenant = %(tenant)s and f.superseded_by = g.id offset 0
    ) f
    cross join lateral (
        select count(*) as rows, count(*) filter (where not o.retracted) as live
        from hitherto.fact_evidence o where o.tenant = %(tenant)s and o.fact = f.id
    ) o
    where f.state = 'superseded' and not f.confirmed and o.rows > 0 and o.live = 0
), back as (
    select distinct on (f.subject, f.fingerprint) f.id
    from gone g
    cross join lateral (
        select * from hitherto.fact f where f.tenant = %(tenant)s and f.superseded_by = g.id offset 0
    ) f
    where f.state = 'superseded' and f.id not in (select id from gone) and not exists (
        select 1 from hitherto.fact o
        where o.tenant = %(tenant)s and o.user_id = f.user_id and o.agent = f.agent and o.subject = f.subject
          and o.fingerprint = f.fingerprint and o.state = 'current' offset 0)
    order by f.subject, f.fingerprint, f.id desc
), restored as (
    update hitherto.fact f
    set state = 'current', visibility = 'private', ended_at = null, version = f.version + 1,
        updated_at = greatest(hitherto.clock(), f.updated_at)
    where f.tenant = %(tenant)s and f.id = any(array(select id from back))
    returning f.tenant, f.id, f.version, f.category, f.content, f.visibility, f.updated_at as at
)
{note_facts} (select *, 'restored' as action, null as by_user from restored) f
returning no;

-- name: return_facts
-- Messages of these ranges are shown again, and are evidence again. Facts that were withdrawn with them hold again, unless
-- a current one says the same; what such a fact had superseded, and held without it, is superseded again.
with back as materialized (
    select e.fact, e.seq
    from unnest(%(firsts)b::bigint[], %(lasts)b::bigint[]) as r (first, last)
    cross join lateral (
        select e.fact, e.seq from hitherto.fact_evidence e
        where e.tenant = %(tenant)s and e.conversation = %(ref)s and e.seq between r.first and r.last and e.retracted
          and not e.mention offset 0
    ) e
), evidence as (
    update hitherto.fact_evidence set retracted = false
    where tenant = %(tenant)s and conversation = %(ref)s and seq = any(array(select seq from back)) and not mention
), coming as (
    select distinct on (f.subject, f.fingerprint) f.id
    from (select distinct fact from back) b
    cross join lateral (
        select * from hitherto.fact f
        where f.tenant = %(tenant)s and f.id = b.fact and f.user_id = %(user)s and f.agent = %(agent)s limit 1
    ) f
    where f.state = 'withdrawn' and not exists (
        select 1 from hitherto.fact o
        where o.tenant = %(tenant)s and o.user_id = f.user_id and o.agent = f.agent and o.subject = f.subject
          and o.fingerprint = f.fingerprint and o.state = 'current' offset 0)
    order by f.subject, f.fingerprint, f.id desc
), now as materialized (
    select hitherto.clock() as at
), returned as (
    update hitherto.fact f
    set state = 'current', ended_at = null, version = f.version + 1, updated_at = greatest(now.at, f.updated_at)
    from now
    where f.tenant = %(tenant)s and f.id = any(array(select id from coming))
    returning f.tenant, f.id, f.version, f.category, f.content, f.visibility, f.updated_at as at
), ended as (
    update hitherto.fact f
    set state = 'superseded', ended_at = greatest(now.at, f.updated_at), updated_at = greatest(now.at, f.updated_at),
        indexed = false, space = null, code = null
    from now
    where f.tenant = %(tenant)s and f.superseded_by = any(array(select id from coming)) and f.state = 'current'
    returning f.tenant, f.id, f.version, f.category, f.content, f.visibility, f.updated_at as at
), events as (
    {note_facts} (
        select 'restored' as action, null as by_user, * from returned
        union all select 'superseded', null, * from ended
    ) f
    returning no
), gone as (
    delete from hitherto.search_entry
    where tenant = %(tenant)s and kind = 4 and origin = any(array(select id from ended))
    returning scope, no
), {unindexed}
select 1;

-- name: erase_facts
-- Messages of these ranges are erased, retracted ones too. Of the facts that any of them says and no other live message
-- does, delete those that nobody confirmed (with `confirmed`: that were not added by hand; with `keep`: none), with their
-- entries. The others of these keep no earlier content that differs from the present one (unless `history` says so).
with lost as materialized (
    select e.fact, e.seq, e.mention
    from unnest(%(firsts)b::bigint[], %(lasts)b::bigint[]) as r (first, last)
    cross join lateral (
        select e.fact, e.seq, e.mention from hitherto.fact_evidence e
        where e.tenant = %(tenant)s and e.conversation = %(ref)s and e.seq between r.first and r.last offset 0
    ) e
), evidence as (
    delete from hitherto.fact_evidence
    where tenant = %(tenant)s and conversation = %(ref)s and seq = any(array(select seq from lost))
), unstated as materialized (
    select f.id, f.content, not %(keep)s and case when %(confirmed)s then not exists (
               select 1 from hitherto.fact_event e
               where e.tenant = %(tenant)s and e.fact = f.id and e.action = 'added' offset 0)
           else not f.confirmed end as goes
    from (select distinct fact from lost where not mention) l
    cross join lateral (
        select id, content, confirmed from hitherto.fact f
        where f.tenant = %(tenant)s and f.id = l.fact and f.user_id = %(user)s and f.agent = %(agent)s limit 1
    ) f
    where not exists (
        select 1 from hitherto.fact_evidence o
        where o.tenant = %(tenant)s and o.fact = f.id and not o.retracted
          and not (o.conversation = %(ref)s and o.seq = any(array(select seq from lost)))
        offset 0)
), history as (
    update hitherto.fact_event e set content = ''
    where e.tenant = %(tenant)s and e.fact = any(array(select id from unstated where not goes and not %(history)s))
      and e.content <> (select u.content from unstated u where u.id = e.fact)
), erased as (
    delete from hitherto.fact f where f.tenant = %(tenant)s and f.id = any(array(select id from unstated where goes))
    returning f.id
), orphaned as (
    update hitherto.fact f set superseded_by = null
    where f.tenant = %(tenant)s and f.superseded_by = any(array(select id from unstated where goes))
      and f.id <> all(array(select id from unstated where goes))
), gone as (
    delete from hitherto.search_entry
    where tenant = %(tenant)s and kind = 4 and origin = any(array(select id from erased))
    returning scope, no
), {unindexed}
select 1;

-- name: unindex_fact
-- Delete the entry of a fact.
with gone as (
    delete from hitherto.search_entry
    where tenant = %(tenant)s and kind = 4 and origin = %(id)s
    returning scope, no
), {unindexed}
select 1;
