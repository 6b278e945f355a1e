"""What each step of an agent needs, by hand and at random, and what of it a request shows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto import Call, Message, Wire, assistant, system, tool_result, user
from hitherto.simulation.work import WorkCounter, WorkFigures, needs, occurs, request_text, values
from hitherto.wire import codec
from tests.simulation.test_repeats import WIRES, Words

RULES = system("Refunds up to 900 euros are fine. " * 10)
ASKS = user("Cancel my order 4711, please.")
LOOKS = assistant(calls=[Call(id="c1", name="look", arguments='{"order": 4711, "fields": ["price", "coat"]}')])
FOUND = tool_result("c1", '{"name": "Zo\\u00eb", "price": 120.5, "note": "said \\"blue\\""}')
PAYS = assistant(calls=[Call(id="c2", name="pay", arguments='{"to": {"name": "Zoë"}, "sum": 120.5, "at": 20}')])
DONE = [tool_result("c2", "paid"), assistant("Done. Anything else?"), user("Your name?"), assistant("Hal.")]
LOG = [RULES, ASKS, LOOKS, FOUND, PAYS, *DONE]


def test_values_are_long_enough_not_to_occur_by_chance() -> None:
    given = {"a": "four", "b": "the", "c": [100, 99, -100, 1.25, 2.5], "d": {"e": [True, None, " pad "]}, "f": "    "}
    assert list(values(json.dumps(given))) == ["four", 100, -100, 1.25]
    assert list(values("SELECT 1")) == ["SELECT 1"]  # a custom tool's
    assert list(values('{"half": ')) == ['{"half":']


@pytest.mark.parametrize(
    ("value", "text", "found"),
    [
        ("Zoë", 'name: "Zo\\u00eb"', True),
        ('say "no"', '{"text": "say \\"no\\""}', True),
        ("one\ntwo", "one two", False),
        (150, "It costs 150.", True),
        (150, "1500 or 2150 or 0.150 or 150.5", False),
        (150.0, "total: 150", True),
        (-120, "from -120 on", True),
    ],
)
def test_a_value_occurs_in_every_spelling_and_not_inside_another(value: str | float, text: str, found: bool) -> None:
    assert occurs(value, text) is found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(JSON, st.booleans())
def test_the_values_of_arguments_occur_in_them(given: object, ascii: bool) -> None:
    text = json.dumps(given, ensure_ascii=ascii)
    assert all(occurs(value, text) for value in values(text))


def test_each_step_by_hand() -> None:
    looks, pays, done, named = needs(LOG)
    assert (looks.incoming, looks.words, looks.required) == (range(1, 2), (1,), {0, 1})
    assert looks.values == (4711,)  # "price" and "coat" come from nowhere
    assert (pays.incoming, pays.words, pays.required) == (range(3, 4), (1,), {0, 1, 2, 3})
    assert pays.values == (120.5,)  # 20 is short, and so is the name
    assert done.required == {0, 1, 4, 5}
    assert (named.words, named.required) == ((7,), {0, 7})  # the turn before is over
    assert {(one.rules, one.task) for one in needs(LOG)} == {(range(1), 1)}


def test_what_no_request_was_made_for_has_no_need() -> None:
    greeted = [RULES, assistant("Hello!"), ASKS, assistant("Which?"), user("4711")]
    (only,) = needs(greeted)
    assert (only.incoming, only.required) == (range(2, 3), {0, 2})
    assert list(needs([RULES])) == list(needs([])) == []
    before_the_task, _ = needs([LOOKS, FOUND, assistant("Hm."), ASKS, assistant("Which?")])
    assert (before_the_task.task, before_the_task.required) == (None, {0, 1})


@given(st.lists(st.sampled_from([RULES, ASKS, LOOKS, FOUND, PAYS, *DONE]), max_size=12))
def test_needs_lie_before_their_answers(messages: list[Message]) -> None:
    end = 0
    for need in needs(messages):
        assert end <= need.incoming.start < need.incoming.stop
        assert max(need.required) < need.incoming.stop
        assert messages[need.incoming.stop : need.incoming.stop + len(need.answered)] == list(need.answered)
        earlier = "\n".join(one.text for one in messages[: need.incoming.stop])
        calls = [call for one in need.answered for call in codec(one.wire).calls(one)]
        given = dict.fromkeys(value for call in calls for value in values(call.arguments))
        assert list(need.values) == [value for value in given if occurs(value, earlier)]
        end = need.incoming.stop + len(need.answered)


def request(wire: Wire, *messages: Message, told: str = "") -> dict[str, Any]:
    """A request with these messages and, in front of them, `told` by the system."""
    return codec(wire).request(system=[told] if told else [], items=codec(wire).write(messages), tools=[])


@pytest.mark.parametrize("wire", WIRES)
def test_a_request_is_read_alike_in_every_format(wire: Wire) -> None:
    sent = request(wire, ASKS, LOOKS, FOUND, told=RULES.text)
    assert all(one.text in request_text(sent, wire) for one in (RULES, ASKS, FOUND))
    assert all(occurs(value, request_text(sent, wire)) for value in (4711, "coat", 120.5))
    assert request_text(sent, wire, users=True) == ASKS.text


def cost(*messages: Message) -> int:
    return sum(codec("openai.chat").tokens(one.payload, Words()) for one in messages)


def figures(budget: int, *sent: list[Message] | None, log: list[Message] = LOG) -> WorkFigures:
    """The figures when the requests of `log` have these messages; None: the context was refused."""
    found = WorkFigures(policy="by hand", budget=budget)
    counter = WorkCounter(
        log, found, wire="openai.chat", counter=Words(), refusals=lambda request: request["messages"][3:]
    )
    for need, messages in zip(needs(log), sent, strict=True):
        if messages is None:
            counter.refused(need)
        else:
            counter.made(need, request("openai.chat", *messages), cost(*messages) + codec("openai.chat").framing)
    return found


def test_with_everything_in_each_request_everything_is_shown_at_the_price_of_everything() -> None:
    all_of_it = figures(10_000, LOG[:2], LOG[:4], LOG[:6], LOG[:8])
    assert (all_of_it.requests, all_of_it.refused, all_of_it.too_large, all_of_it.unacceptable) == (4, 0, 0, 3)
    assert [all_of_it.rules.shown, all_of_it.words.shown, all_of_it.task.shown] == [4, 4, 4]
    assert (all_of_it.values.shown, all_of_it.values.count) == (2, 2)
    assert all_of_it.context == all_of_it.everything
    assert [all_of_it.cost_ratio(price) for price in (0.5, 0.1)] == [1, 1]


def test_what_is_left_out_is_counted() -> None:
    less = figures(10_000, [RULES, ASKS], [system(RULES.text[:250]), LOOKS, FOUND], None, [ASKS, LOG[7]])
    assert (less.requests, less.refused, less.too_large) == (4, 1, 0)
    assert (less.rules.share, less.rules_begin.share, less.words.share, less.task.share) == (0.25, 0.5, 0.5, 0.5)
    assert less.values.share == 1
    # The refused request costs nothing on either side, and the last one begins as none before it.
    assert less.everything.repeated == cost(*LOG[:2]) + cost(*LOG[:4])
    assert less.context.repeated == cost(system(RULES.text[:250]))


def test_what_the_budget_cannot_hold_is_counted_apart() -> None:
    none = figures(50, None, None, None, None)
    assert (none.refused, none.too_large) == (4, 4)
    assert (none.rules.share, none.words.share, none.task.share) == (None, None, None)
    assert (none.rules_begin.share, none.values.share) == (0, 0)
    assert none.cost_ratio(0.5) is None
    # The last request needs no more than the rules and a short question; the task does not fit beside them.
    tight = figures(codec("openai.chat").framing + cost(RULES, LOG[7]), None, None, None, [RULES, LOG[7]])
    assert (tight.too_large, tight.rules.share, tight.words.share, tight.task.count) == (3, 1, 1, 0)


def test_a_log_without_rules() -> None:
    none = figures(10_000, LOG[1:2], LOG[1:4], LOG[1:6], LOG[1:8], log=LOG[1:])
    assert (none.rules.count, none.rules_begin.count, none.words.share) == (0, 0, 1)
