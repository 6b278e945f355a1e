"""Past revisions: the head at each is what it was then."""

from __future__ import annotations

from hitherto.core.log.message import Sums
from hitherto.store.store import Store
from tests.store.samples import (
    HOUR,
    SCOPE,
    assistant,
    call,
    dialogue,
    digested,
    head_of,
    user,
    write,
)


class TestRevision:
    async def test_revision_0_is_empty_and_none_lies_beyond_the_newest(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        await digested(store, "c", 0, 3)
        head = await head_of(store, "c")
        assert head.rev == 2
        nothing = await store.head(SCOPE, "c", at=0)
        assert nothing is not None
        assert (nothing.rev, nothing.next_seq, nothing.sums, nothing.view_start) == (0, 0, Sums(), 0)
        assert (nothing.closed, nothing.digest, nothing.digest_sums, nothing.erased) == (False, None, Sums(), ())
        for at in (-1, 3, 2**31, 2**63, 2**70):
            assert await store.head(SCOPE, "c", at=at) is None
        assert await store.head(SCOPE, "none", at=0) is None

    async def test_closed_follows_the_last_message_of_the_revision(self, store: Store) -> None:
        for message in (user(), assistant(), call("a"), user(), assistant()):
            await write(store, "c", message)
        past = [await store.head(SCOPE, "c", at=rev) for rev in range(6)]
        assert [head and head.closed for head in past] == [False, False, True, False, False, True]

    async def test_only_the_newest_head_says_how_often_digests_failed(self, store: Store) -> None:
        await write(store, "c", *dialogue(1))
        await write(store, "d", *dialogue(1))
        head = await head_of(store, "c")
        assert (head.failures, head.resume_at, head.resting) == (0, None, False)
        until = head.now.replace(microsecond=123_456) + HOUR
        await write(store, "c", same_rev=True, failures=3, resume_at=until)
        await write(store, "c", *dialogue(1))
        head = await head_of(store, "c")
        assert (head.failures, head.resume_at, head.resting) == (3, until, True)
        other = await head_of(store, "d")
        assert (other.failures, other.resume_at) == (0, None)
        async with store.write(SCOPE, "c") as unit:
            assert (unit.head.failures, unit.head.resume_at) == (3, until)
        past = [await store.head(SCOPE, "c", at=rev) for rev in range(3)]
        assert [head and (head.failures, head.resume_at) for head in past] == [(0, None)] * 3
        await write(store, "c", same_rev=True, failures=4, resume_at=until - 2 * HOUR)
        assert not (await head_of(store, "c")).resting, "that was long ago"
        await write(store, "c", failures=0, resume_at=None)
        head = await head_of(store, "c")
        assert (head.failures, head.resume_at) == (0, None)

    async def test_only_the_newest_head_says_what_is_to_be_digested_in_any_case(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        assert (await head_of(store, "c")).finish_seq == 0
        await write(store, "c", same_rev=True, finish_seq=4)
        await write(store, "c", *dialogue(1))
        assert (await head_of(store, "c")).finish_seq == 4
        async with store.write(SCOPE, "c") as unit:
            assert unit.head.finish_seq == 4
        past = [await store.head(SCOPE, "c", at=rev) for rev in range(3)]
        assert [head and head.finish_seq for head in past] == [0, 0, 0]

    async def test_what_was_erased_since_shows_in_the_past_as_far_as_it_reaches(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        await write(store, "c", *dialogue(2))
        await write(store, "c", erase=((1, 2), (3, 5), (7, 7)))
        past = [await store.head(SCOPE, "c", at=rev) for rev in range(4)]
        assert [head and head.erased for head in past] == [
            (),
            ((1, 2), (3, 3)),
            ((1, 2), (3, 5), (7, 7)),
            ((1, 2), (3, 5), (7, 7)),
        ]
        assert [head and head.closed for head in past] == [False, True, True, True]
