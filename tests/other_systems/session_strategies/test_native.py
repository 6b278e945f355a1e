"""The fourth seed's section 4, "token-based, model-native compaction": "when total tokens approach some threshold (e.g.
70–80% of the model's context window), we call the compaction endpoint … drop most or all of the original items and
keep [compaction item, maybe a few most-recent items]"."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from hitherto import Conversation, Memory, native
from hitherto.core.digests.digest import Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.message import Wire
from hitherto.core.policy.span import Fate, Reason
from hitherto.errors import InvalidPolicy, ModelUnavailable
from hitherto.policies import Compact, Fraction, LastMessages
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY, PLENTY, answers, asks, fates, ranges, round_, said
from tests.conftest import SCOPE
from tests.memories import open_on
from tests.other_systems.session_strategies.compacting import ScriptedCompactor, opaque

WINDOW = 200
Native = Callable[..., AbstractAsyncContextManager[tuple[Memory, Conversation]]]


@pytest.fixture
def opened(store: Store) -> Native:
    @asynccontextmanager
    async def make(
        compactor: ScriptedCompactor, policy: Any = "native", **settings: Any
    ) -> AsyncGenerator[tuple[Memory, Conversation]]:
        async with open_on(
            store, model=Scripted(), compactor=compactor, context_window=WINDOW, **{**ONE_TRY, **settings}
        ) as memory:
            yield memory, memory.conversation("conv_123", scope=SCOPE, policy=policy)

    return make


async def until_it_fires(memory: Memory, chat: Conversation, first: int = 1) -> int:
    """Rounds from number `first` on until one more row is there; the last one's number."""
    before = len(await chat.digests())
    for number in range(first, first + 100):
        await round_(chat, number)
        await memory.wait_for_digests()
        if len(await chat.digests()) > before:
            return number
    raise AssertionError("nothing fired")


def plain(first: int, last: int) -> list[dict[str, Any]]:
    """Plain rounds as items of Responses, shown to a compactor or in a request."""
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "text": text} for at, text in enumerate(said(first, last))]


def read(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Items of Responses cut down to who says what; opaque ones as they are."""
    found: list[dict[str, Any]] = []
    for item in items:
        if item.get("type") == "compaction":
            found.append(item)
        else:
            content = item["content"]
            text = content if isinstance(content, str) else "".join(part["text"] for part in content)
            found.append({"role": item["role"], "text": text})
    return found


def test_the_seeds_numbers() -> None:
    """ "70–80% of the model's context window", "a few most-recent items"."""
    (stage,) = native().stages
    assert isinstance(stage.trigger, Fraction)
    assert 0.7 <= stage.trigger.f <= 0.8
    assert stage.keep == LastMessages(4)
    assert stage.action == Compact()


async def test_at_the_fraction_of_the_window_the_items_become_one(opened: Native) -> None:
    compactor = ScriptedCompactor()
    async with opened(compactor) as (memory, chat):
        number = await until_it_fires(memory, chat)
        log = await chat.messages()
        assert sum(one.tokens for one in log) >= 0.75 * WINDOW
        assert sum(one.tokens for one in log[:-2]) < 0.75 * WINDOW

        (row,) = await chat.digests()
        assert (row.start, row.end, row.base) == (0, 2 * number - 5, None)
        assert (row.action, row.status, row.family) == (DigestAction.COMPACT, Status.COMPLETED, "gpt-5.2")
        assert [read(items) for items in compactor.given] == [plain(1, number - 2)]

        # "[compaction item, maybe a few most-recent items]" plus new messages.
        context = await chat.context(asks(number + 1), budget=PLENTY, wire="openai.responses", model="gpt-5.2")
        assert context.messages[0] == opaque(1)
        assert read(context.messages[1:]) == [
            *plain(number - 1, number),
            {"role": "user", "text": f"question {number + 1}"},
        ]
        assert fates(context) == [
            (0, row.end, Fate.DIGESTED, Reason.COMPACTED),
            (row.end + 1, 2 * number - 1, Fate.IN, Reason.VERBATIM),
        ]
        assert context.manifest.opaque == row.id == context.manifest.fates[0].digest
        assert await chat.items() == context.messages[:-1]
        assert [logged.message.text for logged in await chat.messages()] == said(1, number), "the originals stay"


async def test_which_models_understand_it(opened: Native) -> None:
    async with opened(ScriptedCompactor()) as (memory, chat):
        number = await until_it_fires(memory, chat)
        for model in ("gpt-5.2", "gpt-5.2-2026-01-15", "openai/gpt-5.2", None):
            context = await chat.context(budget=PLENTY, wire="openai.responses", model=model)
            assert context.messages[0] == opaque(1), model
        for model in ("gpt-4.1", "gpt-5.2-mini", "gpt-5"):
            context = await chat.context(budget=PLENTY, wire="openai.responses", model=model)
            assert read(context.messages) == plain(1, number), model
            assert fates(context) == [(0, 2 * number - 1, Fate.IN, Reason.VERBATIM)]
            assert context.manifest.opaque is None


@pytest.mark.parametrize("wire", ["openai.chat", "anthropic"])
async def test_another_api_falls_back_to_the_messages(opened: Native, wire: Wire) -> None:
    async with opened(ScriptedCompactor()) as (memory, chat):
        number = await until_it_fires(memory, chat)
        context = await chat.context(budget=PLENTY, wire=wire, model="gpt-5.2")
        assert len(context.messages) == 2 * number
        assert fates(context) == [(0, 2 * number - 1, Fate.IN, Reason.VERBATIM)]
        assert len(await chat.items(wire=wire)) == 2 * number


async def test_the_next_one_replaces_the_item_before(opened: Native) -> None:
    compactor = ScriptedCompactor()
    async with opened(compactor) as (memory, chat):
        number = await until_it_fires(memory, chat)
        again = await until_it_fires(memory, chat, number + 1)
        first, second = await chat.digests()
        assert second.base == first.id
        assert ranges([first, second]) == [(0, 2 * number - 5), (0, 2 * again - 5)]
        assert read(compactor.given[1]) == [opaque(1), *plain(number - 1, again - 2)]
        context = await chat.context(asks(again + 1), budget=PLENTY, wire="openai.responses")
        assert context.messages[0] == opaque(2)
        assert opaque(1) not in context.messages
        assert fates(context)[0] == (0, 2 * again - 5, Fate.DIGESTED, Reason.COMPACTED)


async def test_everything_the_endpoint_leaves_is_shown(opened: Native) -> None:
    """OpenAI's keeps the user's messages beside its opaque item."""
    compactor = ScriptedCompactor(keeps_users=True)
    async with opened(compactor) as (memory, chat):
        number = await until_it_fires(memory, chat)
        context = await chat.context(budget=PLENTY, wire="openai.responses")
        users = [item for item in plain(1, number - 2) if item["role"] == "user"]
        assert read(context.messages) == [*users, opaque(1), *plain(number - 1, number)]


async def test_a_failing_endpoint_leaves_the_messages(opened: Native) -> None:
    compactor = ScriptedCompactor([ModelUnavailable("no route")])
    async with opened(compactor) as (memory, chat):
        number = await until_it_fires(memory, chat)
        (row,) = await chat.digests()
        assert row.status is Status.FAILED
        assert "no route" in str(row.error)
        context = await chat.context(budget=PLENTY, wire="openai.responses")
        assert read(context.messages) == plain(1, number)
        assert context.manifest.missing == ["digest"]
        await round_(chat, number + 1)
        await memory.wait_for_digests()
        context = await chat.context(budget=PLENTY, wire="openai.responses")
        assert context.messages[0] == opaque(2)
        assert context.manifest.missing == []


# Without an endpoint that compacts


REFUSED: list[Callable[[Memory], Any]] = [
    lambda memory: memory.conversation("c", scope=SCOPE, policy="native"),
    lambda memory: memory.conversation("c", scope=SCOPE).configure(policy=native(), create=True),
    lambda memory: memory.conversation("c", scope=SCOPE).configure(policy="native:fraction=0.7", create=True),
    lambda memory: memory.conversation("c", scope=SCOPE).append(asks(1), policy="native"),
    lambda memory: memory.conversation("c", scope=SCOPE).context(asks(1), policy="native"),
    lambda memory: memory.conversation("c", scope=SCOPE).items(policy="native"),
    lambda memory: memory.configure_agent(tenant="acme", agent="planner", policy="native"),
]


@pytest.mark.parametrize("configure", REFUSED)
async def test_it_is_refused_when_it_is_configured(store: Store, configure: Callable[[Memory], Any]) -> None:
    async with open_on(store, model=Scripted()) as memory:
        with pytest.raises(InvalidPolicy, match="compact_model"):
            await _awaited(configure(memory))
        assert (await memory.conversations(SCOPE)).conversations == (), "nothing was written"


async def test_it_is_refused_as_a_memorys_own_policy(store: Store) -> None:
    with pytest.raises(InvalidPolicy, match="compact_model"):
        async with open_on(store, model=Scripted(), policy="native"):
            pass


async def _awaited(value: Awaitable[object] | object) -> None:
    if isinstance(value, Awaitable):
        await value


async def test_a_process_without_the_endpoint_shows_the_messages(store: Store, opened: Native) -> None:
    """The policy is stored; one that cannot compact goes on with what is there."""
    async with opened(ScriptedCompactor()) as (memory, chat):
        number = await until_it_fires(memory, chat)
    async with open_on(store, model=Scripted()) as memory:
        chat = memory.conversation("conv_123", scope=SCOPE)
        context = await chat.context(asks(number + 1), budget=PLENTY, wire="openai.responses", model="gpt-4.1")
        assert read(context.messages)[:-1] == plain(1, number)
        await chat.append(asks(number + 1), answers(number + 1))
        assert len(await chat.digests()) == 1
