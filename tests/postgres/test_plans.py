"""Plans: what is on the way of every append and every context looks things up, however long a conversation grows."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from hitherto.core.log.conversations import Lasting
from hitherto.store.log.log import lasting_values
from hitherto.store.rows import PAGE
from tests.databases import Databases
from tests.postgres.plans import (
    PLANNED,
    TOUCHED,
    Case,
    Connection,
    examined,
    filled_database,
    nodes,
    plan_of,
    scanned,
)

LENGTH = 8_000
OTHERS = 400
FORKS = 100_000
REWOUND = 200_000
CLAIMED = 1_000_000

SCOPE = {"tenant": "acme", "user": "u", "agent": "a"}
MAIN = {**SCOPE, "conversation": "c-0"}
REF = {"tenant": "acme", "ref": 1}
REWOUND_ONE = {**MAIN, "tenant": "of rewound", "limit": 50}
CALL = hashlib.sha256(b"7").digest()
KEY = hashlib.sha256(str(LENGTH // 2).encode()).digest()
HELD = {"tenant": "acme", "digest": CLAIMED}
READ = {
    **MAIN, "ref": 1, "start": 0, "stop": LENGTH, "tokens": 0, "tools_from": LENGTH, "limit": None,
    "live": True, "live_at": LENGTH, **lasting_values(None),
}  # fmt: skip
WHOLE = ("tokens", "tools_from", *lasting_values(None))
PART = {name: value for name, value in READ.items() if name not in WHOLE}

NOW = datetime.now(UTC)
HALFWAY = NOW - timedelta(seconds=OTHERS // 2)
LISTED = {"after": None, "before": None, "beyond_at": None, "beyond_ref": None, "metadata": "{}", "limit": 20}
ITEMS = {name: value for name, value in PART.items() if name != "limit"}
ITEMS["wire"] = "openai.chat"

FILL = f"""
    insert into hitherto.conversation (tenant, ref, user_id, agent, id, rev, next_seq, tokens, turns, dialogue,
    updated_at) select 'acme', n + 1, 'u', 'a', 'c-' || n, 1, 20, 200, 5, 10, '{
    NOW
}'::timestamptz - n * interval '1 second' from
    generate_series(0, {OTHERS}) n;

    insert into hitherto.conversation (tenant, ref, user_id, agent, id)
    select 'of many', {OTHERS + 1} + n, 'u' || n, 'a', 'c' from generate_series(1, {OTHERS}) n;

    update hitherto.conversation set digested_at = updated_at, said_at = updated_at, facts_due_at = now();
    insert into hitherto.agent (tenant, agent, updated_at)
    select 'acme', 'a' || n, now() from generate_series(1, {OTHERS}) n
    union all
    select 'acme', 'a', now();
    insert into hitherto.user_zone (tenant, user_id, time_zone, updated_at)
    select 'acme', 'u' || n, 'Asia/Tokyo', now() from generate_series(1, {OTHERS}) n
    union all
    select 'acme', 'u', 'Asia/Tokyo', now();

    update hitherto.conversation set rev = {LENGTH // 2}, next_seq = {LENGTH}, tokens = 10 * {LENGTH}, turns = {
    LENGTH // 4
}, dialogue = {LENGTH // 2},
        latest_digest = 500
    where ref = 1;

    -- Rounds of a question, a tool call, its result and an answer, some of them taken back; all messages of the others,
    -- then the long one's.
    insert into hitherto.message (tenant, conversation, seq, wire, role, kind, text, payload, call_ids, result_ids,
        tool_names, metadata, tokens, sum_tokens, sum_turns, sum_dialogue, sum_results, rev, created_at, expires_at,
        retracted_rev, own_id, own_key)
    select 'acme', c, n, 'openai.chat', (array['user', 'assistant', 'tool', 'assistant'])[n % 4 + 1],
           (array['text', 'tool_call', 'tool_result', 'text'])[n % 4 + 1], 'text of a message', '{{"a": "b"}}',
           '{{}}', '{{}}', '{{}}', '{{}}', 10, 10 * (n + 1), n / 4 + 1, n / 4 * 2 + 1 + (n % 4) / 3,
           (n + 2) / 4 * 10, n / 2 + 1, now(), case when n % 100 = 0 then now() + interval '1 day' end,
           case when n % 100 between 48 and 51 then n / 2 + 9 end,
           case when n % 2 = 0 then n::text end, case when n % 2 = 0 then sha256(n::text::bytea) end
    from (select c, n from generate_series(2, {OTHERS + 1}) c, generate_series(0, 19) n
          union all
          select 1, n from generate_series(0, {LENGTH - 1}) n) one;

    insert into hitherto.digest (tenant, conversation, stage, spec, action, start_seq, end_seq, base_id, status,
    attempt,
        fired_rev, visible_rev, hidden_rev, created_at, completed_at, due_at)
    select 'acme', c, action, '{{}}', action, 0, n, null,
           case when n = {LENGTH - 1} then 'processing' when n % 100 = 51 then 'superseded' else 'completed' end, 1,
           n / 2, case when n < {LENGTH - 1} then n / 2 + 1 end, case when n % 100 = 51 then n / 2 + 9 end,
           now(), now(), case when n = {LENGTH - 1} then now() + interval '1 minute' end
    from (select 1 as c, n, action from generate_series(3, {LENGTH - 1}, 4) n,
                 unnest(array['summarize', 'drop', 'redact', 'chunk']) action
          union all
          select c, 3, 'summarize' from generate_series(2, {OTHERS + 1}) c) one
    order by n, c;

    -- One digest in progress for each, all of them left behind by workers; that of the long one has a base.
    insert into hitherto.digest (tenant, id, conversation, stage, spec, action, start_seq, end_seq, base_id, status,
        attempt, claimed, fired_rev, created_at, due_at)
    select 'acme', {CLAIMED} + c - 1, c, 'claimed', '{{}}', 'summarize', case when c = 1 then {LENGTH} - 10 else 0 end,
           case when c = 1 then {LENGTH} - 1 else 19 end, case when c = 1 then 500 end, 'processing', 1, true, 1, now(),
           now() - interval '1 hour' + c * interval '1 second'
    from generate_series(1, {OTHERS + 1}) c;

    insert into hitherto.conversation (tenant, ref, user_id, agent, id)
    select 'of forks', {FORKS} + n, 'u', 'a', 'c-' || n from generate_series(0, {LENGTH - 1}) n;
    insert into hitherto.fork (tenant, conversation, source, end_seq, rev)
    select 'of forks', {FORKS} + n, {FORKS} + n - 1, 3, 2 from generate_series(1, {LENGTH - 1}, 2) n;

    -- All but the first ten messages were taken back, and two more came instead.
    insert into hitherto.conversation (tenant, ref, user_id, agent, id, rev, next_seq, dialogue)
    values ('of rewound', {REWOUND}, 'u', 'a', 'c-0', 9, {LENGTH + 2}, 12);
    insert into hitherto.message (tenant, conversation, seq, wire, role, kind, text, payload, call_ids, result_ids,
        tool_names, metadata, tokens, sum_tokens, sum_turns, sum_dialogue, sum_results, rev, created_at, retracted_rev)
    select 'of rewound', {
    REWOUND
}, n, 'openai.chat', 'user', 'text', 'text of a message', '{{"a": "b"}}', '{{}}', '{{}}',
           '{{}}', '{{}}', 10, 10 * (n + 1), n + 1, case when n < {LENGTH} then n + 1 else n - {LENGTH} + 11 end, 0, 1,
           now(), case when n between 10 and {LENGTH - 1} then 8 end
    from generate_series(0, {LENGTH + 1}) n;
    insert into hitherto.branch (tenant, conversation, start_seq, parent_seq) values ('of rewound', {REWOUND}, {
    LENGTH
}, 9);

    insert into hitherto.open_call (tenant, conversation, call_hash, call_id, seq, group_seq, turn, tool)
    select 'acme', case when n % 10 = 0 then 1 + n / 10 % {
    OTHERS
} else 1 end, sha256(n::text::bytea), n, n, n, n / 4, 't'
    from generate_series(0, {LENGTH - 1}) n;

    insert into hitherto.branch (tenant, conversation, start_seq, parent_seq)
    select 'acme', 1 + n % {OTHERS}, 4 + n, n - 1 from generate_series(0, {LENGTH - 1}) n;
    insert into hitherto.absence (tenant, conversation, start_seq, end_seq, from_rev, until_rev)
    select 'acme', 2 + n % {OTHERS}, n, n, 1, 2 from generate_series(0, {LENGTH - 1}) n;

    insert into hitherto.forgetting (tenant, conversation, turn, seq, at, user_id, agent)
    select 'acme', 1 + n, 3, 4, now(), 'u' || n, 'a' from generate_series(1, {OTHERS}) n;

    insert into hitherto.receipt (tenant, key_hash, conversation, fingerprint, start_seq, end_seq, rev, created_at)
    select 'acme', sha256(n::text::bytea), 1, 'f', n, n, n, now() from generate_series(0, {LENGTH - 1}) n;

    insert into hitherto.run (tenant, id, user_id, agent, conversation, injection, start_seq, end_seq, status, events)
    select 'acme', md5(n::text)::uuid, 'u', 'a', case when n % 4 = 0 then 'c-0' else 'c-' || n % {OTHERS} end, false,
           n, case when n < {LENGTH - 1} then n + 3 end, case when n < {
    LENGTH - 1
} then 'completed' else 'running' end, case when n < {LENGTH - 1} then 4 else 6 end
    from generate_series(0, {LENGTH - 1}) n;

    insert into hitherto.run_event (tenant, run, no, kind, payload)
    select 'acme', md5(n::text)::uuid, e, 'tool_call', 'null' from generate_series(0, {
    LENGTH - 1
}) n, generate_series(0, 3) e;
"""

OWNED = f"""
    insert into hitherto.document (tenant, user_id, namespace, doc_type, content, fingerprint, indexed)
    select 'of many', 'u' || n, 'documents', 'note', 'text', n, true from generate_series(1, {OTHERS}) n;
    insert into hitherto.fact (tenant, user_id, agent, subject, category, content, fingerprint, confidence, tokens,
        length, hashes, counts, indexed)
    select 'of many', 'u' || n, 'a', '', 'hobby', 'text', n, 0.5, 5, 5, '', '', true from generate_series(1, {
    OTHERS
}) n;
"""

RUN = {**SCOPE, "run": UUID(hashlib.md5(b"7").hexdigest())}
RUNNING = {**SCOPE, "run": UUID(hashlib.md5(str(LENGTH - 1).encode()).hexdigest())}
EVENTS = {"kinds": ["error"] * 2, "names": ["n"] * 2, "call_ids": ["c"] * 2, "payloads": ["null"] * 2}


CASES = {
    "lock": Case("lock", MAIN, 1),
    "head": Case("head", MAIN, 1),
    "head_at, lately": Case("head_at", {**MAIN, "at": LENGTH // 2 - 5, "upto": None}, 1),
    "head_at, long ago": Case("head_at", {**MAIN, "at": 50, "upto": None}, 1),
    "messages_by_id": Case("messages_by_id", {**MAIN, "id_hashes": [KEY.hex(), CALL.hex()]}, 1),
    "open_calls": Case("open_calls", {**MAIN, "hashes": [CALL, b"no such call"]}, 1),
    "close_calls": Case("close_calls", {**REF, "hashes": [CALL]}, 0),
    "receipt": Case("receipt", {"tenant": "acme", "key_hash": b"never used"}, 0),
    "dialogue_at near the end": Case("dialogue_at", {**REF, "n": LENGTH // 2 - 13}, 1),
    "dialogue_at near the beginning": Case("dialogue_at", {**REF, "n": 5}, 1),
    "turn_at near the end": Case("turn_at", {**REF, "n": LENGTH // 4 - 6}, 1),
    "turn_at near the beginning": Case("turn_at", {**REF, "n": 5}, 1),
    "tokens_at near the end": Case("tokens_at", {**REF, "n": 10 * LENGTH - 77}, 1),
    "tokens_at near the beginning": Case("tokens_at", {**REF, "n": 77}, 1),
    "at": Case("at", {**REF, "n": LENGTH // 2}, 1),
    "at, in what was taken back": Case("at", {**REF, "n": LENGTH // 2 + 51}, 1),
    "tool_tokens": Case(
        "tool_tokens",
        {**REF, "start": LENGTH - 40, "end": LENGTH, "calls": True, "never": ["look_up"], "leaves": 12},
        1,
    ),
    "tool_ids": Case("tool_ids", {**REF, "start": LENGTH - 40}, 20),
    "tail": Case("tail", {**REF, "view_start": 0, "stop": LENGTH, "n": 20}, 20),
    "transcript": Case("transcript", {**MAIN, "before": 2**62, "limit": 50}, 51, each=4),
    "transcript of the middle": Case("transcript", {**MAIN, "before": LENGTH // 2, "limit": 50}, 51, each=4),
    "transcript, most of it taken back": Case("transcript", {**REWOUND_ONE, "before": 2**62}, 12, each=4),
    "transcript, up to what was taken back": Case("transcript", {**REWOUND_ONE, "before": LENGTH}, 10, each=4),
    "relatives_with": Case("relatives_with", {"tenant": "acme", "refs": [1], "throughs": [9], "seqs": [7]}, 1),
    "relatives_with of a fork": Case(
        "relatives_with", {"tenant": "of forks", "refs": [FORKS + 7], "throughs": [9], "seqs": [3]}, 0
    ),
    "relatives_of a fork": Case("relatives_of", {"tenant": "of forks", "ref": FORKS + 7}, 1),
    "done_in_relatives of a fork": Case("done_in_relatives", {"tenant": "of forks", "ref": FORKS + 7}, 1, each=3),
    "messages that fit a budget": Case("messages", {**READ, "tokens": 10 * (LENGTH - 20)}, 21),
    "messages that fit a budget, from the middle": Case(
        "messages", {**READ, "tokens": 10 * LENGTH // 2 + 600, "limit": 20}, 20
    ),
    "messages that fit a budget, none": Case("messages", {**READ, "tokens": 10 * LENGTH + 1}, 0),
    "messages of a past revision": Case("messages", {**READ, "live_at": LENGTH // 4, "start": 4_000, "stop": 4_000}, 0),
    "messages from a start": Case("messages", {**READ, "start": LENGTH - 20}, 20),
    "messages of ranges of many conversations": Case(
        "messages_of",
        {
            "tenant": "acme",
            "user": "u",
            "agents": ["a", "a", "a", "other"],
            "conversations": ["c-0", "c-0", "c-1", "c-0"],
            "firsts": [40, LENGTH // 2, 0, 0],
            "lasts": [59, LENGTH // 2 + 19, 9, 9],
        },
        50,
    ),
    "payloads from a start": Case("payloads", {**ITEMS, "start": LENGTH - 20}, 20),
    "payloads of another": Case("payloads", {**ITEMS, "ref": 2}, 0),
    "messages with calls": Case("messages", {**READ, "start": LENGTH - 4, "tools_from": LENGTH - 40}, 22),
    "messages with what is lasting": Case(
        "messages", {**READ, "start": LENGTH - 4, **lasting_values(Lasting(0, 1, LENGTH // 4))}, 12
    ),
    "messages, some": Case("messages", {**READ, "limit": 20}, 20),
    "messages, some from the middle": Case("messages", {**READ, "start": LENGTH // 2, "limit": 20}, 20),
    "page_stop": Case("page_stop", {**PART, "limit": 20, **PAGE}, 1),
    "messages of another": Case("messages", {**READ, "ref": 2}, 0),
    "messages of the audit": Case("messages", {**READ, "live": False, "start": LENGTH - 20}, 20),
    "hold_digest": Case("hold_digest", HELD, 1),
    "claim": Case("claim", {**HELD, "lease": timedelta(minutes=1), "able": ["model"]}, 1),
    "claim of one that is done": Case(
        "claim", {**HELD, "digest": 500, "lease": timedelta(minutes=1), "able": ["model"]}, 0
    ),
    "claimed_messages": Case("claimed_messages", HELD, 10),
    "prolong": Case("prolong", {**HELD, "attempt": 1, "lease": timedelta(minutes=1)}, 1),
    "put_off": Case(
        "put_off", {**HELD, "attempt": 1, "wait": timedelta(minutes=1), "error": "busy", "counted": True}, 1
    ),
    "due_digests": Case("due_digests", {"limit": 2, "able": ["model"], "busy": []}, 2),
    "unread": Case("unread", {"limit": 2}, 2),
    "unsettled": Case("unsettled", {"tenants": ["acme"] * 3, "digests": [CLAIMED, CLAIMED + 7, 500]}, 2),
    "digest": Case("digest", {**MAIN, "digest": 500}, 1),
    "digest of another": Case("digest", {**MAIN, "digest": CLAIMED + 7}, 0),
    "digests": Case("digests", {**MAIN, "after": 0, "limit": 20, **PAGE}, 20),
    "digests from a page on": Case("digests", {**MAIN, "after": LENGTH // 2, "limit": 20, **PAGE}, 20),
    "last_clear": Case("last_clear", {**MAIN, "rev": LENGTH, "end": LENGTH}, 0),
    "export_receipts": Case("export_receipts", {**MAIN, "start": LENGTH // 2, "key_hash": CALL.hex(), "limit": 20}, 20),
    "earlier": Case("earlier", {**MAIN, "within": timedelta(days=1), "until": None}, 1),
    "begin_run": Case("begin_run", {**MAIN, "strategy": None, "injection": True, "start": None}, 1),
    "count_run_events": Case("count_run_events", {**RUNNING, "kinds": EVENTS["kinds"]}, 1),
    "add_run_events": Case("add_run_events", {**RUNNING, **EVENTS}, 2),
    "end_run": Case("end_run", {**RUNNING, "status": "failed", "freed": 1}, 1),
    "run": Case("run", RUN, 1),
    "runs": Case("runs", {**MAIN, "before": None, "limit": 20}, 20),
    "runs of the next page": Case("runs", {**MAIN, "before": UUID(hashlib.md5(b"400").hexdigest()), "limit": 20}, 20),
    "run_events": Case("run_events", {**RUN, "after": 1, "limit": 20, **PAGE}, 2),
    "defaults": Case("defaults", {"tenant": "acme", "agent": "a7"}, 1),
    "zone": Case("zone", SCOPE, 1),
    "user_zone": Case("user_zone", {"tenant": "acme", "user": "u"}, 1),
    "expired": Case("expired", {**REF, "now": "2001-01-01"}, 0),
    "next_expiry": Case("next_expiry", {**REF, "now": "2001-01-01"}, 1),
    # Near the title of each, an agent was asked to forget.
    "listed": Case("listed", {**SCOPE, **LISTED, **PAGE}, 20, each=6),
    "listed from a page on": Case(
        "listed", {**SCOPE, **LISTED, **PAGE, "beyond_at": str(HALFWAY), "beyond_ref": 100}, 20, each=6
    ),
    "has_other_users": Case("has_other_users", {"tenant": "of many", "user": "u200"}, 1),
    "has_other_users, alone": Case("has_other_users", {"tenant": "acme", "user": "u"}, 1),
    "users": Case("users", {"tenant": "of many", "beyond": "", "start": "", "user": None, "limit": 20}, 20),
    "users from a page on": Case(
        "users", {"tenant": "of many", "beyond": "u200", "start": "u200", "user": None, "limit": 20}, 20
    ),
}

LOAD = Case("backlog", {"tenant": None}, 1)


@pytest.fixture(scope="module")
async def filled(databases: Databases) -> AsyncIterator[Connection]:
    """A database with one long conversation and many short ones."""
    async with filled_database(databases, FILL, OWNED) as connection:
        yield connection


@pytest.mark.parametrize("name", CASES)
async def test_it_looks_things_up(filled: Connection, name: str) -> None:
    for mode in PLANNED:
        found = await plan_of(filled, CASES[name], mode)
        assert found["Actual Rows"] == CASES[name].rows
        scans = {(node["Relation Name"], node["Node Type"]) for node in nodes(found) if "Relation Name" in node}
        scans = {(table, kind) for table, kind in scans if kind != "ModifyTable"}
        assert {kind for _, kind in scans} <= {"Index Scan", "Index Only Scan"}, (mode, scans)
        assert examined(found) <= CASES[name].each * CASES[name].rows + TOUCHED, mode


async def test_due_digests_of_busy_tenants_come_from_the_index_of_those_in_progress(filled: Connection) -> None:
    """Those in progress are passed over once; then it stops at its limit, in the order of the index: nothing is sorted,
    and none of the many that have ended is read."""
    found = await plan_of(filled, Case("due_digests", {"limit": 2, "able": ["model"], "busy": ["acme"]}, 2))
    assert found["Actual Rows"] == 2
    assert {node["Index Name"] for node in nodes(found) if "Relation Name" in node} == {"digest_due"}
    assert "Sort" not in {node["Node Type"] for node in nodes(found)}
    assert examined(found) <= OTHERS + 1 + 2


async def test_the_load_reads_what_is_in_progress(filled: Connection) -> None:
    """However many digests and conversations there are beside."""
    found = await plan_of(filled, LOAD)
    assert scanned(found) <= {"worker"}
    assert examined(found) <= 3 * (OTHERS + 1 + 4) + TOUCHED
