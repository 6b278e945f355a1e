"""Logs as servers, frameworks and people leave them: what the log takes and APIs refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hypothesis import strategies as st

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Message, Payload
from hitherto.errors import InvalidMessage
from hitherto.wire import codec
from tests.wire.conversations import conversations
from tests.wire.items import ODD_ARGUMENTS
from tests.wire.samples import SAMPLES, UNREAD

NAMES = ["read file", "search.web", "größe", "n" * 200, "ok"]
TEXTS = ["", " ", "\n", "\ud800", "half \udfff", "\0", "Yes.", "Sure. \n"]
IDS: list[Callable[[str], str]] = [
    lambda call: call,
    lambda call: f"call_{int(call[5:]) % 4}",
    lambda call: f"{call}_{'x' * 100}",
    lambda call: f"functions.search:{call[5:]}",
    lambda call: f"{call} é",
    lambda call: f"{call}_{'x' * 2_000}",
    lambda _: "",
]
"""What becomes of "call_7"."""
KINDS = {
    wire: [items for kind, (items, _) in samples.items() if kind not in UNREAD] for wire, samples in SAMPLES.items()
}
OPENINGS: list[list[Payload]] = [
    [{"role": "assistant", "content": "Hello. \n"}],
    [{"role": "system", "content": text} for text in ("Be kind.", " ", "Be brief.")],
]
"""How a log may begin, in chat's items: with the assistant, with three system messages."""


@st.composite
def odd_logs(draw: st.DrawFn, *wires: str, turns: int = 6) -> list[Message]:
    """A log of `conversations`, with ids that are used again, long, of any characters or empty, arguments that are no
    object or one where a text is due, empty texts, names of any characters, halves of characters, fields of answers,
    answers that say nothing, calls of functions as chat once had them, and items of any kind twice. Some begin with the
    assistant or with three system messages, and a few have nothing else."""
    opening = draw(st.sampled_from([[], [], *OPENINGS]))
    found = [codec(CHAT).read(item) for item in opening]
    if opening and draw(st.integers(0, 7)) == 0:
        return found
    conversation = draw(conversations(*wires, turns=turns))
    odd = [one for item in conversation.items for one in draw(_ODD[conversation.wire](item))]
    if conversation.wire == CHAT and draw(st.booleans()):
        odd = _with_functions(odd)
    for items in draw(st.lists(st.sampled_from(KINDS[conversation.wire]), max_size=3)):
        for _ in range(2):
            at = draw(st.integers(0, len(odd)))
            odd[at:at] = items
    rename = draw(st.sampled_from(IDS))
    odd = json.loads(re.sub(r'"(call_\d+)"', lambda one: json.dumps(rename(one[1])), json.dumps(odd)))
    for item in odd:
        with suppress(InvalidMessage):  # results of two calls with one id, together
            found.append(codec(conversation.wire).read(item))
    return found


def _with_functions(items: list[Payload]) -> list[Payload]:
    """The same with single calls as `function_call`, which `function` answers by the name."""
    names: dict[str, str] = {}
    found: list[Payload] = []
    for item in items:
        calls = item.get("tool_calls", ())
        if len(calls) == 1 and "function" in calls[0]:
            names[calls[0]["id"]] = calls[0]["function"]["name"]
            rest = {key: value for key, value in item.items() if key != "tool_calls"}
            found.append({**rest, "function_call": calls[0]["function"]})
        elif item.get("tool_call_id") in names:
            found.append({"role": "function", "name": names[item["tool_call_id"]], "content": item["content"]})
        else:
            found.append(item)
    return found


def accepted(said: list[Message]) -> tuple[list[Message], list[str]]:
    """What the log takes of this, and the calls without a result. Not in it: a result of another kind than its call,
    and where ids are used again, results of several messages in one, which is then ambiguous."""
    again = sum(len(one.calls) for one in said) > len({call for one in said for call in one.calls})
    kept: list[Message] = []
    waiting: dict[str, tuple[str, int]] = {}
    for at, message in enumerate(said):
        kind = str(message.payload.get("type")) if message.wire == RESPONSES else ""
        kind = re.sub("(_call)?(_output)?$", "", kind)
        if {*message.answers} <= waiting.keys():
            makers = {waiting[call] for call in message.answers}
            if all(of == kind for of, _ in makers) and not (again and len(makers) > 1):
                kept.append(message)
                waiting |= dict.fromkeys(message.calls, (kind, at))
                waiting = {call: of for call, of in waiting.items() if call not in message.answers}
    return kept, [*waiting]


@st.composite
def _odd_chat(draw: st.DrawFn, item: Payload) -> list[Payload]:
    if isinstance(item["content"], str):
        text = draw(st.sampled_from([item["content"], *TEXTS]))
        empty = {"type": "text", "text": ""}
        item["content"] = draw(st.sampled_from([text, text, [{"type": "text", "text": text}, empty], [empty]]))
    for call in item.get("tool_calls", ()):
        call["index"] = 0
        if call["type"] == "function":
            call["function"] |= {"name": draw(st.sampled_from(NAMES)), "parsed_arguments": None}
            call["function"]["arguments"] = draw(st.sampled_from([*ODD_ARGUMENTS, {"a": 1}, None]))
    if item["role"] == "user" and draw(st.booleans()):
        item["name"] = draw(st.sampled_from(["", "Anna Maria", "a" * 80]))
    if item["role"] == "assistant":
        audio = {"id": "audio_1", "data": "AAAA", "expires_at": 1, "transcript": "Hi"}
        fields = {"refusal": None, "annotations": [], "parsed": {"a": 1}, "audio": audio, "function_call": None}
        item |= {key: fields[key] for key in draw(st.sets(st.sampled_from(sorted(fields))))}
        return [item, *draw(_sometimes({"role": "assistant", "content": None, "refusal": None}))]
    return [item]


@st.composite
def _odd_responses(draw: st.DrawFn, item: Payload) -> list[Payload]:
    found = [item]
    match item.get("type", "message"):
        case "function_call":
            item |= {"id": draw(st.sampled_from(["fc_1", "call_1", "__fake_id__"])), "parsed_arguments": {}}
            item |= {"name": draw(st.sampled_from(NAMES)), "arguments": draw(st.sampled_from([*ODD_ARGUMENTS, {}]))}
        case "reasoning":
            item |= {"status": None, "content": None}
        case "message" if item["role"] == "assistant":
            part = item["content"][0]
            part |= {"text": draw(st.sampled_from([part["text"], *TEXTS])), "parsed": None, "logprobs": None}
            item["id"] = draw(st.sampled_from(["msg_1", "__fake_id__", "msg " + "x" * 80]))
            empty = {"type": "message", "id": "msg_1", "status": "incomplete", "role": "assistant", "content": []}
            found += draw(_sometimes(empty))
        case "message":
            text = draw(st.sampled_from([item["content"], *TEXTS]))
            item["content"] = draw(st.sampled_from([text, [{"type": "input_text", "text": text}]]))
        case _:
            pass
    return found


@st.composite
def _odd_anthropic(draw: st.DrawFn, item: Payload) -> list[Payload]:
    empty = {"type": "text", "text": draw(st.sampled_from(["", " "]))}
    if isinstance(item["content"], str):
        item["content"] = draw(st.sampled_from([item["content"], *TEXTS, [empty]]))
        return [item]
    for block in item["content"]:
        match block["type"]:
            case "tool_use":
                block["name"] = draw(st.sampled_from(NAMES))
                block["input"] = draw(st.sampled_from([block["input"], *ODD_ARGUMENTS]))
            case "tool_result":
                block.update(draw(st.sampled_from([{}, {"content": [empty]}, {"content": "", "is_error": True}])))
            case "thinking":
                block["signature"] = draw(st.sampled_from(["c2ln", ""]))
            case _:
                pass
    item["content"] = draw(st.sampled_from([item["content"], [empty, *item["content"]]]))
    if item["role"] == "assistant":
        item |= draw(st.sampled_from([{}, {"id": "msg_1", "type": "message", "stop_reason": "end_turn", "usage": {}}]))
        return [item, *draw(_sometimes({"role": "assistant", "content": []}))]
    return [item]


def _sometimes(item: Payload) -> st.SearchStrategy[list[Payload]]:
    return st.sampled_from([[], [], [], [item]]).map(lambda found: [*found])


_ODD: dict[str, Callable[[Payload], st.SearchStrategy[Any]]] = {
    CHAT: _odd_chat,
    RESPONSES: _odd_responses,
    ANTHROPIC: _odd_anthropic,
}
