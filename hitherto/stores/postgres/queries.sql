-- Every statement of the store, one named block each. Values are bound by name; nothing is glued.

-- name: lock
-- Hold the conversation until the end of the transaction; a statement of its own, so that what is read after it is
-- read from a snapshot taken once the lock was granted.
select ref from hitherto.conversation
where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s
for no key update;

-- name: create
-- Make the conversation's row; nothing if somebody else just did.
insert into hitherto.conversation (tenant, user_id, agent, id)
values (%(tenant)s, %(user)s, %(agent)s, %(conversation)s)
on conflict (tenant, user_id, agent, id) do nothing;

-- name: head
-- The newest head of a conversation, with its standing digest and those in progress. (Here and below, `limit 1` on what
-- a key finds keeps the planner from joining in another order, which without statistics it may hold for as good.)
select c.ref, c.rev, c.next_seq, c.tokens, c.turns, c.talk,
       c.view_start, c.view_tokens, c.view_turns, c.view_talk,
       c.closed, c.policy::text, c.open_calls::text, c.erased::text, c.next_expiry,
       greatest(clock_timestamp(), c.updated_at), c.run_start,
       d.id, d.start_seq, d.end_seq, d.text, e.sum_tokens, e.sum_turns, e.sum_talk,
       (select json_agg(json_build_array(p.id, p.stage, p.attempt, p.end_seq, p.created_at) order by p.id)
        from hitherto.digest p
        where p.tenant = c.tenant and p.conversation = c.ref and p.status = 'processing')::text
from hitherto.conversation c
left join lateral (
    select id, start_seq, end_seq, text from hitherto.digest s
    where s.tenant = c.tenant and s.conversation = c.ref and s.status = 'completed' and s.done = 'summarise'
      and s.end_seq >= c.view_start
    order by s.end_seq desc, s.id desc limit 1
) d on true
left join lateral (
    select sum_tokens, sum_turns, sum_talk from hitherto.message m
    where m.tenant = c.tenant and m.conversation = c.ref and m.seq = d.end_seq limit 1
) e on true
where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(conversation)s;

-- name: head_at
-- The head as it was at a past revision: every part of it is read off rows that carry their revision. Revisions ascend
-- with seq, so halving finds the last message; and no digest that was visible then reaches beyond that one.
with recursive c as (
    select * from hitherto.conversation
    where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s
      and rev >= %(at)s
), halving (low, high) as (
    select 0::bigint, next_seq from c
    union all
    select case when m.rev <= %(at)s then m.seq + 1 else h.low end, case when m.rev <= %(at)s then h.high else m.seq end
    from halving h cross join c
    cross join lateral (
        select seq, rev from hitherto.message m
        where m.tenant = c.tenant and m.conversation = c.ref and m.seq = (h.low + h.high) / 2 limit 1
    ) m
    where h.low < h.high
), last as (
    select m.* from c
    join halving h on h.low = h.high
    cross join lateral (
        select * from hitherto.message m
        where m.tenant = c.tenant and m.conversation = c.ref and m.seq = h.low - 1 limit 1
    ) m
), cleared as (
    select coalesce(max(end_seq) + 1, 0) as view_start from c
    join hitherto.digest k on k.tenant = c.tenant and k.conversation = c.ref
    where k.done = 'clear' and k.visible_rev <= %(at)s
)
select c.ref, %(at)s::bigint, coalesce(l.seq + 1, 0), coalesce(l.sum_tokens, 0), coalesce(l.sum_turns, 0),
       coalesce(l.sum_talk, 0),
       v.view_start, coalesce(b.sum_tokens, 0), coalesce(b.sum_turns, 0), coalesce(b.sum_talk, 0),
       coalesce(l.role = 'assistant' and l.kind = 'text', false), c.policy::text, '{}'::text, c.erased::text, c.next_expiry,
       greatest(clock_timestamp(), c.updated_at), c.run_start,
       d.id, d.start_seq, d.end_seq, d.text, e.sum_tokens, e.sum_turns, e.sum_talk,
       null::text
from c
cross join cleared v
left join last l on true
left join lateral (
    select sum_tokens, sum_turns, sum_talk from hitherto.message m
    where m.tenant = c.tenant and m.conversation = c.ref and m.seq = v.view_start - 1 limit 1
) b on true
left join lateral (
    select id, start_seq, end_seq, text from hitherto.digest s
    where s.tenant = c.tenant and s.conversation = c.ref and s.status = 'completed' and s.done = 'summarise'
      and s.visible_rev <= %(at)s and s.end_seq between v.view_start and l.seq
    order by s.end_seq desc, s.id desc limit 1
) d on true
left join lateral (
    select sum_tokens, sum_turns, sum_talk from hitherto.message m
    where m.tenant = c.tenant and m.conversation = c.ref and m.seq = d.end_seq limit 1
) e on true;

-- name: receipt
-- What an idempotency key answered.
select start_seq, end_seq, rev, fingerprint from hitherto.receipt
where tenant = %(tenant)s and key_hash = %(key_hash)s;

-- name: talk_at
-- The first message at which the running count of user and final assistant messages reaches n.
select seq, sum_tokens, sum_turns, sum_talk, role = 'user' from hitherto.message
where tenant = %(tenant)s and conversation = %(ref)s and sum_talk >= %(n)s
  and kind = 'text' and role in ('user', 'assistant')
order by sum_talk limit 1;

-- name: turn_at
-- The message that opens turn n.
select seq, sum_tokens, sum_turns, sum_talk, true from hitherto.message
where tenant = %(tenant)s and conversation = %(ref)s and sum_turns >= %(n)s and kind = 'text' and role = 'user'
order by sum_turns limit 1;

-- name: insert_message
-- One message of a batch.
insert into hitherto.message (tenant, conversation, seq, wire, role, kind, text, payload, call_ids, result_ids, tool_names,
    metadata, tokens, sum_tokens, sum_turns, sum_talk, rev, created_at, expires_at)
values (%(tenant)s, %(ref)s, %(seq)s, %(wire)s, %(role)s, %(kind)s, %(text)s, %(payload)s, %(call_ids)s, %(result_ids)s,
    %(tool_names)s, %(metadata)s, %(tokens)s, %(sum_tokens)s, %(sum_turns)s, %(sum_talk)s, %(rev)s, %(created_at)s,
    %(expires_at)s);

-- name: update_conversation
-- The conversation's counters after a unit of work.
update hitherto.conversation
set rev = %(rev)s, next_seq = %(next_seq)s, tokens = %(tokens)s, turns = %(turns)s, talk = %(talk)s,
    view_start = %(view_start)s, view_tokens = %(view_tokens)s, view_turns = %(view_turns)s, view_talk = %(view_talk)s,
    closed = %(closed)s, run_start = %(run_start)s, policy = %(policy)s, open_calls = %(open_calls)s, erased = %(erased)s,
    next_expiry = %(next_expiry)s, updated_at = %(updated_at)s
where tenant = %(tenant)s and ref = %(ref)s;

-- name: insert_receipt
-- Remember what an idempotency key answered.
insert into hitherto.receipt (tenant, key_hash, conversation, fingerprint, start_seq, end_seq, rev, created_at)
values (%(tenant)s, %(key_hash)s, %(ref)s, %(fingerprint)s, %(start)s, %(end)s, %(rev)s, %(now)s);

-- name: insert_digest
-- A digest in progress, or one that is complete at once.
insert into hitherto.digest (tenant, conversation, stage, spec, done, start_seq, end_seq, base_id, status, attempt,
    fired_rev, visible_rev, created_at, completed_at)
values (%(tenant)s, %(ref)s, %(stage)s, %(spec)s, %(done)s, %(start)s, %(end)s, %(base)s, %(status)s, 1,
    %(rev)s, case when %(completed)s then %(rev)s end, %(now)s, case when %(completed)s then %(now)s end)
returning id;

-- name: end_digest
-- What became of a digest in progress.
update hitherto.digest
set status = %(status)s, items = %(items)s, text = %(text)s, tokens = %(tokens)s, model = %(model)s,
    prompt_version = %(prompt_version)s, generation_time_ms = %(generation_time_ms)s, error = %(error)s,
    visible_rev = %(visible_rev)s, completed_at = %(now)s
where tenant = %(tenant)s and conversation = %(ref)s and id = %(digest)s and status = 'processing';

-- name: rewrite_digest
-- A completed digest after messages it rested on were erased.
update hitherto.digest set items = %(items)s, text = %(text)s, tokens = %(tokens)s, status = %(status)s
where tenant = %(tenant)s and conversation = %(ref)s and id = %(digest)s and status = 'completed';

-- name: erase_messages
-- Leave only the place of messages whose time had come.
update hitherto.message
set payload = '{}', text = '', metadata = '{}', call_ids = '{}', result_ids = '{}', tool_names = '{}', erased = true
where tenant = %(tenant)s and conversation = %(ref)s and seq between %(first)s and %(last)s;

-- name: expired
-- Messages whose time has come, in any order: one by seq would draw the planner away from the index on the time.
select seq from hitherto.message
where tenant = %(tenant)s and conversation = %(ref)s and expires_at <= %(now)s and not erased;

-- name: next_expiry
-- When the next message's time comes.
select min(expires_at) from hitherto.message
where tenant = %(tenant)s and conversation = %(ref)s and expires_at > %(now)s and not erased;

-- name: forget_receipts_of
-- A deleted conversation's receipts still answer, but tell nothing of what was written.
update hitherto.receipt set fingerprint = null, conversation = null
where tenant = %(tenant)s and conversation = %(ref)s;

-- name: forget_receipts_within
-- Receipts of messages that were erased still answer, but tell nothing of what was written.
update hitherto.receipt set fingerprint = null
where tenant = %(tenant)s and conversation = %(ref)s and start_seq <= %(last)s and end_seq >= %(first)s;

-- name: delete_conversation
-- Erase a conversation; messages and digests go with it.
delete from hitherto.conversation where tenant = %(tenant)s and ref = %(ref)s;

-- name: messages
-- Messages of a range whose running sum of tokens is at least a bound; and the tool items from an earlier seq on. The
-- limit stands in both parts too, so that neither reads further than it is asked to.
select m.seq, m.payload::text, m.wire, m.role, m.kind, m.text, m.call_ids, m.result_ids, m.tool_names, m.metadata::text,
       m.expires_at, m.tokens, m.sum_tokens, m.sum_turns, m.sum_talk, m.rev, m.created_at, m.erased
from hitherto.conversation c
cross join lateral (
    (select * from hitherto.message a
     where a.tenant = c.tenant and a.conversation = c.ref and a.seq < %(stop)s
       and a.seq >= greatest(%(start)s, coalesce((
           select f.seq from hitherto.message f
           where f.tenant = c.tenant and f.conversation = c.ref and f.sum_tokens >= %(tokens)s
           order by f.sum_tokens, f.seq limit 1), %(stop)s))
     order by a.seq limit %(limit)s)
    union all
    (select * from hitherto.message t
     where t.tenant = c.tenant and t.conversation = c.ref and t.kind in ('tool_call', 'tool_result', 'reasoning')
       and t.seq >= %(tools_from)s and t.seq < %(stop)s and (t.seq < %(start)s or t.sum_tokens < %(tokens)s)
     order by t.seq limit %(limit)s)
) m
where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(conversation)s and c.ref = %(ref)s
order by m.seq
limit %(limit)s;

-- name: digests
-- All digests of a conversation.
select d.id, d.stage, d.spec::text, d.done, d.start_seq, d.end_seq, d.base_id, d.status, d.attempt, d.items::text, d.text,
       d.tokens, d.model, d.prompt_version, d.generation_time_ms, d.error, d.fired_rev, d.visible_rev, d.created_at,
       d.completed_at
from hitherto.digest d
where d.tenant = %(tenant)s
  and d.conversation = (
      select ref from hitherto.conversation
      where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s)
order by d.id;

-- name: work_digest
-- A digest in progress and its base's statements.
select d.id, d.stage, d.spec::text, d.done, d.start_seq, d.end_seq, d.base_id, d.status, d.attempt, d.items::text, d.text,
       d.tokens, d.model, d.prompt_version, d.generation_time_ms, d.error, d.fired_rev, d.visible_rev, d.created_at,
       d.completed_at, b.items::text, b.end_seq
from hitherto.digest d
left join lateral (
    select items, end_seq from hitherto.digest b
    where b.tenant = d.tenant and b.conversation = d.conversation and b.id = d.base_id limit 1
) b on true
where d.tenant = %(tenant)s
  and d.conversation = (
      select ref from hitherto.conversation
      where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s)
  and d.id = %(digest)s and d.attempt = %(attempt)s and d.status = 'processing';

-- name: work_lines
-- The messages a digest is made of, as a summariser sees them.
select seq, role, text from hitherto.message
where tenant = %(tenant)s
  and conversation = (
      select ref from hitherto.conversation
      where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s)
  and seq between %(first)s and %(last)s and not erased
order by seq;

-- name: listed
-- A scope's conversations, most recently written first.
select id, next_seq, tokens, rev, updated_at from hitherto.conversation
where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s
order by updated_at desc, ref desc
limit %(limit)s;

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

-- name: forget_receipts
-- Drop idempotency receipts beyond their retention.
delete from hitherto.receipt where created_at < statement_timestamp() - %(older_than)s;
