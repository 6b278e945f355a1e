"""Which ranges stages act on, over random logs, against a second and simple computation from the log itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import Conversation, Policy, assistant, user
from hitherto.core.log.head import PATIENCE
from hitherto.core.log.message import Logged, Wire
from hitherto.policies import (
    Action,
    Chunk,
    Drop,
    Keep,
    LastMessages,
    LastTokens,
    LastTurns,
    Messages,
    Stage,
    Summarize,
    Tokens,
    Turns,
    Undigested,
)
from hitherto.providers.scripted import Scripted
from tests.acceptance.dialogue import PLENTY, bodies, ranges, says_each
from tests.conftest import SCOPE
from tests.databases import Databases
from tests.engine.logs import chats, logs
from tests.lengths import examples, lasting
from tests.memories import open_on

Log = tuple[Wire, list[list[dict[str, Any]]]]


def kept_from(log: Sequence[Logged], keep: Keep) -> int:
    """The seq from which on the keep leaves everything verbatim, read off the whole log."""
    opens = [one.seq for one in log if one.message.opens_turn]
    if not opens:
        return 0
    match keep:
        case LastTurns(k):
            at = opens[max(len(opens) - k, 0)]
        case LastMessages(k):
            counted = [one.seq for one in log if one.message.counts]
            at = max((seq for seq in opens if seq <= counted[max(len(counted) - k, 0)]), default=0)
        case LastTokens(t):
            fitting = [seq for seq in opens if sum(one.tokens for one in log[seq:]) <= t]
            at = min(fitting, default=opens[-1])
        case _:
            raise NotImplementedError
    return _no_group_parted(log, at)


def _no_group_parted(log: Sequence[Logged], at: int) -> int:
    """Back to the turn of every call whose result is awaited or came at `at` or later."""
    turns = log[-1].sums.turns
    results = {call: one.seq for one in log for call in one.message.answers}
    while True:
        opened = log[at].sums.turns if at < len(log) else turns + 1
        held = [
            one.sums.turns
            for one in log
            for call in one.message.calls
            if one.sums.turns < opened
            and (results[call] >= at if call in results else turns - one.sums.turns < PATIENCE)
        ]
        if not held:
            return at
        if min(held) < 1:
            return 0
        at = next(one.seq for one in log if one.message.opens_turn and one.sums.turns == min(held))


def amounts(log: Sequence[Logged], begin: int) -> dict[str, int]:
    part = log[begin:]
    return {
        "messages": sum(one.message.counts for one in part),
        "turns": sum(one.message.opens_turn for one in part),
        "tokens": sum(one.tokens for one in part),
    }


small = st.integers(1, 5)
KEEPS: dict[str, st.SearchStrategy[Keep]] = {
    "turns": st.builds(LastTurns, small),
    "messages": st.builds(LastMessages, small),
    "tokens": st.builds(LastTokens, st.integers(1, 400)),
}


@st.composite
def single(draw: st.DrawFn, kept: str) -> tuple[Policy, str, int]:
    """A policy of one stage, what its trigger counts, and how many of these it waits for."""
    keep = draw(KEEPS[kept])
    match draw(st.sampled_from(["messages", "turns", "tokens"])):
        case "messages":
            high = draw(st.integers(1, 8)) + (keep.k if isinstance(keep, LastMessages) else 0)
            trigger, what, least = Messages(high), "messages", high + 1
        case "turns":
            high = draw(st.integers(1, 4)) + (keep.k if isinstance(keep, LastTurns) else 0)
            trigger, what, least = Turns(high), "turns", high
        case _:
            high = draw(st.integers(1, 300)) + (keep.t if isinstance(keep, LastTokens) else 0)
            trigger, what, least = Tokens(high), "tokens", high + 1
    action: Action = draw(st.sampled_from([Drop(), Summarize(5_000)]))
    return Policy("single", (Stage(trigger, keep, action),)), what, least


async def settled_after(chat: Conversation, memory: hitherto.Memory, batch: list[dict[str, Any]], wire: Wire) -> None:
    await chat.append(*batch, wire=wire)
    await memory.wait_for_digests()


@lasting
@pytest.mark.parametrize("kept", sorted(KEEPS))
@settings(max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), log=logs(max_turns=8))
async def test_a_single_stage(databases: Databases, kept: str, data: st.DataObject, log: Log) -> None:
    """Due exactly when enough is in view, over exactly what the keep leaves out, and never an empty range."""
    wire, batches = log
    policy, what, least = data.draw(single(kept))
    (stage,) = policy.stages
    expected: list[tuple[int, int]] = []
    begin = 0
    async with open_on(await databases.store(), model=Scripted(then=says_each)) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=policy)
        for batch in batches:
            await settled_after(chat, memory, batch, wire)
            stored = await chat.messages()
            if amounts(stored, begin)[what] >= least:
                cut = kept_from(stored, stage.keep)
                if cut > begin:
                    # A summary covers everything from the first message on, a drop what is new.
                    expected.append((0 if isinstance(stage.action, Summarize) else begin, cut - 1))
                    begin = cut
            assert ranges(await chat.digests()) == expected


@lasting
@settings(max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(log=chats(max_turns=12), threshold=st.integers(2, 9), data=st.data())
async def test_chunks_in_plain_rounds(
    databases: Databases, log: list[list[dict[str, Any]]], threshold: int, data: st.DataObject
) -> None:
    """The oldest whole rounds that make up at most `batch` messages, and at least one."""
    batch = data.draw(st.integers(1, threshold))
    context = data.draw(st.integers(1, threshold))
    stage = Stage(Undigested(threshold), LastMessages(context), Chunk(batch))
    size = max(batch // 2 * 2, 2)
    expected: list[tuple[int, int]] = []
    async with open_on(await databases.store(), model=Scripted(then=says_each)) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=Policy("c", (stage,)))
        for number, items in enumerate(log, 1):
            await settled_after(chat, memory, items, "openai.chat")
            begin = len(expected) * size
            if 2 * number - begin > threshold:
                expected.append((begin, begin + size - 1))
            assert ranges(await chat.digests()) == expected
            shown = [span.start for span in (await chat.context(budget=PLENTY)).manifest.fates if span.fate == "in"]
            assert shown[0] <= min(len(expected) * size, 2 * number - min(context, 2 * number))


@pytest.mark.parametrize("tokens", [1, 150, 250, 10_000])
async def test_the_newest_turns_of_at_most_so_many_tokens(tokens: int) -> None:
    """ "The newest turns that make up at most `t` tokens, and in any case the newest turn"."""
    policy = Policy("by tokens", (Stage(Turns(8), LastTokens(tokens), Drop()),))
    async with hitherto.open("memory:", model=Scripted()) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=policy)
        for number in range(1, 9):
            await chat.append(user(f"question {number} " + "word " * 90), assistant(f"answer {number}"))
        log = await chat.messages()
        each = log[0].tokens + log[1].tokens
        kept = max(min(tokens // each, 8), 1)
        shown = bodies(await chat.context(budget=PLENTY))
        assert len(shown) == 2 * kept
