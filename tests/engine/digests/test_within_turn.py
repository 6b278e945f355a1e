"""Stages that redact or shorten act within a turn that is not finished."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitherto import Call, Conversation, assistant, tool_result, user
from hitherto.core.policy.span import Fate
from hitherto.policies import LastTokens, Policy, Redact, Shorten, Stage, Tokens
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.lengths import examples, lasting
from tests.memories import open_on

few = settings(
    max_examples=examples(6),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


_names = count(1)


def policy(action: Redact, *, within_turn: bool = True, after: int = 400, keep: int = 200) -> Policy:
    return Policy("mine", (Stage(Tokens(after), LastTokens(keep), action, within_turn=within_turn),))


def result(at: int, words: int = 40) -> str:
    return json.dumps({"order": f"order_{at}", "note": "filler " * words})


async def loop(chat: Conversation, steps: Sequence[int], *, together: bool = False) -> None:
    for at, words in enumerate(steps):
        call = assistant(calls=[Call(id=f"c{at}", name="look")])
        answer = tool_result(f"c{at}", result(at, words))
        if together:
            await chat.append(call, answer)
        else:
            await chat.append(call)
            await chat.append(answer)


async def redacted(chat: Conversation) -> list[int]:
    fates = (await chat.context(budget=100_000)).manifest.fates
    return [seq for one in fates if one.fate is Fate.REDACTED for seq in range(one.start, one.end + 1)]


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "call and result together"])
@pytest.mark.parametrize("action", [Redact(), Shorten(characters=50)], ids=["redact", "shorten"])
async def test_old_results_of_a_loop(store: Store, action: Redact, together: bool) -> None:
    async with open_on(store, policy=policy(action)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Look at all orders."))
        await loop(chat, [40] * 20, together=together)
        gone = await redacted(chat)
        assert gone == list(range(2, 2 * len(gone) + 1, 2)), "results from the oldest on, and no calls"
        assert 8 <= len(gone) <= 18
        shown = [item["content"] for item in (await chat.context(budget=100_000)).messages if item["role"] == "tool"]
        assert ("order_0" in shown[0]) is isinstance(action, Shorten)
        assert shown[-1] == result(19)


async def test_without_within_turn_nothing_of_it(store: Store) -> None:
    async with open_on(store, policy=policy(Redact(), within_turn=False)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Look at all orders."))
        await loop(chat, [40] * 20)
        assert await redacted(chat) == []


@lasting
@few
@given(steps=st.lists(st.integers(0, 300), min_size=1, max_size=14), keep=st.integers(1, 400), together=st.booleans())
async def test_a_result_that_no_message_follows_is_whole(
    store: Store, steps: list[int], keep: int, together: bool
) -> None:
    """The model has not seen it yet. And what is shown of a result never changes again."""
    async with open_on(store, policy=policy(Shorten(characters=50), keep=keep, after=keep + 50)) as memory:
        chat = memory.conversation(f"c{next(_names)}", scope=SCOPE)
        await chat.append(user("Look at all orders."))
        before: dict[str, str] = {}
        for at, words in enumerate(steps):
            call = assistant(calls=[Call(id=f"c{at}", name="look")])
            answer = tool_result(f"c{at}", result(at, words))
            await chat.append(*([call, answer] if together else [call]))
            if not together:
                await chat.append(answer)
            items = (await chat.context(budget=100_000)).messages
            assert items[-1]["content"] == result(at, words)
            now = {item["tool_call_id"]: item["content"] for item in items if item["role"] == "tool"}
            assert all(now[call] == text for call, text in before.items())
            before = {call: text for call, text in now.items() if text.startswith("⟦")}
