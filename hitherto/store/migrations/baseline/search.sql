-- The search index: entries, their terms and their vectors, all of it derived.
--
-- Bytes that do not compress are read faster as they are: their columns have storage external.

create table hitherto.search_scope (
    tenant        text        not null,
    ref           bigint      not null generated always as identity,
    user_id       text        not null,
    agent         text        not null,
    next_no       bigint      not null default 0,
    packed        bigint      not null default 0,
    stale         boolean     not null default false,
    attempt       bigint      not null default 0,
    claimed_until timestamptz not null default '-infinity',
    primary key (tenant, ref)
);
comment on table hitherto.search_scope is
    'The index of one scope: its entries are numbered, those below "packed" stand in segments; one process at a time indexes it.';
create unique index search_scope_by_name on hitherto.search_scope (tenant, user_id, agent);
create index search_scope_stale on hitherto.search_scope (tenant, ref) where stale;

create table hitherto.search_space (
    id         smallint not null generated always as identity primary key,
    name       text     not null,
    dimensions integer  not null,
    unique (name, dimensions)
);
comment on table hitherto.search_space is 'The spaces of vectors; the same for all tenants.';

create table hitherto.search_filling (
    tenant   text     not null,
    scope    bigint   not null,
    space    smallint not null,
    embedded bigint   not null default 0,
    coded    bigint   not null default 0,
    behind   boolean  not null default true,
    primary key (tenant, scope, space)
);
comment on table hitherto.search_filling is
    'How far a scope''s entries have vectors in a space: all below "embedded"; codes of those below "coded" stand in segments.';
create index search_filling_behind on hitherto.search_filling (space, tenant, scope) where behind;

create table hitherto.search_entry (
    tenant     text        not null,
    scope      bigint      not null,
    no         bigint      not null,
    kind       smallint    not null,
    origin     bigint      not null,
    place      bigint      not null,
    start_char integer     not null,
    end_char   integer     not null,
    length     integer     not null,
    said_at    timestamptz not null,
    said_offset integer,
    author     text,
    hashes     bytea       not null,
    counts     bytea       not null,
    primary key (tenant, scope, no)
);
comment on table hitherto.search_entry is
    'A passage of something that can be found, message (kind 1), digest (2), passage of a document (3) or fact (4), with the hashes of its terms; no word of it but its speaker''s name. A short text is one passage.';
create unique index search_entry_of on hitherto.search_entry (tenant, kind, origin, place, start_char);
alter table hitherto.search_entry alter column hashes set storage external, alter column counts set storage external;

create table hitherto.search_segment (
    tenant  text    not null,
    scope   bigint  not null,
    segment integer not null,
    stale   boolean not null default false,
    lengths bytea   not null,
    kinds   bytea   not null,
    origins bytea   not null,
    places  bytea   not null,
    times   bytea   not null,
    primary key (tenant, scope, segment)
);
comment on table hitherto.search_segment is 'The columns of 4,096 entries side by side; little-endian.';
alter table hitherto.search_segment alter column lengths set storage external, alter column kinds set storage external,
    alter column origins set storage external, alter column places set storage external,
    alter column times set storage external;

create table hitherto.search_posting (
    tenant  text    not null,
    scope   bigint  not null,
    term    bigint  not null,
    segment integer not null,
    offsets bytea   not null,
    counts  bytea   not null,
    primary key (tenant, scope, term, segment)
);
comment on table hitherto.search_posting is 'Which entries of a segment have a term, and how often.';
alter table hitherto.search_posting alter column offsets set storage external, alter column counts set storage external;

create table hitherto.search_vector (
    tenant text     not null,
    scope  bigint   not null,
    space  smallint not null,
    no     bigint   not null,
    code   bytea    not null,
    vector bytea    not null,
    primary key (tenant, scope, space, no)
);
comment on table hitherto.search_vector is 'An entry''s vector in a space: float16, and its signs, one bit each.';
alter table hitherto.search_vector alter column code set storage external, alter column vector set storage external;

create table hitherto.search_codes (
    tenant  text     not null,
    scope   bigint   not null,
    space   smallint not null,
    segment integer  not null,
    codes   bytea    not null,
    primary key (tenant, scope, space, segment)
);
comment on table hitherto.search_codes is 'The signs of a segment''s vectors side by side; zeros where there is none.';
alter table hitherto.search_codes alter column codes set storage external;
