-- Keys to the service.

create table hitherto.api_key (
    tenant     text        not null,
    id         uuid        not null,
    user_id    text,
    name       text        not null,
    hash       bytea       not null,
    rights     text[]      not null,
    requests   bigint,
    size       bigint,
    seconds    double precision,
    created_at timestamptz not null default clock_timestamp(),
    revoked_at timestamptz,
    primary key (tenant, id)
);
create index api_key_by_hash on hitherto.api_key (hash);
comment on table hitherto.api_key is
    'Keys to the service, of a tenant or of one user of it: "hash" is SHA-256 of the secret, which is not kept.';

-- What the key of a secret, of any tenant, allows, if it still holds. Its name is not told: a person wrote that. As the
-- functions of across.sql, it runs with its owner's rights, past row-level security.
create function hitherto.key_of(hash_ bytea)
returns table (tenant text, id uuid, user_id text, rights text[], requests bigint, size bigint, seconds double precision)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select tenant, id, user_id, rights, requests, size, seconds from hitherto.api_key where hash = hash_ and revoked_at is null;
end $$;
