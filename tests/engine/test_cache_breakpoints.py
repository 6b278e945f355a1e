"""The cache breakpoints of contexts, over random conversations: what they change, what they promise, and rebuilding."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import Context, Policy, Scope, assistant, user, wire
from hitherto.core.log.message import Payload, Wire
from hitherto.core.policy.span import Reason
from hitherto.errors import BudgetExceeded
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY, PLENTY, says_each
from tests.acceptance.family import system_of
from tests.conftest import SCOPE
from tests.core.policy.policies import presets
from tests.engine.test_random_histories import logs
from tests.lengths import examples, lasting
from tests.memories import open_on
from tests.store.samples import open_calls
from tests.wire.conversations import WIRES
from tests.wire.test_breakpoints import MARKS, bare, bare_request, items_of, parts_with, places

MODELS: dict[Wire, str] = {
    "openai.chat": "gpt-5.6",
    "openai.responses": "gpt-5.6",
    "anthropic": "claude-sonnet-4-5",
}
"""For each format a model whose API takes breakpoints."""

few = settings(
    max_examples=examples(6),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
_names = count(1)


def begins(context: Context) -> list[str]:
    """The request as far as its last breakpoint, without breakpoints: the instructions, and the items."""
    request = dict(context.request)
    last = max(places(request), default=-1)
    return [json.dumps(bare(item)) for item in items_of(request)[: last + 1]]


def cut_of(context: Context) -> object:
    """What the start of a context may depend on: its digest, where its messages begin, what is shown of those before,
    and which are redacted."""
    fates = context.manifest.fates
    begin = next((span.start for span in fates if span.fate == "in" and span.reason == Reason.VERBATIM), None)
    before = [span for span in fates if span.reason in (Reason.RULES, Reason.QUESTION, Reason.BEGINNING)]
    return context.manifest.digest, begin, before, [span for span in fates if span.fate == "redacted"]


@lasting
@few
@given(
    items=st.sampled_from(WIRES).flatmap(logs),
    policy=presets().filter(lambda policy: policy.name not in ("sliding_window", "native")),
    budget=st.sampled_from([300, 600, 1_500, PLENTY]),
    to=st.sampled_from(WIRES),
)
async def test_what_they_change_and_what_stands_before_them(
    store: Store, items: list[Payload], policy: Policy, budget: int, to: Wire
) -> None:
    """They change neither words nor tokens; what stands before them begins the next request too, until a stage fires or
    the budget cuts; and a context is rebuilt as it was, whatever the setting says then."""
    name, said = f"c{next(_names)}", json.dumps(items)
    marks = [mark for mark in (*MARKS, "prompt_cache_key") if mark not in said]  # an item may bring one of its own
    given: dict[str, Any] = {**ONE_TRY, "embedder": "none", "policy": policy}
    async with (
        open_on(store, model=Scripted(then=says_each), **given) as memory,
        open_on(store, model=Scripted(then=says_each), worker=False, cache_breakpoints=False, **given) as without,
    ):
        chat, plain = memory.conversation(name, scope=SCOPE), without.conversation(name, scope=SCOPE)
        before: Context | None = None
        for item in items:
            if wire.read(item).opens_turn:
                asked: dict[str, Any] = {"budget": budget, "wire": to, "model": MODELS[to], "instructions": "Hm."}
                await memory.wait_for_index()
                try:
                    on, off = await chat.context(item, **asked), await plain.context(item, **asked)
                except BudgetExceeded:
                    before = None
                else:
                    assert bare_request(dict(on.request)) == bare_request(dict(off.request))
                    assert not any(mark in json.dumps(off.request) for mark in marks)
                    assert (on.tokens, on.manifest.sections) == (off.tokens, off.manifest.sections)
                    assert 1 <= len(parts_with(dict(on.request))) <= 3 or to == "openai.responses"
                    behind = on.manifest.sections.get("recalled", 0) > 0
                    assert all(at < len(on.messages) - 1 - behind for at in places(dict(on.request)))
                    for one in (on, off):
                        for again in (await chat.rebuild(one.manifest), await plain.rebuild(one.manifest)):
                            assert json.dumps(again.request) == json.dumps(one.request)
                            assert again.manifest == one.manifest
                    if before is not None and cut_of(before) == cut_of(on):
                        assert system_of(on) == system_of(before)
                        told = begins(before)
                        assert [json.dumps(bare(item)) for item in on.messages][: len(told)] == told
                    before = None if await open_calls(store, name) else on
            await chat.append(item)
            await memory.wait_for_digests()


async def test_a_cache_key_is_a_conversations_and_tells_no_name(store: Store) -> None:
    async with open_on(store, model="extractive") as memory:
        keys: list[str] = []
        for tenant, agent, name in (("acme", "a", "c"), ("acme", "a", "other"), ("acme", "b", "c"), ("acm", "ea", "c")):
            chat = memory.conversation(name, scope=Scope(tenant=tenant, user="ada@acme.example", agent=agent))
            for incoming in ("Hello?", "Anybody?"):
                request = (await chat.context(incoming, model="gpt-6-sol")).request
                keys.append(request["prompt_cache_key"])
                await chat.append(user(incoming), assistant("Yes."))
        assert keys[::2] == keys[1::2], "the same as long as the conversation lasts"
        assert len(set(keys)) == 4
        assert all(len(key) <= 64 and "ada" not in key and key.isalnum() for key in keys)


@pytest.mark.parametrize(
    ("to", "model", "has"),
    [
        ("openai.chat", None, False),
        ("openai.chat", "gpt-4.1-mini", False),
        ("openai.responses", "gpt-5.5", False),
        ("openai.responses", "gpt-5.6-luna", True),
        ("openai.chat", "llama3:8b", False),
        ("anthropic", None, True),
    ],
)
async def test_by_default_only_where_the_api_is_known_to_take_them(to: Wire, model: str | None, has: bool) -> None:
    """Whatever the setting `encoding` names: it may stand for another server's model."""
    async with hitherto.open("memory:", model="extractive", encoding="gpt-5.6") as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("one"), assistant("two"))
        context = await chat.context(user("three"), wire=to, model=model, instructions="Be brief.")
        assert bool(parts_with(dict(context.request))) is has
        assert ("prompt_cache_key" in context.request) is (has and to != "anthropic")
        assert context.manifest.request.cache_breakpoints is has


async def test_instructions_with_facts_chosen_for_the_question_are_not_stable() -> None:
    """With facts_place="system", where not all facts fit: each request begins otherwise, and a breakpoint would only
    cost what is put into the cache."""
    async with hitherto.open("memory:", model="extractive", embedder="none", facts_place="system") as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("one"), assistant("two"))
        for at in range(40):
            await memory.facts(SCOPE).add(f"Likes the song number {at} very much", category="hobby")
        for budget, marked in ((20_000, True), (1_200, False)):
            context = await chat.context(user("Which song?"), wire="anthropic", instructions="Hm.", budget=budget)
            assert context.manifest.facts is not None
            assert bool(parts_with(dict(context.request))) is marked
