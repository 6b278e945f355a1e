-- What agents did: runs and their events.

create table hitherto.run (
    tenant       text        not null,
    id           uuid        not null,
    user_id      text        not null,
    agent        text        not null,
    conversation text        not null,
    strategy     text,
    injection    boolean     not null,
    start_seq    bigint      not null,
    end_seq      bigint,
    status       text        not null default 'running' check (status in ('running', 'completed', 'failed')),
    freed        bigint      not null default 0,
    events       bigint      not null default 0,
    erased       boolean     not null default false,
    started_at   timestamptz not null default clock_timestamp(),
    ended_at     timestamptz,
    primary key (tenant, id),
    check (status <> 'running' or end_seq is null)
);
comment on table hitherto.run is
    'Runs of agents. "start_seq" to "end_seq" (inclusive) are the messages that belong to one; "erased": one of them is.';
create index run_of_conversation on hitherto.run (tenant, user_id, agent, conversation, started_at, id);

create table hitherto.run_event (
    tenant     text        not null,
    run        uuid        not null,
    no         bigint      not null,
    kind       text        not null,
    name       text,
    call_id    text,
    payload    json,
    created_at timestamptz not null default clock_timestamp(),
    size       integer     not null generated always as (
                   hitherto.bytes(payload) + octet_length(coalesce(name, '')) + octet_length(coalesce(call_id, ''))) stored,
    primary key (tenant, run, no),
    foreign key (tenant, run) references hitherto.run (tenant, id) on delete cascade
);
comment on column hitherto.run_event.payload is 'Null once a message of the run is erased.';

-- Whether the payload of an event of this kind may have what messages say: `EventKind.quotes`.
create function hitherto.quotes(kind text) returns boolean language sql immutable parallel safe as
$$ select kind not in ('model_call', 'freed') $$;
