"""An export has every column: a new one is exported and imported, or stands in a list below that says why it is not."""

from __future__ import annotations

from collections import Counter

from hitherto import Memory, assistant, user
from tests.conftest import SCOPE
from tests.databases import OpenStore
from tests.engine.log.test_open_calls import calls, result
from tests.engine.test_export import elsewhere, exported, fill, imported, memory
from tests.postgres.asking import rows

__all__ = ["elsewhere", "memory"]

COLUMNS = """
select c.relname as table, a.attname as column, coalesce(pg_get_expr(d.adbin, d.adrelid), 'null') as default
from pg_class c
join pg_attribute a on a.attrelid = c.oid
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relnamespace = 'hitherto'::regnamespace and c.relkind = 'r'
  and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
"""

NOT_EXPORTED = {"api_key", "erasure", "worker", "context", "context_text"}
"""Tables of the service itself, and what contexts had. Those of the search index are made anew."""

NUMBERS = {
    *(
        "conversation.ref",
        "conversation.latest_digest",
        "digest.id",
        "digest.base_id",
        "document.id",
        "document.digest",
    ),
    *(
        "fact.id",
        "fact.superseded_by",
        "fact_event.fact",
        "fact_evidence.fact",
        "model_call.digest",
        "passage.document",
    ),
    *(
        f"{table}.conversation"
        for table in ("digest", "document", "fact_evidence", "forgetting", "message", "model_call", "branch", "absence")
    ),
    *("fork.conversation", "fork.source"),
    *("open_call.conversation", "receipt.conversation"),
}
"""By which a store knows its rows. The other tests see that they are right in another store."""

OF_THE_STORE = {
    *("digest.claimed", "digest.due_at", "conversation.digested_at", "run.erased"),
    *("conversation.indexed_seq", "digest.indexed", "document.indexed", "fact.indexed", "fact.space", "fact.code"),
    *("agent.updated_at", "subject.updated_at", "user_zone.updated_at"),
}
"""What a store does with a row, and when."""

GIVEN = """
update hitherto.conversation set finish_seq = 1, failures = 2, resume_at = '2026-11-03Z',
    facts_due_at = '2026-11-03Z', facts_resume_at = '2026-11-03Z' where id = 'empty';
update hitherto.message set said_at = '2026-11-03Z', said_offset = 3600 where seq = 0;
update hitherto.message set own_id = 'm-1', own_key = sha256('m-1') where seq = 1;
update hitherto.digest set kept_from = 3, since = 1, family = 'gpt', error = 'Broken.', hidden_rev = 9 where id = 1;
update hitherto.fact set visibility = 'shared', state = 'withdrawn', ended_at = '2026-11-03Z', repeated = 4,
    version = 5, metadata = '{"a": 1}' where id = 1;
update hitherto.fact_evidence set retracted = true, mention = true where fact = 1;
update hitherto.model_call set tokens_cached = 1, tokens_out = 2, cost = 0.5, cause = 'refused';
update hitherto.run_event set call_id = 'call 1';
"""
"""A value for each column that has none in what is filled otherwise."""


async def test_every_column_is_exported(memory: Memory, elsewhere: Memory, store: OpenStore, database: str) -> None:
    await fill(memory)
    await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, cross_session="latest", time_zone="Asia/Tokyo")
    about = memory.conversation("about", scope=SCOPE, subject="boat", remember=False)
    await about.append(user("It leaks."), assistant("Oh."))
    called = memory.conversation("called", scope=SCOPE)
    await called.append(user("Look."), calls("z"), result("z"))
    await called.clear()
    await called.forget((await memory.facts(SCOPE).add("Looks.")).id)
    await called.append(user("Look."), calls("a", "b"), result("a"), user("And?"), result("b"), calls("c"))
    branched = memory.conversation("branched", scope=SCOPE)
    await branched.append(user("Which day?"), assistant("Monday."))
    await branched.append(assistant("Tuesday."), at=0)
    await branched.switch(1)
    await branched.fork(id="fork")
    await memory.wait_for_digests()
    await memory.wait_for_index()
    await rows(store.owners_url, GIVEN)
    await imported(elsewhere, await exported(memory))
    empty, lost = list[str](), list[str]()
    for column in await rows(store.owners_url, COLUMNS):
        table, name, default = column["table"], column["column"], column["default"]
        left_out = table in NOT_EXPORTED or table.startswith("search_")
        if left_out or f"{table}.{name}" in NUMBERS | OF_THE_STORE:
            continue
        values = f"select {name}::text as value, {name}::text is distinct from ({default})::text as given from {table}"
        before, after = await rows(store.owners_url, values), await rows(database, values)
        if not any(row["given"] for row in before):
            empty.append(f"{table}.{name}")
        if Counter(row["value"] for row in before) - Counter(row["value"] for row in after):
            lost.append(f"{table}.{name}")
    assert empty == [], "fill them above, to see that they are exported"
    assert lost == [], "neither exported nor listed above"
