-- Lists of conversations, and of tenants, users and agents.

-- part: listed_page
-- The rows of a page: as many as it has room for. One more was asked for, which tells whether there are more.
select l.user_id, l.agent, l.id, l.title, l.opening, l.metadata, l.messages, l.tokens, l.rev, l.created_at, l.updated_at, l.said_at, l.ref,
       l.summary, l.summarized_count, l.failures, l.more

-- part: listed_columns
-- A row, with how large the page is up to it, and whether there is one behind it.
select c.user_id, c.agent, c.id, c.title, case when c.title is null then ({opening}) end as opening,
       c.metadata::text as metadata, c.dialogue - c.view_dialogue as messages, c.tokens - c.view_tokens as tokens, c.rev,
       c.created_at, c.updated_at, c.said_at, c.ref,
       coalesce(s.summary, '') as summary, coalesce(s.summarized_count, 0) as summarized_count, c.failures,
       sum(octet_length(c.metadata::text) + coalesce(octet_length(s.summary), 0) + %(entry)s::integer)
           over (order by c.said_at desc, c.ref desc) as sizes,
       row_number() over (order by c.said_at desc, c.ref desc) as nth,
       lead(true, 1, false) over (order by c.said_at desc, c.ref desc) as more

-- part: listed_fits
where l.nth <= %(limit)s::bigint and (l.sizes <= %(size)s::bigint or l.nth = 1)
order by l.said_at desc, l.ref desc

-- name: listed
-- A scope's conversations, the one in which something was said last first, read in the order of an index. (Row-level security lets an index
-- be looked up by a value only if that does not come from coalesce() itself; hence each `select`.)
{listed_page}
from (
    {listed_columns}
    from (
        select * from hitherto.conversation c
        where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s
          and c.said_at >= (select coalesce(%(after)s::timestamptz, '-infinity'))
          and c.said_at <= (select coalesce(%(before)s::timestamptz, 'infinity'))
          and (c.said_at, c.ref) < ((select coalesce(%(beyond_at)s::timestamptz, 'infinity')), (select coalesce(%(beyond_ref)s::bigint, 0)))
          and (%(metadata)s::jsonb = '{}' or hitherto.has_metadata(c.metadata, %(metadata)s::jsonb))
        order by c.said_at desc, c.ref desc
        limit %(limit)s::bigint + 1
    ) c
    left join lateral ({summary}) s on true
) l
{listed_fits};

-- name: listed_within
-- The same of a tenant, or of a user or an agent of it: all of these are read.
{listed_page}
from (
    {listed_columns}
    from (
        select * from hitherto.conversation c
        where c.tenant = %(tenant)s and (%(user)s::text is null or c.user_id = %(user)s)
          and (%(agent)s::text is null or c.agent = %(agent)s)
          and c.said_at >= coalesce(%(after)s::timestamptz, '-infinity')
          and c.said_at <= coalesce(%(before)s::timestamptz, 'infinity')
          and (c.said_at, c.ref) < (coalesce(%(beyond_at)s::timestamptz, 'infinity'), coalesce(%(beyond_ref)s::bigint, 0))
          and (%(metadata)s::jsonb = '{}' or hitherto.has_metadata(c.metadata, %(metadata)s::jsonb))
        order by c.said_at desc, c.ref desc
        limit %(limit)s::bigint + 1
    ) c
    left join lateral ({summary}) s on true
) l
{listed_fits};

-- name: info
-- One conversation.
select c.user_id, c.agent, c.id, c.title, case when c.title is null then ({opening}) end,
       c.metadata::text, c.dialogue - c.view_dialogue, c.tokens - c.view_tokens, c.rev, c.created_at, c.updated_at, c.said_at,
       c.ref, coalesce(s.summary, ''),
       coalesce(s.summarized_count, 0), c.failures
from hitherto.conversation c
left join lateral ({summary}) s on true
where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(conversation)s;

-- part: counts
sum(conversations)::bigint, sum(messages)::bigint, sum(tokens)::bigint, sum(documents)::bigint, sum(facts)::bigint, max(updated_at)

-- name: tenants
-- The tenants after a name, or one tenant, by name, with what is kept of each.
select tenant, {counts} from hitherto.owned
where counted and tenant > %(beyond)s and (%(tenant)s::text is null or tenant = %(tenant)s)
group by tenant order by tenant limit %(limit)s;

-- name: users
-- The users of a tenant after a name, or one of them, likewise. Each table is read in the order of an index from a name on, as
-- far as a page goes; that of facts in all its states, for that order.
select user_id, {counts}
from (
    (select user_id, count(*) as conversations, sum(next_seq)::bigint as messages, sum(tokens)::bigint as tokens, 0 as documents,
            0::bigint as facts, max(updated_at) as updated_at
     from hitherto.conversation
     where tenant = %(tenant)s and user_id >= %(start)s
     group by user_id order by user_id limit %(limit)s + 1)
    union all
    (select user_id, 0, 0, 0, count(*), 0, null
     from hitherto.document
     where tenant = %(tenant)s and user_id >= %(start)s
     group by user_id order by user_id limit %(limit)s + 1)
    union all
    (select user_id, 0, 0, 0, 0, count(*) filter (where state = 'current'), null
     from hitherto.fact
     where tenant = %(tenant)s and user_id >= %(start)s
     group by user_id having count(*) filter (where state = 'current') > 0 order by user_id limit %(limit)s + 1)
) o
where user_id > %(beyond)s and (%(user)s::text is null or user_id = %(user)s)
group by user_id order by user_id limit %(limit)s;

-- name: agents
-- The agents of a tenant, or of one of its users, after a name likewise. What belongs to no agent is left out: its
-- name would be '', which comes after no name.
select agent, {counts}
from (
    select user_id, agent, 1 as conversations, next_seq as messages, tokens, 0 as documents, 0 as facts, updated_at
    from hitherto.conversation where tenant = %(tenant)s and agent > %(beyond)s
    union all
    select user_id, agent, 0, 0::bigint, 0::bigint, 1, 0, null::timestamptz
    from hitherto.document where tenant = %(tenant)s and agent > %(beyond)s
    union all
    select user_id, agent, 0, 0::bigint, 0::bigint, 0, 1, null::timestamptz
    from hitherto.fact where tenant = %(tenant)s and agent > %(beyond)s and state = 'current'
) o
where %(user)s::text is null or user_id = %(user)s
group by agent order by agent limit %(limit)s;
