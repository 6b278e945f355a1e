from __future__ import annotations

import asyncio

import pytest

from hitherto.core.facts.fact import ExtractedFact
from hitherto.errors import ModelUnavailable
from hitherto.providers.extractive import Extractive
from hitherto.providers.scripted import Delayed, Gate, Hang, Scripted, ScriptedFact, items
from tests.providers.models.digests import FACTS, digested, prompt, spoken


async def test_replies_come_in_order_and_then_the_extractive_model_answers():
    model = Scripted(["first", lambda asked: asked.schema_name, ModelUnavailable("no answer")])
    asked = prompt()
    assert (await model.complete(asked)).text == "first"
    assert (await model.complete(asked)).text == "digest_changes"
    with pytest.raises(ModelUnavailable, match="no answer"):
        await model.complete(asked)
    assert await model.complete(asked) == await Extractive().complete(asked)
    assert model.calls == [asked] * 4


async def test_then_is_a_reply_for_ever_or_another_model():
    always = Scripted(then="so be it")
    assert [(await always.complete(prompt())).text for _ in range(3)] == ["so be it"] * 3
    chained = Scripted(["first"], then=Scripted(["second"], then="third"))
    assert [(await chained.complete(prompt())).text for _ in range(3)] == ["first", "second", "third"]


async def test_calls_at_the_same_time_each_get_their_own_reply():
    model = Scripted([Delayed(0.02, "slow"), "quick"])
    slow, quick = await asyncio.gather(model.complete(prompt()), model.complete(prompt()))
    assert (slow.text, quick.text) == ("slow", "quick")


async def test_a_delay_holds_back_a_text_or_an_error():
    loop = asyncio.get_running_loop()
    begun = loop.time()
    model = Scripted([Delayed(0.05, "late"), Delayed(0.01, ModelUnavailable("late as well"))])
    assert (await model.complete(prompt())).text == "late"
    assert loop.time() - begun >= 0.04
    with pytest.raises(ModelUnavailable):
        await model.complete(prompt())


async def test_a_gate_holds_a_call_until_it_is_opened():
    gate = Gate("through")
    model = Scripted([gate])
    call = asyncio.create_task(model.complete(prompt()))
    await gate.reached()
    assert len(model.calls) == 1
    assert not call.done()
    gate.open()
    assert (await call).text == "through"


async def test_an_open_gate_lets_everyone_through():
    gate = Gate("through")
    gate.open()
    model = Scripted(then=gate)
    assert [(await model.complete(prompt())).text for _ in range(2)] == ["through", "through"]


async def test_a_hanging_call_ends_when_its_task_is_cancelled():
    model = Scripted([Hang()])
    call = asyncio.create_task(model.complete(prompt()))
    await asyncio.sleep(0.01)
    assert not call.done()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert len(model.calls) == 1


async def test_items_are_what_the_core_reads():
    lines = spoken("The Net Loft.", "Noted.", "The Granary instead.", "Changed.")
    model = Scripted(
        [
            items(("Friday is at the Net Loft", [0]), ("They are sixty", [1])),
            items("Ansa is allergic to nuts", replace={1: ("Friday is at the Granary", [2, 3])}, drop=[2]),
        ]
    )
    first = await digested(model, lines[:2])
    second = await digested(model, lines[2:], base=first.items)
    assert [(item.text, item.sources) for item in second.items] == [
        ("Friday is at the Granary", ((0, 0), (2, 3))),
        ("Ansa is allergic to nuts", ((2, 3),)),
    ]


async def test_facts_are_what_the_core_reads():
    lines = spoken("I sail.", "Noted.", "And I play the cello, in Bergen.", "Changed.")
    answer = items(
        "They talk of Ada.",
        facts=[
            ("hobby", "Sails."),
            ("habit", "Sings.", [2]),
            ScriptedFact("hobby", "Plays the cello.", [2], 0.75, "repeats", 1),
            ScriptedFact("current city", "Lives in Bergen.", relation="replaces", known=1),
        ],
    )
    found = await digested(Scripted([answer]), lines, facts=FACTS)
    assert found.facts == (
        ExtractedFact(category="hobby", content="Sails.", seqs=(0, 2), confidence=0.9),
        ExtractedFact(category="habit", content="Sings.", seqs=(2,), confidence=0.9),
        ExtractedFact(category="hobby", content="Plays the cello.", seqs=(2,), confidence=0.75, repeats=71),
        ExtractedFact(category="current city", content="Lives in Bergen.", seqs=(0, 2), confidence=0.9, replaces=71),
    )
    assert (await digested(Scripted([items("x", facts=[])]), lines, facts=FACTS)).facts == ()
    assert (await digested(Scripted([items("x")]), lines, facts=FACTS)).facts is None


async def test_it_says_what_it_is_and_counts_how_often_it_was_closed():
    model = Scripted(name="double", input_limit=500)
    assert (model.name, model.input_limit) == ("double", 500)
    await model.aclose()
    await model.aclose()
    assert model.closed == 2
