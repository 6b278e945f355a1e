"""The second seed's cross-session context and its two tools, with its own wording."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitherto import Context, Conversation, Memory, Scope, assistant, user
from hitherto.core.context.recalled import LEAD
from hitherto.core.digests.prompts import DigestTask
from hitherto.core.plain_text import END
from hitherto.core.prompt import Prompt
from hitherto.core.recall.trigger_phrases import TRIGGERS
from hitherto.engine.context.recalled import RecallOptions
from hitherto.errors import InvalidSettings, NotReproducible
from hitherto.providers.scripted import Scripted, items
from hitherto.settings import Settings
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY, PLENTY, bodies
from tests.acceptance.receipts import check
from tests.lengths import examples, lasting
from tests.memories import open_on

SCOPE = Scope(tenant="acme", user="user123", agent="knowledge_agent")
BUILDING = "I'm building a REST API with authentication"
PLANNING = "Planning to use JWT tokens with 1-hour expiration"
ASKED = "What did we discuss about authentication?"

Opened = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.fixture
def opened(store: Store) -> Opened:
    """Opens memories with the first session in them, indexed. Nothing but `cross_session` recalls from it, as in that
    system. What stands beside a good match scores 0.7 too where a scope has four messages: the threshold is above."""

    @asynccontextmanager
    async def opening(**given: Any) -> AsyncGenerator[Memory]:
        wanted: dict[str, Any] = {
            "cross_session": "triggers",
            "recall": "own",
            "relevance_threshold": 0.75,
            "worker": False,
            **given,
        }
        async with open_on(store, **wanted) as memory:
            await first_session(memory, SCOPE)
            yield memory

    return opening


async def first_session(memory: Memory, scope: Scope, name: str = "session1") -> None:
    chat = memory.conversation(name, scope=scope)
    await chat.append(user(BUILDING), assistant("Which scheme do you have in mind?"))
    await chat.append(user(PLANNING), assistant("An hour is a sound choice."))
    await memory.wait_for_index()


async def second_session(memory: Memory, *, scope: Scope = SCOPE) -> Conversation:
    chat = memory.conversation("session2", scope=scope)
    await chat.append(user("Good morning."), assistant("Good morning, how can I help?"))
    await memory.wait_for_index()
    return chat


async def asks(memory: Memory, question: str = ASKED, **options: Any) -> Context:
    """The context of a question in the second session, which holds what every context does."""
    chat = memory.conversation("session2", scope=SCOPE)
    options.setdefault("budget", PLENTY)
    context = await chat.context(user(question), **options)
    await check(chat, context)
    return context


def crossing(context: Context) -> list[tuple[str | None, str, int | None]]:
    """What was taken from other conversations, and that nothing else was."""
    assert {one.why for one in context.manifest.recalled} <= {"cross_session"}
    return [(one.conversation, one.kind, one.start) for one in context.manifest.recalled]


def texts(context: Context) -> str:
    return json.dumps(context.request, ensure_ascii=False)


async def test_the_seeds_own_example(opened: Opened) -> None:
    """ "This triggers cross-session context search … Agent automatically includes relevant context from session1"."""
    async with opened() as memory:
        await second_session(memory)
        context = await asks(memory, instructions="Be kind.")
        (one,) = context.manifest.recalled
        assert (one.why, one.kind, one.conversation, one.start, one.end) == (
            "cross_session",
            "message",
            "session1",
            0,
            0,
        )
        assert one.score >= 0.7
        # "Injects relevant context", with its date and where it is from.
        day = f"{datetime.now(UTC):%Y-%m-%d}"
        assert bodies(context) == ["Be kind.", "Good morning.", "Good morning, how can I help?", ASKED]
        recalled = context.messages[-2]
        assert recalled["content"] == (f'{LEAD}\n{day}, conversation "session1":\n- user: {BUILDING}\n{END}')
        assert recalled["role"] == "user"
        assert context.manifest.sections["recalled"] > one.tokens > 0
        assert context.manifest.missing == []


@pytest.mark.parametrize("question", ["What did we discuss last time?", "And last time?"])
@pytest.mark.parametrize("policy", ["rolling:threshold=3,keep_last=2", "chunks:threshold=3,batch=2,context=2"])
async def test_last_time_brings_the_newest_summaries(store: Store, question: str, policy: str) -> None:
    """A question that tells nothing but that it asks for what was said before."""
    settings: dict[str, Any] = {"cross_session": "triggers", "cross_session_limit": 2, "policy": policy, **ONE_TRY}
    async with open_on(store, model=Scripted(then=of_what), **settings) as memory:
        for topic in ("hats", "boats", "trees"):
            chat = memory.conversation(topic, scope=SCOPE)
            await chat.append(*(one for _ in range(2) for one in (user(f"Now for {topic}."), assistant("Yes."))))
            await memory.wait_for_digests()
        await memory.conversation("short", scope=SCOPE).append(user("Hello."))
        theirs = memory.conversation("theirs", scope=replace(SCOPE, user="somebody else"))
        await theirs.append(*(one for _ in range(2) for one in (user("Now for secrets."), assistant("Yes."))))
        await memory.wait_for_digests()
        context = await asks(memory, question, policy="none")
        assert [(one.conversation, one.kind) for one in context.manifest.recalled] == [
            ("trees", "digest"),
            ("boats", "digest"),
        ]
        assert "They talk about trees." in texts(context)
        assert "secrets" not in texts(context)
        again = await memory.conversation("session2", scope=SCOPE).rebuild(context.manifest)
        assert again.request == context.request
        quiet = await asks(memory, question, policy="none", cross_session=())
        assert quiet.manifest.recalled == []


def of_what(prompt: Prompt) -> str:
    assert isinstance(prompt.task, DigestTask)
    return items(f"They talk about {prompt.task.lines[0].text.split()[-1]}")


@pytest.mark.parametrize(("wire", "field"), [("openai.responses", "instructions"), ("anthropic", "system")])
async def test_in_the_other_formats_it_stands_ahead_of_the_question_too(opened: Opened, wire: str, field: str) -> None:
    async with opened() as memory:
        await second_session(memory)
        context = await asks(memory, wire=wire, instructions="Be kind.")
        said = json.dumps(context.request[field])
        assert "Be kind." in said
        assert BUILDING not in said
        assert BUILDING in json.dumps(context.messages[-2])
        assert context.messages[-2]["role"] == "user"


async def test_what_was_erased_is_not_there_any_more(opened: Opened) -> None:
    async with opened() as memory:
        chat = await second_session(memory)
        context = await asks(memory)
        assert crossing(context) == [("session1", "message", 0)]
        await memory.conversation("session1", scope=SCOPE).delete()
        assert crossing(await asks(memory)) == []
        with pytest.raises(NotReproducible):
            await chat.rebuild(context.manifest)


# ------------------------------------------------------------------------------------------------- when it is asked


async def test_it_is_off_unless_it_is_set(opened: Opened) -> None:
    """ "`enable_cross_session_context` (boolean, default: false)"."""
    assert Settings().cross_session == ()
    assert Settings().search_triggers == TRIGGERS
    assert Settings().relevance_threshold == 0.2
    async with opened(cross_session=()) as memory:
        assert crossing(await asks(memory)) == []
        assert crossing(await asks(memory, cross_session="always")) != [], "but a request may ask for it"
    async with opened() as memory:
        assert crossing(await asks(memory, cross_session=())) == [], "and may ask for none"


async def test_without_a_trigger_nothing_is_taken(memory: Memory) -> None:
    context = await asks(memory, "How do I do authentication?")
    assert crossing(context) == []
    assert "recalled" not in context.manifest.sections
    assert BUILDING not in texts(context)


@pytest.fixture
async def memory(opened: Opened) -> AsyncGenerator[Memory]:
    async with opened() as memory:
        await second_session(memory)
        yield memory


async def test_triggers_of_another_language(opened: Opened) -> None:
    async with opened(search_triggers=("remind me", "上次"), relevance_threshold=0.0) as memory:
        await memory.conversation("session0", scope=SCOPE).append(user("我们决定用令牌做身份验证。"))
        await memory.wait_for_index()
        assert ("session0", "message", 0) in crossing(await asks(memory, "我们上次说的身份验证是什么？"))
        assert crossing(await asks(memory, ASKED)) == [], "the defaults are replaced"


def test_triggers_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITHERTO_SEARCH_TRIGGERS", "letztes Mal, 上次")
    assert Settings.load().search_triggers == ("letztes Mal", "上次")
    monkeypatch.setenv("HITHERTO_SEARCH_TRIGGERS", '["one, with a comma", "two"]')
    assert Settings.load().search_triggers == ("one, with a comma", "two")
    for wrong in ("?!", '["x"', "[]"):
        monkeypatch.setenv("HITHERTO_SEARCH_TRIGGERS", wrong)
        with pytest.raises(InvalidSettings, match="SEARCH_TRIGGERS"):
            Settings.load()


async def test_always(opened: Opened) -> None:
    async with opened(cross_session="always") as memory:
        await second_session(memory)
        assert crossing(await asks(memory, "How do I do authentication?")) == [("session1", "message", 0)]
        assert crossing(await asks(memory, "Is the pasta ready?")) == [], "only what is relevant enough"


async def test_the_relevance_threshold(opened: Opened) -> None:
    found: list[int] = []
    for threshold in (0.0, 0.5, 0.8, 0.99, 1.0):
        async with opened(relevance_threshold=threshold, cross_session_limit=50) as memory:
            context = await asks(memory)
            assert all(threshold <= one.score <= 1 for one in context.manifest.recalled)
            found.append(len(context.manifest.recalled))
            await memory.conversation("session1", scope=SCOPE).delete()
    assert found == sorted(found, reverse=True)
    assert found[0] > found[2] > found[-1] == 0


async def test_no_more_than_the_limit_the_best_of_it(opened: Opened) -> None:
    async with opened(relevance_threshold=0.0, cross_session_limit=2) as memory:
        for number in range(5):
            chat = memory.conversation(f"more-{number}", scope=SCOPE)
            await chat.append(user("authentication " * number + "once"))
        await memory.wait_for_index()
        assert len(crossing(await asks(memory))) == 2


# --------------------------------------------------------------------------------------------------------- of whom


async def test_the_conversation_itself_is_left_out(opened: Opened) -> None:
    async with opened() as memory:
        chat = await second_session(memory)
        await chat.append(user("Authentication, authentication!"), assistant("Yes, authentication."))
        await memory.wait_for_index()
        assert crossing(await asks(memory)) == [("session1", "message", 0)]
        # Nor when it is cut out of its context.
        tight = await asks(memory, budget=130)
        assert {name for name, _, _ in crossing(tight)} <= {"session1"}


@pytest.mark.parametrize("name", ["tenant", "user"])
async def test_others_are_never_searched(opened: Opened, name: str) -> None:
    """Theirs would come first, and another agent's counts only where a recall asks for every agent's."""
    theirs = replace(SCOPE, **{name: "somebody-else"})
    async with opened() as memory:
        await second_session(memory)
        for other in (theirs, replace(theirs, agent="other")):
            for conversation in ("session1", "session7"):
                await memory.conversation(conversation, scope=other).append(
                    user("What did we discuss about authentication? Authentication, of somebody else's!")
                )
        await memory.wait_for_index()
        asked: list[dict[str, Any]] = [
            {},
            {"cross_session": "always"},
            {"recall": RecallOptions(limit=50, min_score=0.0, all_agents=True)},
        ]
        for options in asked:
            chat = memory.conversation("session2", scope=SCOPE)
            context = await chat.context(user(ASKED), budget=PLENTY, **options)
            await check(chat, context)
            assert "somebody else's" not in texts(context)
            assert {one.conversation for one in context.manifest.recalled} <= {"session1"}


async def test_other_agents_only_if_asked(opened: Opened) -> None:
    other = replace(SCOPE, agent="travel_agent")
    async with opened() as memory:
        chat = await second_session(memory)
        await memory.conversation("session1", scope=other).append(user("Authentication at the airport took an hour"))
        await memory.conversation("session2", scope=other).append(user("Authentication again, in the other session2"))
        await memory.wait_for_index()
        assert {one.agent for one in (await asks(memory)).manifest.recalled} == {"knowledge_agent"}
        context = await chat.context(
            user("authentication"), budget=PLENTY, recall=RecallOptions(min_score=0.0, all_agents=True)
        )
        await check(chat, context)
        found = {(one.agent, one.conversation) for one in context.manifest.recalled}
        assert {("travel_agent", "session1"), ("travel_agent", "session2"), ("knowledge_agent", "session1")} <= found


# ----------------------------------------------------------------------------------------------- budgets and faults


@lasting
@settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(budget=st.integers(20, 600), wire=st.sampled_from(["openai.chat", "openai.responses", "anthropic"]))
async def test_no_budget_is_exceeded(memory: Memory, budget: int, wire: str) -> None:
    """What is recalled gives way first: with less than it takes, the rest is as it would be without."""
    context = await asks(memory, budget=budget, wire=wire)
    plain = await asks(memory, budget=budget, wire=wire, cross_session=())
    assert context.tokens <= budget
    if not context.manifest.recalled:
        assert context.request == plain.request
