"""What the adapters of other systems show is of one conversation, as it is there, whatever contexts recall by
default."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import pytest

from hitherto import Memory, user
from hitherto.other_systems.agent_service import APIAgent, Provider, configure_agents
from hitherto.other_systems.agent_service import setup as agents_setup
from hitherto.other_systems.legacies import LegacyService
from hitherto.other_systems.session_strategies.sessions import SummarizingSession
from hitherto.other_systems.settings_aliases import settings_of
from hitherto.other_systems.sliding_summaries import MemoryService
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.memories import open_on
from tests.providers.models.endpoint import Endpoint, said

ELSEWHERE = "The alarm code of the workshop is 4711."
ASKED = "What is the alarm code of the workshop?"


@pytest.fixture(autouse=True)
def afterwards() -> Iterator[None]:
    yield
    agents_setup._CURRENT.clear()


async def agent_service(memory: Memory) -> object:
    """What its agent's model is sent."""
    agent = {"agent_id": SCOPE.agent, "resources": ["memory"], "model": "big"}
    with Endpoint(lambda _: said("I do not know.")) as endpoint:
        providers = {"openai": Provider(base_url=endpoint.url, api_key="none")}
        configure_agents(memory, tenant=SCOPE.tenant, configurations=[agent], providers=providers)
        made = APIAgent(SCOPE.agent, SCOPE.user, "new")
        await made.initialize()
        await made.chat(ASKED)
        await made.cleanup()
        return endpoint.asked


async def chat_store(memory: Memory) -> object:
    return (await memory.conversation("new", scope=SCOPE).context(ASKED)).request


async def legacies(memory: Memory) -> object:
    return await LegacyService(memory, SCOPE).prepare_turn("new", ASKED)


async def session_strategies(memory: Memory) -> object:
    session = SummarizingSession("new", memory, scope=SCOPE)
    await session.add_items([{"role": "user", "content": ASKED}])
    return await session.get_items()


async def sliding_summaries(memory: Memory) -> object:
    said = [{"role": "user", "content": one} for one in ("Hello.", ASKED)]
    return await MemoryService(memory, SCOPE).get_context_for_workflow("new", said)


@pytest.mark.parametrize("shown", [agent_service, chat_store, legacies, session_strategies, sliding_summaries])
async def test_they_show_nothing_of_another_conversation(
    store: Store, shown: Callable[[Memory], Awaitable[object]]
) -> None:
    settings = settings_of({"summaryEnabled": True}) if shown is chat_store else {}
    async with open_on(store, **settings) as memory:
        await memory.conversation("old", scope=SCOPE).append(user(ELSEWHERE))
        await memory.wait_for_index()
        assert "4711" in repr(
            (await memory.conversation("plain", scope=SCOPE).context(ASKED, policy="balanced")).request
        )
        made = repr(await shown(memory))
        assert "alarm code" in made or "Hello" in made
        assert "4711" not in made
