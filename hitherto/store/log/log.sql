-- The log: probes, reading, writing. Over the messages that are live at one revision the running sums ascend with seq.

-- part: described_message
-- The columns of a message m behind its content.
nullif(m.call_ids, '{}'), nullif(m.result_ids, '{}'), nullif(m.tool_names, '{}'),
       m.metadata::text, m.expires_at, m.said_at, m.said_offset, m.tokens, m.sum_tokens, m.sum_turns, m.sum_dialogue, m.sum_results, m.rev,
       m.created_at, m.erased, m.retracted_rev, case when m.erased then encode(m.own_key, 'hex') else m.own_id end

-- part: message_columns
-- The columns of a message m as `rows.logged_from` reads them.
m.seq, m.payload::text, m.wire, m.role, m.kind, m.text, {described_message}

-- part: appended_by
-- Whether the message `m` was appended by a revision, and not taken back until then, or before it came back.
m.rev <= %(live_at)s and (m.retracted_rev is null or m.retracted_rev > %(live_at)s)

-- part: came_back_by
-- Whether such a message, of the conversation `c`, was not taken back at that revision, to come back later.
(c.switched_rev <= %(live_at)s or not exists (
    select 1 from hitherto.absence x
    where x.tenant = %(tenant)s and x.conversation = m.conversation and x.until_rev > %(live_at)s and x.from_rev <= %(live_at)s
      and m.seq between x.start_seq and x.end_seq offset 0))

-- part: there_at
-- Whether the message `m` of the conversation `c` was shown at a revision.
{appended_by} and {came_back_by}

-- name: dialogue_at
-- The first live message at which the running count of user and final assistant messages reaches n.
select seq, sum_tokens, sum_turns, sum_dialogue, sum_results, tokens, role = 'user' from hitherto.message
where tenant = %(tenant)s and conversation = %(ref)s and sum_dialogue >= %(n)s
  and kind = 'text' and role in ('user', 'assistant') and retracted_rev is null
order by sum_dialogue limit 1;

-- name: turn_at
-- The live message that opens turn n.
select seq, sum_tokens, sum_turns, sum_dialogue, sum_results, tokens, true from hitherto.message
where tenant = %(tenant)s and conversation = %(ref)s and sum_turns >= %(n)s and kind = 'text' and role = 'user'
  and retracted_rev is null
order by sum_turns limit 1;

-- name: tokens_at
-- The first live message at which the running sum of tokens reaches n.
select seq, sum_tokens, sum_turns, sum_dialogue, sum_results, tokens, kind = 'text' and role = 'user' from hitherto.message
where tenant = %(tenant)s and conversation = %(ref)s and sum_tokens >= %(n)s and retracted_rev is null
order by sum_tokens, seq limit 1;

-- name: at
-- The last live message up to seq n.
select seq, sum_tokens, sum_turns, sum_dialogue, sum_results, tokens, kind = 'text' and role = 'user' from hitherto.message
where tenant = %(tenant)s and conversation = %(ref)s and seq <= %(n)s and retracted_rev is null
order by seq desc limit 1;

-- name: speaker_at
-- The last live message up to seq n that is no tool result.
select seq, sum_tokens, sum_turns, sum_dialogue, sum_results, tokens, kind = 'text' and role = 'user' from hitherto.message
where tenant = %(tenant)s and conversation = %(ref)s and seq <= %(n)s and kind <> 'tool_result' and retracted_rev is null
order by seq desc limit 1;

-- name: at_digest_end
-- A digest's last seq, and what `at` finds for it.
select d.end_seq, m.* from hitherto.digest d
cross join lateral (
    select seq, sum_tokens, sum_turns, sum_dialogue, sum_results, tokens, kind = 'text' and role = 'user'
    from hitherto.message
    where tenant = %(tenant)s and conversation = d.conversation and seq <= d.end_seq and retracted_rev is null
    order by seq desc limit 1
) m
where d.tenant = %(tenant)s and d.id = %(digest)s;

-- name: tool_tokens
-- The tokens above a number of each of the live tool results in a range (with tool calls, if asked for), those of some
-- tools left out.
select coalesce(sum(greatest(tokens - %(leaves)s, 0)), 0)::bigint from hitherto.message
where tenant = %(tenant)s and conversation = %(ref)s and seq >= %(start)s and seq <= %(end)s
  and kind in ('tool_call', 'tool_result', 'reasoning') and (kind = 'tool_result' or kind = 'tool_call' and %(calls)s)
  and not tool_names && %(never)s::text[] and retracted_rev is null and not erased;

-- name: tool_ids
-- The calls that live tool items make and answer, from a message on. The kinds are named as in the index's condition.
select seq, call_ids, result_ids from hitherto.message
where tenant = %(tenant)s and conversation = %(ref)s and seq >= %(start)s
  and kind in ('tool_call', 'tool_result', 'reasoning') and kind <> 'reasoning' and retracted_rev is null and not erased
order by seq;

-- name: tail
-- The newest live messages of the view below a seq, newest first.
select {message_columns}
from hitherto.message m
where m.tenant = %(tenant)s and m.conversation = %(ref)s and m.seq >= %(view_start)s and m.seq < %(stop)s
  and m.retracted_rev is null
order by m.seq desc limit %(n)s;

-- name: messages
-- Messages from a bound on: the first live message at which the running sum of tokens is enough, or `start` if that is
-- later. Before them, the tool items from an earlier seq on, the system messages at the beginning, and the user messages
-- that open some turns. All parts have a limit, so that none reads more rows than that. Turns are looked up apart from the
-- seqs: the planner expects few rows of a range of seqs, and would go through all of them.
with bound as materialized (
    select c.tenant, c.ref, c.switched_rev, case when %(tokens)s <= 0 then %(start)s::bigint
        else greatest(%(start)s::bigint, coalesce((
            select m.seq from hitherto.message m
            where m.tenant = %(tenant)s and m.conversation = c.ref and m.sum_tokens >= %(tokens)s and {there_at}
            order by m.sum_tokens, m.seq limit 1), %(stop)s::bigint)) end as first
    from hitherto.conversation c
    where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(conversation)s
      and c.ref = %(ref)s
    limit 1
)
select {message_columns}
from bound c
cross join lateral (
    (select * from hitherto.message m
     where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq >= c.first and m.seq < %(stop)s
       and (not %(live)s or {appended_by})
     order by m.seq limit %(limit)s)
    union all
    (select * from hitherto.message m
     where m.tenant = %(tenant)s and m.conversation = c.ref and m.kind in ('tool_call', 'tool_result', 'reasoning')
       and m.seq >= %(tools_from)s and m.seq < least(%(stop)s, c.first)
       and (not %(live)s or {appended_by})
     order by m.seq limit %(limit)s)
    union all
    (select * from hitherto.message m
     where m.tenant = %(tenant)s and m.conversation = c.ref and m.kind = 'text' and m.role = 'system'
       and m.seq >= %(begins)s and m.seq < least(%(begins)s + 50, c.first)
       and (not %(live)s or {appended_by}))
    union all
    (select * from (
         select * from hitherto.message m
         where m.tenant = %(tenant)s and m.conversation = c.ref and m.kind = 'text' and m.role = 'user'
           and m.sum_turns = %(first_turn)s and m.sum_turns < %(last_turns)s offset 0
     ) m
     where m.seq >= %(begins)s and m.seq < c.first and (not %(live)s or {appended_by}))
    union all
    (select * from (
         select * from hitherto.message m
         where m.tenant = %(tenant)s and m.conversation = c.ref and m.kind = 'text' and m.role = 'user'
           and m.sum_turns >= %(last_turns)s and m.sum_turns <= %(last_turn)s offset 0
     ) m
     where m.seq >= %(begins)s and m.seq < c.first and (not %(live)s or {appended_by}))
) m
where not %(live)s or {came_back_by}
order by m.seq
limit %(limit)s;

-- name: messages_of
-- The messages of ranges of seqs, in conversations of one user: behind the number of the range, where its conversation's
-- view begins, and whether the message's time has come.
select r.nth, c.view_start, coalesce(m.expires_at <= statement_timestamp(), false), {message_columns}
from unnest(%(agents)s::text[], %(conversations)s::text[], %(firsts)s::bigint[], %(lasts)s::bigint[])
    with ordinality as r (agent, conversation, first, last, nth)
cross join lateral (
    select o.ref, o.view_start from hitherto.conversation o
    where o.tenant = %(tenant)s and o.user_id = %(user)s and o.agent = r.agent and o.id = r.conversation limit 1
) c
cross join lateral (
    select * from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq >= r.first and m.seq <= r.last offset 0
) m
order by r.nth, m.seq;

-- name: messages_by_id
-- The messages that have some ids, or had before they were erased: the hashes of these, and the seqs.
select encode(m.own_key, 'hex'), m.seq
from ({named_conversation} limit 1) c
cross join lateral (
    select own_key, seq from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = c.ref
      and m.own_key = any(array(select decode(h, 'hex') from unnest(%(id_hashes)s::text[]) h))
) m;

-- name: page_stop
-- Where a page of messages ends: the seq behind its last one.
select coalesce(max(m.seq) + 1, %(stop)s::bigint)
from hitherto.conversation c
cross join lateral (
    select m.seq, sum(m.size + %(entry)s::integer) over (order by m.seq) as sizes, row_number() over (order by m.seq) as nth
    from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq >= %(start)s and m.seq < %(stop)s
      and (not %(live)s or {there_at})
    order by m.seq limit %(limit)s
) m
where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(conversation)s and c.ref = %(ref)s
  and (m.sizes <= %(size)s::bigint or m.nth = 1);

-- name: payloads
-- The items of messages alone, and whether each has the wire format asked for and is not erased.
select m.payload::text, m.wire = %(wire)s and not m.erased
from hitherto.conversation c
cross join lateral (
    select * from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = c.ref and m.seq >= %(start)s and m.seq < %(stop)s
      and (not %(live)s or {there_at})
) m
where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(conversation)s and c.ref = %(ref)s
order by m.seq;

-- name: insert_message
-- One of a few messages.
insert into hitherto.message (tenant, conversation, seq, wire, role, kind, text, payload, call_ids, result_ids, tool_names,
    metadata, tokens, sum_tokens, sum_turns, sum_dialogue, sum_results, rev, created_at, expires_at, said_at,
    said_offset, own_id, own_key)
values (%(tenant)s, %(ref)s, %(seq)s, %(wire)s, %(role)s, %(kind)s, %(text)s, %(payload)s, %(call_ids)s, %(result_ids)s,
    %(tool_names)s, %(metadata)s, %(tokens)s, %(sum_tokens)s, %(sum_turns)s, %(sum_dialogue)s, %(sum_results)s, %(rev)s,
    %(created_at)s, %(expires_at)s, %(said_at)s, %(said_offset)s, %(own_id)s, decode(%(id_hash)s, 'hex'));

-- name: insert_messages
-- Many messages, or messages as they were.
insert into hitherto.message (tenant, conversation, seq, wire, role, kind, text, payload, call_ids, result_ids, tool_names,
    metadata, tokens, sum_tokens, sum_turns, sum_dialogue, sum_results, rev, created_at, expires_at, said_at,
    said_offset, own_id, own_key, erased, retracted_rev)
select c.tenant, c.ref, m.seq, m.wire, m.role, m.kind, m.text, m.payload::json, m.call_ids::text[], m.result_ids::text[],
       m.tool_names::text[], m.metadata::json, m.tokens, m.sum_tokens, m.sum_turns, m.sum_dialogue, m.sum_results, m.rev,
       m.created_at, m.expires_at, m.said_at, m.said_offset, m.own_id, decode(m.id_hash, 'hex'), m.erased, m.retracted_rev
from hitherto.conversation c
cross join unnest(%(seq)s::bigint[], %(wire)b::text[], %(role)b::text[], %(kind)b::text[], %(text)b::text[], %(payload)b::text[],
    %(call_ids)b::text[], %(result_ids)b::text[], %(tool_names)b::text[], %(metadata)b::text[], %(tokens)s::integer[],
    %(sum_tokens)s::bigint[], %(sum_turns)s::bigint[], %(sum_dialogue)s::bigint[], %(sum_results)s::bigint[], %(rev)s::bigint[],
    %(created_at)s::timestamptz[], %(expires_at)s::timestamptz[], %(said_at)s::timestamptz[], %(said_offset)s::integer[], %(own_id)s::text[],
    %(id_hash)s::text[], %(erased)s::boolean[], %(retracted_rev)s::bigint[]) as m (seq, wire, role, kind, text, payload, call_ids,
    result_ids, tool_names, metadata, tokens, sum_tokens, sum_turns, sum_dialogue, sum_results, rev, created_at, expires_at,
    said_at, said_offset, own_id, id_hash, erased, retracted_rev)
where c.tenant = %(tenant)s and c.ref = %(ref)s
returning seq;

-- name: retract_messages
-- Retract the messages in these ranges: the rows stay, and views from this revision on do not show them.
update hitherto.message set retracted_rev = %(rev)s
where tenant = %(tenant)s and conversation = %(ref)s and retracted_rev is null and seq = any(array(
    select generate_series(lower(r), upper(r) - 1) from unnest(%(ranges)s::int8multirange) r));

-- name: expired
-- Expired messages that are not erased yet, in any order: ordering by seq would draw the planner away from the index on
-- the time.
select seq from hitherto.message
where tenant = %(tenant)s and conversation = %(ref)s and expires_at <= %(now)s and not erased;

-- name: next_expiry
-- When the next message expires.
select min(expires_at) from hitherto.message
where tenant = %(tenant)s and conversation = %(ref)s and expires_at > %(now)s and not erased;
