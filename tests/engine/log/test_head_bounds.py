"""What grows in a head with what callers do has a bound."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hitherto
from hitherto import Conversation, Head, Memory, assistant, user
from hitherto.core.log.head import MOST_RETRACTIONS, empty
from hitherto.core.log.ranges import ranges
from hitherto.core.policy.parts import Drop, LastTurns
from hitherto.core.policy.policy import Policy, Stage
from hitherto.core.policy.trigger import AnyOf, Turns
from hitherto.engine.digests.fire import MOST_STAGES
from hitherto.engine.facts.learn import MOST_EXTRACTED, FoundFacts, noted
from hitherto.errors import InvalidInput
from tests.conftest import SCOPE
from tests.postgres.asking import rows


@pytest.fixture
async def memory(database: str) -> AsyncIterator[Memory]:
    async with hitherto.open(database, model=None) as opened:
        yield opened


async def head_of(chat: Conversation) -> Head:
    head = await chat.head()
    assert head is not None
    return head


def cutting(number: int) -> Policy:
    """It cuts with every turn after the first; each number makes a stage of its own."""
    return Policy("cutting", (Stage(AnyOf((Turns(2), Turns(100 + number))), LastTurns(1), Drop()),))


async def test_so_many_stages_are_kept_in_mind(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("Hello?"), assistant("Yes."))
    for number in range(MOST_STAGES):
        await chat.append(user("And now?"), assistant("Yes."), policy=cutting(number))
    said = (await head_of(chat)).next_seq
    assert (await chat.append(user("And now?"), assistant("Yes."), policy=cutting(MOST_STAGES))).fired == ()
    assert "use one that the conversation had before, or clear it" in caplog.text
    head = await head_of(chat)
    assert (head.next_seq, len(head.frontiers)) == (said + 2, MOST_STAGES)
    await chat.append(user("And now?"), assistant("Yes."), policy=cutting(7))
    await chat.append(user("And now?"), assistant("Yes."), policy="none")
    await chat.clear()
    await chat.append(user("Hello?"), assistant("Yes."))
    await chat.append(user("And now?"), assistant("Yes."), policy=cutting(MOST_STAGES))
    assert len((await head_of(chat)).frontiers) == 1


async def test_messages_are_taken_back_so_often(memory: Memory, database: str) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(*(user("And now?") for _ in range(4)))
    await chat.append(user("And then?"), at=2)
    before = [[at, at, 1] for at in range(100, 98 + MOST_RETRACTIONS)]
    await rows(database, f"update conversation set retracted = (retracted::jsonb || '{before}')::json")
    await chat.append(user("Well?"))
    assert await chat.pop() is not None
    with pytest.raises(InvalidInput, match="Go on in a new conversation"):
        await chat.pop()
    with pytest.raises(InvalidInput, match="2,000 times"):
        await chat.rewind(to=0)
    with pytest.raises(InvalidInput, match="2,000 times"):
        async with chat.turn("What else?", at=0):
            raise AssertionError("a model would have been asked")
    await chat.switch(3)
    assert [one.text for one in (await chat.transcript()).entries] == ["And now?"] * 4
    await chat.switch(4)
    await chat.append(user("Still there?"))
    assert [one.message.text for one in await chat.messages()][-1] == "Still there?"


@given(st.integers(0, 2 * MOST_EXTRACTED), st.integers(0, 4 * MOST_EXTRACTED))
def test_what_was_extracted_is_so_many_ranges(number: int, new: int) -> None:
    """None of it is forgotten, and the newest ranges stay as they are."""
    seqs = range(0, 2 * number, 2)
    head = replace(empty(datetime.now(UTC)), extracted=ranges(seqs))
    whole = ranges([*seqs, new])
    found = noted(head, FoundFacts(subject="", found=(), start=new, end=new))
    assert len(found) == min(len(whole), MOST_EXTRACTED)
    assert found[1:] == whole[len(whole) - len(found) + 1 :]
    assert (found[0][0], found[0][1]) == (whole[0][0], whole[len(whole) - len(found)][1])
