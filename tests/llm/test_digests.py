"""Ten digests through a real model and its server, without facts and with them. The model is too small to do it well:
what counts is that each is asked for with a JSON schema, that the server enforces it, that every digest comes to a good
end, and that what is kept of it keeps to the rules."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

import hitherto
from hitherto import Memory, Scope, assistant, sliding_window, user
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.facts.fact import CATEGORIES
from hitherto.core.log.message import Role
from tests.llm.served import MODEL, Served
from tests.llm.wire import SCHEMAS, Exchange, Recorder

SCOPE = Scope(tenant="acme", user="ada", agent="planner")

TALK = (
    ("Hi, I am Ada. I am planning a trip to Lisbon in May.", "Lovely, Ada! How many days do you have?"),
    ("Five days, from 12 to 16 May, and my budget is 900 euros.", "I would take the train from Madrid."),
    ("I am allergic to nuts, please remember that.", "Noted: no nuts. I will look for places that are safe."),
    ("My brother Tom joins me on the second day.", "Good, then two seats from 13 May."),
    ("We prefer a hotel near the river.", "The Tejo Inn is near the river and costs 80 euros a night."),
    ("CurrentFacts the Tejo Inn for four nights, please.", "Done: Tejo Inn, 12 to 16 May, 320 euros."),
    ("What is left of the budget?", "580 euros are left."),
    ("Tom wants to see the tram 28.", "Tram 28 runs from Martim Moniz; go early in the morning."),
    ("Change of plans: Tom comes on the third day.", "Then two seats from 14 May."),
    ("Which museum do you suggest?", "The tile museum, closed on Mondays."),
)


@pytest.mark.parametrize("facts", [False, True], ids=["digests", "digests with facts"])
async def test_ten_rounds_through_a_real_model(served: Served, database: str, figures: list[str], facts: bool) -> None:
    # A digest of at most 100 tokens bounds an answer by 700, so that a model that repeats itself ends soon.
    policy = sliding_window(window=8, after_seq=1, max_tokens=100, facts=facts)
    with Recorder(served.url) as wire:
        async with hitherto.open(database, model=MODEL, model_base_url=wire.url, model_timeout=300) as memory:
            chat = memory.conversation("lisbon", scope=SCOPE, policy=policy)
            for number, (asked, answered) in enumerate(TALK, 1):
                before, started = len(wire.exchanges), time.monotonic()
                await chat.append(user(asked), assistant(answered))
                await memory.wait_for_digests()
                made = (await chat.digests())[-1]
                seconds = time.monotonic() - started
                figures.append(_figures(number, seconds, made, wire.exchanges[before:]))
            digests = await chat.digests()
            context = await chat.context(user("When do we leave?"), budget=2_000)
            known = await _known(memory) if facts else []
    assert [(one.status, one.error) for one in digests] == [(Status.COMPLETED, None)] * len(TALK)
    for number, digest in enumerate(digests):
        _is_sound(digest, end=2 * number + 1)
    shown = "\n".join(message["content"] for message in context.messages)
    assert digests[-1].items[0].text in shown
    assert all(content in shown for content in known)
    _enforced_the_schema(wire.exchanges, facts=facts)
    figures.extend(f"known:    {content}" for content in known)


async def _known(memory: Memory) -> list[str]:
    """What the facts say. Each is in a category that was asked for, and rests on a message of the user's."""
    found = await memory.facts(SCOPE).list()
    for fact in found:
        assert fact.category in CATEGORIES
        assert fact.content.strip()
        sources = await memory.facts(SCOPE).sources(fact.id)
        assert Role.USER in {logged.message.role for _, logged in sources}
    return [fact.content for fact in found]


def _is_sound(digest: Digest, *, end: int) -> None:
    """It covers the window that ends at `end`, and each statement says something and rests on messages in it."""
    assert (digest.start, digest.end, digest.model) == (max(0, end - 7), end, MODEL)
    assert digest.items
    for item in digest.items:
        assert item.text.strip()
        assert item.sources
        assert all(digest.start <= first <= last <= digest.end for first, last in item.sources)


def _enforced_the_schema(exchanges: Sequence[Exchange], *, facts: bool) -> None:
    """Each request asks for one of our schemas, the first with facts where they are wanted, each answer keeps to it,
    and what the server refuses (OpenAI's way of asking for it) is tried before the first answer and never again."""
    assert ("facts" in exchanges[0].schema["required"]) is facts
    first = next(at for at, one in enumerate(exchanges) if one.status == 200)
    assert [one.status for one in exchanges[first:]] == [200] * len(exchanges[first:])
    for one in exchanges:
        assert one.schema in SCHEMAS
    for one in exchanges[first:]:
        if one.finish == "stop":
            assert set(one.content) == set(one.schema["required"])


def _figures(number: int, seconds: float, digest: Digest, exchanges: Sequence[Exchange]) -> str:
    answers = [one for one in exchanges if one.status == 200]
    read, written = (sum(side) for side in zip(*[one.tokens for one in answers], strict=True)) if answers else (0, 0)
    refusals = len(exchanges) - len(answers)
    return (
        f"round {number:2}: {digest.status} after {seconds:5.1f} s, {len(answers)} answers, {refusals} refusals, "
        f"{read:4} tokens in, {written:3} out, {len(digest.items)} statements"
    )
