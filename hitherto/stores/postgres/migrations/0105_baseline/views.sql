-- Views for operators, with the names that other systems' tables have.

-- Queries written for a table `memory` run on this view: set search_path to hitherto, then select … from memory.
create view hitherto.memory as
select d.id                 as memory_id,
       c.id                 as conversation_id,
       d.text               as memory_text,
       d.start_seq::integer as start_sequence,
       d.end_seq::integer   as end_sequence,
       d.base_id            as base_memory_id,
       d.status             as status,
       d.created_at         as created_at,
       d.generation_time_ms as generation_time_ms,
       c.tenant             as tenant,
       c.user_id            as user_id,
       c.agent              as agent
from hitherto.digest d
join hitherto.conversation c on c.tenant = d.tenant and c.ref = d.conversation
where d.action = 'summarize';

-- Queries written for a table `legacy_facts` run on this view: set search_path to hitherto, then select … from legacy_facts.
create view hitherto.legacy_facts as
select f.id, f.subject as legacy_id, f.user_id, f.category, f.content, f.visibility,
       (select c.id from hitherto.fact_evidence e
        join hitherto.conversation c on c.tenant = e.tenant and c.ref = e.conversation
        where e.tenant = f.tenant and e.fact = f.id and not e.retracted
        order by e.said_at, e.seq limit 1) as source_conversation_id,
       f.extracted_at, f.updated_at, f.tenant, f.agent
from hitherto.fact f
where f.state = 'current';
