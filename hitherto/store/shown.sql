-- Parts of statements: what may be shown to others of what rests on messages, which is nothing that rests on one whose time has
-- come, whether it is erased yet or not. Whatever shows digests, documents or facts beside their own conversation takes them
-- from here; so do the views of other systems.

-- part: expiring_conversations
-- Conversations of which messages wait to be erased.
select 1 from hitherto.conversation x where x.tenant = %(tenant)s and x.next_expiry <= statement_timestamp() offset 0

-- part: forgetting
-- Whether the message `m` was said in a turn in which an agent was asked to forget something, which it may well name; or in
-- one of those beside it that got one answer with it: at their beginnings, agents had said equally much. (At most nine, so
-- that few are looked at.)
exists (
    select 1 from hitherto.forgetting g
    where g.tenant = %(tenant)s and g.conversation = m.conversation
      and g.turn between m.sum_turns - 9 and m.sum_turns + 9 and (g.turn = m.sum_turns or (
        select count(*) > 1 and min(o.sum_dialogue - o.sum_turns) = max(o.sum_dialogue - o.sum_turns)
        from hitherto.message o
        where o.tenant = %(tenant)s and o.conversation = m.conversation and o.sum_turns in (g.turn, m.sum_turns)
          and o.kind = 'text' and o.role = 'user' and o.retracted_rev is null))
      and not exists (
        select 1 from hitherto.message o
        where o.tenant = %(tenant)s and o.conversation = m.conversation and o.seq = g.seq and o.retracted_rev is not null offset 0)
    offset 0)

-- part: standing_summary
-- The summary that stands for the conversation `c`.
select s.* from hitherto.digest s
where s.tenant = %(tenant)s and s.conversation = c.ref and s.action = 'summarize' and s.visible_rev is not null
  and s.hidden_rev is null and s.end_seq >= c.view_start
order by s.end_seq desc, s.id desc limit 1

-- part: summary
-- That summary, if it may be shown, and how many of the messages that it covers are the user's or final answers.
select s.text as summary,
       coalesce((select m.sum_dialogue from hitherto.message m
                 where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq <= s.end_seq and m.retracted_rev is null
                 order by m.seq desc limit 1), 0)
       - coalesce((select m.sum_dialogue from hitherto.message m
                   where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq < s.start_seq and m.retracted_rev is null
                   order by m.seq desc limit 1), 0) as summarized_count
from ({standing_summary}) s
where not hitherto.expiring(c.next_expiry)

-- part: opening
-- The beginning of the first user message that the conversation `c` shows: its title, where it was given none.
select left(m.text, 300) from hitherto.message m
where m.tenant = %(tenant)s and m.conversation = c.ref and m.sum_turns > c.view_turns and m.kind = 'text'
  and m.role = 'user' and m.retracted_rev is null and not m.erased
  and (m.expires_at is null or m.expires_at > statement_timestamp()) and not {forgetting}
order by m.sum_turns limit 1

-- part: live_digests
-- Digests that views use now, each with its conversation: the standing summary, and every chunk.
select d.id, d.conversation, d.stage, d.action, d.start_seq, d.end_seq, d.text, d.indexed, d.fired_rev, d.created_at,
       c.id as conversation_id, c.user_id, c.agent, c.subject, c.title as conversation_title, c.private, c.next_expiry
from hitherto.digest d
cross join lateral (
    select * from hitherto.conversation c where c.tenant = %(tenant)s and c.ref = d.conversation limit 1
) c
where d.tenant = %(tenant)s and d.action in ('summarize', 'chunk') and d.status = 'completed' and d.visible_rev is not null
  and d.hidden_rev is null and d.end_seq >= c.view_start
  and (d.action = 'chunk' or d.id = (select s.id from ({standing_summary}) s))

-- part: shown_digests
-- Those of them that may be shown.
select * from ({live_digests}) d where not hitherto.expiring(d.next_expiry)

-- part: shown_documents
-- Documents that may be shown, each with the conversation it was archived from.
select d.*, c.id as conversation_id, c.subject, coalesce(c.private, false) as private
from hitherto.document d
left join lateral (
    select id, subject, private, next_expiry from hitherto.conversation c
    where c.tenant = %(tenant)s and c.ref = d.conversation limit 1
) c on true
where d.tenant = %(tenant)s and not hitherto.expiring(c.next_expiry)

-- part: offset_of_document
-- The zone of the last message that a document was archived from.
select said_offset from hitherto.message m
where m.tenant = %(tenant)s and m.conversation = d.conversation and m.seq = d.end_seq limit 1

-- part: offset_of_fact
-- The zone of the newest message that says a fact.
select m.said_offset
from (
    select conversation, seq from hitherto.fact_evidence e
    where e.tenant = %(tenant)s and e.fact = f.id and not e.retracted order by e.said_at desc limit 1
) e
cross join lateral (
    select said_offset from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = e.conversation and m.seq = e.seq limit 1
) m

-- part: time_of_fact
-- When the newest message was said that says a fact; without one, when the fact was added.
coalesce((
    select max(e.said_at) from hitherto.fact_evidence e
    where e.tenant = %(tenant)s and e.fact = f.id and not e.retracted), f.extracted_at)

-- part: shown_facts
-- Facts that may be shown: a person confirmed it, or a message says it whose time has not come. One that lost all its messages
-- with their conversation stays too. (As subqueries of one row, so that no plan goes through all evidence.)
select f.* from hitherto.fact f
where f.tenant = %(tenant)s and (
    f.confirmed
    or not exists ({expiring_conversations})
    or (select true from hitherto.fact_evidence e
        where e.tenant = %(tenant)s and e.fact = f.id and not e.retracted limit 1) is null
    or (select true from hitherto.fact_evidence e
        left join lateral (
            select expires_at from hitherto.message m
            where m.tenant = %(tenant)s and m.conversation = e.conversation and m.seq = e.seq limit 1
        ) m on true
        where e.tenant = %(tenant)s and e.fact = f.id and not e.retracted
          and (m.expires_at is null or m.expires_at > statement_timestamp()) limit 1))

-- part: shared_facts
-- The facts about the subject of `about` that others share with a user of an agent. Only what is current is shared, nothing that
-- is about its owner, and only among members. Every statement that shows facts of others takes them from here. (`is true` keeps
-- the planner from going through all facts of each member: what is shared is read in order, from its own index.)
select f.* from ({shown_facts}) f
where f.subject = about.subject and f.subject <> '' and f.agent = %(agent)s and f.state = 'current' and f.visibility = 'shared'
  and f.user_id <> %(user)s
  and (f.user_id in (
      select m.user_id from hitherto.subject_member m where m.tenant = %(tenant)s and m.subject = about.subject)) is true
  and exists (
      select 1 from hitherto.subject_member m
      where m.tenant = %(tenant)s and m.user_id = %(user)s and m.subject = about.subject)

-- part: unindexed
-- What goes with the entries `gone` of one scope: their vectors; and what stands in segments is to be put in order later.
-- Looked up by arrays and not joined: a planner that takes them for many would read all vectors there are.
vectors as (
    delete from hitherto.search_vector v
    where v.tenant = %(tenant)s and v.scope = (select scope from gone limit 1)
      and v.space = any(array(select id from hitherto.search_space)) and v.no = any(array(select no from gone))
), segments as (
    update hitherto.search_segment g set stale = true
    where g.tenant = %(tenant)s and g.scope = (select scope from gone limit 1)
      and g.segment = any(array(select distinct (no / 4096)::integer from gone))
), scopes as (
    update hitherto.search_scope s set stale = true
    where s.tenant = %(tenant)s and s.ref = (select scope from gone limit 1) and s.packed > (select min(no) from gone)
)
