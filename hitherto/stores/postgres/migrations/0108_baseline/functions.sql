-- Functions: what belongs to a scope, what lists count, what is shared, and how the index forgets.

-- What belongs to a scope. Every search goes through this one place: a row of (tenant_, user_, agent_) is within the scope that
-- is asked for; '' is the agent of what belongs to a user as such.
create function hitherto.within(
    tenant_ text, user_ text, agent_ text, tenant text, user_id text, agent text, all_agents boolean
) returns boolean language sql immutable parallel safe as
$$ select tenant_ = tenant and user_ = user_id and (all_agents or agent_ = agent or agent_ = '') $$;

-- What is shared: the facts about a subject that others share with a user of an agent. Only what is current is shared,
-- nothing that is about its owner, and only among members. Every statement that shows facts of others takes them
-- from here; it is planned as if it stood there (so one statement, and nothing that would keep it from that).
create function hitherto.shared_with(tenant_ text, user_ text, agent_ text, subject_ text)
returns setof hitherto.fact language sql stable as $$
    select f.* from hitherto.shown_facts(tenant_) f
    where f.tenant = tenant_ and f.subject = subject_ and f.subject <> '' and f.agent = agent_ and f.state = 'current'
      and f.visibility = 'shared' and f.user_id <> user_
      and f.user_id = any(array(
          select m.user_id from hitherto.subject_member m where m.tenant = tenant_ and m.subject = subject_))
      and exists (
          select from hitherto.subject_member m
          where m.tenant = tenant_ and m.user_id = user_ and m.subject = subject_)
$$;

-- What goes with entries of a scope that are gone: their vectors; and what stands in segments is to be put in order later.
-- Looked up by arrays and not joined: a planner that takes them for many would read all vectors there are.
create function hitherto.unindexed(tenant_ text, scope_ bigint, nos bigint[]) returns void language plpgsql as $$
begin
    delete from hitherto.search_vector v
    where v.tenant = tenant_ and v.scope = scope_ and v.space = any(array(select id from hitherto.search_space))
      and v.no = any(nos);
    update hitherto.search_segment g set stale = true
    where g.tenant = tenant_ and g.scope = scope_
      and g.segment = any(array(select distinct (n / 4096)::integer from unnest(nos) n));
    update hitherto.search_scope s set stale = true
    where s.tenant = tenant_ and s.ref = scope_ and s.packed > (select min(n) from unnest(nos) n);
end $$;

-- What tenants, users and agents have, to be counted by any of these names: conversations, documents and facts. Which facts
-- count is a column and no condition here: a planner then reads each table in the order of an index, as far as a page goes.
create view hitherto.owned as
select tenant, user_id, agent, 1 as conversations, next_seq as messages, tokens, 0 as documents, 0 as facts, updated_at,
       true as counted
from hitherto.conversation
union all
select tenant, user_id, agent, 0, 0::bigint, 0::bigint, 1, 0, null::timestamptz, true from hitherto.document
union all
select tenant, user_id, agent, 0, 0::bigint, 0::bigint, 0, 1, null::timestamptz, state = 'current' from hitherto.fact;

-- Whether metadata has every entry that is wanted: an equal value, or a list that contains it.
create function hitherto.has_metadata(metadata jsonb, wanted jsonb) returns boolean language sql immutable parallel safe as $$
    select not exists (
        select from jsonb_each(wanted) as w (key, value)
        where metadata -> w.key is distinct from w.value
          and not (jsonb_typeof(metadata -> w.key) is not distinct from 'array' and exists (
              select from jsonb_array_elements(
                  case when jsonb_typeof(metadata -> w.key) = 'array' then metadata -> w.key else '[]' end) as e (value)
              where e.value = w.value)))
$$;

-- The beginning of the first user message that a conversation shows: its title, where it was given none.
create function hitherto.opening(tenant_ text, conversation_ bigint, view_turns_ bigint) returns text language sql stable as $$
    select left(m.text, 300) from hitherto.message m
    where m.tenant = tenant_ and m.conversation = conversation_ and m.sum_turns > view_turns_ and m.kind = 'text'
      and m.role = 'user' and m.retracted_rev is null and not m.erased
      and (m.expires_at is null or m.expires_at > statement_timestamp())
    order by m.sum_turns limit 1
$$;
