-- Functions: the time, what belongs to a scope, and what lists count. None but those that look across tenants reads a table: a
-- statement that calls such a function cannot be sent to the one server that has the tenant's rows.

-- The time that is given, or else the present one, in a change and in a condition. Not volatile, so that an index can be asked
-- for it, and a router can send on what it was.
create function hitherto.clock(given timestamptz default null) returns timestamptz language plpgsql stable as $$
begin
    return coalesce(given, clock_timestamp());
end $$;

-- Whether messages of a conversation wait to be erased: which of its digests and documents rest on them is known once they are.
create function hitherto.expiring(next_expiry timestamptz) returns boolean language sql stable as
$$ select coalesce(next_expiry <= statement_timestamp(), false) $$;

-- What belongs to a scope, of the rows of one tenant. Every search goes through this one place: what is of user_ and agent_ is
-- within the scope that is asked for; '' is the agent of what belongs to a user as such.
create function hitherto.within(user_ text, agent_ text, user_id text, agent text, all_agents boolean)
returns boolean language sql immutable parallel safe as
$$ select user_ = user_id and (all_agents or agent_ = agent or agent_ = '') $$;

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
