-- Digests: started, ended, read, and claimed by workers.

-- name: next_digest
-- An id for a row that is written later.
select nextval('hitherto.digest_id_seq');

-- part: digest_columns
tenant, conversation, stage, spec, policy, needs, action, start_seq, end_seq, base_id, status, attempt, tokens, freed, since,
    kept_from, opaque, family, fired_rev, visible_rev, created_at, completed_at, due_at

-- part: digest_values
%(tenant)s, %(ref)s, %(stage)s, %(spec)s, %(policy)s, %(needs)s, %(action)s, %(start)s, %(end)s, %(base)s, %(status)s, 0,
    %(tokens)s, %(freed)s, %(since)s, %(kept_from)s, %(opaque)s, %(family)s, %(rev)s, case when %(completed)s then %(rev)s::bigint end,
    %(now)s, case when %(completed)s then %(now)s::timestamptz end, case when not %(completed)s then %(clock)s::timestamptz end

-- name: insert_digest
-- Insert a digest in progress, due at once, or one that is completed.
insert into hitherto.digest ({digest_columns}) values ({digest_values}) returning id;

-- name: insert_digest_as
-- The same, with an id that was asked for before.
insert into hitherto.digest (id, {digest_columns}) values (%(id)s, {digest_values}) returning id;

-- name: end_digest
-- Write what became of a digest in progress.
update hitherto.digest
set status = %(status)s, items = %(items)s, text = %(text)s, tokens = %(tokens)s, model = %(model)s,
    prompt_version = %(prompt_version)s, generation_time_ms = %(generation_time_ms)s, error = %(error)s,
    opaque = %(opaque)s, family = %(family)s, visible_rev = %(visible_rev)s, completed_at = %(now)s, due_at = null,
    claimed = false
where tenant = %(tenant)s and conversation = %(ref)s and id = %(digest)s and status = 'processing';

-- name: supersede_digests
-- Supersede completed digests: views from this revision on do not use them.
update hitherto.digest set status = 'superseded', hidden_rev = %(rev)s
where tenant = %(tenant)s and conversation = %(ref)s and id = any(%(digests)s) and status = 'completed';

-- name: rewrite_digest
-- Rewrite a completed or superseded digest after messages it rested on were erased. If it is superseded (it cannot do
-- without them),
-- no view uses it any more, not even past ones.
update hitherto.digest
set items = %(items)s, text = %(text)s, tokens = %(tokens)s, status = %(status)s,
    hidden_rev = case when %(superseded)s then 0 else hidden_rev end, opaque = case when %(superseded)s then null else opaque end
where tenant = %(tenant)s and conversation = %(ref)s and id = %(digest)s and status in ('completed', 'superseded');

-- part: shown_digest
d.id, d.stage, d.spec::text as spec, d.action, d.start_seq, d.end_seq, d.base_id, d.status, d.attempt,
       d.items::text as items, d.text, d.tokens, d.model, d.prompt_version, d.generation_time_ms, d.error, d.fired_rev,
       d.visible_rev, d.created_at, d.completed_at, d.hidden_rev, d.freed, d.since, d.kept_from, d.opaque::text as opaque,
       d.family, d.tries, d.due_at, d.claimed, d.policy::text as policy, d.needs

-- part: digest_of_named
hitherto.digest d where d.tenant = %(tenant)s and d.conversation = ({named_conversation})

-- name: digest
-- A digest of a conversation.
select {shown_digest} from {digest_of_named} and d.id = %(digest)s;

-- name: digests
-- A page of the digests of a conversation.
select {shown_digest}
from (
    select d.*, sum(d.size + %(entry)s::integer) over (order by d.id) as sizes, row_number() over (order by d.id) as nth
    from {digest_of_named} and d.id > %(after)s
    order by d.id limit %(limit)s
) d
where d.sizes <= %(size)s::bigint or d.nth = 1
order by d.id;

-- name: all_digests
-- All digests of a conversation, for those that look for what rests on some messages.
select {shown_digest} from {digest_of_named} order by d.id;

-- name: last_clear
-- The newest clear that hides all messages up to one, as far as it is visible at a revision.
select {shown_digest} from {digest_of_named}
  and d.action = 'clear' and d.visible_rev <= %(rev)s and (d.hidden_rev is null or d.hidden_rev > %(rev)s) and d.end_seq = %(end)s
order by d.id desc limit 1;

-- name: earlier
-- The newest standing summary of the scope's other conversations that are not private, if it is recent enough; of those that
-- were there at a time, if one is given.
select c.id, c.digest, c.text
from (
    select c.id, d.id as digest, d.text, c.digested_at from hitherto.conversation c
    cross join lateral ({standing_summary}) d
    where not hitherto.expiring(c.next_expiry) and c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id <> %(conversation)s
      and c.digested_at is not null and not c.private and (%(until)s::timestamptz is null or c.digested_at <= %(until)s)
    order by c.digested_at desc limit 1
) c
where statement_timestamp() - c.digested_at <= %(within)s;

-- name: claim
-- Claim a digest in progress that is due. With it: its conversation, and whether that has expired messages; the opaque
-- items of its base; and the statements of the base. For a summary whose base is a chunk, those of the chunk's own base
-- come before them, and so on down the chain. A row that is locked is skipped: the lock may never be released.
--
-- No due time is set more than an hour ahead: one beyond two hours was set before the clock was put back, and counts as
-- reached. Here and below, where a row is found by its key, `completed_at is null` selects what is in progress: with a
-- condition on `status`, the planner without statistics may prefer an index of everything in progress.
with recursive free as materialized (
    select id from hitherto.digest
    where tenant = %(tenant)s and id = %(digest)s and completed_at is null
      and (needs is null or needs = any(%(able)s)) and (due_at <= hitherto.clock() or due_at > hitherto.clock() + interval '2 hours')
    for no key update skip locked
), d as (
    update hitherto.digest d
    set attempt = attempt + 1, tries = tries + 1, claimed = true, due_at = hitherto.clock() + %(lease)s::interval
    from free where d.tenant = %(tenant)s and d.id = free.id
    returning d.*
), base (depth, conversation, base_id, action, end_seq, items, opaque) as (
    select 0, b.* from d
    cross join lateral (
        select conversation, base_id, action, end_seq, items, opaque from hitherto.digest b
        where b.tenant = %(tenant)s and b.conversation = d.conversation and b.id = d.base_id limit 1
    ) b
    union all
    select n.depth + 1, b.* from base n
    cross join lateral (
        select conversation, base_id, action, end_seq, items, opaque from hitherto.digest b
        where b.tenant = %(tenant)s and b.conversation = n.conversation and b.id = n.base_id limit 1
    ) b
    where n.action = 'chunk' and (select d.action from d) = 'summarize'
)
select {shown_digest},
       (select json_agg(b.items order by b.depth desc) from base b)::text as base_items,
       (select b.opaque::text from base b where b.depth = 0) as base_opaque,
       c.user_id, c.agent, c.id as conversation, hitherto.expiring(c.next_expiry) as expiring
from d
cross join lateral (
    select user_id, agent, id, next_expiry from hitherto.conversation c
    where c.tenant = %(tenant)s and c.ref = d.conversation limit 1
) c;

-- name: claimed_messages
-- The live messages that are new to a claimed digest, without turns in which something was to be forgotten.
select {message_columns}
from (
    select d.tenant, d.conversation, d.end_seq as last, greatest(d.start_seq, coalesce((
        select b.end_seq + 1 from hitherto.digest b
        where b.tenant = %(tenant)s and b.conversation = d.conversation and b.id = d.base_id limit 1), 0)) as first
    from hitherto.digest d
    where d.tenant = %(tenant)s and d.id = %(digest)s and d.completed_at is null limit 1
) d
cross join lateral (
    select * from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = d.conversation and m.seq between d.first and d.last
      and not m.erased and m.retracted_rev is null and not {forgetting}
    order by m.seq
) m
order by m.seq;

-- name: prolong
-- Extend a claim, unless its row is locked; and say whether it is still held.
with free as materialized (
    select id from hitherto.digest
    where tenant = %(tenant)s and id = %(digest)s and attempt = %(attempt)s and completed_at is null and claimed
    for no key update skip locked
), prolonged as (
    update hitherto.digest d set due_at = hitherto.clock() + %(lease)s::interval
    from free where d.tenant = %(tenant)s and d.id = free.id
)
select id from hitherto.digest
where tenant = %(tenant)s and id = %(digest)s and attempt = %(attempt)s and completed_at is null and claimed;

-- name: put_off
-- Give a claim back; the digest is due again later.
update hitherto.digest
set attempt = attempt + 1, tries = tries - case when %(counted)s then 0 else 1 end, claimed = false,
    due_at = hitherto.clock() + least(%(wait)s::interval, interval '1 hour'), error = coalesce(%(error)s, error)
where tenant = %(tenant)s and id = %(digest)s and attempt = %(attempt)s and completed_at is null and claimed
returning id;

-- name: due_digests
-- Digests of all tenants that can be claimed and that the asker can make, the longest due first, those of
-- busy tenants after all others.
select * from hitherto.due_digests(%(limit)s, %(able)s, %(busy)s);

-- name: wake_workers
-- Tell workers that listen that digests are due. A notification holds a lock of the whole database until its commit is on
-- the disk; this one does not wait for the disk.
select set_config('synchronous_commit', 'off', true), pg_notify('hitherto_digests', '');

-- name: listen
-- Listen for that.
listen hitherto_digests;

-- name: show_worker
-- Record that a worker is there.
insert into hitherto.worker (id, seen_at) values (%(worker)s, clock_timestamp())
on conflict (id) do update set seen_at = excluded.seen_at;

-- name: forget_worker
-- Delete a worker that has stopped.
delete from hitherto.worker where id = %(worker)s;

-- name: forget_dead_workers
-- Delete workers that were killed.
delete from hitherto.worker where seen_at < statement_timestamp() - interval '1 hour';

-- name: rested
-- The newest failed digests of conversations that have rested, read from an index of conversations that rest alone.
select * from hitherto.rested_digests(%(limit)s, %(able)s);

-- name: unread
-- Conversations that rest and are to be read for facts, read from an index of such conversations alone.
select * from hitherto.unread_conversations(%(limit)s);

-- name: rest_longer
-- Have a conversation that has rested go on later, unless its row is locked.
with free as materialized (
    select ref, hitherto.clock() as now from hitherto.conversation
    where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s
    for no key update skip locked
)
update hitherto.conversation c
set resume_at = case when c.resume_at <= free.now then free.now + %(wait)s::interval else c.resume_at end,
    facts_due_at = case when c.facts_due_at <= free.now then free.now + %(wait)s::interval else c.facts_due_at end
from free where c.tenant = %(tenant)s and c.ref = free.ref;

-- name: unsettled
-- Which of some digests are due or claimed.
select * from hitherto.unsettled_digests(%(tenants)s, %(digests)s);

-- name: backlog
-- Figures on the digests in progress, how many conversations begin none for now, and how many workers had a heartbeat
-- lately. A due time further ahead than any that is set was set before the clock was put back: it counts as reached.
select * from hitherto.digest_backlog(%(tenant)s);
