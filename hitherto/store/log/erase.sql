-- What goes with messages that are erased, beside digests, facts and the search index. `Unit` runs these in this order.

-- name: forget_contexts_within
-- Delete the contexts that showed any of the messages in these ranges (null: of the conversation), or for which it was
-- incoming; of other conversations, all that took something from this one.
delete from hitherto.context
where tenant = %(tenant)s and (
    user_id = %(user)s and agent = %(agent)s and conversation = %(conversation)s
    and (%(ranges)s::int8multirange is null or shown && %(ranges)s::int8multirange or incoming && array(
        select h from unnest(%(ranges)s::int8multirange) r
        cross join lateral (
            select payload, text from hitherto.message
            where tenant = %(tenant)s and conversation = %(ref)s and seq >= lower(r) and seq < upper(r) offset 0
        ) m
        cross join lateral (values (sha256(convert_to(m.payload::text, 'UTF8'))),
                                   (case when m.text <> '' then sha256(convert_to(m.text, 'UTF8')) end)) as hashes (h)))
    or others @> array[%(ref)s::bigint]);

-- name: mark_runs_within
-- Mark the runs that have any of the messages in these ranges: events that are being added are waited for, later ones
-- quote nothing.
with r as (
    select tenant, id from hitherto.run
    where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and conversation = %(conversation)s
      and case when status = 'running' or end_seq >= start_seq
          then int8range(start_seq, case when status <> 'running' then end_seq end, '[]') && %(ranges)s::int8multirange
          end
    order by id for update
)
update hitherto.run m set erased = true from r where m.tenant = %(tenant)s and m.id = r.id;

-- name: forget_runs_within
-- Erase what they quote.
update hitherto.run_event e set payload = null
from hitherto.run r
where r.tenant = %(tenant)s and r.user_id = %(user)s and r.agent = %(agent)s and r.conversation = %(conversation)s
  and case when r.status = 'running' or r.end_seq >= r.start_seq
      then int8range(r.start_seq, case when r.status <> 'running' then r.end_seq end, '[]') && %(ranges)s::int8multirange
      end
  and e.tenant = %(tenant)s and e.run = r.id and hitherto.quotes(e.kind);

-- name: erase_messages
-- Erase the content of the messages in these ranges; the rows stay.
update hitherto.message
set payload = '{}', text = '', metadata = '{}', call_ids = '{}', result_ids = '{}', tool_names = '{}', own_id = null, erased = true
where tenant = %(tenant)s and conversation = %(ref)s and seq = any(array(
    select generate_series(lower(r), upper(r) - 1) from unnest(%(ranges)s::int8multirange) r));

-- name: erase_open_calls
-- Of calls that were made in these messages and wait for their results, the ids stay: a result that comes is taken.
update hitherto.open_call set tool = 'tool'
where tenant = %(tenant)s and conversation = %(ref)s and seq <@ %(ranges)s::int8multirange;

-- name: forget_receipts_within
-- Receipts of messages that were erased still answer, but tell nothing of what was written.
update hitherto.receipt set fingerprint = null
where tenant = %(tenant)s and conversation = %(ref)s
  and int8range(start_seq, end_seq, '[]') && %(ranges)s::int8multirange;
