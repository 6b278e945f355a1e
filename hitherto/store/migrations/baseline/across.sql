-- What must look across tenants: due work (and `key_of` in keys.sql). These functions run with their owner's rights, past
-- row-level security. They only read, and return tenants, names and numbers, never text. In PL/pgSQL, so that what they do
-- is planned by itself.

-- Digests that can be claimed and that the asker can make, the longest due first, those of busy tenants after all others,
-- which pass them over one by one; read from an index of rows in progress alone. The third part has those whose due time
-- was set before the clock was put back. A bitmap scan, which a table without
-- statistics would get, reads and sorts all that are due.
create function hitherto.due_digests(limit_ bigint, able_ text[], busy_ text[])
returns table (tenant text, digest bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
    return query
        (select tenant, id from hitherto.digest
         where status = 'processing' and due_at <= statement_timestamp() and tenant <> all(busy_)
           and case when needs is null then true else needs = any(able_) end order by due_at limit limit_)
        union all
        (select tenant, id from hitherto.digest
         where status = 'processing' and due_at <= statement_timestamp() and tenant = any(busy_)
           and case when needs is null then true else needs = any(able_) end order by due_at limit limit_)
        union all
        (select tenant, id from hitherto.digest
         where status = 'processing' and due_at > statement_timestamp() + interval '2 hours'
           and case when needs is null then true else needs = any(able_) end order by due_at limit limit_)
        limit limit_;
end $$;

-- The newest failed digests of conversations that have rested, read from an index of conversations that rest alone.
create function hitherto.rested_digests(limit_ bigint, able_ text[])
returns table (tenant text, user_id text, agent text, conversation text, digest bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select c.tenant, c.user_id, c.agent, c.id, d.id
        from hitherto.conversation c
        cross join lateral (
            select id, needs from hitherto.digest d
            where d.tenant = c.tenant and d.conversation = c.ref and d.status = 'failed' order by d.id desc limit 1
        ) d
        where c.resume_at <= statement_timestamp() and case when d.needs is null then true else d.needs = any(able_) end
        order by c.resume_at limit limit_;
end $$;

-- Conversations that rest and are to be read for facts, the longest due first, read from an index of such rows alone.
create function hitherto.unread_conversations(limit_ bigint)
returns table (tenant text, user_id text, agent text, conversation text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select tenant, user_id, agent, id from hitherto.conversation where facts_due_at <= statement_timestamp()
        order by facts_due_at limit limit_;
end $$;

-- Which of some digests are due or claimed.
create function hitherto.unsettled_digests(tenants_ text[], digests_ bigint[])
returns table (tenant text, digest bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select d.tenant, d.id
        from unnest(tenants_, digests_) as asked (tenant, id)
        cross join lateral (
            select tenant, id from hitherto.digest d
            where d.tenant = asked.tenant and d.id = asked.id and d.completed_at is null
              and (d.claimed or d.due_at <= statement_timestamp() or d.due_at > statement_timestamp() + interval '2 hours')
            limit 1
        ) d;
end $$;

-- Figures on the digests in progress, of all tenants or one, how many conversations begin none for now, and how many workers had a heartbeat
-- lately. A due time further ahead than any that is set was set before the clock was put back: it counts as reached.
create function hitherto.digest_backlog(tenant_ text)
returns table (due bigint, claimed bigint, put_off bigint, lag_seconds double precision, lag_messages bigint, resting bigint, workers bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select count(*) filter (where not waits), count(*) filter (where claimed and waits),
               count(*) filter (where not claimed and waits),
               coalesce(extract(epoch from max(now - created_at)), 0)::float8, coalesce(max(behind), 0),
               (select count(*) from hitherto.conversation
                where resume_at > statement_timestamp() and resume_at < statement_timestamp() + interval '2 hours' and failures > 1
                  and (tenant_ is null or tenant = tenant_)),
               (select count(*) from hitherto.worker where seen_at > statement_timestamp() - interval '30 seconds')
        from (
            select d.claimed, d.created_at, statement_timestamp() as now,
                   d.due_at > statement_timestamp() and d.due_at <= statement_timestamp() + interval '2 hours' as waits,
                   c.next_seq - greatest(d.start_seq, coalesce(b.end_seq + 1, 0)) as behind
            from hitherto.digest d
            cross join lateral (
                select next_seq from hitherto.conversation c where c.tenant = d.tenant and c.ref = d.conversation limit 1
            ) c
            left join lateral (
                select end_seq from hitherto.digest b where b.tenant = d.tenant and b.id = d.base_id limit 1
            ) b on true
            where d.status = 'processing' and (tenant_ is null or d.tenant = tenant_)
        ) d;
end $$;

-- Conversations with expired messages that are not erased yet, read from an index of such rows alone; the volatile
-- clock_timestamp() would keep it from being used.
create function hitherto.due_conversations(tenant_ text, limit_ bigint)
returns table (tenant text, user_id text, agent text, conversation text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select tenant, user_id, agent, id from hitherto.conversation where next_expiry <= statement_timestamp()
          and (tenant_ is null or tenant = tenant_) limit limit_;
end $$;

-- The erasures that have not ended.
create function hitherto.begun_erasures()
returns table (tenant text, user_id text, requested_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select tenant, user_id, requested_at from hitherto.erasure order by requested_at;
end $$;

-- Scopes that come after one by name, in their order, and in which something has no entry or no vector, or a segment is
-- to be rebuilt. Each part reads an index of such rows alone (and in that index's order, because no estimate of how
-- many rows wait is any good).
create function hitherto.scopes_to_index(tenant_ text, user_ text, agent_ text, space_ integer, limit_ bigint)
returns table (tenant text, user_id text, agent text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select tenant, user_id, agent from (
            (select tenant, user_id, agent from hitherto.conversation
             where indexed_seq < next_seq and (tenant, user_id, agent) > (tenant_, user_, agent_)
             order by tenant, user_id, agent, ref limit limit_)
            union
            (select c.tenant, c.user_id, c.agent
             from (
                 select tenant, conversation from hitherto.digest
                 where action in ('summarize', 'chunk') and status = 'completed' and not indexed order by tenant, conversation, id
             ) d
             cross join lateral (
                 select * from hitherto.conversation c where c.tenant = d.tenant and c.ref = d.conversation limit 1
             ) c
             where (c.tenant, c.user_id, c.agent) > (tenant_, user_, agent_) limit limit_)
            union
            (select tenant, user_id, agent from hitherto.document
             where not indexed and (tenant, user_id, agent) > (tenant_, user_, agent_)
             order by tenant, user_id, agent, id limit limit_)
            union
            (select tenant, user_id, agent from hitherto.fact
             where state = 'current' and not indexed and (tenant, user_id, agent) > (tenant_, user_, agent_)
             order by tenant, user_id, agent, id limit limit_)
            union
            (select s.tenant, s.user_id, s.agent from hitherto.search_filling f
             cross join lateral (
                 select * from hitherto.search_scope s where s.tenant = f.tenant and s.ref = f.scope limit 1
             ) s
             where f.behind and f.space = space_
               and (s.tenant, s.user_id, s.agent) > (tenant_, user_, agent_) limit limit_)
            union
            (select tenant, user_id, agent from hitherto.search_scope
             where stale and (tenant, user_id, agent) > (tenant_, user_, agent_)
             order by tenant, ref limit limit_)
        ) due
        order by tenant, user_id, agent
        limit limit_;
end $$;

-- How many scopes of all tenants or one have something without an entry, without a vector in a space, and in stale
-- segments.
create function hitherto.index_backlog(name_ text, dimensions_ integer, tenant_ text)
returns table (waiting bigint, unembedded bigint, untidy bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select (select count(*) from (
                    select tenant, user_id, agent from hitherto.conversation where indexed_seq < next_seq
                    union
                    select tenant, user_id, agent from hitherto.document where not indexed
                    union
                    select tenant, user_id, agent from hitherto.fact where state = 'current' and not indexed
                    union
                    select c.tenant, c.user_id, c.agent from hitherto.digest d
                    cross join lateral (
                        select * from hitherto.conversation c where c.tenant = d.tenant and c.ref = d.conversation limit 1
                    ) c
                    where d.action in ('summarize', 'chunk') and d.status = 'completed' and not d.indexed) w
                where tenant_ is null or tenant = tenant_),
               (select count(*) from hitherto.search_filling where behind and (tenant_ is null or tenant = tenant_) and space = (
                    select id from hitherto.search_space where name = name_ and dimensions = dimensions_)),
               (select count(*) from hitherto.search_scope where stale and (tenant_ is null or tenant = tenant_));
end $$;

-- The tenants that have idempotency receipts beyond their retention.
create function hitherto.tenants_with_old_receipts(older_than_ interval)
returns setof text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select distinct tenant from hitherto.receipt where created_at < statement_timestamp() - older_than_;
end $$;

-- The tenants that have contexts whose lifetime has ended.
create function hitherto.tenants_with_ended_contexts()
returns setof text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select distinct tenant from hitherto.context where kept_until <= statement_timestamp();
end $$;

-- The tenants that have instructions or tools that no context has.
create function hitherto.tenants_with_unused_texts()
returns setof text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select distinct t.tenant from hitherto.context_text t
        where not exists (select 1 from hitherto.context c where c.tenant = t.tenant and c.instructions = t.hash)
          and not exists (select 1 from hitherto.context c where c.tenant = t.tenant and c.tools = t.hash);
end $$;

-- The tenants that have scopes in which no vectors of a space are wanted yet.
create function hitherto.tenants_without_vectors(space_ integer)
returns setof text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select distinct s.tenant from hitherto.search_scope s
        where not exists (
            select 1 from hitherto.search_filling f where f.tenant = s.tenant and f.scope = s.ref and f.space = space_);
end $$;
