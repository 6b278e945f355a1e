"""`DigestWork`: what a worker gets to make a digest, as long as that is in progress."""

from __future__ import annotations

import pytest

from hitherto.core.digests.digest import DigestOutcome, Item
from hitherto.core.log.frontier import DigestAction
from hitherto.store.store import Store
from tests.store.digests.stage_samples import stage_row, take_back
from tests.store.samples import (
    ENDS,
    HOUR,
    OTHER_STAGE,
    SCOPE,
    assistant,
    call,
    claimed,
    dialogue,
    digested,
    ending,
    fire,
    log_of,
    result,
    system,
    user,
    write,
)


class TestWork:
    async def test_work_has_the_new_messages_in_order(self, store: Store) -> None:
        batch = [system("s"), user("u"), call("a"), result("a", "r"), assistant("b"), user("v")]
        await write(store, "c", *batch)
        made = await fire(store, "c", 1, 4)
        work = await claimed(store, made)
        assert [work.digest] == await store.digests(SCOPE, "c")
        assert (work.scope, work.conversation) == (SCOPE, "c")
        assert work.base == ()
        assert list(work.messages) == (await log_of(store, "c"))[1:5]
        assert work.opaque is None

    async def test_work_has_the_items_of_its_base_and_only_what_that_has_not_seen(self, store: Store) -> None:
        await write(store, "c", *dialogue(4))
        items = (Item("a", ((0, 0), (2, 2))), Item("b", ((3, 3),)))
        base = await digested(store, "c", 0, 3, *items)
        await digested(store, "c", 0, 1, Item("not the base", ((0, 0),)), stage=OTHER_STAGE)
        made = await fire(store, "c", 2, 7, base=base)
        work = await claimed(store, made)
        assert (work.digest.base, work.base) == (base, items)
        assert [one.seq for one in work.messages] == [4, 5, 6, 7]
        # A window that begins after its base ended leaves out what lies between.
        await write(store, "c", *dialogue(2), outcomes=[ending("failed", made)])
        made = await fire(store, "c", 9, 11, base=base)
        work = await claimed(store, made)
        assert [one.seq for one in work.messages] == [9, 10, 11]

    async def test_work_leaves_out_what_was_erased(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        made = await fire(store, "c", 0, 5)
        await write(store, "c", erase=((1, 2), (5, 5)))
        work = await claimed(store, made)
        assert [one.seq for one in work.messages] == [0, 3, 4]

    @pytest.mark.parametrize("how", ENDS)
    async def test_there_is_no_work_once_it_ended(self, store: Store, how: str) -> None:
        await write(store, "c", *dialogue(3))
        made = await fire(store, "c", 0, 5)
        await write(store, "c", outcomes=[ending(how, made)])
        assert await store.claim(SCOPE.tenant, made, lease=HOUR) is None

    async def test_there_is_no_work_for_others(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        made = await fire(store, "c", 0, 5)
        before = await store.digests(SCOPE, "c")
        for tenant in ("another", "", SCOPE.tenant.upper(), SCOPE.user):
            assert await store.claim(tenant, made, lease=HOUR) is None
        for digest in (made + 1, 0, -made, 2**63):
            assert await store.claim(SCOPE.tenant, digest, lease=HOUR) is None
        assert await store.digests(SCOPE, "c") == before

    async def test_work_on_chunks_has_the_statements_of_all_before(self, store: Store) -> None:
        """Back to the first base that is not a chunk, whose statements come first."""
        await write(store, "c", *dialogue(6))
        older = await digested(store, "c", 0, 1, Item("before the summary", ((0, 1),)))
        base = await digested(store, "c", 0, 3, Item("summary", ((0, 3),)), base=older)
        for start in (4, 6):
            row = stage_row(DigestAction.CHUNK, start, start + 1, completed=False, base=base)
            (base,) = (await write(store, "c", fire=[row])).fired
            items = (Item(f"chunk {start}", ((start, start),)), Item(f"more {start}", ((start + 1, start + 1),)))
            await write(store, "c", outcomes=[DigestOutcome(digest=base, items=items)])
        made = await fire(store, "c", 0, 11, base=base)
        work = await claimed(store, made)
        assert [item.text for item in work.base] == ["summary", "chunk 4", "more 4", "chunk 6", "more 6"]
        assert [one.seq for one in work.messages] == [8, 9, 10, 11]

    async def test_work_has_the_opaque_items_of_its_base(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        base = (
            await write(store, "c", fire=[stage_row(DigestAction.COMPACT, 0, 3, opaque='[{"b": 1, "a": 2}]')])
        ).fired[0]
        row = stage_row(DigestAction.COMPACT, 0, 5, completed=False, base=base)
        made = (await write(store, "c", fire=[row])).fired[0]
        work = await claimed(store, made)
        assert (work.base, work.opaque) == ((), '[{"b": 1, "a": 2}]')
        assert [one.seq for one in work.messages] == [4, 5]

    async def test_work_leaves_out_what_was_taken_back(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        await take_back(store, "c", 3)
        await write(store, "c", *dialogue(1))
        made = await fire(store, "c", 0, 5)
        work = await claimed(store, made)
        assert [one.seq for one in work.messages] == [0, 4, 5]
