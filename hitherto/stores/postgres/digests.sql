-- Digests: set off, ended, read, and the work on them.

-- name: next_digest
-- An id for a row that is still to be written.
select nextval('hitherto.digest_id_seq');

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

-- name: supersede_digests
-- Completed digests that views use no more from this revision on.
update hitherto.digest set status = 'superseded', hidden_rev = %(rev)s
where tenant = %(tenant)s and conversation = %(ref)s and id = any(%(digests)s) and status = 'completed';

-- name: rewrite_digest
-- A completed digest after messages it rested on were erased; one that cannot do without them is used by no view, past
-- ones neither.
update hitherto.digest
set items = %(items)s, text = %(text)s, tokens = %(tokens)s, status = %(status)s,
    hidden_rev = case when %(superseded)s then 0 else hidden_rev end, opaque = case when %(superseded)s then null else opaque end
where tenant = %(tenant)s and conversation = %(ref)s and id = %(digest)s and status = 'completed';

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

-- name: opaque
-- The opaque items of a digest.
select d.opaque::text from hitherto.digest d
where d.tenant = %(tenant)s
  and d.conversation = (
      select ref from hitherto.conversation
      where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s)
  and d.id = %(digest)s;

-- name: earlier
-- The newest of the summaries that stand for a scope's other conversations.
select c.id, c.digest, c.text
from (
    select c.id, d.id as digest, d.text, c.digested_at from hitherto.conversation c
    cross join lateral (
        select s.id, s.text from hitherto.digest s
        where s.tenant = c.tenant and s.conversation = c.ref and s.done = 'summarise' and s.visible_rev is not null
          and s.hidden_rev is null and s.end_seq >= c.view_start
        order by s.end_seq desc, s.id desc limit 1
    ) d
    where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id <> %(conversation)s
      and c.digested_at is not null
    order by c.digested_at desc limit 1
) c
where clock_timestamp() - c.digested_at <= %(within)s;

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

-- name: work_messages
-- The live messages that a digest is made of.
select m.seq, m.payload::text, m.wire, m.role, m.kind, m.text, m.call_ids, m.result_ids, m.tool_names,
       m.metadata::text, m.expires_at, m.tokens, m.sum_tokens, m.sum_turns, m.sum_talk, m.sum_results, m.rev,
       m.created_at, m.erased, m.retracted_rev
from hitherto.message m
where m.tenant = %(tenant)s
  and m.conversation = (
      select ref from hitherto.conversation
      where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s)
  and m.seq between %(first)s and %(last)s and not m.erased and m.retracted_rev is null
order by m.seq;
