-- The knowledge base: documents and their passages.

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
