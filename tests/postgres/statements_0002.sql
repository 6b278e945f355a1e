-- Statements of the revision before, word for word: processes that still run them are not stopped for an upgrade.

-- name: head
-- The newest head of a conversation, with its standing digest and those in progress, what is set for its agent, and the
-- digest whose text it was given. (Here and below, `limit 1` on what a key finds keeps the planner from joining in
-- another order, which without statistics it may hold for as good.)
select c.ref, c.rev, c.next_seq, c.tokens, c.turns, c.talk, c.results,
       c.view_start, c.view_tokens, c.view_turns, c.view_talk, c.view_results,
       c.closed, c.policy::text, c.open_calls::text, c.erased::text, c.next_expiry,
       greatest(clock_timestamp(), c.updated_at), c.run_start,
       c.late::text, c.retracted::text, c.frontiers::text,
       a.policy::text, c.injection, a.injection, i.id, i.conversation, i.text,
       d.id, d.start_seq, d.end_seq, d.text, d.spec::text, e.sum_tokens, e.sum_turns, e.sum_talk, e.sum_results,
       d.tokens, c.failed,
       (select json_agg(json_build_array(p.id, p.stage, p.attempt, p.start_seq, p.end_seq, p.created_at, p.done, p.kept_from)
                        order by p.id)
        from hitherto.digest p
        where p.tenant = c.tenant and p.conversation = c.ref and p.status = 'processing')::text
from hitherto.conversation c
left join lateral (
    select policy, injection from hitherto.agent a where a.tenant = c.tenant and a.agent = c.agent limit 1
) a on true
left join lateral (
    select n.id, o.id as conversation, n.text
    from (select * from hitherto.digest n where n.tenant = c.tenant and n.id = c.injected limit 1) n
    cross join lateral (
        select id, view_start, user_id, agent from hitherto.conversation o
        where o.tenant = n.tenant and o.ref = n.conversation limit 1
    ) o
    where n.status = 'completed' and n.end_seq >= o.view_start and o.user_id = c.user_id and o.agent = c.agent
) i on true
left join lateral (
    select id, start_seq, end_seq, text, spec, tokens from hitherto.digest s
    where s.tenant = c.tenant and s.conversation = c.ref and s.done = 'summarise' and s.visible_rev is not null
      and s.hidden_rev is null and s.end_seq >= c.view_start
    order by s.end_seq desc, s.id desc limit 1
) d on true
left join lateral (
    select sum_tokens, sum_turns, sum_talk, sum_results from hitherto.message m
    where m.tenant = c.tenant and m.conversation = c.ref and m.seq <= d.end_seq and m.retracted_rev is null
    order by m.seq desc limit 1
) e on true
where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(conversation)s;

-- name: update_conversation
-- The conversation's counters after a unit of work.
update hitherto.conversation
set rev = %(rev)s, next_seq = %(next_seq)s, tokens = %(tokens)s, turns = %(turns)s, talk = %(talk)s, results = %(results)s,
    view_start = %(view_start)s, view_tokens = %(view_tokens)s, view_turns = %(view_turns)s, view_talk = %(view_talk)s,
    view_results = %(view_results)s, closed = %(closed)s, run_start = %(run_start)s, policy = %(policy)s,
    injection = %(injection)s, injected = %(injected)s, frontiers = %(frontiers)s, open_calls = %(open_calls)s,
    late = %(late)s, failed = %(failed)s, erased = %(erased)s, next_expiry = %(next_expiry)s, updated_at = %(updated_at)s
where tenant = %(tenant)s and ref = %(ref)s;

-- name: insert_digest
-- A digest in progress, or one that is complete at once.
insert into hitherto.digest (tenant, id, conversation, stage, spec, done, start_seq, end_seq, base_id, status, attempt,
    tokens, freed, since, kept_from, opaque, family, fired_rev, visible_rev, created_at, completed_at)
values (%(tenant)s, coalesce(%(id)s::bigint, nextval('hitherto.digest_id_seq')), %(ref)s, %(stage)s, %(spec)s, %(done)s, %(start)s,
    %(end)s, %(base)s, %(status)s, 1, %(tokens)s, %(freed)s, %(since)s, %(kept_from)s, %(opaque)s, %(family)s,
    %(rev)s, case when %(completed)s then %(rev)s end, %(now)s, case when %(completed)s then %(now)s end)
returning id;

-- name: end_digest
-- What became of a digest in progress.
update hitherto.digest
set status = %(status)s, items = %(items)s, text = %(text)s, tokens = %(tokens)s, model = %(model)s,
    prompt_version = %(prompt_version)s, generation_time_ms = %(generation_time_ms)s, error = %(error)s,
    opaque = %(opaque)s, family = %(family)s, visible_rev = %(visible_rev)s, completed_at = %(now)s
where tenant = %(tenant)s and conversation = %(ref)s and id = %(digest)s and status = 'processing';

-- name: digests
-- All digests of a conversation.
select d.id, d.stage, d.spec::text, d.done, d.start_seq, d.end_seq, d.base_id, d.status, d.attempt, d.items::text, d.text,
       d.tokens, d.model, d.prompt_version, d.generation_time_ms, d.error, d.fired_rev, d.visible_rev, d.created_at,
       d.completed_at, d.hidden_rev, d.freed, d.since, d.kept_from, d.opaque::text, d.family
from hitherto.digest d
where d.tenant = %(tenant)s
  and d.conversation = (
      select ref from hitherto.conversation
      where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s)
order by d.id;

-- name: work_digest
-- A digest in progress, where its base ends, that one's opaque items, and the statements of the base; before them, where
-- it is a chunk, those of its own base, and so on.
with recursive d as (
    select * from hitherto.digest d
    where d.tenant = %(tenant)s
      and d.conversation = (
          select ref from hitherto.conversation
          where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s)
      and d.id = %(digest)s and d.attempt = %(attempt)s and d.status = 'processing'
), base (depth, tenant, conversation, base_id, done, end_seq, items, opaque) as (
    select 0, b.* from d
    cross join lateral (
        select tenant, conversation, base_id, done, end_seq, items, opaque from hitherto.digest b
        where b.tenant = d.tenant and b.conversation = d.conversation and b.id = d.base_id limit 1
    ) b
    union all
    select n.depth + 1, b.* from base n
    cross join lateral (
        select tenant, conversation, base_id, done, end_seq, items, opaque from hitherto.digest b
        where b.tenant = n.tenant and b.conversation = n.conversation and b.id = n.base_id limit 1
    ) b
    where n.done = 'chunk'
)
select d.id, d.stage, d.spec::text, d.done, d.start_seq, d.end_seq, d.base_id, d.status, d.attempt, d.items::text, d.text,
       d.tokens, d.model, d.prompt_version, d.generation_time_ms, d.error, d.fired_rev, d.visible_rev, d.created_at,
       d.completed_at, d.hidden_rev, d.freed, d.since, d.kept_from, d.opaque::text, d.family,
       (select json_agg(b.items order by b.depth desc) from base b)::text,
       (select b.end_seq from base b where b.depth = 0), (select b.opaque::text from base b where b.depth = 0)
from d;

-- name: due
-- Conversations with messages whose time has come or with a digest in progress for too long: both off indexes that
-- hold such rows alone, which the volatile clock_timestamp() would keep from being used.
select tenant, user_id, agent, id from hitherto.conversation where next_expiry <= statement_timestamp()
union
select c.tenant, c.user_id, c.agent, c.id
from hitherto.digest d
join hitherto.conversation c on c.tenant = d.tenant and c.ref = d.conversation
where d.status = 'processing' and d.created_at < statement_timestamp() - %(stuck_for)s
limit %(limit)s;
