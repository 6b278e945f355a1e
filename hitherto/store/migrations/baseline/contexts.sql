-- What models were sent: kept contexts, which refer to the log.

create table hitherto.context_text (
    tenant text  not null,
    hash   bytea not null,
    text   text  not null,
    primary key (tenant, hash)
);
comment on table hitherto.context_text is 'Instructions and tool schemas of kept contexts, each once, by their SHA-256.';

create table hitherto.context (
    tenant       text           not null,
    id           bigint         not null generated always as identity,
    user_id      text           not null,
    agent        text           not null,
    conversation text           not null,
    kept_at      timestamptz    not null default clock_timestamp(),
    kept_until   timestamptz,
    manifest     json           not null,
    instructions bytea,
    tools        bytea,
    shown        int8multirange not null,
    incoming     bytea[]        not null,
    others       bigint[]       not null,
    primary key (tenant, id),
    foreign key (tenant, instructions) references hitherto.context_text (tenant, hash),
    foreign key (tenant, tools) references hitherto.context_text (tenant, hash)
);
comment on table hitherto.context is
    'Kept contexts: "shown" are the messages of the conversation that one showed, "others" the conversations it took from.';
comment on column hitherto.context.incoming is 'Hashes of the incoming messages, of which no seqs are known yet.';
create index context_of_conversation on hitherto.context (tenant, user_id, agent, conversation, id);
create index context_expiring on hitherto.context (kept_until) where kept_until is not null;
create index context_of_others on hitherto.context using gin (others) where others <> '{}';
create index context_of_instructions on hitherto.context (tenant, instructions) where instructions is not null;
create index context_of_tools on hitherto.context (tenant, tools) where tools is not null;
