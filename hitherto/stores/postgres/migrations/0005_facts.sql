-- Facts: what conversations are about, what has been learnt of it, from which messages, and what became of that.
--
-- Processes of the revision before go on working meanwhile: they extract no facts and show none. But what they take back
-- or erase leaves the facts that rest on it, and the vectors that they give to entries of facts are good for nothing: let
-- them end soon.

lock table hitherto.conversation in access exclusive mode;

alter table hitherto.conversation
    add column subject   text not null default '',
    add column extracted json not null default '[]';
comment on column hitherto.conversation.subject is 'What its facts are about: a subject''s id; '''' is the user himself.';
comment on column hitherto.conversation.extracted is 'Ranges of messages from which facts have been extracted, and never are again.';
create index conversation_about on hitherto.conversation (tenant, user_id, subject, agent, ref) where subject <> '';

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

create table hitherto.fact_book (
    tenant  text   not null,
    user_id text   not null,
    agent   text   not null,
    subject text   not null,
    rev     bigint not null default 0,
    primary key (tenant, user_id, agent, subject)
);
comment on table hitherto.fact_book is
    'The facts of one scope about one subject: whoever changes any of them holds this row, and counts it in rev.';

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
create index fact_of_user on hitherto.fact (tenant, user_id, agent, id);
create index fact_waiting on hitherto.fact (tenant, user_id, agent, id) where state = 'current' and not indexed;
create index fact_shared on hitherto.fact (tenant, subject, agent, id)
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
    foreign key (tenant, fact) references hitherto.fact (tenant, id) on delete cascade,
    foreign key (tenant, conversation) references hitherto.conversation (tenant, ref) on delete cascade
);
comment on table hitherto.fact_evidence is 'The messages that say a fact.';
create index fact_evidence_in on hitherto.fact_evidence (tenant, conversation, seq);
alter table hitherto.fact_evidence add primary key (tenant, fact, conversation, seq);

create table hitherto.fact_event (
    tenant     text        not null,
    fact       bigint      not null,
    no         integer     not null,
    did        text        not null,
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

alter table hitherto.fact alter column hashes set storage external, alter column counts set storage external,
    alter column code set storage external, alter column figures set storage external;

-- The third seed's table of facts: set search_path to hitherto, then select … from legacy_facts.
create view hitherto.legacy_facts as
select f.id, f.subject as legacy_id, f.user_id, f.category, f.content, f.visibility,
       (select c.id from hitherto.fact_evidence e
        join hitherto.conversation c on c.tenant = e.tenant and c.ref = e.conversation
        where e.tenant = f.tenant and e.fact = f.id and not e.retracted
        order by e.said_at, e.seq limit 1) as source_conversation_id,
       f.extracted_at, f.updated_at, f.tenant, f.agent
from hitherto.fact f
where f.state = 'current';

comment on table hitherto.search_entry is
    'One thing that can be found: message (kind 1), digest (2), passage (3) or fact (4), with the hashes of its terms; no word of it but its speaker''s name.';

-- The wall of sharing: the facts about a subject that others share with a user of an agent. Only what is current is shared,
-- nothing that somebody shares about himself, and only among members. Every statement that shows facts of others takes them
-- from here; it is planned as if it stood there (so one statement, and nothing that would keep it from that).
create function hitherto.shared_with(tenant_ text, user_ text, agent_ text, subject_ text)
returns setof hitherto.fact language sql stable as $$
    select f.* from hitherto.fact f
    where f.tenant = tenant_ and f.subject = subject_ and f.subject <> '' and f.agent = agent_ and f.state = 'current'
      and f.visibility = 'shared' and f.user_id <> user_
      and f.user_id = any(array(
          select m.user_id from hitherto.subject_member m where m.tenant = tenant_ and m.subject = subject_))
      and exists (
          select from hitherto.subject_member m
          where m.tenant = tenant_ and m.user_id = user_ and m.subject = subject_)
$$;

-- What goes with entries of a scope that are gone: their vectors; and what stands in segments is to be put in order later.
-- Looked up by arrays and not joined: a planner that takes them for many would read all vectors there are.
create function hitherto.unindexed(tenant_ text, scope_ bigint, nos bigint[]) returns void language plpgsql as $$
begin
    delete from hitherto.search_vector v
    where v.tenant = tenant_ and v.scope = scope_ and v.space = any(array(select id from hitherto.search_space))
      and v.no = any(nos);
    update hitherto.search_segment g set stale = true
    where g.tenant = tenant_ and g.scope = scope_
      and g.segment = any(array(select distinct (n / 4096)::integer from unnest(nos) n));
    update hitherto.search_scope s set stale = true
    where s.tenant = tenant_ and s.ref = scope_ and s.packed > (select min(n) from unnest(nos) n);
end $$;
