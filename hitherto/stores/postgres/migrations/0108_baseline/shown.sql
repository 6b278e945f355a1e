-- What may be shown to others of what rests on messages: nothing that rests on one whose time has come, whether it is erased
-- yet or not. Whatever shows digests, documents or facts beside their own conversation takes them from here. Planned as if it
-- stood where it is used.

-- Whether messages of a conversation wait to be erased: which of its digests and documents rest on them is known once they are.
create function hitherto.expiring(next_expiry timestamptz) returns boolean language sql stable as
$$ select coalesce(next_expiry <= statement_timestamp(), false) $$;

-- Conversations of which messages wait to be erased, each by its tenant: off the index that holds times alone.
create view hitherto.expiring_conversation as
select tenant from hitherto.conversation where next_expiry <= statement_timestamp() offset 0;

-- The summary that stands for a conversation whose view begins there.
create function hitherto.standing_summary(tenant_ text, conversation_ bigint, view_start_ bigint)
returns setof hitherto.digest language sql stable as $$
    select s.* from hitherto.digest s
    where s.tenant = tenant_ and s.conversation = conversation_ and s.action = 'summarize' and s.visible_rev is not null
      and s.hidden_rev is null and s.end_seq >= view_start_
    order by s.end_seq desc, s.id desc limit 1
$$;

-- Digests that views use now, each with its conversation: the standing summary, and every chunk.
create view hitherto.live_digest as
select d.tenant, d.id, d.conversation, d.action, d.start_seq, d.end_seq, d.text, d.indexed, c.id as conversation_id, c.user_id,
       c.agent, c.subject, c.next_expiry
from hitherto.digest d
cross join lateral (
    select * from hitherto.conversation c where c.tenant = d.tenant and c.ref = d.conversation limit 1
) c
where d.action in ('summarize', 'chunk') and d.status = 'completed' and d.visible_rev is not null and d.hidden_rev is null
  and d.end_seq >= c.view_start
  and (d.action = 'chunk' or d.id = (select s.id from hitherto.standing_summary(c.tenant, c.ref, c.view_start) s));

-- Those of them that may be shown.
create view hitherto.shown_digest as
select * from hitherto.live_digest d where not hitherto.expiring(d.next_expiry);

-- Documents that may be shown, each with the conversation it was archived from.
create view hitherto.shown_document as
select d.*, c.id as conversation_id, c.subject
from hitherto.document d
left join lateral (
    select id, subject, next_expiry from hitherto.conversation c
    where c.tenant = d.tenant and c.ref = d.conversation limit 1
) c on true
where not hitherto.expiring(c.next_expiry);

-- Facts of a tenant that may be shown: a person confirmed it, or a message says it whose time has not come. One that lost all
-- its messages with their conversation stays too. (As subqueries of one row, so that no plan goes through all evidence.)
create function hitherto.shown_facts(tenant_ text) returns setof hitherto.fact language sql stable as $$
    select f.* from hitherto.fact f
    where f.tenant = tenant_ and (
        f.confirmed
        or not exists (select from hitherto.expiring_conversation c where c.tenant = tenant_)
        or (select true from hitherto.fact_evidence e
            where e.tenant = f.tenant and e.fact = f.id and not e.retracted limit 1) is null
        or (select true from hitherto.fact_evidence e
            cross join lateral (
                select expires_at from hitherto.message m
                where m.tenant = e.tenant and m.conversation = e.conversation and m.seq = e.seq limit 1
            ) m
            where e.tenant = f.tenant and e.fact = f.id and not e.retracted
              and (m.expires_at is null or m.expires_at > statement_timestamp()) limit 1))
$$;

-- The summary that stands for a conversation, if it may be shown, and how many of the messages that it covers are the user's
-- or final answers.
create function hitherto.summary_of(tenant_ text, conversation_ bigint, view_start_ bigint, next_expiry_ timestamptz)
returns table (id bigint, summary text, summarized_count bigint, created_at timestamptz, updated_at timestamptz)
language sql stable as $$
    select s.id, s.text,
           coalesce((select m.sum_dialogue from hitherto.message m
                     where m.tenant = tenant_ and m.conversation = conversation_ and m.seq <= s.end_seq and m.retracted_rev is null
                     order by m.seq desc limit 1), 0)
           - coalesce((select m.sum_dialogue from hitherto.message m
                       where m.tenant = tenant_ and m.conversation = conversation_ and m.seq < s.start_seq and m.retracted_rev is null
                       order by m.seq desc limit 1), 0),
           s.created_at, s.completed_at
    from hitherto.standing_summary(tenant_, conversation_, view_start_) s
    where not hitherto.expiring(next_expiry_)
$$;
