-- The ledger: what calls of models cost.

create table hitherto.model_call (
    tenant        text             not null,
    key           uuid             not null,
    user_id       text             not null,
    agent         text             not null,
    conversation  bigint,
    digest        bigint,
    purpose       text             not null,
    model         text             not null,
    tokens_in     bigint,
    tokens_cached bigint,
    tokens_out    bigint,
    latency_ms    bigint           not null,
    cost          double precision,
    cause         text,
    created_at    timestamptz      not null default clock_timestamp(),
    primary key (tenant, key)
);
comment on table hitherto.model_call is
    'The ledger: every model call, in US dollars where a price is known; no word of what was said.';
create index model_call_of_conversation on hitherto.model_call (tenant, conversation) where conversation is not null;
create index model_call_by_time on hitherto.model_call (tenant, created_at) include (user_id, cost, tokens_in, tokens_out);
