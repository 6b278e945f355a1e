"""Fitting a context in which something is very long: what gives way, and what it takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.context.fit import Fitted, Fitting
from hitherto.core.context.gathered import Gathered
from hitherto.core.context.request import ContextRequest
from hitherto.core.log.append import extended
from hitherto.core.log.head import empty
from hitherto.core.log.message import CHAT, Message, Payload, Wire
from hitherto.core.policy.span import Fate
from hitherto.core.policy.view import view
from hitherto.errors import BudgetExceeded
from hitherto.policies import none
from hitherto.tokens.counters import ByteCounter
from hitherto.wire import codec, read
from tests.wire.conversations import WIRES

_LONG, _BUDGET = 200_000, 2_000
_TEXT = "The flight HAT069 leaves at nine. " * (_LONG // 34)
_TASK: Payload = {"role": "user", "content": "Change my flight."}
_LONG_TASK: Payload = {"role": "user", "content": _TEXT}


class _Counter(ByteCounter):
    """Counts bytes, and how often it was given a long text."""

    long = 0

    def count(self, text: str) -> int:
        self.long += len(text) > _LONG // 2
        return super().count(text)


def _step(*results: str, arguments: str = "{}") -> list[Payload]:
    """A response that calls a tool for each of the results, which follow."""
    calls = [
        {"id": f"call_{at}", "type": "function", "function": {"name": "search", "arguments": arguments}}
        for at in range(len(results))
    ]
    answers = [{"role": "tool", "tool_call_id": f"call_{at}", "content": one} for at, one in enumerate(results)]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *answers]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("log", "incoming", "long"),
    [
        pytest.param([_TASK, *_step(_TEXT)], [], 1, id="a result"),
        pytest.param([_TASK, *_step(_TEXT, "none", _TEXT)], [], 2, id="two results of three"),
        pytest.param([_LONG_TASK, *_step("none")], [], 1, id="the task"),
        pytest.param([_LONG_TASK, *_step(_TEXT)], [], 2, id="the task and a result"),
        pytest.param([_TASK, *_step("")[:1]], _step(_TEXT)[1:], 1, id="an incoming result"),
        pytest.param([_TASK], [_LONG_TASK], 1, id="an incoming message"),
        pytest.param([{"role": "system", "content": _TEXT}, _TASK], [], 1, id="rules"),
    ],
)
def test_what_is_long_is_counted_once_and_read_twice(
    monkeypatch: pytest.MonkeyPatch, log: Sequence[Payload], incoming: Sequence[Payload], long: int, wire: Wire
) -> None:
    read_again = 0

    def payload(message: Message) -> Payload:
        nonlocal read_again
        read_again += len(message.raw) > _LONG // 2
        return parse(message)

    parse = Message.payload.__get__
    monkeypatch.setattr(Message, "payload", property(payload))
    counter = _Counter()
    try:
        made = _fitted(log, incoming, wire, counter)
    except BudgetExceeded:
        assert incoming == [_LONG_TASK] or log[0]["role"] == "system"
    else:
        assert made.total <= _BUDGET
    assert read_again <= 2 * long
    assert counter.long <= long


def _fitted(log: Sequence[Payload], incoming: Sequence[Payload], wire: Wire, counter: ByteCounter) -> Fitted:
    messages = [read(one, CHAT) for one in log]
    logged, head = extended(empty(datetime(2026, 1, 1, tzinfo=UTC)), messages, [len(one.raw) for one in messages])
    request = ContextRequest(
        incoming=tuple(read(one, CHAT) for one in incoming),
        instructions=None,
        budget=_BUDGET,
        reserve=0,
        counter=counter,
        codec=codec(wire),
    )
    return Fitting(request, Gathered(view=view(none(), head), head=head, messages=logged)).fit(request)


@pytest.mark.parametrize("wire", WIRES)
@given(
    task=st.lists(st.integers(1, 500), min_size=1, max_size=3).filter(lambda one: sum(one) <= 500),
    results=st.lists(st.integers(0, 8_000), min_size=1, max_size=2),
    written=st.integers(0, 8_000),
    arrives=st.booleans(),
)
def test_what_the_user_said_is_whole_while_a_step_can_be_cut(
    wire: Wire, task: list[int], results: list[int], written: int, *, arrives: bool
) -> None:
    said = [f"{number} {'never ' * size}"[: size + 2] for number, size in enumerate(task)]
    call, *answers = _step(*("found " * size for size in results), arguments=json.dumps({"text": "line " * written}))
    log: list[Payload] = [*({"role": "user", "content": one} for one in said), call]
    made = _fitted(log if arrives else [*log, *answers], answers if arrives else [], wire, ByteCounter())
    sent = json.dumps(made.items)
    assert made.total <= _BUDGET
    assert said[-1] in sent
    # Of several, those before the newest have a part of the budget.
    assert all(one in sent for one in said) or sum(task) > _BUDGET // 4 - 100 * len(task)


@pytest.mark.parametrize("wire", WIRES)
def test_an_incoming_result_that_is_cut_has_its_tokens(wire: Wire) -> None:
    call, *results = _step(_TEXT)
    made = _fitted([_TASK, call], results, wire, ByteCounter())
    assert [(one.start, one.fate, one.tokens) for one in made.incoming] == [
        (2, Fate.SHORTENED, made.sections["incoming"])
    ]


@pytest.mark.parametrize("wire", WIRES)
def test_a_long_answer_at_the_end_is_cut(wire: Wire) -> None:
    made = _fitted([_TASK, {"role": "assistant", "content": _TEXT}], [], wire, ByteCounter())
    assert made.total <= _BUDGET
    assert "characters left out" in json.dumps(made.items, ensure_ascii=False)
    assert (made.fates[-1].start, made.fates[-1].fate) == (1, Fate.SHORTENED)
