"""A simulation's requests, figures and evidence, each found a second way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hitherto
from hitherto import Call, Message, Policy, assistant, system, tool_result, user
from hitherto.core.log.message import ANTHROPIC, CHAT, Kind, Logged, Role, Wire
from hitherto.core.policy.span import Fate
from hitherto.core.price import Price
from hitherto.errors import BudgetExceeded
from hitherto.policies import Drop, LastTurns, Redact, Stage, Summarize, SystemMessage, Turns
from hitherto.providers.extractive import Extractive
from hitherto.providers.scripted import Scripted
from hitherto.simulation.figures import Figures, evidence_shown
from hitherto.simulation.run import (
    Counting,
    full_history,
    full_tokens,
    redact_summarize,
    redact_trim,
    simulate,
    steps,
)
from hitherto.store.log.log import LogStore
from hitherto.tokens import counter_for
from hitherto.wire import codec
from tests.conftest import SCOPE
from tests.tokens.test_counters import reference_count
from tests.wire.conversations import Conversation, conversations

SAID = {
    "s": system("Be brief."),
    "u": user("And now?"),
    "a": assistant("So it is."),
    "c": assistant(calls=[Call(id="1", name="f"), Call(id="2", name="g")]),
    "r": tool_result("1", "done"),
    "q": tool_result("2", "done too"),
}


def written(letters: str) -> list[str]:
    """The steps of a transcript of these messages, as "asked>answered"."""
    names = {id(message): letter for letter, message in SAID.items()}

    def text(messages: tuple[Message, ...]) -> str:
        return "".join(names[id(message)] for message in messages)

    return [f"{text(one.asked)}>{text(one.answered)}" for one in steps([SAID[letter] for letter in letters])]


def test_a_conversation() -> None:
    assert written("uaua") == ["u>a", "u>a"]


def test_every_batch_of_results_is_answered_by_a_request_of_its_own() -> None:
    assert written("sucrqcrqaua") == [">s", "u>c", "rq>c", "rq>a", "u>a"]


def test_what_is_said_in_one_go_is_one_answer() -> None:
    assert written("uaacrq") == ["u>aac", "rq>"]


def test_two_who_ask_before_anyone_answers_ask_once() -> None:
    assert written("uua") == ["uu>a"]


def test_what_is_left_unanswered_is_a_request_too() -> None:
    assert written("uau") == ["u>a", "u>"]


def test_a_greeting_answers_nothing() -> None:
    assert written("aua") == [">a", "u>a"]
    assert written("sasu") == [">sas", "u>"]
    assert written("") == []


@given(st.text("sucrqa", max_size=30))
def test_nothing_is_lost_and_nothing_twice(letters: str) -> None:
    found = list(steps([SAID[letter] for letter in letters]))
    assert [message for one in found for message in (*one.asked, *one.answered)] == [SAID[one] for one in letters]
    assert all(message.role is not Role.ASSISTANT for one in found for message in one.asked)
    assert all(message.role is Role.ASSISTANT for one in found if one.asked for message in one.answered)
    assert all(one.asked for one in found[1:])
    assert all(one.asked[0] is SAID[letters[one.seq]] for one in found[1:])
    assert all(one.answered for one in found[:-1])


COUNTER = counter_for("o200k_base")
PRICE = Price(model="m", date="2026-01-31", input=1.0, cached_input=0.25, output=4.0, window=100_000)
O200K = "o200k_base"


def dialogue(turns: int) -> list[Message]:
    said = "the third of May is free, and the room with the north light costs forty more"
    return [
        message
        for turn in range(turns)
        for message in (user(f"Question {turn}: {said}?"), assistant(f"Answer {turn}: yes, {said}."))
    ]


def work(turns: int) -> list[Message]:
    """Turns of four messages, with a long tool result in each."""
    return [
        message
        for turn in range(turns)
        for message in (
            user(f"What of order {turn}?"),
            assistant(calls=[Call(id=f"c{turn}", name="look_up", arguments=json.dumps({"order": turn}))]),
            tool_result(f"c{turn}", " ".join(f"line {turn}.{line} is on the shelf;" for line in range(60))),
            assistant(f"Order {turn} is complete."),
        )
    ]


async def simulated(messages: Sequence[Message], policy: Policy, budget: int = 100_000, **options: Any) -> Figures:
    model = Counting(options.pop("model", None) or Extractive(), COUNTER)
    found = Figures(policy=policy.name, price=PRICE)
    async with hitherto.open("memory:", model=model, policy=policy) as memory:
        await simulate(memory, "c", messages, found, model=model, budget=budget, counter=COUNTER, **options)
    return found


async def test_without_a_policy_everything_is_sent_again() -> None:
    found = await simulated(dialogue(40), Policy("none"))
    sizes = [
        3 + reference_count(O200K, item["role"]) + reference_count(O200K, item["content"])
        for item in (message.payload for message in dialogue(40))
    ]
    full = [3 + sum(sizes[: seq + 1]) for seq in range(0, 80, 2)]
    assert [one.tokens for one in found.sent] == full
    assert [one.seq for one in found.sent] == list(range(0, 80, 2))
    # The request before, but for the 3 tokens with which a reply begins.
    assert [one.repeated for one in found.sent] == [0, *(one - 3 for one in full[:-1])]
    cached = [0 if one.repeated < 1_024 else one.repeated // 128 * 128 for one in found.sent]
    assert [one.cached for one in found.sent] == cached
    assert found.cost_usd == pytest.approx((sum(full) - sum(cached) + sum(cached) * 0.25) / 1e6)
    assert (found.verbatim, found.digested, found.dropped) == (1, 0, 0)
    assert (found.digest_calls, found.digest_tokens, found.max_request_tokens) == (0, 0, max(full))
    assert not any(one.fired for one in found.sent)


@pytest.mark.parametrize("messages", [dialogue(40), work(20)], ids=["dialogue", "work"])
async def test_the_full_history_is_what_is_sent_where_nothing_is_cut(messages: list[Message]) -> None:
    full = Figures(policy="none", price=PRICE)
    full_history(messages, full, counter=COUNTER, instructions="Be brief.")
    none = await simulated(messages, Policy("none"), instructions="Be brief.")
    assert [replace(one, breakpoints=()) for one in full.sent] == none.sent
    assert (full.cost_usd, full.fates) == (none.cost_usd, none.fates)


_JOINED = 10
"""Tokens that two items take more than one with the parts of both."""


@pytest.mark.parametrize("wire", [CHAT, ANTHROPIC])
@given(log=conversations())
def test_the_running_sum_counts_as_the_whole_does_but_for_items_that_are_joined(log: Conversation, wire: Wire) -> None:
    of, messages = codec(wire), log.messages
    for number, tokens in enumerate(full_tokens(messages, of, COUNTER)):
        whole = of.write(messages[:number])
        joined = sum(len(of.write([one])) for one in messages[:number]) - len(whole)
        counted = of.framing + sum(of.tokens(item, COUNTER) for item in whole)
        assert counted <= tokens <= counted + _JOINED * joined
        assert joined == 0 or wire == ANTHROPIC or log.wire != wire


async def test_instructions_are_sent_each_time() -> None:
    plain, told = (
        await simulated(dialogue(3), Policy("none")),
        await simulated(dialogue(3), Policy("none"), instructions="Be brief."),
    )
    more = 3 + reference_count(O200K, "system") + reference_count(O200K, "Be brief.")
    assert [one.tokens - other.tokens for one, other in zip(told.sent, plain.sent, strict=True)] == [more] * 3
    assert told.sent[1].repeated - plain.sent[1].repeated == more


async def test_the_calls_for_digests_are_counted_and_paid() -> None:
    policy = Policy("p", (Stage(Turns(6), LastTurns(2), Summarize(max_tokens=200), SystemMessage()),))
    answer = json.dumps({"add": [{"text": "The north room is dear.", "sources": [0]}], "replace": [], "drop": []})
    model = Scripted([answer] * 9)
    found = await simulated(dialogue(12), policy, model=model)
    prompts = model.calls
    assert found.digest_calls == len(prompts) > 1
    sent = sum(
        3 + 3 + 3 + sum(reference_count(O200K, text) for text in ("system", prompt.system, "user", prompt.user))
        for prompt in prompts
    )
    schemas = sum(reference_count(O200K, json.dumps(dict(prompt.schema), separators=(",", ":"))) for prompt in prompts)
    assert found.digest_tokens_in == sent + schemas
    assert found.digest_tokens_out == len(prompts) * reference_count(O200K, answer)
    of_digests = (found.digest_tokens_in * 1.0 + found.digest_tokens_out * 4.0) / 1e6
    of_prompts = sum(one.tokens - 0.75 * one.cached for one in found.sent) / 1e6
    assert found.cost_usd == pytest.approx(of_digests + of_prompts)
    assert sum(one.fired for one in found.sent) == found.digest_calls
    # The last firing left the newest two turns; as many turns came since as it takes to get there.
    assert found.verbatim + found.digested == 1
    assert 4 / 24 <= found.verbatim < 12 / 24


async def test_what_is_gone_and_what_has_a_placeholder() -> None:
    trimmed = await simulated(dialogue(10), Policy("p", (Stage(Turns(10), LastTurns(3), Drop()),)))
    assert (trimmed.verbatim, trimmed.dropped, trimmed.redacted) == (0.3, 0.7, 0)
    redacted = await simulated(work(10), Policy("p", (Stage(Turns(10), LastTurns(3), Redact()),)))
    # Of every redacted turn, only the result is gone.
    assert (redacted.verbatim, redacted.dropped, redacted.redacted) == (33 / 40, 7 / 40, 7 / 40)
    assert redacted.fates == {Fate.IN: 33, Fate.REDACTED: 7}


async def test_every_step_of_an_agent_is_a_request() -> None:
    found = await simulated(work(5), Policy("none"))
    assert [one.seq for one in found.sent] == [seq for turn in range(5) for seq in (4 * turn, 4 * turn + 2)]
    assert [one.repeated for one in found.sent[1:]] == [one.tokens - 3 for one in found.sent[:-1]]


async def test_what_each_step_of_a_long_turn_reads_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the time goes with the number of steps."""
    read, before, messages = [0], list[int](), LogStore.messages

    async def counted(self: LogStore, *given: Any) -> list[Logged]:
        found = await messages(self, *given)
        read[0] += len(found)
        return found

    monkeypatch.setattr(LogStore, "messages", counted)
    calls = [one for one in work(120) if one.kind is not Kind.TEXT]
    await simulated(
        [user("What of the orders?"), *calls], Policy("none"), budget=1_500, advance=lambda: before.append(read[0])
    )
    steps_read = [after - earlier for earlier, after in pairwise(before)]
    assert len(steps_read) == 120
    assert 0 < max(steps_read[60:]) <= max(steps_read[:60])


async def test_several_stages_cost_less_and_keep_less() -> None:
    none, summarized, trimmed = [
        await simulated(work(60), policy) for policy in (Policy("none"), redact_summarize(), redact_trim())
    ]
    assert trimmed.cost_usd < summarized.cost_usd < 0.5 * none.cost_usd
    assert (summarized.dropped, trimmed.digested) == (summarized.redacted, 0)
    assert min(one.cached for one in (summarized, trimmed)) > 0.5
    for one in (summarized, trimmed):
        assert one.verbatim + one.digested + one.dropped == pytest.approx(1)


async def test_it_is_the_same_each_time() -> None:
    one, two = [await simulated(work(20), redact_summarize()) for _ in range(2)]
    assert one == two


async def test_the_budget_cuts() -> None:
    found = await simulated(dialogue(40), Policy("none"), budget=1_500)
    assert 1_000 < found.max_request_tokens <= 1_500
    assert 0 < found.dropped < 1


async def test_what_does_not_fit_is_said_with_its_message() -> None:
    with pytest.raises(BudgetExceeded, match=r"the message of seq 4 .* more than the budget of 100"):
        await simulated([*dialogue(2), user("word " * 200)], Policy("none"), budget=100)


async def test_digests_that_fail_are_named() -> None:
    policy = Policy("p", (Stage(Turns(4), LastTurns(2), Summarize(), SystemMessage()),))
    found = await simulated(dialogue(4), policy, model=Scripted(["", ""]))
    assert len(found.failed) == 1
    assert found.verbatim == 1


async def test_the_end_of_the_log_is_not_a_request() -> None:
    """What is left in the end is looked at in a context that nobody sends."""
    found = await simulated([*dialogue(2), user("And?")], Policy("none"))
    assert len(found.sent) == 3
    assert found.fates.total() == 5


async def test_nobody_answers_a_greeting() -> None:
    advanced: list[None] = []
    found = await simulated(
        [assistant("Welcome."), *dialogue(2)], Policy("none"), advance=lambda: advanced.append(None)
    )
    assert [one.seq for one in found.sent] == [1, 3]
    assert len(advanced) == 2


FILLER = "Nothing of note happened on that day, and nothing else was said about it by anybody. "


async def test_a_group_counts_with_all_its_messages() -> None:
    """A call and its result are recalled together: the result is evidence too."""
    call = Call(id="a", name="look", arguments=json.dumps({"cage": 7}))
    looked = [assistant(calls=[call]), tool_result("a", "It is the heron, fed at seven. " + "It eats fish. " * 10)]
    filler: list[Message] = [one for n in range(40) for one in (user(f"Day {n}. {FILLER}"), assistant("Noted."))]
    messages = [user("Who lives there?"), *looked, assistant("That one."), *filler]
    async with hitherto.open("memory:") as memory:
        chat = memory.conversation("zoo", scope=SCOPE)
        await chat.append(*messages)
        await memory.wait_for_index()
        whole = await chat.context("When is the heron fed?", budget=600)
        assert [(one.start, one.end, one.characters) for one in whole.manifest.recalled[:1]] == [(1, 2, [])]
        assert evidence_shown(whole, messages, {2}) == evidence_shown(whole, messages, {1, 2}) == 1.0
        nothing = await chat.context("When is the heron fed?", budget=600, recall=False)
        assert evidence_shown(nothing, messages, {2}) == 0.0
        assert evidence_shown(whole, messages, {2, 20}) in (0.5, 1.0)


async def test_a_part_counts_as_a_part() -> None:
    needle = "The spare key of the boathouse hangs behind the blue kayak. "
    long = [f"Report {n}. " + FILLER * 8 for n in range(20)]
    messages = [user("\n\n".join([*long[:10], needle, *long[10:]])), *(assistant(FILLER) for _ in range(40))]
    async with hitherto.open("memory:") as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(*messages)
        await memory.wait_for_index()
        context = await chat.context("Where does the spare key of the boathouse hang?", budget=1_000)
        (one,) = [one for one in context.manifest.recalled if one.start == 0]
        shown = sum(end - start for start, end in one.characters)
        assert 0 < evidence_shown(context, messages, {0}) == shown / len(messages[0].text) < 1
