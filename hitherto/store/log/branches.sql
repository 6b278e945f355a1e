-- Branches: what else follows a message, and going from one to another.

-- name: insert_branch
-- A message that does not follow the one with the seq before its own.
insert into hitherto.branch (tenant, conversation, start_seq, parent_seq)
values (%(tenant)s, %(ref)s, %(start)s, %(parent)s);

-- part: branch_of
-- The first message of the run of messages, one behind the other, with message `n.seq`, and the message before the run.
select b.start_seq, b.parent_seq from hitherto.branch b
where b.tenant = %(tenant)s and b.conversation = %(ref)s and b.start_seq <= n.seq
order by b.start_seq desc limit 1

-- name: ways
-- The messages that follow one of which several do, each with it and with its own beginning, as a page: all there are, or
-- those in whose place message `seq` stands.
with place as materialized (
    select case when b.start_seq = n.seq then b.parent_seq else n.seq - 1 end as parent
    from (select %(seq)s::bigint as seq) n left join lateral ({branch_of}) b on true
    where n.seq is not null
), ways as (
    (select b.start_seq as seq, b.parent_seq as parent from hitherto.branch b
     where b.tenant = %(tenant)s and b.conversation = %(ref)s and b.start_seq > %(after)s
       and (%(seq)s::bigint is null or b.parent_seq = (select parent from place))
     order by b.start_seq limit %(limit)s)
    union
    (select distinct b.parent_seq + 1, b.parent_seq from hitherto.branch b
     where b.tenant = %(tenant)s and b.conversation = %(ref)s and b.parent_seq >= %(after)s
       and (%(seq)s::bigint is null or b.parent_seq = (select parent from place))
     order by 1 limit %(limit)s)
    union
    select %(seq)s::bigint, parent from place where %(seq)s::bigint > %(after)s
)
select m.seq, w.parent, left(m.text, 300), m.said_at, m.said_offset, m.created_at, m.retracted_rev, m.role
from ways w
cross join lateral (
    select * from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = %(ref)s and m.seq = w.seq limit 1
) m
where not exists (
    select 1 from hitherto.branch b
    where b.tenant = %(tenant)s and b.conversation = %(ref)s and b.start_seq = w.seq and b.parent_seq <> w.parent offset 0)
order by m.seq limit %(limit)s;

-- name: transcript
-- The newest messages that users see of a conversation, newest first: those of users and final ones of assistants, each with
-- the message that it follows. Where
-- several ways part between the one before and it: the first message of the present way, its place among them, how many
-- there are, and the first messages of the ways beside it; without ways that begin with what was erased.
-- One message more is read than asked for, as the one before the last. (What is shown ascends with its running count, and is
-- found by that alone: with a seq beside it, the planner would take another index and read all.)
with c as materialized (
    select ref, rev, view_start, view_dialogue, next_seq, dialogue from hitherto.conversation
    where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s limit 1
), bound as materialized (
    select coalesce(case when %(before)s >= c.next_seq then c.dialogue end, (
        select o.sum_dialogue - 1 from hitherto.message o
        where o.tenant = %(tenant)s and o.conversation = c.ref and o.seq = %(before)s and o.retracted_rev is null
          and o.kind = 'text' and o.role in ('user', 'assistant') limit 1), (
        select o.sum_dialogue from hitherto.message o
        where o.tenant = %(tenant)s and o.conversation = c.ref and o.seq < %(before)s and o.retracted_rev is null
        order by o.seq desc limit 1)) as dialogue
    from c
), shown as (
    select m.*, c.view_start - 1 as before_all from c
    cross join lateral (
    select * from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = c.ref and m.kind = 'text' and m.role in ('user', 'assistant')
      and m.retracted_rev is null and not m.erased and m.sum_dialogue > c.view_dialogue
      and (m.expires_at is null or m.expires_at > statement_timestamp())
      and m.sum_dialogue <= (select dialogue from bound)
    order by m.sum_dialogue desc limit %(limit)s::bigint + 1
    ) m
)
select c.rev, {message_columns}, w.seq, w.place, w.ways, w.earlier, w.later,
       coalesce(a.parent_seq, m.seq - 1) as follows
from c
left join (
    select *, lag(seq, 1, before_all) over (order by seq) as earlier from shown
) m on true
left join lateral (
    select f.seq, n.natural + b.place as place, n.natural + b.ways as ways, b.later,
           coalesce(b.earlier, case when n.natural = 1 and f.seq > p.seq + 1 then p.seq + 1 end) as earlier
    from (
        select b.parent_seq as seq from hitherto.branch b
        where b.tenant = %(tenant)s and b.conversation = c.ref and b.parent_seq >= m.earlier and b.parent_seq < m.seq
          and (b.parent_seq < c.view_start or exists (
            select 1 from hitherto.message o
            where o.tenant = %(tenant)s and o.conversation = c.ref and o.seq = b.parent_seq and o.retracted_rev is null offset 0))
        order by b.parent_seq limit 1
    ) p
    cross join lateral (
        select x.seq from (
            select p.seq + 1 as seq
            union all
            select b.start_seq from hitherto.branch b
            where b.tenant = %(tenant)s and b.conversation = c.ref and b.parent_seq = p.seq
        ) x
        cross join lateral (
            select retracted_rev from hitherto.message o
            where o.tenant = %(tenant)s and o.conversation = c.ref and o.seq = x.seq limit 1
        ) o
        where o.retracted_rev is null limit 1
    ) f
    cross join lateral (
        select (not exists (
            select 1 from hitherto.branch b
            where b.tenant = %(tenant)s and b.conversation = c.ref and b.start_seq = p.seq + 1 offset 0)
            and (f.seq = p.seq + 1 or exists (
                select 1 from hitherto.message o
                where o.tenant = %(tenant)s and o.conversation = c.ref and o.seq = p.seq + 1 and not o.erased offset 0)))::integer as natural
    ) n
    cross join lateral (
        select count(*) filter (where b.start_seq <= f.seq) as place, count(*) as ways,
               max(b.start_seq) filter (where b.start_seq < f.seq) as earlier,
               min(b.start_seq) filter (where b.start_seq > f.seq) as later
        from hitherto.branch b
        where b.tenant = %(tenant)s and b.conversation = c.ref and b.parent_seq = p.seq and (b.start_seq = f.seq or exists (
            select 1 from hitherto.message o
            where o.tenant = %(tenant)s and o.conversation = c.ref and o.seq = b.start_seq and not o.erased offset 0))
    ) b
) w on true
left join lateral (
    select parent_seq from hitherto.branch b
    where b.tenant = %(tenant)s and b.conversation = c.ref and b.start_seq = m.seq limit 1
) a on true
order by m.seq desc;

-- name: retracted
-- What was retracted in a conversation, and how long it is.
select retracted::text, next_seq from hitherto.conversation where tenant = %(tenant)s and ref = %(ref)s;

-- part: run_to
-- That run up to message `n.seq`, the message before it, and the last of it that is shown.
select coalesce(b.start_seq, 0) as first, n.seq as last, coalesce(b.parent_seq, -1) as parent, s.seq as shown
from (select 1) one
left join lateral ({branch_of}) b on true
left join lateral (
    select m.seq from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = %(ref)s and m.seq between coalesce(b.start_seq, 0) and n.seq
      and m.retracted_rev is null
    order by m.seq desc limit 1
) s on true

-- name: way_to
-- The runs of messages from message `seq` back to one that is shown, or to the beginning.
with recursive up (first, last, parent, shown) as (
    select r.* from (select %(seq)s::bigint as seq) n cross join lateral ({run_to}) r
    union all
    select r.* from (select parent as seq, shown from up) n cross join lateral ({run_to}) r
    where n.shown is null and n.seq >= 0
)
select first, last, shown from up order by first;

-- name: restore_messages
-- Messages of these ranges, each of one revision at which they were taken back, are shown again.
with gone as (
    select r.first, r.last, m.retracted_rev as rev, min(m.seq) as start_seq, max(m.seq) as end_seq
    from unnest(%(firsts)s::bigint[], %(lasts)s::bigint[]) as r (first, last)
    cross join lateral (
        select seq, retracted_rev from hitherto.message m
        where m.tenant = %(tenant)s and m.conversation = %(ref)s and m.seq between r.first and r.last offset 0
    ) m
    where m.retracted_rev is not null
    group by r.first, r.last, m.retracted_rev
), away as (
    insert into hitherto.absence (tenant, conversation, start_seq, end_seq, from_rev, until_rev)
    select %(tenant)s, %(ref)s, start_seq, end_seq, rev, %(rev)s from gone
    returning start_seq
), digests as (
    update hitherto.digest d set status = 'completed', hidden_rev = null
    from gone g
    where d.tenant = %(tenant)s and d.conversation = %(ref)s and d.status = 'superseded' and d.visible_rev is not null
      and d.hidden_rev = g.rev and d.end_seq between g.start_seq and g.end_seq
    returning d.id
), messages as (
    update hitherto.message m set retracted_rev = null
    from gone g
    where m.tenant = %(tenant)s and m.conversation = %(ref)s and m.seq between g.start_seq and g.end_seq
      and m.retracted_rev = g.rev
)
update hitherto.conversation set switched_rev = %(rev)s, retracted = %(retracted)s
where tenant = %(tenant)s and ref = %(ref)s;

-- name: tools_in
-- The calls, results and reasoning items of these ranges, in their order, without their content.
select m.seq, '{}', m.wire, m.role, m.kind, '', {described_message}
from unnest(%(firsts)s::bigint[], %(lasts)s::bigint[]) as r (first, last)
cross join lateral (
    select * from hitherto.message m
    where m.tenant = %(tenant)s and m.conversation = %(ref)s and m.seq between r.first and r.last
      and m.kind in ('tool_call', 'tool_result', 'reasoning') and not m.erased offset 0
) m
order by m.seq;
