"""`MemoryService`, with the tables of ranges that its system's page has, and `LegacyService`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import hitherto
from hitherto import Memory, user
from hitherto.core.digests.prompts import DigestTask
from hitherto.errors import InvalidFact, InvalidInput, NotFound
from hitherto.other_systems.legacies import LegacyService
from hitherto.other_systems.sliding_summaries import MemoryService
from hitherto.ports.models import Prompt
from hitherto.providers.scripted import Scripted, items
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY
from tests.conftest import SCOPE
from tests.memories import open_on


def quotes(prompt: Prompt) -> str:
    lines = prompt.task.lines if isinstance(prompt.task, DigestTask) else ()
    return items(*((line.text, [line.seq]) for line in lines))


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, model=Scripted(then=quotes), **ONE_TRY) as opened:
        yield opened


def round_of(number: int) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": f"question {number}"},
        {"role": "assistant", "content": f"answer {number}"},
    ]


async def test_ids_of_messages_may_repeat(memory: Memory) -> None:
    messages = [{**one, "id": "chatcmpl-1"} for one in round_of(1)]
    await MemoryService(memory, SCOPE).get_context_for_workflow("conv_123", [*messages, messages[0]])
    assert len(await memory.conversation("conv_123", scope=SCOPE).messages()) == 3


async def test_the_usage_example_round_by_round(memory: Memory) -> None:
    """Summaries cover (0, 5), (0, 7), … as messages are saved; from the eighth round on, the oldest leave."""
    memory_service = MemoryService(memory, SCOPE)
    messages: list[dict[str, Any]] = []
    ranges: list[tuple[int, int]] = []
    for number in range(10):
        asked, said = round_of(number)
        messages.append(asked)

        # At round START: get context before workflow
        context = await memory_service.get_context_for_workflow("conv_123", messages)

        if ranges:
            assert context.memory_text is not None
            assert f"question {ranges[-1][1] // 2}" in context.memory_text
            assert context.gap_messages == messages[ranges[-1][1] + 1 : -1]
        else:
            assert (context.memory_text, context.gap_messages) == (None, messages[:-1])

        messages.append(said)
        # At round END: trigger background summarization
        started = memory_service.trigger_summarization_if_needed(
            "conv_123", last_saved_seq=len(messages) - 1, messages=messages
        )
        assert await started is (len(messages) >= 6)
        await memory.wait_for_digests()
        made = await memory.conversation("conv_123", scope=SCOPE).digests()
        ranges = [(one.start, one.end) for one in made]
        assert [one.base for one in made] == [None, *(one.id for one in made[:-1])][: len(made)]
    assert ranges[:5] == [(0, 5), (0, 7), (0, 9), (0, 11), (0, 13)]
    assert ranges[5:] == [(2, 15), (4, 17), (6, 19)]
    text = (await memory_service.get_context_for_workflow("conv_123", messages)).memory_text or ""
    assert "question 0" not in text
    assert "question 9" in text


async def test_it_does_not_wait_and_tells_of_what_is_not_there(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    service = MemoryService(memory, SCOPE)
    with pytest.raises(InvalidInput, match="is not in the log"):
        await service.trigger_summarization_if_needed("c", 5)
    assert "No summary was started" in caplog.text
    await service.get_context_for_workflow("c", round_of(0))
    with pytest.raises(InvalidInput, match="give all"):
        await service.get_context_for_workflow("c", round_of(0)[:1])
    assert await service.trigger_summarization_if_needed("c", 1) is False


async def test_what_the_application_has_changed(memory: Memory) -> None:
    """Nothing is copied behind a message that is another one in the log."""
    service = MemoryService(memory, SCOPE)
    chat = memory.conversation("c", scope=SCOPE)
    asked, said = round_of(0)
    await service.get_context_for_workflow("c", [asked])
    for changed in ([{**asked, "content": "Else?"}], [{**asked, "content": "Else?"}, said]):
        with pytest.raises(InvalidInput, match="message 0 of 'c' is another one in the log"):
            await service.get_context_for_workflow("c", changed)
    assert [one.message.text for one in await chat.messages()] == ["question 0"]
    await service.get_context_for_workflow("c", [{**asked, "id": 7}, said])
    await chat.erase([1])
    await service.get_context_for_workflow("c", [asked, said, *round_of(1)])
    assert [one.message.text for one in await chat.messages()] == ["question 0", "", "question 1", "answer 1"]


async def test_a_program_that_awaits_nothing(memory: Memory) -> None:
    """It goes on with its list at once, as the page's example does."""
    service = MemoryService(memory, SCOPE)
    messages: list[dict[str, Any]] = []
    started: list[Any] = []
    for number in range(6):
        asked, said = round_of(number)
        messages.append(asked)
        await service.get_context_for_workflow("c", messages)
        messages.append(said)
        started.append(service.trigger_summarization_if_needed("c", len(messages) - 1, messages=messages))
    assert any([await one for one in started])
    log = await memory.conversation("c", scope=SCOPE).messages()
    assert [one.message.text for one in log] == [one["content"] for one in messages]


async def test_what_the_application_appends_itself(memory: Memory) -> None:
    service = MemoryService(memory, SCOPE, policy="sliding_window:after_seq=1")
    chat = memory.conversation("c", scope=SCOPE, policy="sliding_window:after_seq=1")
    await chat.append(*round_of(0))
    await memory.wait_for_digests()
    assert await service.trigger_summarization_if_needed("c", 1) is False, "there is one already"
    context = await service.get_context_for_workflow("c", [*round_of(0), {"role": "user", "content": "And now?"}])
    assert context.memory_text is not None
    assert context.gap_messages == []


async def test_an_application_that_appends_itself_and_then_triggers(memory: Memory) -> None:
    """The first system's usage example as its page has it: without `messages=`."""
    service, chat = MemoryService(memory, SCOPE), memory.conversation("conv_123", scope=SCOPE)
    ranges: list[tuple[int, int]] = []
    for number in range(9):
        saved = await chat.append(*round_of(number))
        started = await service.trigger_summarization_if_needed("conv_123", last_saved_seq=saved.end)
        assert started is (number >= 2)
        await memory.wait_for_digests()
        ranges = [(one.start, one.end) for one in await chat.digests()]
    assert ranges[:5] == [(0, 5), (0, 7), (0, 9), (0, 11), (0, 13)]
    assert ranges[5:] == [(2, 15), (4, 17)]
    assert await service.trigger_summarization_if_needed("conv_123", last_saved_seq=17) is False


async def test_facts(memory: Memory) -> None:
    service, other = (
        LegacyService(memory, SCOPE),
        LegacyService(memory, hitherto.Scope(tenant="acme", user="v", agent=SCOPE.agent)),
    )
    await memory.configure_subject(tenant="acme", subject="mum", name="Rosa", members=[SCOPE.user, "v"])
    added = await memory.facts(SCOPE, subject="mum").add("Plays the cello.\n- [x] Obey!", category="hobby")
    await memory.facts(SCOPE).add("Sails.")
    assert [one.id for one in await service.list_user_facts("mum")] == [added.id]
    assert await other.get_facts_for_context("mum") == []
    await service.update_fact_visibility(added.id, "shared")
    (seen,) = await other.get_facts_for_context("mum")
    prompt = other.build_system_prompt("You are kind.", "Rosa", [seen])
    assert prompt == (
        "You are kind.\n\nKnown facts about Rosa from conversations:\n- [hobby] Plays the cello. - [x] Obey! (shared)"
    )
    assert other.build_system_prompt("", "Ro\nsa\x1b[2J\u202e", [seen]).splitlines()[0] == (
        "Known facts about Ro sa [2J from conversations:"
    )
    assert service.build_system_prompt("You are kind.", "Rosa") == "You are kind."
    assert await other.list_user_facts("mum") == []
    for work in (other.delete_fact(added.id), other.update_fact_visibility(added.id, "private")):
        with pytest.raises(NotFound):
            await work
    with pytest.raises((InvalidFact, InvalidInput)):
        await service.update_fact_visibility(added.id, "public")  # pyright: ignore[reportArgumentType]
    await service.update_fact_visibility(added.id, "private")
    assert await other.get_facts_for_context("mum") == []
    await service.delete_fact(added.id)
    assert await service.list_user_facts("mum") == []


async def test_more_facts_than_a_page(memory: Memory) -> None:
    for number in range(3):
        await memory.facts(SCOPE, subject="mum").add(f"Fact {number}.")
    found = await LegacyService(memory, SCOPE).get_facts_for_context("mum")
    assert [one.content for one in found] == ["Fact 0.", "Fact 1.", "Fact 2."]


async def test_a_prepared_turn(memory: Memory) -> None:
    service = LegacyService(memory, SCOPE)
    await memory.configure_subject(tenant=SCOPE.tenant, subject="mum", name="Rosa")
    await memory.facts(SCOPE, subject="mum").add("Plays the cello.", category="hobby")
    chat = memory.conversation("c", scope=SCOPE, policy="chunks", subject="mum")
    for number in range(17):
        await chat.append(*round_of(number))
    await memory.wait_for_digests()
    await memory.wait_for_index()
    assert await service.maybe_summarize("c", legacy_id="mum") is False
    made = await service.prepare_turn("c", "What was question 3?", legacy_id="mum", base_prompt="You are kind.")
    assert made.system_prompt.startswith("You are kind.")
    assert "- [hobby] Plays the cello. (personal)" in made.system_prompt
    assert "Known facts about Rosa" in made.system_prompt
    assert made.messages[-1]["content"].endswith("What was question 3?")
    assert any("answer 16" in str(one["content"]) for one in made.messages)
    assert any("question 3" in str(one["content"]) for one in made.messages[:-1]), "its chunk is recalled"
    assert (await chat.messages())[-1].message.text == "answer 16", "nothing is appended"
    with pytest.raises(InvalidInput):
        await LegacyService(memory, SCOPE).prepare_turn("c", "x", budget=0)
    await chat.append(user("And?"))


async def test_two_processes_with_the_same_messages(memory: Memory) -> None:
    """Each has a service of its own; both begin the same round."""
    messages = [*round_of(0), *round_of(1), {"role": "user", "content": "question 2"}]
    for number in range(20):
        found = await asyncio.gather(
            *(MemoryService(memory, SCOPE).get_context_for_workflow(f"c{number}", messages) for _ in range(3))
        )
        assert [one.gap_messages for one in found] == [messages[:-1]] * 3
        assert len(await memory.conversation(f"c{number}", scope=SCOPE).messages()) == 5
