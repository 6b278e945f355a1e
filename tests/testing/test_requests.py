"""The reader of requests: sealed reasoning, templates, and values that nobody expects."""

from __future__ import annotations

import copy
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Wire
from hitherto.errors import InvalidInput
from hitherto.testing.requests import refusals
from tests.testing import test_requests_anthropic, test_requests_chat, test_requests_responses
from tests.testing.requests import HI, OK, Item, answered, anthropic, call, reasoning, responses, result, text, thinking

ACCEPTED: list[tuple[Wire, Item]] = [
    *((CHAT, one) for one in test_requests_chat.ACCEPTED),
    *((RESPONSES, one) for one in test_requests_responses.ACCEPTED),
    *((ANTHROPIC, one) for one in test_requests_anthropic.ACCEPTED),
]


@pytest.mark.parametrize(
    ("wire", "request_", "model", "other", "place"),
    [
        (
            RESPONSES,
            responses(reasoning(encrypted_content="blob"), OK),
            "gpt-5.2",
            "gpt-5.2-mini",
            "input[1].encrypted_content",
        ),
        (
            RESPONSES,
            responses({"type": "compaction", "encrypted_content": "blob"}),
            "gpt-5.2",
            "gpt-5.3",
            "input[1].encrypted_content",
        ),
        (
            ANTHROPIC,
            anthropic(answered(thinking("blob"), text()), HI),
            "claude-opus-4-8",
            "glm-5",
            "messages[1].content[0].signature",
        ),
        (
            ANTHROPIC,
            anthropic(answered({"type": "redacted_thinking", "data": "blob"}, text()), HI),
            "claude-opus-4-8",
            "claude-sonnet-5",
            "messages[1].content[0].data",
        ),
    ],
)
def test_sealed_reasoning_is_of_use_to_its_own_family(
    wire: Wire, request_: Item, model: str, other: str, place: str
) -> None:
    sealed = {"blob": model}
    refused = [f"{place} was sealed by {model}, and {other} cannot open it"]
    assert refusals(request_, wire=wire, model=other, sealed=sealed) == refused
    assert refusals({**request_, "model": other}, wire=wire, sealed=sealed) == refused
    assert refusals(request_, wire=wire, model=f"{model}-20260101", sealed=sealed) == []
    assert refusals(request_, wire=wire, sealed=sealed) == []
    assert refusals(request_, wire=wire, model=other) == []


def test_templates_that_want_turns() -> None:
    """Calls and their results stand outside of the turns."""
    system: Item = {"role": "system", "content": "Be brief."}
    fine = {"messages": [system, HI, call(), result(), call(), result(), OK, HI]}
    assert refusals(fine, wire=CHAT, alternate=True) == []
    bad = {"messages": [system, OK, HI, HI, system, call(), result(), HI]}
    assert refusals(bad, wire=CHAT) == []
    assert refusals(bad, wire=CHAT, alternate=True) == [
        "messages[1] is of the assistant where one of the user is due",
        "messages[3] is of the user where one of the assistant is due",
        "messages[4] has the role 'system'; templates know no other system message than the first message",
        "messages[7] is of the user where one of the assistant is due",
    ]


def test_a_wire_format_that_is_not_known() -> None:
    with pytest.raises(InvalidInput, match="the wire format is 'gemini'"):
        refusals({}, wire="gemini")  # pyright: ignore[reportArgumentType]


def test_without_the_sdk_of_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic.types.message_create_params", None)
    with pytest.raises(InvalidInput, match=r"pip install 'hitherto\[anthropic\]'"):
        refusals({}, wire=ANTHROPIC)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "role", "id", "x"]), inner),
    max_leaves=5,
)


@given(st.sampled_from(ACCEPTED), st.data())
def test_any_value_anywhere_is_told_and_breaks_nothing(case: tuple[Wire, Item], data: st.DataObject) -> None:
    wire, request = case[0], copy.deepcopy(case[1])
    inside: Any = request
    while True:
        key = data.draw(st.sampled_from(list(inside) if isinstance(inside, dict) else list(range(len(inside)))))
        if not isinstance(inside[key], dict | list) or not inside[key] or data.draw(st.booleans()):
            break
        inside = inside[key]
    inside[key] = data.draw(values)
    told = refusals(request, wire=wire, model="claude-opus-5", sealed={"": "gpt-5"}, alternate=True)
    assert all(isinstance(reason, str) for reason in told)
