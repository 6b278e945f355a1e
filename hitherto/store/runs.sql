-- Runs. One is looked up by its id; whose it is, is compared in a way that no index serves.

-- part: run_columns
r.id, r.conversation, r.strategy, r.injection, r.start_seq as start, r.end_seq as end, r.status, r.freed, r.events, r.started_at, r.ended_at

-- name: begin_run
-- A run, whose messages are those that come next, or those from a seq on.
insert into hitherto.run as r (tenant, id, user_id, agent, conversation, strategy, injection, start_seq)
select %(tenant)s, gen_random_uuid(), %(user)s, %(agent)s, %(conversation)s, %(strategy)s, %(injection)s,
       coalesce(%(start)s::bigint, (
           select next_seq from hitherto.conversation
           where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and id = %(conversation)s), 0)
returning {run_columns};

-- name: count_run_events
-- Count a run's events up, if it goes on: the lock waits for who may be about to erase or to end it.
update hitherto.run set events = events + cardinality(%(kinds)s::text[])
where tenant = %(tenant)s and id = %(run)s and user_id is not distinct from %(user)s
  and agent is not distinct from %(agent)s and status = 'running'
returning id;

-- name: add_run_events
-- Events of a run that was counted up for them.
insert into hitherto.run_event (tenant, run, no, kind, name, call_id, payload)
select r.tenant, r.id, r.events - cardinality(%(kinds)s::text[]) + e.place - 1, e.kind, e.name, e.call_id,
       case when not (r.erased and hitherto.quotes(e.kind)) then e.payload::json end
from hitherto.run r
cross join unnest(%(kinds)s::text[], %(names)s::text[], %(call_ids)s::text[], %(payloads)b::text[])
    with ordinality as e (kind, name, call_id, payload, place)
where r.tenant = %(tenant)s and r.id = %(run)s and r.user_id is not distinct from %(user)s
  and r.agent is not distinct from %(agent)s and r.status = 'running'
returning no;

-- name: end_run
-- End a run, if it goes on. The newest message is its last.
update hitherto.run r
set status = %(status)s, freed = %(freed)s, ended_at = hitherto.clock(),
    end_seq = (
        select c.next_seq - 1 from hitherto.conversation c
        where c.tenant = %(tenant)s and c.user_id = r.user_id and c.agent = r.agent and c.id = r.conversation
          and c.next_seq > r.start_seq)
where r.tenant = %(tenant)s and r.id = %(run)s and r.user_id is not distinct from %(user)s
  and r.agent is not distinct from %(agent)s and r.status = 'running'
returning {run_columns};

-- name: run
-- One run.
select {run_columns}
from hitherto.run r
where r.tenant = %(tenant)s and r.id = %(run)s and r.user_id is not distinct from %(user)s
  and r.agent is not distinct from %(agent)s;

-- name: runs
-- The runs of a conversation that were begun last.
select {run_columns}
from hitherto.run r
where r.tenant = %(tenant)s and r.user_id = %(user)s and r.agent = %(agent)s and r.conversation = %(conversation)s
  and (r.started_at, r.id) < (
      (select coalesce((select b.started_at from hitherto.run b
                where b.tenant = %(tenant)s and b.id = %(before)s and b.user_id is not distinct from %(user)s
                  and b.agent is not distinct from %(agent)s and b.conversation is not distinct from %(conversation)s),
               case when %(before)s::uuid is null then 'infinity'::timestamptz end)),
      (select coalesce(%(before)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')))
order by r.started_at desc, r.id desc limit %(limit)s;

-- name: run_events
-- Events of a run, as many as a page has room for. While messages of its conversation wait to be erased, none quotes
-- anything.
select e.no, e.kind, e.name, e.call_id,
       case when not (hitherto.expiring(c.next_expiry) and hitherto.quotes(e.kind)) then e.payload::text end as raw, e.created_at
from hitherto.run r
cross join lateral (
    select e.*, sum(e.size + %(entry)s::integer) over (order by e.no) as sizes, row_number() over (order by e.no) as nth
    from hitherto.run_event e
    where e.tenant = %(tenant)s and e.run = r.id and e.no > %(after)s
    order by e.no limit %(limit)s
) e
left join lateral (
    select next_expiry from hitherto.conversation c
    where c.tenant = %(tenant)s and c.user_id = r.user_id and c.agent = r.agent and c.id = r.conversation limit 1
) c on true
where r.tenant = %(tenant)s and r.id = %(run)s and r.user_id is not distinct from %(user)s
  and r.agent is not distinct from %(agent)s and (e.sizes <= %(size)s::bigint or e.nth = 1)
order by e.no;

-- name: forget_runs_of
-- Delete the runs of a conversation, with their events.
delete from hitherto.run
where tenant = %(tenant)s and user_id = %(user)s and agent = %(agent)s and conversation = %(conversation)s;
