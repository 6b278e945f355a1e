-- Digests that survive: when each is due and how often it was tried, what calls cost, and jobs.
--
-- Processes of the revision before go on working meanwhile: what they write gets the defaults here, and what they need
-- stays (`conversation.failed`, `digest_stuck`) until a later revision drops it.

-- In the order in which a unit of work gets to them: in another, each might wait for the other.
lock table hitherto.conversation, hitherto.digest in access exclusive mode;

alter table hitherto.digest
    add column tries   integer not null default 0,
    add column claimed boolean not null default false,
    add column due_at  timestamptz;
-- A process of the revision before makes by itself what it sets off; it gets a minute until others take it over.
alter table hitherto.digest alter column due_at set default now() + interval '1 minute';
update hitherto.digest set due_at = created_at + interval '1 minute' where status = 'processing';
create index digest_due on hitherto.digest (due_at) where status = 'processing';

alter table hitherto.conversation
    add column failures  integer not null default 0,
    add column resume_at timestamptz;
update hitherto.conversation set failures = 1 where failed;
create index conversation_resting on hitherto.conversation (resume_at) where resume_at is not null;

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
create index model_call_by_time on hitherto.model_call (tenant, created_at) include (cost, tokens_in, tokens_out);
