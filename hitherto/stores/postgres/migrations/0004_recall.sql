-- Recall: documents and their passages, and the search index.
--
-- Processes of the revision before go on working meanwhile: what they write waits to be indexed. What they take away is
-- not found from then on, as every candidate is looked at as it stands, but its entry stays: let them end soon.

lock table hitherto.conversation, hitherto.digest in access exclusive mode;

-- The walls of a scope. Every search goes through this one place: a row of (tenant_, user_, agent_) is within the scope that
-- is asked for; '' is the agent of what belongs to a user as such.
create function hitherto.within(
    tenant_ text, user_ text, agent_ text, tenant text, user_id text, agent text, every_agent boolean
) returns boolean language sql immutable parallel safe as
$$ select tenant_ = tenant and user_ = user_id and (every_agent or agent_ = agent or agent_ = '') $$;

alter table hitherto.conversation add column indexed_seq bigint not null default 0;
comment on column hitherto.conversation.indexed_seq is 'Messages below it are in the search index, as far as they belong there.';
create index conversation_waiting on hitherto.conversation (tenant, user_id, agent, ref) where indexed_seq < next_seq;

alter table hitherto.digest add column indexed boolean not null default false;
create index digest_waiting on hitherto.digest (tenant, conversation, id)
    where done in ('summarise', 'chunk') and status = 'completed' and not indexed;

create table hitherto.document (
    tenant       text        not null,
    id           bigint      not null generated always as identity,
    user_id      text        not null,
    agent        text        not null default '',
    namespace    text        not null,
    doc_type     text        not null,
    title        text,
    content      text        not null,
    metadata     jsonb       not null default '{}',
    fingerprint  text        not null,
    conversation bigint,
    digest       bigint,
    start_seq    bigint,
    end_seq      bigint,
    said_at      timestamptz not null default clock_timestamp(),
    created_at   timestamptz not null default clock_timestamp(),
    indexed      boolean     not null default false,
    primary key (tenant, id),
    foreign key (tenant, conversation) references hitherto.conversation (tenant, ref) on delete cascade,
    check ((conversation is null) = (digest is null) and (conversation is null) = (start_seq is null)
           and (conversation is null) = (end_seq is null))
);
comment on table hitherto.document is 'The knowledge base: archived conversations, and what users added.';
create index document_of_conversation on hitherto.document (tenant, conversation, end_seq) where conversation is not null;
create index document_waiting on hitherto.document (tenant, user_id, agent, id) where not indexed;
create unique index document_once on hitherto.document (tenant, user_id, agent, namespace, fingerprint);
create index document_recent on hitherto.document (tenant, user_id, id desc);
create unique index document_of_digest on hitherto.document (tenant, digest) where digest is not null;

create table hitherto.passage (
    tenant   text    not null,
    document bigint  not null,
    no       integer not null,
    text     text    not null,
    start_at integer not null,
    tokens   integer not null,
    primary key (tenant, document, no),
    foreign key (tenant, document) references hitherto.document (tenant, id) on delete cascade
);
comment on table hitherto.passage is 'The pieces of documents that are found by themselves.';

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
    tenant  text        not null,
    scope   bigint      not null,
    no      bigint      not null,
    kind    smallint    not null,
    origin  bigint      not null,
    place   bigint      not null,
    length  integer     not null,
    said_at timestamptz not null,
    author  text,
    hashes  bytea       not null,
    counts  bytea       not null,
    primary key (tenant, scope, no)
);
comment on table hitherto.search_entry is
    'One thing that can be found: message (kind 1), digest (2) or passage (3), with the hashes of its terms; no word of it but its speaker''s name.';
create unique index search_entry_of on hitherto.search_entry (tenant, kind, origin, place);

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

create table hitherto.search_codes (
    tenant  text     not null,
    scope   bigint   not null,
    space   smallint not null,
    segment integer  not null,
    codes   bytea    not null,
    primary key (tenant, scope, space, segment)
);
comment on table hitherto.search_codes is 'The signs of a segment''s vectors side by side; zeros where there is none.';

-- Bytes that do not compress are read faster as they are.
alter table hitherto.search_entry alter column hashes set storage external, alter column counts set storage external;
alter table hitherto.search_segment alter column lengths set storage external, alter column kinds set storage external,
    alter column origins set storage external, alter column places set storage external,
    alter column times set storage external;
alter table hitherto.search_posting alter column offsets set storage external, alter column counts set storage external;
alter table hitherto.search_vector alter column code set storage external, alter column vector set storage external;
alter table hitherto.search_codes alter column codes set storage external;
