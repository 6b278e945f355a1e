"""Plausible logs of agents, as raw items of each wire format: for properties of grouping, views and policies.

What happens is drawn first, apart from any format: users speak, a model thinks, speaks and calls tools, tools answer
at once, turns later, together, or never. Each format then says it in its own way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hypothesis import strategies as st

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Message, Payload
from hitherto.wire import codec
from tests.wire.items import PNG, words

WIRES = (CHAT, RESPONSES, ANTHROPIC)
TOOLS = ("search", "add", "read_file", "book_table")
OWN_TOOLS = ("shell", "apply_patch", "computer")
"""Tools that Responses has items of their own for; elsewhere they are functions."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The items of one log in the order in which they are appended, all in one format."""

    wire: str
    items: list[Payload]

    @property
    def messages(self) -> list[Message]:
        return [codec(self.wire).read(item) for item in self.items]


@dataclass(frozen=True, slots=True)
class Asked:
    """A user's message."""

    text: str


@dataclass(frozen=True, slots=True)
class Made:
    """A tool call. `kind` is `function`, `custom`, or one of OWN_TOOLS."""

    id: str
    tool: str
    given: str
    kind: str = "function"


@dataclass(frozen=True, slots=True)
class Answered:
    """One response of a model. `thoughts` are its reasoning before the first call, or `between` any two."""

    text: str | None = None
    calls: tuple[Made, ...] = ()
    thoughts: int = 0
    between: bool = False


@dataclass(frozen=True, slots=True)
class Returned:
    """Results that arrive together, perhaps of calls of several responses; `aside` is what the user says with them,
    where the format has a place for that."""

    results: tuple[tuple[Made, str], ...]
    aside: str | None = None


Event = Asked | Answered | Returned
Due = Literal["now", "later", "never"]


@st.composite
def conversations(draw: st.DrawFn, *wires: str, turns: int = 12) -> Conversation:
    """A log of one to `turns` turns in one of `wires` (all three, if none is named), as an agent may append it.

    Parallel calls, calls that wait for approval and are answered turns later or never, several results in one
    Anthropic message, reasoning before calls and before text, custom tools, text between calls, and users who speak
    twice. No result comes before its call or a second time; every call has its own id. Any beginning of it is such a
    log too.
    """
    wire = draw(st.sampled_from(wires or WIRES))
    events: list[Event] = []
    waiting: list[Made] = []
    made = 0
    for _ in range(draw(st.integers(1, turns))):
        events += [Asked(draw(words)) for _ in range(draw(st.sampled_from([1, 1, 1, 2])))]
        late = [call for call in waiting if draw(st.booleans())]
        waiting = [call for call in waiting if call not in late]
        if late:
            events.append(draw(_returned(late)))
        for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
            response = draw(_answered(made))
            made += len(response.calls)
            events.append(response)
            due = {call: draw(st.sampled_from(_DUE)) for call in response.calls}
            waiting += [call for call in response.calls if due[call] == "later"]
            now = [call for call in response.calls if due[call] == "now"]
            events += draw(_returns(now)) if now else []
        if draw(st.booleans()):
            events.append(Answered(text=draw(words), thoughts=draw(st.sampled_from([0, 0, 1]))))
    return Conversation(wire, written(wire, events))


_DUE: list[Due] = ["now", "now", "now", "later", "never"]


@st.composite
def _answered(draw: st.DrawFn, made: int) -> Answered:
    calls: list[Made] = []
    for number in range(made, made + draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["function", "function", "custom", *OWN_TOOLS]))
        tool = kind if kind in OWN_TOOLS else draw(st.sampled_from(TOOLS))
        calls.append(Made(f"call_{number}", tool, draw(words), kind))
    return Answered(
        text=draw(st.none() | words),
        calls=tuple(calls),
        thoughts=draw(st.integers(0, 2)),
        between=draw(st.booleans()),
    )


@st.composite
def _returned(draw: st.DrawFn, calls: Sequence[Made]) -> Returned:
    ordered = draw(st.permutations(calls))
    return Returned(tuple((call, draw(words)) for call in ordered), draw(st.none() | words))


@st.composite
def _returns(draw: st.DrawFn, calls: Sequence[Made]) -> list[Event]:
    """The results of one response together, or each by itself."""
    whole = draw(_returned(calls))
    if draw(st.booleans()):
        return [whole]
    return [
        replace(whole, results=(one,), aside=whole.aside if at == 0 else None) for at, one in enumerate(whole.results)
    ]


def long_log(turns: int, tools: bool, *, wire: str = CHAT) -> list[Payload]:
    """The same items for the same arguments, for benchmarks: `turns` turns of a user's message and an answer.

    The items of fewer turns begin those of more. With `tools` there are one to three parallel calls in each turn, with
    results of some hundred characters; in every seventh turn one is answered in the turn after.
    """
    events: list[Event] = []
    late: Made | None = None
    for turn in range(turns):
        events.append(Asked(_prose(turn, 4 + turn % 23)))
        if late is not None:
            events.append(Returned(((late, _prose(turn, 60)),)))
            late = None
        if tools:
            calls = tuple(
                Made(f"call_{turn}_{at}", TOOLS[(turn + at) % len(TOOLS)], _prose(turn + at, 6))
                for at in range(1 + turn % 3)
            )
            events.append(Answered(calls=calls, thoughts=turn % 2))
            late = calls[-1] if turn % 7 == 6 else None
            events += [Returned(((call, _prose(turn, 40 + 11 * (turn % 9))),)) for call in calls if call != late]
        events.append(Answered(text=_prose(3 * turn, 12 + turn % 41)))
    return written(wire, events)


def written(wire: str, events: Sequence[Event]) -> list[Payload]:
    """The items in which a format says what happened."""
    return [item for event in events for item in _WRITERS[wire](event)]


_SENTENCE = (
    "the meeting on Friday moved from the Granary to the old mill because the roof there leaks and nobody had told "
    "Marta who ordered forty chairs two lamps and a projector for the talk about rivers in spring"
)
_VOCABULARY = _SENTENCE.split()


def _prose(start: int, length: int) -> str:
    return " ".join(_VOCABULARY[(start * 7 + at * (1 + start % 5)) % len(_VOCABULARY)] for at in range(length))


def _json(call: Made) -> str:
    return json.dumps({"query": call.given})


def _chat(event: Event) -> list[Payload]:
    match event:
        case Asked(text):
            return [{"role": "user", "content": text}]
        case Answered(text, calls):
            made = {"tool_calls": [_chat_call(call) for call in calls]} if calls else {}
            return [{"role": "assistant", "content": text, **made}]
        case Returned(results):
            return [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in results]


def _chat_call(call: Made) -> Payload:
    if call.kind == "custom":
        return {"id": call.id, "type": "custom", "custom": {"name": call.tool, "input": call.given}}
    return {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": _json(call)}}


def _responses(event: Event) -> list[Payload]:
    match event:
        case Asked(text):
            return [{"role": "user", "content": text}]
        case Answered(text, calls, thoughts, between):
            items = [_reasoning()] * thoughts
            if text is not None:
                part = {"type": "output_text", "text": text, "annotations": []}
                items.append(
                    {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]}
                )
            for at, call in enumerate(calls):
                items += [_reasoning(), _responses_call(call)] if between and at else [_responses_call(call)]
            return items
        case Returned(results):
            return [_responses_result(call, text) for call, text in results]


def _reasoning() -> Payload:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}


def _responses_call(call: Made) -> Payload:
    named: Payload = {"call_id": call.id, "name": call.tool}
    own: Payload = {"call_id": call.id, "status": "completed"}
    match call.kind:
        case "custom":
            return {"type": "custom_tool_call", **named, "input": call.given}
        case "shell":
            return {"type": "shell_call", **own, "action": {"commands": [call.given]}}
        case "apply_patch":
            return {"type": "apply_patch_call", **own, "operation": {"type": "delete_file", "path": call.given}}
        case "computer":
            action = {"type": "type", "text": call.given}
            return {"type": "computer_call", "id": "cu_1", **own, "action": action, "pending_safety_checks": []}
        case _:
            return {"type": "function_call", **named, "arguments": _json(call)}


def _responses_result(call: Made, text: str) -> Payload:
    answer: Payload = {"call_id": call.id, "output": text}
    match call.kind:
        case "custom":
            return {"type": "custom_tool_call_output", **answer}
        case "shell":
            chunk = {"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
            return {"type": "shell_call_output", **answer, "output": [chunk]}
        case "apply_patch":
            return {"type": "apply_patch_call_output", **answer, "status": "completed"}
        case "computer":
            screen = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG}"}
            return {"type": "computer_call_output", **answer, "output": screen}
        case _:
            return {"type": "function_call_output", **answer}


def _anthropic(event: Event) -> list[Payload]:
    match event:
        case Asked(text):
            return [{"role": "user", "content": text}]
        case Answered(text, calls, thoughts):
            thinking = [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}] * thoughts
            said = [] if text is None else [{"type": "text", "text": text}]
            made: list[Any] = [
                {"type": "tool_use", "id": call.id, "name": call.tool, "input": {"query": call.given}} for call in calls
            ]
            return [{"role": "assistant", "content": [*thinking, *said, *made]}]
        case Returned(results, aside):
            blocks = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in results]
            said = [] if aside is None else [{"type": "text", "text": aside}]
            return [{"role": "user", "content": [*blocks, *said]}]


_WRITERS: dict[str, Callable[[Event], list[Payload]]] = {CHAT: _chat, RESPONSES: _responses, ANTHROPIC: _anthropic}
