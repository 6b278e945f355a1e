"""Plans of the search index: a search reads what its scope has and looks up the rest; indexing reads what waits."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

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
from tests.postgres.test_plans import FILL, LENGTH, OTHERS, SCOPE

SEGMENT = 4_096
TERMS = 50
TAIL = LENGTH + 60 - SEGMENT
MORE = 20_000

# One scope has an entry for each message of the long conversation, half of them in a segment, and for some chunks,
# passages and facts; others have twenty entries each, of which the first three scopes' are not all indexed and
# embedded; and many more have a conversation that is indexed, a document and a fact.
SEARCH_FILL = f"""
    update hitherto.conversation set indexed_seq = next_seq;
    update hitherto.conversation set subject = 'mum' where ref <= 7;
    update hitherto.conversation set private = true where ref between 8 and 10;
    update hitherto.digest set indexed = true where action in ('summarize', 'chunk') and status = 'completed';

    insert into hitherto.conversation (tenant, ref, user_id, agent, id, rev, next_seq, indexed_seq, tokens, turns,
    dialogue,
        updated_at)
    select 'acme', 1000 + n, 'u' || n, 'a', 'd', 1, 20, case when n <= 3 then 0 else 20 end, 200, 5, 10, now()
    from generate_series(1, {MORE}) n;

    insert into hitherto.message (tenant, conversation, seq, wire, role, kind, text, payload, call_ids, result_ids,
        tool_names, metadata, tokens, sum_tokens, sum_turns, sum_dialogue, sum_results, rev, created_at)
    select 'acme', 1000 + c, n, 'openai.chat', 'user', 'text', 'text of a message', '{{"a": "b"}}', '{{}}', '{{}}',
           '{{}}', '{{}}', 10, 10 * (n + 1), n + 1, n + 1, 0, 1, now()
    from generate_series(1, {OTHERS}) c, generate_series(0, 19) n;

    insert into hitherto.search_space (name, dimensions) values ('words', 256), ('others', 8);

    insert into hitherto.search_scope (tenant, ref, user_id, agent, next_no, packed) overriding system value
    select 'acme', 1, 'u', 'a', {LENGTH} + 60, {SEGMENT}
    union all
    select 'acme', 1 + n, 'u' || n, 'a', 20, 0 from generate_series(1, {MORE}) n;
    update hitherto.search_scope set stale = true where ref between 2 and 4;

    insert into hitherto.search_filling (tenant, scope, space, embedded, coded, behind)
    select tenant, ref, space, case when ref between 2 and 4 then 10 else next_no end, packed, ref between 2 and 4
    from hitherto.search_scope, generate_series(1, 2) space;

    insert into hitherto.search_entry (tenant, scope, no, kind, origin, place, start_char, end_char, length, said_at,
                                       hashes, counts)
    select 'acme', 1, n, 1, 1, n, 0, 5, 5, now(), ''::bytea, ''::bytea from generate_series(0, {LENGTH - 1}) n
    union all
    select 'acme', 1 + s, n, 1, 1000 + s, n, 0, 5, 5, now(), ''::bytea, ''::bytea
    from generate_series(1, {OTHERS}) s, generate_series(0, 19) n where s > 3 or n < 10;

    insert into hitherto.document (tenant, user_id, agent, namespace, doc_type, content, fingerprint, indexed)
    select 'acme', case when n <= 20 then 'u' else 'u' || n - 20 end, '', 'documents', 'note', 'text', n::text,
           n not in (21, 22, 23)
    from generate_series(1, {MORE}) n;
    insert into hitherto.passage (tenant, document, no, text, start_at, tokens)
    select 'acme', id, 0, 'text', 0, 1 from hitherto.document;

    insert into hitherto.search_entry (tenant, scope, no, kind, origin, place, start_char, end_char, length, said_at,
                                       hashes, counts)
    select 'acme', 1, {LENGTH - 1} + row_number() over (), 2, 1, id, 0, 5, 5, now(), ''::bytea, ''::bytea
    from (select id from hitherto.digest
          where conversation = 1 and action = 'chunk' and status = 'completed' and hidden_rev is null limit 20) d
    union all
    select 'acme', 1, {LENGTH + 19} + row_number() over (), 3, id, 0, 0, 5, 5, now(), ''::bytea, ''::bytea
    from (select id from hitherto.document where user_id = 'u') d;

    insert into hitherto.fact (tenant, user_id, agent, subject, category, content, fingerprint, confidence, tokens,
        length, hashes, counts, indexed)
    select 'acme', case when n <= 20 then 'u' else 'u' || n - 20 end, 'a', case when n % 2 = 0 then 'mum' else '' end,
           'hobby', 'text', n::text, 0.5, 5, 5, '', '', n not in (21, 22, 23)
    from generate_series(1, {MORE}) n;
    insert into hitherto.fact_evidence (tenant, fact, conversation, seq, said_at)
    select 'acme', id, 1 + id % 100, 0, now() from hitherto.fact;
    insert into hitherto.search_entry (tenant, scope, no, kind, origin, place, start_char, end_char, length, said_at,
                                       hashes, counts)
    select 'acme', 1, {LENGTH + 39} + row_number() over (), 4, id, 0, 0, 5, 5, now(), ''::bytea, ''::bytea
    from (select id from hitherto.fact where user_id = 'u') f;

    insert into hitherto.search_segment (tenant, scope, segment, lengths, kinds, origins, places, times)
    select 'acme', s, 0, '', '', '', '', '' from generate_series(1, {OTHERS}) s;
    insert into hitherto.search_posting (tenant, scope, term, segment, offsets, counts)
    select 'acme', s, t, 0, '\\x0100', '\\x01' from generate_series(1, {OTHERS}) s, generate_series(1, {TERMS}) t;
    insert into hitherto.search_vector (tenant, scope, space, no, code, vector)
    select tenant, scope, space, no, '\\x01', '\\x0102' from hitherto.search_entry, generate_series(1, 2) space
    where scope not between 2 and 4 or no < 10;
    insert into hitherto.search_codes (tenant, scope, space, segment, codes)
    select 'acme', s, space, 0, '\\x01' from generate_series(1, {OTHERS}) s, generate_series(1, 2) space;
"""

ASKED = {**SCOPE, "all_agents": False, "named": None, "until": None}
WAITING = {**ASKED, "text": 4_000, "limit": 500, "kinds": [1, 2, 3, 4], "ids": []}
SPACES = {"names": ["words", "others"], "dimensions": [256, 8]}
FOUND = {
    **ASKED, "scopes": [1] * 100, "nos": [*range(0, LENGTH, LENGTH // 40), *range(LENGTH, LENGTH + 60)],
    "around": 2, "origins": [], "places": [], "text": 4_000, "space": 1, "kinds": [1, 2, 3, 4],
    "relatives": [], "throughs": [], "owns": [], "digests": [], "copies": [],
}  # fmt: skip
BESIDE = {**FOUND, "scopes": [], "nos": [], "origins": [1] * 20, "places": [*range(0, LENGTH, LENGTH // 20)]}
DUE = {"after_tenant": "", "user": "", "agent": "", "space": 1, "limit": 20}
TAKEN = {"tenant": "acme", "ref": 1, "size": SEGMENT}


CASES = {
    "search_segments": bound("search_segments", {**ASKED, "told": True}, 1, 2),
    "search_postings": bound("search_postings", {**ASKED, "terms": [3, 5, 7, 99]}, 3, 4),
    "search_tail": bound("search_tail", ASKED, 1, TAIL + 1),
    "search_codes": bound("search_codes", {**ASKED, **SPACES}, 2, TAIL),
    "search_about": bound("search_about", {**ASKED, "subject": "mum"}, 7, 8),
    "search_unseen": bound("search_unseen", ASKED, 6, 3),
    # All is later: of each conversation its first message and, of all 8,800 digests, the last that they rest on.
    "search_unseen, later": bound("search_unseen", {**ASKED, "until": "2000-01-01T00:00:00Z"}, 828, 34_100),
    "search_refs": bound("search_refs", {**ASKED, "ids": ["c-7", "c-9"]}, 2, 10),
    "search_copies": bound("search_copies", {**ASKED, "ids": ["c-7", "c-9"]}, 0, 10),
    # The scope's conversations are gone through for what waits; of the log nothing is read.
    "search_waiting, nothing": bound("search_waiting", WAITING, 0, 2 * (OTHERS + 1)),
    "search_waiting, something": bound("search_waiting", {**WAITING, "user": "u3"}, 12, 50),
    # Of each hit its scope, its entry, and the entries of its source, which has passages; five messages around each hit
    # that is one; of each its entry, what it stands for, its conversation and vector.
    "search_candidates": bound("search_candidates", FOUND, 258, 3 * 100 + 5 * 258),
    "search_candidates beside messages": bound("search_candidates", BESIDE, 98, 5 * 98),
    "search_candidates of another": bound("search_candidates", {**FOUND, "user": "v"}, 0, 100),
    "index_due": bound("index_due", DUE, 6, 30),
    "index_messages": bound("index_messages", {**TAKEN, "ref": 4, "limit": 512}, 20, 22),
    "index_messages, nothing": bound("index_messages", {**TAKEN, "limit": 512}, 0, OTHERS + 2),
    "index_digests, nothing": bound("index_digests", {**TAKEN, "limit": 512}, 0, OTHERS + 2),
    "index_passages, nothing": bound("index_passages", {**TAKEN, "limit": 512}, 0, 1),
    "index_facts": bound("index_facts", {**TAKEN, "ref": 4, "limit": 512}, 1, 2),
    "index_facts, nothing": bound("index_facts", {**TAKEN, "limit": 512}, 0, 1),
    "index_unembedded": bound("index_unembedded", {**TAKEN, "ref": 1, "space": 1, "limit": 512}, 0, 1),
    "index_untidy": bound("index_untidy", TAKEN, 1, 5),
    "index_backlog": bound("index_backlog", {"name": "words", "dimensions": 256, "tenant": None}, 1, 10),
    # At worst the conversation's entries are gone through, but no vector beside those that go.
    "unindex_messages": bound("unindex_messages", {**TAKEN, "ranges": "{[7,7],[9,9],[20,24]}"}, 1, LENGTH),
    "move_entries": bound("move_entries", {**TAKEN, "ranges": "{[7,7],[9,9],[20,24]}"}, 0, 5),
    "move_digests": bound("move_digests", {**TAKEN, "all": False}, 0, 25),
    "unindex_digests": bound("unindex_digests", TAKEN, 1, LENGTH + 3 * OTHERS),
    "remove_documents": bound("remove_documents", {**TAKEN, "digests": [], "ranges": "{[7,7]}"}, 1, 5),
    "discard_document": bound("discard_document", {**ASKED, "id": 7, "size": SEGMENT}, 1, 15),
}


@pytest.fixture(scope="module")
async def filled(databases: Databases) -> AsyncIterator[Connection]:
    """A database with one large scope and many small ones."""
    async with filled_database(databases, FILL, SEARCH_FILL) as connection:
        yield connection


@pytest.mark.parametrize("name", CASES)
async def test_it_reads_no_more_than_it_is_for(filled: Connection, name: str) -> None:
    """However many scopes, conversations and messages there are beside."""
    one = CASES[name]
    most = {"digest"} if name == "unindex_digests" else set[str]()  # most digests are of that one
    for mode in PLANNED:
        found = await plan_of(filled, one.case, mode)
        assert found["Actual Rows"] == one.case.rows
        assert scanned(found) <= {"search_space", *most}, mode
        assert examined(found) <= one.examined + TOUCHED, mode
        vectors = [node for node in nodes(found) if node.get("Relation Name") == "search_vector"]
        assert not any(node.get("Rows Removed by Filter") for node in vectors), "those of the entries that go"
