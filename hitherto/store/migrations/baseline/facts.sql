-- Facts: what conversations are about, what has been learned of it, from which messages, and what became of that.

create table hitherto.subject (
    tenant     text        not null,
    id         text        not null check (id <> ''),
    name       text        not null,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (tenant, id)
);
comment on table hitherto.subject is 'What facts are about.';

create table hitherto.subject_member (
    tenant  text    not null,
    subject text    not null,
    no      integer not null,
    user_id text    not null,
    primary key (tenant, subject, no),
    foreign key (tenant, subject) references hitherto.subject (tenant, id) on delete cascade
);
comment on table hitherto.subject_member is 'The users among whom facts about a subject can be shared, in the order in which they were given.';
create index subject_member_of on hitherto.subject_member (tenant, user_id, subject);

create table hitherto.fact_subject (
    tenant  text not null,
    user_id text not null,
    agent   text not null,
    subject text not null,
    primary key (tenant, user_id, agent, subject)
);
comment on table hitherto.fact_subject is
    'The facts of one scope about one subject: whoever changes any of them holds this row.';

-- `figures` are the numbers that a context wants of a fact, side by side and big-endian: of thousands of facts at once they
-- are read in half the time. (id, version, tokens, length, distinct terms, characters of content and of category, whether
-- it is shared, the space of its code or 0.)
create table hitherto.fact (
    tenant        text             not null,
    id            bigint           not null generated always as identity,
    user_id       text             not null,
    agent         text             not null,
    subject       text             not null,
    category      text             not null,
    content       text             not null,
    fingerprint   text             not null,
    visibility    text             not null default 'private' check (visibility in ('private', 'shared')),
    state         text             not null default 'current'
                  check (state in ('current', 'superseded', 'withdrawn', 'deleted')),
    confidence    double precision not null,
    confirmed     boolean          not null default false,
    repeated      integer          not null default 0,
    version       integer          not null default 1,
    metadata      json             not null default '{}',
    tokens        integer          not null,
    length        integer          not null,
    hashes        bytea            not null,
    counts        bytea            not null,
    space         smallint,
    code          bytea,
    figures       bytea            not null generated always as (
        int8send(id) || int4send(version) || int4send(tokens) || int4send(length) || int4send(octet_length(counts))
        || int4send(char_length(content)) || int4send(char_length(category))
        || int2send((visibility = 'shared')::integer::smallint) || int2send(coalesce(space, 0::smallint))
    ) stored,
    indexed       boolean          not null default false,
    extracted_at  timestamptz      not null default clock_timestamp(),
    updated_at    timestamptz      not null default clock_timestamp(),
    ended_at      timestamptz,
    superseded_by bigint,
    primary key (tenant, id),
    check ((state = 'current') = (ended_at is null)),
    check ((space is null) = (code is null))
);
comment on table hitherto.fact is 'What is known about a subject, private to a user or shared with the subject''s members.';
-- Bytes that do not compress are read faster as they are.
alter table hitherto.fact alter column hashes set storage external, alter column counts set storage external,
    alter column code set storage external, alter column figures set storage external;
create index fact_of_user on hitherto.fact (tenant, user_id, agent, id);
create index fact_waiting on hitherto.fact (tenant, user_id, agent, id) where state = 'current' and not indexed;
create index fact_shared on hitherto.fact (tenant, subject, agent, id) include (user_id, confirmed)
    where state = 'current' and visibility = 'shared' and subject <> '';
create index fact_known on hitherto.fact (tenant, user_id, agent, subject, id) where state = 'current';
create index fact_replaced on hitherto.fact (tenant, superseded_by) where superseded_by is not null;
create unique index fact_once on hitherto.fact (tenant, user_id, agent, subject, fingerprint) where state = 'current';

-- A fact's source is unset when its conversation is deleted. A message that was taken back says nothing any more; it is
-- kept in mind for when it is erased.
create table hitherto.fact_evidence (
    tenant       text        not null,
    fact         bigint      not null,
    conversation bigint      not null,
    seq          bigint      not null,
    said_at      timestamptz not null,
    retracted    boolean     not null default false,
    mention      boolean     not null default false,
    foreign key (tenant, fact) references hitherto.fact (tenant, id) on delete cascade,
    foreign key (tenant, conversation) references hitherto.conversation (tenant, ref) on delete cascade
);
comment on table hitherto.fact_evidence is 'The messages that say a fact.';
comment on column hitherto.fact_evidence.mention is
    'It may mention a fact that is to be forgotten, which did not rest on it: nothing is learned from it.';
create index fact_evidence_in on hitherto.fact_evidence (tenant, conversation, seq);
-- Not in the table's definition, for its place among the indexes.
alter table hitherto.fact_evidence add primary key (tenant, fact, conversation, seq);

create table hitherto.forgetting (
    tenant       text        not null,
    conversation bigint      not null,
    turn         bigint      not null,
    seq          bigint      not null,
    at           timestamptz not null,
    user_id      text        not null,
    agent        text        not null,
    primary key (tenant, conversation, turn, at),
    foreign key (tenant, conversation) references hitherto.conversation (tenant, ref) on delete cascade
);
comment on table hitherto.forgetting is
    'Turns in which an agent was asked to forget a fact: no search finds and no digest reads what is said in them.';
comment on column hitherto.forgetting.seq is
    'The message that opens the turn, which may be the next one: where it was taken back, the number is that of another turn.';
create index forgetting_of on hitherto.forgetting (tenant, user_id, agent, at);

create table hitherto.fact_event (
    tenant     text        not null,
    fact       bigint      not null,
    no         integer     not null,
    action     text        not null,
    at         timestamptz not null default clock_timestamp(),
    by_user    text,
    version    integer     not null,
    category   text        not null,
    content    text        not null,
    visibility text        not null,
    primary key (tenant, fact, no),
    foreign key (tenant, fact) references hitherto.fact (tenant, id) on delete cascade
);
comment on table hitherto.fact_event is 'What happened to a fact, and how it read from then on.';
