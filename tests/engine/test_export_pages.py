"""An export is read and written a page at a time, however much there is of one conversation or one user."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any, LiteralString

import pytest
from psycopg import AsyncCursor

from hitherto import user
from hitherto.store import rows
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.engine.test_export import exported, fill, opened
from tests.memories import open_on
from tests.store.digests.samples import add_failed

LONG = 400_000
"""Characters of a text. Ten of these are a page."""

FILL: list[LiteralString] = [
    """insert into hitherto.document (tenant, user_id, agent, namespace, doc_type, content, fingerprint, conversation,
           digest, start_seq, end_seq)
       select d.tenant, 'u', 'a', 'n', 't', d.text, d.id, d.conversation, d.id, 0, 0
       from hitherto.digest d where d.tenant = %(tenant)s""",
    """insert into hitherto.receipt (tenant, key_hash, conversation, fingerprint, start_seq, end_seq, rev, created_at)
       select c.tenant, sha256(n::text::bytea), c.ref, 'f', n / 9, n / 9, 1, now()
       from hitherto.conversation c cross join generate_series(1, 1200) n where c.tenant = %(tenant)s""",
    """insert into hitherto.fact (tenant, user_id, agent, subject, category, content, fingerprint, confidence, tokens,
           length, hashes, counts, indexed)
       select %(tenant)s, 'u', 'a', '', 'hobby', 'text', n, 0.5, 5, 5, '', '', true from generate_series(1, 100) n""",
    """insert into hitherto.fact_evidence (tenant, fact, conversation, seq, said_at)
       select f.tenant, f.id, c.ref, n, now() from hitherto.fact f
       cross join hitherto.conversation c cross join generate_series(1, 1000) n
       where f.tenant = %(tenant)s and c.tenant = %(tenant)s""",
]


class Written(BytesIO):
    """A file that knows how much was written at once."""

    most = 0

    def write(self, data: Any, /) -> int:
        self.most = max(self.most, len(data))
        return super().write(data)


async def test_nothing_is_read_or_written_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_on(store) as memory:
        await memory.conversation("c", scope=SCOPE).append(user("x"))
        await add_failed(store, "c", [LONG] * 20)
        async with store._connections.borrowed() as connection:
            for statement in FILL:
                await connection.execute(statement, {"tenant": SCOPE.tenant})
        numbers, sizes, fetched = list[int](), list[int](), rows.fetched

        async def counted(cursor: AsyncCursor[Any]) -> list[Any]:
            read = await fetched(cursor)
            numbers.append(len(read))
            sizes.append(len(repr(read)))
            return read

        monkeypatch.setattr(rows, "fetched", counted)
        file = Written()
        await memory.export_to(file, tenant=SCOPE.tenant)
    assert max(numbers) <= 500
    assert max(sizes) <= rows.PAGE["size"]
    assert file.most <= rows.PAGE["size"] + LONG
    found = [next(iter(json.loads(line))) for line in file.getvalue().splitlines()]
    kinds = ("digest", "document", "receipt", "fact")
    assert [found.count(kind) for kind in kinds] == [20, 20, 1_200, 100]


async def test_page_by_page_it_is_the_same(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(store) as memory:
        await fill(memory)
        await memory.wait_for_index()
        there = await exported(memory)
        monkeypatch.setitem(rows.PAGE, "size", 1)
        monkeypatch.setattr("hitherto.engine.export.export._PAGE", 2)
        monkeypatch.setattr("hitherto.store.export._PAGE", 2)
        assert (await exported(memory)).splitlines()[1:] == there.splitlines()[1:]
