-- Every kind of stage: how far each has come, what was taken back, and what is set for an agent.

alter table hitherto.conversation
    add column results      bigint not null default 0,
    add column view_results bigint not null default 0,
    add column frontiers    json   not null default '{}',
    add column late         json   not null default '[]',
    add column failed       boolean not null default false,
    add column retracted    json   not null default '[]',
    add column injection    boolean,
    add column injected     bigint,
    add column digested_at  timestamptz;

alter table hitherto.message
    add column sum_results   bigint not null default 0,
    add column retracted_rev bigint;
comment on table hitherto.message is
    'The log: append-only, seq dense from 0; payload is the original item, byte for byte. What was taken back stays, with '
    'the revision from which on it is not shown.';

alter table hitherto.digest
    add column freed      bigint not null default 0,
    add column since      bigint not null default 0,
    add column kept_from  bigint,
    add column opaque     json,
    add column family     text,
    add column hidden_rev bigint,
    alter column tokens type bigint,
    drop constraint digest_done_check,
    add constraint digest_done_check check (done in ('summarise', 'chunk', 'compact', 'redact', 'drop', 'clear'));

-- The running sum of tool results, for what was written before it was kept.
update hitherto.message m set sum_results = s.results
from (select tenant, conversation, seq,
             sum(tokens) filter (where kind = 'tool_result') over (partition by tenant, conversation order by seq) as results
      from hitherto.message) s
where m.tenant = s.tenant and m.conversation = s.conversation and m.seq = s.seq and s.results > 0;

update hitherto.conversation c set results = m.sum_results
from hitherto.message m
where m.tenant = c.tenant and m.conversation = c.ref and m.seq = c.next_seq - 1 and m.sum_results > 0;

update hitherto.conversation c set view_results = m.sum_results
from hitherto.message m
where m.tenant = c.tenant and m.conversation = c.ref and m.seq = c.view_start - 1 and m.sum_results > 0;

-- What was superseded until now rested on erased messages.
update hitherto.digest set hidden_rev = 0 where status = 'superseded' and visible_rev is not null;

-- The summary that stands now, and at any revision before.
drop index hitherto.digest_standing;
create index digest_standing on hitherto.digest (tenant, conversation, end_seq desc, id desc)
    where done = 'summarise' and visible_rev is not null;
-- How far each other stage had come at any revision.
create index digest_reach on hitherto.digest (tenant, conversation, stage, end_seq desc, id desc)
    where done in ('drop', 'redact', 'chunk', 'compact') and visible_rev is not null;

update hitherto.conversation c set digested_at = (
    select s.completed_at from hitherto.digest s
    where s.tenant = c.tenant and s.conversation = c.ref and s.done = 'summarise' and s.visible_rev is not null
      and s.hidden_rev is null and s.end_seq >= c.view_start
    order by s.end_seq desc, s.id desc limit 1
)
where exists (
    select from hitherto.digest s
    where s.tenant = c.tenant and s.conversation = c.ref and s.done = 'summarise' and s.visible_rev is not null);
create index conversation_digested on hitherto.conversation (tenant, user_id, agent, digested_at desc)
    where digested_at is not null;

create table hitherto.agent (
    tenant     text        not null,
    agent      text        not null,
    policy     json,
    injection  boolean,
    updated_at timestamptz not null,
    primary key (tenant, agent)
);
comment on table hitherto.agent is 'What counts for the conversations of an agent that say nothing of their own.';

-- An id is asked for before its row is written; a default of the column would need no right to the sequence.
grant usage on sequence hitherto.digest_id_seq to public;
