"""What of a request repeats the one before: counted here once more, the slow way."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hitherto
from hitherto import Wire, assistant, user
from hitherto.core.context.request import StablePart
from hitherto.pricing import shipped
from hitherto.simulation.figures import Repeats
from hitherto.tokens import counter_for
from hitherto.wire import codec
from tests.conftest import SCOPE
from tests.tokens.test_counters import reference_count

WIRES = ["openai.chat", "openai.responses", "anthropic"]
WORDS = st.sampled_from(["so", "it is", "said the bookbinder", "¿y qué?", "42", "\n", "<|endoftext|>"])
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)


class Words:
    """A counter that anyone can check: a token a character."""

    name, exact, image_tokens, low_image_tokens = "characters", False, 0, 0

    def count(self, text: str) -> int:
        return len(text)


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(texts)]


def shared(*requests: dict[str, Any], wire: str = "openai.chat") -> list[int]:
    repeats = Repeats(codec(wire), Words())
    return [repeats.of(request) for request in requests]


def cost(*items: dict[str, Any]) -> int:
    return sum(codec("openai.chat").tokens(item, Words()) for item in items)


def test_the_first_repeats_nothing() -> None:
    assert shared({"messages": said("one")}) == [0]


def test_what_goes_on_repeats_all_of_the_one_before() -> None:
    one, two, three = said("one"), said("one", "two", "three"), said("one", "two", "three", "four", "five")
    assert shared({"messages": one}, {"messages": two}, {"messages": three}) == [0, cost(*one), cost(*two)]


def test_the_same_again_and_a_shorter_one() -> None:
    whole = {"messages": said("one", "two")}
    assert shared(whole, whole, {"messages": said("one")}) == [0, cost(*said("one", "two")), cost(*said("one"))]


def test_nothing_after_the_first_difference_counts() -> None:
    before, after = said("one", "two", "three"), said("one", "other", "three")
    assert shared({"messages": before}, {"messages": after})[1] == cost(said("one")[0]) + cost(
        {"role": "assistant", "content": ""}
    )


def test_a_text_counts_as_far_as_it_is_the_same() -> None:
    digest = "Summary so far:\n"
    before = {"messages": [{"role": "system", "content": digest + "Ada asked."}, *said("one")]}
    after = {"messages": [{"role": "system", "content": digest + "Ben asked."}, *said("one")]}
    assert shared(before, after)[1] == cost({"role": "system", "content": digest})


def test_where_more_than_the_text_differs_nothing_of_the_item_counts() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    before = {"messages": [*said("one"), {"role": "assistant", "content": "Let me see.", "tool_calls": [call]}]}
    after = {"messages": [*said("one"), {"role": "assistant", "content": "Let me see."}]}
    assert shared(before, after)[1] == cost(*said("one"))
    assert shared({"messages": said("one")}, {"messages": [{"role": "system", "content": "one"}]})[1] == 0


def test_tools_and_instructions_come_first() -> None:
    tool = {"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {}}}
    request = {"tools": [tool], "system": "Be brief.", "messages": said("one")}
    of = codec("anthropic")
    first = of.tools_tokens([tool], Words())
    same, other_system, other_tools = (
        shared(request, {**request, **changed}, wire="anthropic")[1]
        for changed in ({}, {"system": "Be long."}, {"tools": [{**tool, "name": "g"}]})
    )
    assert same == first + of.system_tokens("Be brief.", Words()) + of.tokens(said("one")[0], Words())
    assert other_system == first + of.system_tokens("Be ", Words())
    assert other_tools == 0


def test_breakpoints_make_no_difference_and_are_told() -> None:
    of, system = codec("anthropic"), "Be brief."
    one, two = said("one"), said("one", "two", "three")
    repeats = Repeats(of, Words())
    first = of.request(system=[system], items=[*one], tools=[], stable=StablePart(1, 1))
    assert repeats.of(first) == 0
    begin = of.system_tokens(system, Words())
    assert repeats.breakpoints == (begin, begin + cost(*one))
    assert repeats.end == begin + cost(*one)
    assert repeats.of(of.request(system=[system], items=two, tools=[], stable=StablePart(1, 2))) == begin + cost(*one)
    assert repeats.breakpoints == (begin, begin + cost(*two[:2]))
    assert repeats.end == begin + cost(*two)
    assert repeats.of({"system": system, "messages": two}) == begin + cost(*two)
    assert repeats.breakpoints == ()


@pytest.mark.parametrize("wire", WIRES)
@given(before=st.lists(TEXTS, min_size=1, max_size=6), after=st.lists(TEXTS, min_size=1, max_size=6))
def test_never_more_than_either_has(wire: str, before: list[str], after: list[str]) -> None:
    of, name = codec(wire), "input" if wire == "openai.responses" else "messages"
    found = shared({name: said(*before)}, {name: said(*after)}, wire=wire)[1]
    sizes = [sum(of.tokens(item, Words()) for item in said(*texts)) for texts in (before, after)]
    assert 0 <= found <= min(sizes)
    assert (found == sizes[0] == sizes[1]) == (before == after)


@given(texts=st.lists(st.lists(TEXTS, min_size=1, max_size=5), min_size=1, max_size=6))
def test_counting_once_is_as_good_as_counting_anew(texts: list[list[str]]) -> None:
    """Each answer depends on the request before and on nothing else, whatever is remembered of earlier ones."""
    requests = [{"messages": said(*one)} for one in texts]
    alone = [0, *(shared(one, two)[1] for one, two in pairwise(requests))]
    assert shared(*requests) == alone


def test_in_real_tokens() -> None:
    """With a real vocabulary it is what a second tokenizer says of the common beginning of what is sent."""
    repeats = Repeats(codec("openai.chat"), counter_for("o200k_base"))
    digest = "The workshop is in Arlemouth. "
    repeats.of({"messages": [{"role": "system", "content": digest + "It opens in May."}, *said("When?")]})
    found = repeats.of({"messages": [{"role": "system", "content": digest + "Ten places are left."}, *said("When?")]})
    assert found == 3 + reference_count("o200k_base", "system") + reference_count("o200k_base", digest)


@pytest.mark.parametrize(
    ("name", "wire"), [("claude-opus-5", "anthropic"), ("gpt-6-sol", "openai.chat"), ("gpt-4.1-mini", "openai.chat")]
)
async def test_what_each_providers_cache_serves(name: str, wire: Wire) -> None:
    """Of a conversation without recall: Anthropic up to the last breakpoint of the request before, OpenAI all of that
    request, its older models in steps."""
    price, repeats = shipped().named(name), Repeats(codec(wire), counter_for(name))
    served: list[int] = []
    async with hitherto.open("memory:", model="extractive", policy="none") as memory:
        chat = memory.conversation("c", scope=SCOPE)
        for number in range(12):
            question = user(f"Question {number}: " + "what else? " * 40)
            breakpoints, end = repeats.breakpoints, repeats.end
            context = await chat.context(question, wire=wire, model=name, instructions="Be brief.")
            repeated = repeats.of(context.request)
            assert repeated == end
            assert repeats.end + codec(wire).framing == context.tokens
            served.append(price.cached(repeated, breakpoints=breakpoints, end=end))
            match price.cache_breakpoints:
                case "explicit":
                    whole = breakpoints[-1] if number else 0
                case "implicit":
                    whole = end
                case "none":
                    whole = end - (end - 1_024) % 128
            assert served[-1] == (whole if whole >= price.cache_from else 0)
            await chat.append(question, assistant("Much. " * 40))
    assert served[0] == 0 < served[-1]
