-- Forks: conversations that begin with the messages of another one, of which each has a copy, as of the digests that rest on
-- them. The entry of a message or of a digest in the index is there once, of one conversation that shows it.

-- part: relatives
-- The conversations that have the first messages of the conversation `c` too, and up to which one: those that it was
-- forked from, and the forks of all of these.
with recursive sources (ref, through, came_from) as (
    select c.ref, 9223372036854775807, null::bigint
    union all
    select f.source, least(u.through, f.end_seq), f.conversation
    from sources u
    cross join lateral (
        select * from hitherto.fork f where f.tenant = %(tenant)s and f.conversation = u.ref limit 1
    ) f
    where f.source is not null
), relatives (ref, through, came_from) as (
    select ref, through, came_from from sources
    union all
    select f.conversation, least(k.through, f.end_seq), null
    from relatives k
    cross join lateral (
        select * from hitherto.fork f where f.tenant = %(tenant)s and f.source = k.ref offset 0
    ) f
    where f.conversation is distinct from k.came_from
)
select ref, through from relatives where ref <> c.ref

-- part: shows
-- The messages that the conversation `h` shows, and all that are to come.
int8multirange(int8range(h.view_start, null)) - coalesce((
    select range_agg(int8range((one ->> 0)::bigint, (one ->> 1)::bigint, '[]')) from (
        select json_array_elements(h.retracted) as one
        union all
        select json_array_elements(h.erased)
    ) hidden), '{}')

-- part: family
-- The relatives of the conversation `c`, and which of the messages in common each of them shows.
select k.ref, k.through, h.private, h.view_start, ({shows}) * int8multirange(int8range(null, k.through, '[]')) as shown
from ({relatives}) k
cross join lateral (
    select view_start, private, retracted, erased from hitherto.conversation h
    where h.tenant = %(tenant)s and h.ref = k.ref limit 1
) h

-- part: copy
-- The digest of the relative `k` that is the same as `d`: it came with a fork to one of the two.
select o.id, o.action, o.end_seq, o.visible_rev, o.hidden_rev from hitherto.digest o
where o.tenant = %(tenant)s and o.conversation = k.ref and o.stage = d.stage and o.start_seq = d.start_seq and o.end_seq = d.end_seq
  and o.status = 'completed' and o.text = d.text and d.end_seq <= k.through limit 1

-- part: in_use
-- Whether views of the conversation `k` use its digest `o` now: as `live_digests`, without another look-up.
o.visible_rev is not null and o.hidden_rev is null and o.end_seq >= k.view_start and (o.action = 'chunk' or o.id = (
    select s.id from (select k.ref, k.view_start) c cross join lateral ({standing_summary}) s))

-- part: moved
-- The entries `moves` of one scope become those of other sources.
moved as (
    update hitherto.search_entry e set origin = h.origin, place = h.place
    from moves h
    where e.tenant = %(tenant)s and e.scope = (select scope from moves limit 1) and e.no = any(array(select no from moves))
      and e.no = h.no
    returning e.scope, e.no
), segments as (
    update hitherto.search_segment g set stale = true
    where g.tenant = %(tenant)s and g.scope = (select scope from moved limit 1)
      and g.segment = any(array(select distinct (no / 4096)::integer from moved))
)
update hitherto.search_scope s set stale = true
where s.tenant = %(tenant)s and s.ref = (select scope from moved limit 1) and s.packed > (select min(no) from moved)

-- name: fork_conversation
-- Insert a conversation that is as described as another one; nothing if there is one of that name.
insert into hitherto.conversation (tenant, user_id, agent, id, title, metadata, ttl, indexed_seq, rev, next_seq)
select tenant, user_id, agent, %(fork)s, title, metadata, ttl, least(indexed_seq, %(stop)s::bigint), rev, %(stop)s
from hitherto.conversation where tenant = %(tenant)s and ref = %(source)s
on conflict (tenant, user_id, agent, id) do nothing
returning ref;

-- name: forked_before
-- A fork of a conversation, of that name, to which nothing was added; the last message that both have.
select f.end_seq from (
    select ref, next_seq from hitherto.conversation c
    where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(fork)s limit 1
) c
cross join lateral (
    select end_seq from hitherto.fork f
    where f.tenant = %(tenant)s and f.conversation = c.ref and f.source = %(source)s and f.end_seq = c.next_seq - 1 limit 1
) f;

-- name: digests_to_copy
-- The digests that rest on messages below `stop` alone, those in use and those of branches that were left, and an id for a
-- copy of each.
select id, nextval('hitherto.digest_id_seq') from (
    select id from hitherto.digest d
    where tenant = %(tenant)s and conversation = %(source)s and visible_rev is not null and action <> 'facts' and end_seq < %(stop)s
      and (status = 'completed' and hidden_rev is null or status = 'superseded' and exists (
          select 1 from hitherto.message m
          where m.tenant = %(tenant)s and m.conversation = %(source)s and m.seq = d.end_seq and m.retracted_rev = d.hidden_rev offset 0))
    order by id
) d;

-- name: copy_digests
with copied as (
    insert into hitherto.digest (id, tenant, conversation, stage, spec, policy, needs, action, start_seq, end_seq, base_id, status,
        attempt, tokens, freed, since, kept_from, opaque, family, fired_rev, visible_rev, hidden_rev, created_at, completed_at,
        items, text, model, prompt_version, generation_time_ms, indexed)
    select n.id, d.tenant, %(ref)s, d.stage, d.spec, d.policy, d.needs, d.action, d.start_seq, d.end_seq, b.id, d.status,
           d.attempt, d.tokens, d.freed, d.since, d.kept_from, d.opaque, d.family, d.fired_rev, d.visible_rev, d.hidden_rev,
           d.created_at, d.completed_at, d.items, d.text, d.model, d.prompt_version, d.generation_time_ms, exists (
               select 1 from hitherto.search_entry e
               where e.tenant = %(tenant)s and e.kind = 2 and e.origin = %(source)s and e.place = d.id offset 0)
    from unnest(%(digests)s::bigint[], %(copies)s::bigint[]) as n (of, id)
    cross join lateral (
        select * from hitherto.digest d where d.tenant = %(tenant)s and d.id = n.of and d.conversation = %(source)s limit 1
    ) d
    left join unnest(%(digests)s::bigint[], %(copies)s::bigint[]) as b (of, id) on b.of = d.base_id
    returning id
)
select count(*) from copied;

-- name: copy_messages
with copied as (
    insert into hitherto.message (tenant, conversation, seq, wire, role, kind, text, payload, call_ids, result_ids, tool_names,
        metadata, tokens, sum_tokens, sum_turns, sum_dialogue, sum_results, rev, created_at, expires_at, said_at,
        said_offset, erased, retracted_rev, own_id, own_key)
    select tenant, %(ref)s, seq, wire, role, kind, text, payload, call_ids, result_ids, tool_names, metadata, tokens, sum_tokens,
           sum_turns, sum_dialogue, sum_results, rev, created_at, expires_at, said_at, said_offset, erased, retracted_rev, own_id,
           own_key
    from hitherto.message where tenant = %(tenant)s and conversation = %(source)s and seq < %(stop)s
    order by seq
    returning seq
)
select count(*) from copied;

-- name: copy_branches
insert into hitherto.branch (tenant, conversation, start_seq, parent_seq)
select tenant, %(ref)s, start_seq, parent_seq from hitherto.branch
where tenant = %(tenant)s and conversation = %(source)s and start_seq < %(stop)s
returning start_seq;

-- name: copy_open_calls
insert into hitherto.open_call (tenant, conversation, call_hash, call_id, seq, group_seq, turn, tool)
select tenant, %(ref)s, call_hash, call_id, seq, group_seq, turn, tool from hitherto.open_call
where tenant = %(tenant)s and conversation = %(source)s and seq < %(stop)s
returning seq;

-- name: copy_forgettings
insert into hitherto.forgetting (tenant, conversation, turn, seq, at, user_id, agent)
select tenant, %(ref)s, turn, seq, at, user_id, agent from hitherto.forgetting
where tenant = %(tenant)s and conversation = %(source)s and seq < %(stop)s
returning seq;

-- name: copy_evidence
insert into hitherto.fact_evidence (tenant, fact, conversation, seq, said_at, retracted, mention)
select e.tenant, e.fact, %(ref)s, e.seq, e.said_at, e.retracted, e.mention from hitherto.fact_evidence e
where e.tenant = %(tenant)s and e.conversation = %(source)s and e.seq < %(stop)s
returning fact;

-- name: insert_fork
insert into hitherto.fork (tenant, conversation, source, end_seq, rev)
values (%(tenant)s, %(ref)s, %(source)s, %(end)s, %(rev)s);

-- name: relatives_with
-- Of the conversations that have these messages, each up to a bound, and their relatives: those that have any that is not
-- erased yet, with these. (All have the first messages in common: the family is reached from the one with most that is there.)
select o.ref, o.id, s.seqs
from (
    select o.ref, c.through from unnest(%(refs)s::bigint[], %(throughs)s::bigint[]) as c (ref, through)
    cross join lateral (
        select ref from hitherto.conversation o where o.tenant = %(tenant)s and o.ref = c.ref limit 1
    ) o
    order by c.through desc limit 1
) c
cross join lateral (
    select k.ref, least(c.through, k.through) as through from ({relatives}) k
    union all
    select c.ref, c.through
) k
cross join lateral (
    select ref, id from hitherto.conversation o where o.tenant = %(tenant)s and o.ref = k.ref limit 1
) o
cross join lateral (
    select array_agg(n.seq) as seqs, k.through from unnest(%(seqs)s::bigint[]) as n (seq)
    cross join lateral (
        select 1 from hitherto.message m
        where m.tenant = %(tenant)s and m.conversation = k.ref and m.seq = n.seq and not m.erased limit 1
    ) m
    where n.seq <= k.through
) s
where s.seqs is not null
order by o.ref;

-- name: relatives_of
-- The conversations that have the first messages of this one too, and up to which one.
select k.ref, k.through from (select %(ref)s::bigint as ref) c cross join lateral ({relatives}) k;

-- name: done_in_relatives
-- Which messages of each relative are erased, and which were read for facts about the same subject; up to which they are
-- those of this conversation.
select k.through, o.erased::text, o.extracted::text
from (select ref, subject from hitherto.conversation c where c.tenant = %(tenant)s and c.ref = %(ref)s limit 1) c
cross join lateral ({relatives}) k
cross join lateral (
    select erased::text, case when o.subject = c.subject and not o.private then o.extracted end as extracted
    from hitherto.conversation o where o.tenant = %(tenant)s and o.ref = k.ref limit 1
) o;

-- name: move_entries
-- Messages of these ranges are shown no more: what the index has of them is that of another conversation that shows them,
-- if there is one that is not private.
with family as materialized (
    select k.* from (select %(ref)s::bigint as ref) c cross join lateral ({family}) k
), moves as materialized (
    select e.scope, e.no, k.ref as origin, e.place
    from unnest(%(ranges)s::int8multirange) r
    cross join lateral (
        select e.scope, e.no, e.place from hitherto.search_entry e
        where e.tenant = %(tenant)s and e.kind = 1 and e.origin = %(ref)s and e.place >= lower(r) and e.place < upper(r) offset 0
    ) e
    cross join lateral (select ref from family k where k.shown @> e.place order by k.private, k.ref limit 1) k
    where exists (select 1 from family)
), {moved};

-- name: move_digests
-- What the index has of a conversation's digests is that of a copy which another one uses: of all of them, or of those that
-- this one uses no more.
with family as materialized (
    select k.* from (select %(ref)s::bigint as ref) c cross join lateral ({family}) k
), moves as materialized (
    select e.scope, e.no, o.origin, o.place
    from (
        select e.scope, e.no, e.place from hitherto.search_entry e
        where e.tenant = %(tenant)s and e.kind = 2 and e.origin = %(ref)s offset 0
    ) e
    cross join lateral (
        select * from hitherto.digest d where d.tenant = %(tenant)s and d.id = e.place limit 1
    ) d
    cross join lateral (
        select k.ref as origin, o.id as place from family k cross join lateral ({copy}) o
        where {in_use}
        order by k.private, k.ref limit 1
    ) o
    where exists (select 1 from family) and (%(all)s or not exists (
        select 1 from (select d.*) o
        cross join lateral (
            select ref, view_start from hitherto.conversation k where k.tenant = %(tenant)s and k.ref = %(ref)s limit 1
        ) k
        where {in_use} offset 0))
), {moved};

-- name: move_forks
-- A conversation is to be deleted: what it was forked from and its forks are forks of the one among these that has most
-- of its messages.
with source as materialized (
    select f.source as ref, f.end_seq from hitherto.fork f where f.tenant = %(tenant)s and f.conversation = %(ref)s
), closest as materialized (
    select ref from (
        select f.conversation as ref, f.end_seq from hitherto.fork f where f.tenant = %(tenant)s and f.source = %(ref)s
        union all
        select ref, end_seq from source where ref is not null
    ) n
    order by end_seq desc, ref limit 1
), others as (
    update hitherto.fork f set source = h.ref
    from closest h
    where f.tenant = %(tenant)s and f.source = %(ref)s and f.conversation <> h.ref
)
update hitherto.fork f set source = (select ref from source), end_seq = least(f.end_seq, (select end_seq from source))
where f.tenant = %(tenant)s and f.source = %(ref)s and f.conversation = (select ref from closest);
