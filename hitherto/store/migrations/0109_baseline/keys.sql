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
