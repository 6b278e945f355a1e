"""Plans of facts: a context, a digest and a review look up what they are about, however much is known beside."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hitherto.core.facts.queries import MOST_SHARED
from tests.databases import Databases
from tests.postgres.plans import (
    PLANNED,
    TOUCHED,
    Connection,
    bound,
    examined,
    filled_database,
    nodes,
    plan_of,
    scanned,
)

OWN = 300
"""Current facts of the user's own about the subject; as many of his hold no more, or are about others."""
SHARED = 40
CROWD = 5_000
"""Facts about the subject `crowd` that v shares."""
MORE = 20_000
LENGTH = 2_000
SAID = 300 + 300 + 179 + 300
"""What the conversation says; the last 20 of the user's facts are said by another one."""
LATE = 900_000

# The user and v are members of the subject. Both know something of it, as do many others who are not; v shares some of
# it, and so does w, who is a member no more. Each fact is said by a message, those of the user by one of a long
# conversation.
FILL = f"""
    insert into hitherto.subject (tenant, id, name)
    select 'acme', 's' || n, 'S' from generate_series(1, {MORE // 10}) n;
    insert into hitherto.subject_member (tenant, subject, no, user_id)
    select 'acme', 's' || n, 1, 'u' || n from generate_series(1, {MORE // 10}) n
    union all select 'acme', 's1', 2, 'u' union all select 'acme', 's1', 3, 'v';
    insert into hitherto.subject (tenant, id, name) values ('acme', 'crowd', 'C');
    insert into hitherto.subject_member (tenant, subject, no, user_id)
    values ('acme', 'crowd', 1, 'z'), ('acme', 'crowd', 2, 'v');

    insert into hitherto.conversation (tenant, ref, user_id, agent, id, rev, next_seq, tokens, turns, dialogue,
    updated_at,
        subject)
    select 'acme', n + 1, case when n = 0 then 'u' else 'u' || n end, 'a', 'c', 1, 20, 200, 5, 10, now(),
           case when n % 2 = 0 then 's1' else '' end
    from generate_series(0, {MORE // 10}) n
    union all select 'acme', {LATE}, 'u', 'a', 'late', 1, 20, 200, 5, 10, now(), '';
    insert into hitherto.message (tenant, conversation, seq, wire, role, kind, text, payload, call_ids, result_ids,
        tool_names, metadata, tokens, sum_tokens, sum_turns, sum_dialogue, sum_results, rev, created_at)
    select 'acme', c, n, 'openai.chat', 'user', 'text', 'text of a message', '{{"a": "b"}}', '{{}}', '{{}}', '{{}}',
           '{{}}', 10, 10 * (n + 1), n + 1, n + 1, 0, 1, now()
    from generate_series(1, 2) c, generate_series(0, {LENGTH - 1}) n;
    insert into hitherto.fork (tenant, conversation, source, end_seq, rev)
    select 'acme', n + 1, n, 9, 1 from generate_series(1, {MORE // 10}, 2) n;

    insert into hitherto.fact_subject (tenant, user_id, agent, subject)
    select 'acme', 'u' || n, 'a', 's1' from generate_series(1, {MORE // 10}) n
    union all select 'acme', 'u', 'a', 's' || n from generate_series(1, 200) n
    union all select 'acme', 'v', 'a', 's1';
    insert into hitherto.fact (tenant, id, user_id, agent, subject, category, content, fingerprint, visibility, state,
        ended_at, superseded_by, confidence, tokens, length, hashes, counts, indexed) overriding system value
    select 'acme', id, user_id, agent, subject, 'hobby', 'what is known', user_id || n, visibility, state,
           case when state <> 'current' then now() end, case when id between 1201 and 1250 then 250 end,
           0.5, 5, 5, '\\x0102030405060708', '\\x01', true
    from (
        select n as id, 'u' as user_id, 'a' as agent, 's1' as subject, n, 'current' as state, 'private' as visibility
        from generate_series(1, {OWN}) n
        union all select 1000 + n, 'u', 'a', 's1', n, 'superseded', 'private' from generate_series(1, {OWN}) n
        union all select 2000 + n, 'u', 'a', 's' || n, n, 'current', 'private' from generate_series(2, 200) n
        union all select 3000 + n, 'u', 'b', 's1', n, 'current', 'private' from generate_series(1, {OWN}) n
        union all
        select 4000 + n, 'v', 'a', 's1', n, 'current', case when n <= {SHARED} then 'shared' else 'private' end
        from generate_series(1, {OWN}) n
        union all select 5000 + n, 'w', 'a', 's1', n, 'current', 'shared' from generate_series(1, 5) n
        union all select 6000 + n, 'v', 'a', 's2', n, 'current', 'shared' from generate_series(1, {OWN}) n
        union all select 40000 + n, 'v', 'a', 'crowd', n, 'current', 'shared' from generate_series(1, {CROWD}) n
        union all select 10000 + n, 'u' || n % {MORE // 10}, 'a', 's1', n, 'current', 'private'
        from generate_series(1, {MORE}) n
    ) f;
    select setval(pg_get_serial_sequence('hitherto.fact', 'id'), 1000000);
    insert into hitherto.fact_evidence (tenant, fact, conversation, seq, said_at)
    select tenant, id, case when user_id <> 'u' then 2 + id % {MORE // 10} when id > 2180 and agent = 'a' then {LATE}
                            else 1 end,
           case when user_id = 'u' then row_number() over (partition by user_id order by id) - 1 else id % 20 end, now()
    from hitherto.fact;
    insert into hitherto.forgetting (tenant, conversation, turn, seq, at, user_id, agent)
    select 'acme', 1 + n, 3, 4, now(), 'u' || n, 'a' from generate_series(1, {MORE // 10}) n;
    insert into hitherto.fact_event (tenant, fact, no, action, version, category, content, visibility)
    select tenant, id, no, 'extracted', no, category, content, visibility from hitherto.fact, generate_series(1, 3) no;

    insert into hitherto.search_space (name, dimensions) values ('words', 256), ('others', 8);
    insert into hitherto.search_scope (tenant, ref, user_id, agent, next_no, packed) overriding system value
    select 'acme', 1, 'u', 'a', 10000, 4096
    union all select 'acme', 1 + n, 'u' || n, 'a', 20, 0 from generate_series(1, {MORE // 10}) n;
    insert into hitherto.search_entry (tenant, scope, no, kind, origin, place, start_char, end_char, length, said_at,
                                       hashes, counts)
    select 'acme', 1, row_number() over (order by id) - 1, 4, id, 0, 0, 5, 5, now(), ''::bytea, ''::bytea
    from hitherto.fact where user_id = 'u' and agent = 'a' and state = 'current'
    union all
    select 'acme', 1 + substring(user_id from 2)::integer, row_number() over (partition by user_id order by id), 4, id,
           0, 0, 5, 5, now(), ''::bytea, ''::bytea
    from hitherto.fact where user_id like 'u_%' and agent = 'a' and state = 'current' and user_id <> 'u0';
    insert into hitherto.search_entry (tenant, scope, no, kind, origin, place, start_char, end_char, length, said_at,
                                       hashes, counts)
    select 'acme', 1, 1000 + n, 1, 1, n, 0, 5, 5, now(), ''::bytea, ''::bytea from generate_series(0, {LENGTH - 1}) n;
    insert into hitherto.search_vector (tenant, scope, space, no, code, vector)
    select tenant, scope, space, no, '\\x01', '\\x0102' from hitherto.search_entry, generate_series(1, 2) space;
    insert into hitherto.search_segment (tenant, scope, segment, lengths, kinds, origins, places, times)
    select 'acme', s, 0, '', '', '', '', '' from generate_series(1, {MORE // 10}) s;
"""

SCOPE = {"tenant": "acme", "user": "u", "agent": "a"}
BOOK = {**SCOPE, "subject": "s1"}
KNOWN = {**BOOK, "conversation": "c", "name": "words", "dimensions": 256, "facts": True, "most_shared": MOST_SHARED}
ONE = {**SCOPE, "all_agents": False, "id": 7}
LISTED = {
    **SCOPE, "subject": None, "mine": True, "shared": True, "all_agents": False, "category": None,
    "conversation": None, "state": "current", "confirmed": None, "after": 0, "limit": 20,
}  # fmt: skip
NEW = {
    **BOOK, "category": "hobby", "content": "Plays chess.", "fingerprint": "chess", 
    "confidence": 0.5, "by": None, "metadata": "{}", "tokens": 3, "length": 2, "hashes": b"12345678", "counts": b"1",
    "seqs": [3, 5], "ref": 1, "action": "extracted", "single_valued": False, "coming": None, "now": None,
}  # fmt: skip
TAKEN = {**SCOPE, "ref": 1, "firsts": [100, 7], "lasts": [109, 7], "confirmed": False, "keep": False}
HELD = {**TAKEN, "subject": "s1", "facts": [8], "fingerprints": ["u7", "chess"], "categories": [], "categories_of": []}
EMBEDDED = {"tenant": "acme", "ref": 1, "nos": [*range(1000), *range(2000, 2020)]}

CURRENT = OWN + 199
"""What the user and his agent know of all subjects, and is not over."""

CASES = {
    "known": bound("known", KNOWN, 2, OWN + SHARED + 5 + 10),
    "known, to who is no member": bound("known", {**KNOWN, "user": "w"}, 2, 5 + 10),
    "known, of another subject": bound("known", {**KNOWN, "conversation": "none", "subject": "s150"}, 2, 10),
    "known, of nobody": bound("known", {**KNOWN, "user": "nobody", "conversation": "none", "subject": ""}, 2, 5),
    "known, of what thousands are shared": bound(
        "known", {**KNOWN, "user": "z", "conversation": "none", "subject": "crowd"}, 2, 2 * MOST_SHARED + 10
    ),
    "current_facts": bound("current_facts", BOOK, OWN, 3 * OWN + 200),
    "subject": bound("subject", BOOK, 1, 4),
    "hold_fact_subject": bound("hold_fact_subject", BOOK, 1, 1),
    "alike": bound("alike", {**BOOK, "fingerprint": "u7"}, 1, 4),
    # A page of the own ones and one of the shared ones, of each of the user's subjects.
    "facts": bound("facts", LISTED, 20, 20 + 2 * 20 + 5),
    "facts, the last": bound("facts", {**LISTED, "after": 2**40}, 0, 10),
    "facts that are confirmed": bound("facts", {**LISTED, "confirmed": True, "shared": False}, 0, 2 * OWN + 200),
    "facts of others": bound("facts", {**LISTED, "mine": False}, 20, 2 * 20 + 10),
    "facts, all": bound("facts", {**LISTED, "limit": 10_000}, CURRENT + SHARED, CURRENT + OWN + 5 * SHARED),
    "facts that a conversation says": bound("facts_said_in", {**LISTED, "conversation": "c"}, 20, SAID + 2 * 20),
    "facts that the latest one says": bound("facts_said_in", {**LISTED, "conversation": "late"}, 20, 2 * 20),
    "facts that every agent's says": bound(
        "facts_said_in", {**LISTED, "conversation": "late", "all_agents": True}, 20, 2 * 20 + 201
    ),
    "facts that no conversation says": bound("facts_said_in", {**LISTED, "conversation": "none"}, 0, 5),
    "fact": bound("fact", ONE, 1, 3),
    "fact that is shared": bound("fact", {**ONE, "id": 4007}, 1, 5),
    "replaced_facts": bound("replaced_facts", {**ONE, "id": 250, "limit": 20}, 20, 4 * 50),
    "evidence": bound("evidence", {**SCOPE, "ids": [7], "most_evidence": 100}, 1, 3),
    "fact_history": bound("fact_history", {**ONE, "after": 0, "limit": 100}, 3, 4),
    "fact_versions": bound("fact_versions", {**SCOPE, "ids": [7, 4007], "versions": [2, 2]}, 2, 2 * 8),
    "hold_subject_of_fact": bound("hold_subject_of_fact", ONE, 1, 3),
    "held_fact": bound("held_fact", {**ONE, "action": "edited", "fingerprint": "u8"}, 1, 2),
    "keep_fact": bound("keep_fact", {**ONE, "category": "hobby", "metadata": "{}"}, 0, 2),
    "confirm_fact": bound("confirm_fact", ONE, 0, 2),
    "note_fact": bound("note_fact", {**ONE, "action": "confirmed"}, 1, 5),
    "delete_fact": bound("delete_fact", ONE, 0, 15),
    "hold_fact_subjects": bound("hold_fact_subjects", TAKEN, 1, 40),
    "hold_facts": bound("hold_facts", HELD, 12, 40),
    "hold_facts, of a category": bound("hold_facts", {**HELD, "categories_of": [8]}, OWN, 4 * OWN),
    "learn_fact": bound("learn_fact", NEW, 1, 20),
    "learn_fact, again": bound("learn_fact", {**NEW, "fingerprint": "u7"}, 1, 20),
    "learn_fact, of what comes next": bound("learn_fact", {**NEW, "seqs": [LENGTH], "coming": LENGTH}, 1, 20),
    "remembered": bound("remembered", {**SCOPE, "ref": 1, "seq": 7}, 1, 4 * (2 * OWN + 200)),
    "forgettings": bound("forgettings", {**SCOPE, "ref": 7, "turn": 3}, 1, 4),
    "facts_to_forget": bound("facts_to_forget", {**SCOPE, "id": 7}, 2, 4 * (2 * OWN + 200)),
    "messages_of_fact": bound("messages_of_fact", {**SCOPE, "id": 7, "mention": False, "most_evidence": 100}, 1, 3),
    "asked_to_forget": bound("asked_to_forget", {**SCOPE, "ref": 7, "first": 0, "last": 9}, 0, 40),
    "forgotten": bound("forgotten", {**SCOPE, "ref": 1, "first": 100, "last": 109}, 0, 40),
    "say_in_relatives": bound("say_in_relatives", {**BOOK, "ref": 1, "seqs": [6, 7, LENGTH - 1]}, 2, 30),
    "facts_left": bound("facts_left", {**SCOPE, "ids": [7, LATE]}, 1, 2),
    "repeat_fact": bound("repeat_fact", {**NEW, "id": 7}, 1, 20),
    "supersede_facts": bound("supersede_facts", {**NEW, "fingerprint": "u7", "facts": [8]}, 1, 20),
    "supersede_facts, all of a category": bound(
        "supersede_facts", {**NEW, "fingerprint": "u7", "facts": [], "single_valued": True}, 1, 11 * OWN
    ),
    "withdraw_facts": bound("withdraw_facts", TAKEN, 1, 150),
    "restore_replaced": bound("restore_replaced", TAKEN, 0, 60),
    "restore_fact": bound("restore_fact", ONE, 0, 2),
    "set_subject": bound("set_subject", {**BOOK, "name": "S"}, 0, 2),
    "erase_facts": bound("erase_facts", {**TAKEN, "history": False}, 1, 150),
    "unindex_fact": bound("unindex_fact", ONE, 1, 3),
    "index_hold_facts": bound("index_hold_facts", {"tenant": "acme", "facts": [8]}, 1, 2),
    "index_seen_facts": bound("index_seen_facts", {"tenant": "acme", "facts": [7], "versions": [1]}, 1, 3),
    "index_hold_facts_of": bound("index_hold_facts_of", EMBEDDED, CURRENT, CURRENT + 1_020),
    "index_facts_of": bound("index_facts_of", EMBEDDED, CURRENT, 1_020),
    "index_fact_codes": bound(
        "index_fact_codes", {"tenant": "acme", "facts": [7, 8], "space": 1, "codes": [b"1", b"2"]}, 0, 4
    ),
}


@pytest.fixture(scope="module")
async def filled(databases: Databases) -> AsyncIterator[Connection]:
    """A database in which much is known."""
    async with filled_database(databases, FILL) as connection:
        yield connection


@pytest.mark.parametrize("name", CASES)
async def test_it_reads_no_more_than_it_is_for(filled: Connection, name: str) -> None:
    """However many facts there are of others."""
    one = CASES[name]
    for mode in PLANNED:
        found = await plan_of(filled, one.case, mode)
        assert found["Actual Rows"] == one.case.rows
        assert scanned(found) <= {"search_space", "digest"}, mode  # there is no digest here
        functions = {
            node.get("Function Name", "unnest") for node in nodes(found) if node["Node Type"] == "Function Scan"
        }
        assert functions <= {"unnest"}, "what is shared is planned as a part of the statement"
        assert examined(found) <= one.examined + TOUCHED, mode
