"""What stands or falls together, ranges of messages, and who spoke."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.log.append import extended
from hitherto.core.log.group import groups
from hitherto.core.log.head import empty
from hitherto.core.log.message import Logged, Message
from hitherto.core.log.ranges import Ranges, all_in, any_in, ranges, without
from hitherto.core.log.speaker import speaker_of
from hitherto.wire import read
from tests.core.counted import Counted


def log(*items: dict[str, Any]) -> tuple[Logged, ...]:
    messages = [read(item) for item in items]
    logged, _ = extended(empty(datetime.now(UTC)), messages, [5] * len(messages))
    return logged


def says(role: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": "x"}


def call(name: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": name, "name": "look", "arguments": "{}"}


def result(name: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": name, "output": "x"}


THINKS: dict[str, Any] = {"type": "reasoning", "id": "rs", "summary": []}


def grouped(*items: dict[str, Any]) -> list[list[int]]:
    return [[member.seq for member in group.members] for group in groups(log(*items))]


def test_texts_stand_alone() -> None:
    assert grouped(says("user"), says("assistant"), says("user")) == [[0], [1], [2]]


def test_parallel_calls_and_all_their_results_are_one() -> None:
    assert grouped(says("user"), call("a"), call("b"), result("b"), result("a"), says("assistant")) == [
        [0],
        [1, 2, 3, 4],
        [5],
    ]


def test_calls_after_a_result_are_another_response() -> None:
    assert grouped(call("a"), result("a"), call("b"), result("b")) == [[0, 1], [2, 3]]


def test_reasoning_stays_with_what_it_precedes() -> None:
    assert grouped(THINKS, says("assistant"), THINKS, call("a"), result("a"), THINKS) == [[0, 1], [2, 3, 4], [5]]


@pytest.mark.parametrize("role", ["user", "system", "developer"])
def test_reasoning_joins_nobody_else(role: str) -> None:
    assert grouped(THINKS, says(role)) == [[0], [1]]


def test_a_late_result_stands_behind_its_call() -> None:
    assert grouped(call("a"), says("user"), says("assistant"), result("a")) == [[0, 3], [1], [2]]


def test_a_message_that_answers_calls_of_two_responses_makes_them_one_group() -> None:
    def uses(call: str) -> dict[str, Any]:
        return {"role": "assistant", "content": [{"type": "tool_use", "id": call, "name": "look", "input": {}}]}

    both = [{"type": "tool_result", "tool_use_id": call, "content": "x"} for call in ("b", "a")]
    asked: dict[str, Any] = {"role": "user", "content": "x"}
    (first, second) = groups(log(uses("a"), asked, uses("b"), {"role": "user", "content": both}))
    assert [member.seq for member in first.members] == [0, 2, 3]
    assert first.open == set()
    assert [member.seq for member in second.members] == [1]


def test_open_calls_and_orphans_are_known() -> None:
    logged = log(call("a"), call("b"), result("a"), says("user"), result("b"))
    (first, _) = groups(logged[:4])
    assert first.open == {"b"}
    orphan = groups(logged[3:])[1]
    assert orphan.orphan
    assert [member.seq for member in orphan.members] == [4]


def test_a_call_id_used_again_means_the_newest_call() -> None:
    assert grouped(call("a"), result("a"), says("user"), call("a"), result("a")) == [[0, 1], [2], [3, 4]]


def test_a_call_that_a_message_of_its_response_follows_needs_a_result() -> None:
    (alone,) = groups(log(THINKS, call("a")))
    assert alone.pending == {"a"}
    (followed,) = groups(log(call("a"), THINKS, says("assistant")))
    assert (followed.open, followed.pending) == ({"a"}, set())
    (before,) = groups(log(THINKS, says("assistant")))
    assert before.pending == set()


def test_calls_of_two_responses_need_results() -> None:
    """Anthropic has them in one message, so that nothing may be left open beside what is answered."""
    uses = ({"type": "tool_use", "id": name, "name": "look", "input": {}} for name in ("a", "b"))
    (both,) = groups(log(*({"role": "assistant", "content": [use]} for use in uses)))
    assert (both.open, both.pending) == ({"a", "b"}, set())


@given(gone=st.frozensets(st.integers(0, 11)))
def test_what_was_retracted_between_does_not_part(gone: frozenset[int]) -> None:
    whole = log(*[THINKS] * 12)
    left = [one for one in whole if one.seq not in gone]
    assert len(groups(left, ranges(gone))) == bool(left)
    parted = sum(one.seq + 1 != other.seq for one, other in pairwise(left))
    assert len(groups(left)) == parted + bool(left)


SEQS = st.frozensets(st.integers(0, 20))


def seqs(found: Ranges) -> set[int]:
    return {seq for first, last in found for seq in range(first, last + 1)}


@given(some=SEQS, others=SEQS)
def test_what_is_not_in_others(some: frozenset[int], others: frozenset[int]) -> None:
    found = without(ranges(some), ranges(others))
    assert seqs(found) == some - others
    assert found == ranges(some - others)


def test_many_are_gone_through_once() -> None:
    every, third = range(0, 48_000, 2), range(0, 48_000, 6)
    others = Counted(ranges(third))
    assert without(ranges(every), cast("Any", others)) == ranges(set(every) - set(third))
    assert others.reads < 10 * len(every)


@given(some=SEQS, first=st.integers(0, 20), more=st.integers(0, 5))
def test_any_and_all_in(some: frozenset[int], first: int, more: int) -> None:
    asked = range(first, first + more + 1)
    assert any_in(ranges(some), first, first + more) is any(seq in some for seq in asked)
    assert all_in(ranges(some), first, first + more) is all(seq in some for seq in asked)


CALL = {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"}


def message(item: dict[str, Any], wire: str) -> Message:
    return read(json.loads(json.dumps(item)), wire)


@pytest.mark.parametrize(
    ("item", "wire", "speaker"),
    [
        ({"role": "user", "content": "Hello", "name": "ada"}, "openai.chat", '"ada"'),
        ({"role": "user", "content": "Hello", "name": " "}, "openai.chat", "user"),
        ({"role": "user", "content": "Hello"}, "openai.chat", "user"),
        (CALL, "openai.responses", "assistant"),
        ({"type": "message", "role": "user", "content": "Hello"}, "openai.responses", "user"),
    ],
)
def test_the_name_of_an_item_is_its_authors_unless_it_is_a_tools(item: dict[str, Any], wire: str, speaker: str) -> None:
    assert speaker_of(message(item, wire)) == speaker
