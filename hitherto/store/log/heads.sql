-- The head of a conversation (its state), now and at any revision.
--
-- In all of these files, each named block is one statement. Values are bound by name; no statement is glued together.

-- part: named_conversation
select ref from hitherto.conversation
where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s

-- name: lock
-- Lock the conversation until the end of the transaction. A separate statement, so that the statements after it read
-- snapshots that are taken once the lock was granted.
{named_conversation} for no key update;

-- name: hold_digest
-- Lock a digest of the conversation too, so that nobody claims it or puts it off meanwhile.
select id from hitherto.digest where tenant = %(tenant)s and id = %(digest)s for no key update;

-- name: create
-- Insert the conversation's row; nothing if it is there.
insert into hitherto.conversation (tenant, user_id, agent, id, created_at, updated_at, said_at)
values (%(tenant)s, %(user)s, %(agent)s, %(conversation)s, statement_timestamp(), statement_timestamp(), statement_timestamp())
on conflict (tenant, user_id, agent, id) do nothing;

-- name: head
-- The newest head of a conversation, with its standing summary, its digests in progress, its agent's defaults, its
-- time zone, and the digest that was chosen for its instructions. (Here and below, `limit 1` on a look-up by key keeps the planner from
-- another join order, which without statistics may look as cheap to it.)
select c.ref, c.rev, c.messages_rev, c.next_seq, c.tokens, c.turns, c.dialogue, c.results,
       c.view_start, c.view_tokens, c.view_turns, c.view_dialogue, c.view_results,
       c.closed, c.policy::text as policy, c.awaited::text as awaited, c.erased::text as erased, c.next_expiry,
       clock_timestamp() as clock, c.run_start,
       c.late::text as late, c.retracted::text as retracted, c.frontiers::text as frontiers,
       a.policy::text as agent_policy, c.cross_session::text as cross_session, a.cross_session::text as agent_cross_session,
       i.id as latest_digest, i.conversation as latest_conversation, i.text as latest_text,
       d.id as digest, d.start_seq as digest_start, d.end_seq as digest_end, d.text as digest_text,
       d.spec::text as digest_spec, d.tokens as digest_tokens,
       e.sum_tokens as digest_sum_tokens, e.sum_turns as digest_sum_turns, e.sum_dialogue as digest_sum_dialogue,
       e.sum_results as digest_sum_results, c.failures,
       (select json_agg(json_build_object('id', p.id, 'stage', p.stage, 'attempt', p.attempt, 'start', p.start_seq,
                                          'end', p.end_seq, 'created_at', p.created_at, 'action', p.action,
                                          'kept_from', p.kept_from, 'error', p.error, 'claimed', p.claimed))
        from hitherto.digest p
        where p.tenant = %(tenant)s and p.conversation = c.ref and p.status = 'processing')::text as running,
       case when c.resume_at < clock_timestamp() + interval '2 hours' then c.resume_at end as resume_at,
       c.subject, c.private, c.extracted::text as extracted, c.facts_due_at,
       case when c.facts_resume_at < clock_timestamp() + interval '2 hours' then c.facts_resume_at end as facts_resume_at,
       c.updated_at, c.finish_seq, true as present,
       coalesce(c.ttl, a.ttl, t.ttl) as ttl,
       coalesce(z.time_zone, a.time_zone) as time_zone
from hitherto.conversation c
left join lateral (
    select policy, cross_session, ttl, time_zone from hitherto.agent a
    where a.tenant = %(tenant)s and a.agent = c.agent limit 1
) a on true
left join lateral (select ttl from hitherto.agent t where t.tenant = %(tenant)s and t.agent = '' limit 1) t on true
left join lateral (
    select time_zone from hitherto.user_zone z where z.tenant = %(tenant)s and z.user_id = c.user_id limit 1
) z on true
left join lateral (
    select n.id, o.id as conversation, n.text
    from (select * from hitherto.digest n where n.tenant = %(tenant)s and n.id = c.latest_digest limit 1) n
    cross join lateral (
        select id, view_start, user_id, agent, private, next_expiry from hitherto.conversation o
        where o.tenant = %(tenant)s and o.ref = n.conversation limit 1
    ) o
    where n.status = 'completed' and n.end_seq >= o.view_start and o.user_id = c.user_id and o.agent = c.agent and not o.private
      and not hitherto.expiring(o.next_expiry)
) i on true
left join lateral ({standing_summary}) d on true
left join lateral (
    select sum_tokens, sum_turns, sum_dialogue, sum_results from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq <= d.end_seq and m.retracted_rev is null
    order by m.seq desc limit 1
) e on true
where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(conversation)s;

-- name: others
-- Whether the scope has another conversation with messages that is not private, or its user a document.
select exists (
    select 1 from hitherto.conversation
    where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id <> %(conversation)s and next_seq > 0
      and not private
) or exists (
    select 1 from hitherto.document where tenant = %(tenant)s and user_id = %(user)s and agent = ''
);

-- name: open_calls
-- Of some calls, those of the view that have no result.
select o.call_id, o.seq, o.group_seq, o.turn, o.tool
from (
    select ref, view_start from hitherto.conversation
    where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s limit 1
) c
cross join lateral (
    select * from hitherto.open_call o
    where o.tenant = %(tenant)s and o.conversation = c.ref and o.call_hash = any(%(hashes)s) and o.seq >= c.view_start
) o;

-- name: insert_open_calls
-- Calls that wait for their results. One whose id is used again is no longer waited for.
insert into hitherto.open_call (tenant, conversation, call_hash, call_id, seq, group_seq, turn, tool)
select c.tenant, c.ref, o.* from hitherto.conversation c
cross join unnest(%(hashes)s::bytea[], %(ids)s::text[], %(seqs)s::bigint[], %(groups)s::bigint[], %(turns)s::bigint[],
    %(tools)s::text[]) o
where c.tenant = %(tenant)s and c.ref = %(ref)s
on conflict (tenant, conversation, call_hash) do update
set call_id = excluded.call_id, seq = excluded.seq, group_seq = excluded.group_seq, turn = excluded.turn,
    tool = excluded.tool
returning seq;

-- name: close_calls
-- Calls that have their results now.
delete from hitherto.open_call where tenant = %(tenant)s and conversation = %(ref)s and call_hash = any(%(hashes)s);

-- name: forget_open_calls
-- Calls that were made in messages which were taken back. Goes through the open calls of the conversation.
delete from hitherto.open_call
where tenant = %(tenant)s and conversation = %(ref)s and seq <@ %(ranges)s::int8multirange;

-- name: count_awaited
-- Count anew the calls of the newest turns whose results are waited for. Goes through the open calls likewise.
update hitherto.conversation
set awaited = (
    select coalesce(json_agg(json_build_array(t.turn, t.calls) order by t.turn), '[]') from (
        select o.turn, count(*) as calls from hitherto.open_call o
        where o.tenant = %(tenant)s and o.conversation = %(ref)s and o.turn > %(turns)s and o.seq >= %(view_start)s
        group by o.turn
    ) t)
where tenant = %(tenant)s and ref = %(ref)s;

-- part: not_retracted_then
(m.retracted_rev is null or m.retracted_rev > %(at)s)
          and not exists (select 1 from away x where m.seq between x.start_seq and x.end_seq)

-- name: head_at
-- The head as it was at a past revision, as far as message `upto` (null: all of it), read from rows that carry their revisions. Those of messages ascend with seq,
-- so a binary search finds the last message; no digest that was visible then reaches beyond it. Running sums are those
-- of the last message up to a place that was live then. The row of each stage is found by a separate index look-up.
with recursive c as (
    select * from hitherto.conversation
    where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s
      and rev >= %(at)s and not exists (
          select 1 from hitherto.fork f where f.tenant = %(tenant)s and f.conversation = ref and f.rev > %(at)s offset 0)
), away as materialized (
    select x.start_seq, x.end_seq, x.from_rev from c
    join hitherto.absence x on x.tenant = %(tenant)s and x.conversation = c.ref
    where c.switched_rev > %(at)s and x.until_rev > %(at)s and x.from_rev <= %(at)s
), halving (low, high) as (
    select 0::bigint, next_seq from c
    union all
    select case when m.rev <= %(at)s then m.seq + 1 else h.low end, case when m.rev <= %(at)s then h.high else m.seq end
    from halving h cross join c
    cross join lateral (
        select seq, rev from hitherto.message m
        where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq = (h.low + h.high) / 2 limit 1
    ) m
    where h.low < h.high
), bounds as (
    select least(low, %(upto)s::bigint + 1) as next_seq, (
        select coalesce(max(end_seq) + 1, 0) from c
        join hitherto.digest k on k.tenant = %(tenant)s and k.conversation = c.ref
        where k.action = 'clear' and k.visible_rev <= %(at)s and (k.hidden_rev is null or k.hidden_rev > %(at)s)
    ) as view_start
    from halving where low = high
), stages (stage) as (
    (select f.stage from c
     cross join lateral (
         select f.stage from hitherto.digest f
         where f.tenant = %(tenant)s and f.conversation = c.ref and f.action in ('drop', 'redact', 'chunk', 'compact')
           and f.visible_rev is not null
         order by f.stage limit 1
     ) f)
    union all
    select f.stage from stages s cross join c
    cross join lateral (
        select f.stage from hitherto.digest f
        where f.tenant = %(tenant)s and f.conversation = c.ref and f.action in ('drop', 'redact', 'chunk', 'compact')
          and f.visible_rev is not null and f.stage > s.stage
        order by f.stage limit 1
    ) f
), frontiers as (
    select json_object_agg(s.stage, json_build_array(
               f.action, f.start_seq, f.end_seq,
               json_build_array(coalesce(m.sum_tokens, 0), coalesce(m.sum_turns, 0), coalesce(m.sum_dialogue, 0),
                                coalesce(m.sum_results, 0)),
               f.kept_from,
               json_build_array(coalesce(k.sum_tokens, 0), coalesce(k.sum_turns, 0), coalesce(k.sum_dialogue, 0),
                                coalesce(k.sum_results, 0)),
               case when f.action in ('chunk', 'compact') then f.id end, f.family,
               case when f.action = 'compact' then f.tokens else 0 end, f.freed, f.since)) as found
    from stages s cross join c cross join bounds b
    cross join lateral (
        select f.id, f.action, f.start_seq, f.end_seq, coalesce(f.kept_from, f.end_seq + 1) as kept_from, f.family, f.tokens,
               f.freed, f.since
        from hitherto.digest f
        where f.tenant = %(tenant)s and f.conversation = c.ref and f.stage = s.stage
          and f.action in ('drop', 'redact', 'chunk', 'compact') and f.visible_rev is not null
          and f.end_seq between b.view_start and b.next_seq - 1
          and f.visible_rev <= %(at)s and (f.hidden_rev is null or f.hidden_rev > %(at)s)
          and not exists (select 1 from away x where f.end_seq between x.start_seq and x.end_seq)
        order by f.end_seq desc, f.id desc limit 1
    ) f
    left join lateral (
        select sum_tokens, sum_turns, sum_dialogue, sum_results from hitherto.message m
        where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq <= f.end_seq
          and {not_retracted_then}
        order by m.seq desc limit 1
    ) m on true
    left join lateral (
        select sum_tokens, sum_turns, sum_dialogue, sum_results from hitherto.message m
        where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq < f.kept_from
          and {not_retracted_then}
        order by m.seq desc limit 1
    ) k on true
)
select c.ref, %(at)s::bigint as rev, c.messages_rev, b.next_seq,
       coalesce(l.sum_tokens, 0) as tokens, coalesce(l.sum_turns, 0) as turns, coalesce(l.sum_dialogue, 0) as dialogue,
       coalesce(l.sum_results, 0) as results,
       b.view_start,
       coalesce(v.sum_tokens, 0) as view_tokens, coalesce(v.sum_turns, 0) as view_turns,
       coalesce(v.sum_dialogue, 0) as view_dialogue, coalesce(v.sum_results, 0) as view_results,
       coalesce(l.role = 'assistant' and l.kind = 'text', false) as closed, c.policy::text as policy,
       '[]'::text as awaited, c.erased::text as erased, c.next_expiry, clock_timestamp() as clock, c.run_start,
       '[]'::text as late,
       (select coalesce(json_agg(r.one), '[]') from (
            select one from json_array_elements(c.retracted) one
            union all select json_build_array(x.start_seq, x.end_seq, x.from_rev) from away x) r)::text as retracted,
       coalesce(f.found::text, '{}') as frontiers,
       a.policy::text as agent_policy, c.cross_session::text as cross_session, a.cross_session::text as agent_cross_session,
       i.id as latest_digest, i.conversation as latest_conversation, i.text as latest_text,
       d.id as digest, d.start_seq as digest_start, d.end_seq as digest_end, d.text as digest_text,
       d.spec::text as digest_spec, d.tokens as digest_tokens,
       e.sum_tokens as digest_sum_tokens, e.sum_turns as digest_sum_turns, e.sum_dialogue as digest_sum_dialogue,
       e.sum_results as digest_sum_results, 0 as failures, null::text as running, null::timestamptz as resume_at,
       c.subject, c.private, c.extracted::text as extracted, null::timestamptz as facts_due_at,
       null::timestamptz as facts_resume_at, c.updated_at, 0 as finish_seq, false as present,
       coalesce(c.ttl, a.ttl, t.ttl) as ttl,
       coalesce(z.time_zone, a.time_zone) as time_zone
from c
cross join bounds b
cross join frontiers f
left join lateral (
    select sum_tokens, sum_turns, sum_dialogue, sum_results, role, kind from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq < b.next_seq
      and {not_retracted_then}
    order by m.seq desc limit 1
) l on true
left join lateral (
    select sum_tokens, sum_turns, sum_dialogue, sum_results from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq < b.view_start
      and {not_retracted_then}
    order by m.seq desc limit 1
) v on true
left join lateral (
    select policy, cross_session, ttl, time_zone from hitherto.agent a
    where a.tenant = %(tenant)s and a.agent = c.agent limit 1
) a on true
left join lateral (select ttl from hitherto.agent t where t.tenant = %(tenant)s and t.agent = '' limit 1) t on true
left join lateral (
    select time_zone from hitherto.user_zone z where z.tenant = %(tenant)s and z.user_id = c.user_id limit 1
) z on true
left join lateral (
    select n.id, o.id as conversation, n.text
    from (select * from hitherto.digest n where n.tenant = %(tenant)s and n.id = c.latest_digest limit 1) n
    cross join lateral (
        select id, view_start, user_id, agent, private, next_expiry from hitherto.conversation o
        where o.tenant = %(tenant)s and o.ref = n.conversation limit 1
    ) o
    where n.status = 'completed' and n.end_seq >= o.view_start and o.user_id = c.user_id and o.agent = c.agent and not o.private
      and not hitherto.expiring(o.next_expiry)
) i on true
left join lateral (
    select id, start_seq, end_seq, text, spec, tokens from hitherto.digest s
    where s.tenant = %(tenant)s and s.conversation = c.ref and s.action = 'summarize' and s.visible_rev is not null
      and s.visible_rev <= %(at)s and (s.hidden_rev is null or s.hidden_rev > %(at)s)
      and s.end_seq between b.view_start and b.next_seq - 1
      and not exists (select 1 from away x where s.end_seq between x.start_seq and x.end_seq)
    order by s.end_seq desc, s.id desc limit 1
) d on true
left join lateral (
    select sum_tokens, sum_turns, sum_dialogue, sum_results from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq <= d.end_seq
      and {not_retracted_then}
    order by m.seq desc limit 1
) e on true;

-- name: update_conversation
-- The conversation's state after a unit of work.
update hitherto.conversation
set rev = %(rev)s, messages_rev = %(messages_rev)s, next_seq = %(next_seq)s, tokens = %(tokens)s,
    turns = %(turns)s, dialogue = %(dialogue)s, results = %(results)s,
    view_start = %(view_start)s, view_tokens = %(view_tokens)s, view_turns = %(view_turns)s, view_dialogue = %(view_dialogue)s,
    view_results = %(view_results)s, closed = %(closed)s, run_start = %(run_start)s, policy = %(policy)s,
    cross_session = %(cross_session)s, latest_digest = %(latest_digest)s, frontiers = %(frontiers)s,
    awaited = %(awaited)s, late = %(late)s, finish_seq = %(finish_seq)s, failures = %(failures)s, resume_at = %(resume_at)s, erased = %(erased)s,
    next_expiry = %(next_expiry)s, subject = %(subject)s, private = %(private)s, extracted = %(extracted)s,
    facts_due_at = %(facts_due_at)s, facts_resume_at = %(facts_resume_at)s,
    updated_at = coalesce(%(updated_at)s, updated_at), said_at = coalesce(%(said_at)s, said_at)
where tenant = %(tenant)s and ref = %(ref)s;

-- name: describe_conversation
-- Set the title ('' unsets it), the metadata and the time to live, those that are given.
update hitherto.conversation
set title = case when %(title)s::text is null then title else nullif(%(title)s, '') end,
    metadata = coalesce(%(metadata)s::jsonb, metadata), ttl = coalesce(%(ttl)s, ttl)
where tenant = %(tenant)s and ref = %(ref)s;

-- name: note_retracted
-- Record which messages were retracted, and at which revisions.
update hitherto.conversation set retracted = %(retracted)s where tenant = %(tenant)s and ref = %(ref)s;

-- name: note_said
-- Record when the newest message was said that is shown now.
update hitherto.conversation c
set said_at = coalesce((
    select coalesce(m.said_at, m.created_at) from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq >= c.view_start and m.retracted_rev is null and not m.erased
    order by m.seq desc limit 1), c.created_at)
where c.tenant = %(tenant)s and c.ref = %(ref)s;

-- name: note_digested
-- Record when the standing summary was completed.
update hitherto.conversation c
set digested_at = (select s.completed_at from ({standing_summary}) s)
where c.tenant = %(tenant)s and c.ref = %(ref)s;

-- name: defaults
-- The defaults of an agent; '' stands for all agents of the tenant.
select policy::text, cross_session::text, ttl, time_zone from hitherto.agent where tenant = %(tenant)s and agent = %(agent)s;

-- name: set_defaults
-- Set the defaults of an agent, replacing those before.
insert into hitherto.agent (tenant, agent, policy, cross_session, ttl, time_zone, updated_at)
values (%(tenant)s, %(agent)s, %(policy)s, %(cross_session)s, %(ttl)s, %(time_zone)s, clock_timestamp())
on conflict (tenant, agent) do update
set policy = excluded.policy, cross_session = excluded.cross_session, ttl = excluded.ttl,
    time_zone = excluded.time_zone, updated_at = excluded.updated_at;

-- name: zone
-- The time zone of a scope: its user's, else its agent's.
select time_zone
from (
    select 1 as nth, time_zone from hitherto.user_zone where tenant = %(tenant)s and user_id = %(user)s
    union all
    select 2, time_zone from hitherto.agent where tenant = %(tenant)s and agent = %(agent)s
) z
where time_zone is not null order by nth limit 1;

-- name: user_zone
-- The time zone of a user.
select time_zone from hitherto.user_zone where tenant = %(tenant)s and user_id = %(user)s;

-- name: unset_user_zone
-- Set none.
delete from hitherto.user_zone where tenant = %(tenant)s and user_id = %(user)s;

-- name: set_user_zone
-- Set the time zone of a user, in place of the one before.
insert into hitherto.user_zone (tenant, user_id, time_zone, updated_at)
values (%(tenant)s, %(user)s, %(time_zone)s, clock_timestamp())
on conflict (tenant, user_id) do update set time_zone = excluded.time_zone, updated_at = excluded.updated_at;
