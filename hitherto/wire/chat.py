"""The codec of OpenAI chat completions, which most servers speak, and constructors of plain messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from hitherto.core.context.request import StablePart, StreamedAnswer, WireFormat
from hitherto.core.log.message import CHAT, Call, Message, Payload, Role
from hitherto.errors import InvalidMessage
from hitherto.wire import breakpoints, cost
from hitherto.wire.answers import ChatStream, chat_answer
from hitherto.wire.base import BaseFormat
from hitherto.wire.exchange import Exchange, exchanges
from hitherto.wire.fields import (
    call_arguments,
    call_id,
    content,
    identifier,
    mapping,
    objects,
    own,
    shown,
    text,
    transcript,
    words_of,
)
from hitherto.wire.neutral import (
    NO_RESULT,
    File,
    FileText,
    Image,
    NeutralMessage,
    OtherPart,
    Part,
    Shown,
    Text,
    ToolCall,
    ToolResult,
    file_of,
    in_order,
    media_of,
    readable,
    reads,
    record_of,
    said,
    sound,
    sources,
    thoughts,
    with_record,
)
from hitherto.wire.redaction import NAMELESS

_THOUGHTS = ("reasoning_content", "reasoning")
"""Where servers put what a model thought: DeepSeek and others, OpenRouter and vLLM."""

_MOST_CALLS = 128
"""Calls in a message, by the error of OpenAI ("array too long")."""


class ChatFormat(BaseFormat):
    """The codec of OpenAI chat completions. Its framing is the cost of the start of the reply."""

    name = CHAT

    def write(self, messages: Sequence[Message], *, unanswered: Sequence[str] = ()) -> list[Payload]:
        """The results of a message's calls come right after it, as this API demands.

        Calls that are separate items in another format become one message. Whatever else a message with results says
        follows the results, as a user message.
        """
        return [item for exchange in exchanges(messages, unanswered) for item in _written(exchange)]

    def joining(self) -> WireFormat:
        from hitherto.wire.neighbors import JoiningChatFormat

        return JoiningChatFormat()

    def opening(self, first: Payload | None, system: Sequence[str | Payload]) -> Payload | None:
        return None if system else super().opening(first, system)

    def is_user(self, item: Payload) -> bool:
        return item.get("role") == "user"

    def prefixed(self, item: Payload, text: str) -> Payload:
        own = item["content"]
        return {
            **item,
            "content": text + own if isinstance(own, str) else [{"type": "text", "text": text}, *own],
        }

    def answered(self, response: Mapping[str, Any]) -> list[Payload] | None:
        return chat_answer(response)

    def streamed(self) -> StreamedAnswer:
        return ChatStream()

    def request(
        self,
        *,
        system: Sequence[str | Payload],
        items: Sequence[Payload],
        tools: Sequence[Mapping[str, Any]],
        stable: StablePart | None = None,
        cache_key: str = "",
    ) -> dict[str, Any]:
        begins: list[Payload] = [{"role": "system", "content": one} if isinstance(one, str) else one for one in system]
        told: Payload = {}
        if stable is not None and not breakpoints.has_breakpoints([*begins, *items, *tools]):
            items = breakpoints.with_breakpoints(items, stable.items, breakpoints.chat, is_user=self.is_user)
            if stable.system:
                last = begins[stable.system - 1]
                begins[stable.system - 1] = breakpoints.chat(last) or last
            told = {"prompt_cache_key": cache_key}
        return {"messages": [*begins, *items], **({"tools": list(tools)} if tools else {}), **told}


def user(content: str | Sequence[Mapping[str, Any]], *, at: datetime | None = None) -> Message:
    """A user's message, of text or of content parts as OpenAI chat completions have them. Here and below, `at` is when
    it was said, where that is not when it is appended; see `Message.dated`."""
    if not isinstance(cast(object, content), Sequence):
        raise InvalidMessage(f"the content of a user's message is {content!r}; give a text, or a list of content parts")
    return _read({"role": "user", "content": content if isinstance(content, str) else list(content)}, at)


def assistant(content: str | None = None, *, calls: Sequence[Call] = (), at: datetime | None = None) -> Message:
    """An assistant's message, of text, tool calls, or both."""
    if content is None and not calls:
        raise InvalidMessage("an assistant's message needs content or calls, and has neither; leave it out")
    item: Payload = {"role": "assistant", "content": content}
    if calls:
        item["tool_calls"] = [_call(ToolCall(call.id, call.name, call.arguments)) for call in calls]
    return _read(item, at)


def tool_result(call_id: str, content: str, *, at: datetime | None = None) -> Message:
    """What the tool answered to the call with this id."""
    return _read({"role": "tool", "tool_call_id": call_id, "content": content}, at)


def system(content: str, *, at: datetime | None = None) -> Message:
    """A system message that belongs to the conversation; instructions for every turn are given to the context."""
    return _read({"role": "system", "content": content}, at)


def _read(item: Payload, at: datetime | None) -> Message:
    message = ChatFormat().read(item)
    return message if at is None else message.dated(at)


@reads(CHAT)
def _said(item: Payload) -> NeutralMessage:
    role = item.get("role")
    of = f"a chat {role} message"
    match role:
        case "system" | "developer":
            return NeutralMessage(Role.SYSTEM, _parts(item, of), _name(item))
        case "user":
            return NeutralMessage(Role.USER, _parts(item, of), _name(item))
        case "assistant":
            return NeutralMessage(Role.ASSISTANT, _assistant(item, of), _name(item))
        case "tool":
            return NeutralMessage(Role.TOOL, (ToolResult(call_id(item, "tool_call_id", of), _parts(item, of)),))
        case "function":
            answer = () if item.get("content") is None else _parts(item, of)
            return NeutralMessage(Role.TOOL, (ToolResult(_legacy(item, of), answer),))
        case _:
            raise InvalidMessage(
                f"a chat message has the role {shown(role)}; "
                "it must be system, developer, user, assistant, tool or function"
            )


def _name(item: Payload) -> str:
    name = item.get("name")
    return name if isinstance(name, str) else ""


def _assistant(item: Payload, of: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    if item.get("content") is not None:
        parts += _parts(item, of)
    if item.get("refusal") is not None:
        parts.append(Text(text(item, "refusal", of)))
    if item.get("audio") is not None:
        parts.append(Text(spoken) if (spoken := transcript(item)) else OtherPart("audio"))
    if (cited := sources(item.get("annotations"))) is not None:
        parts.append(cited)
    if item.get("tool_calls") is not None:
        parts += (_read_call(call) for call in objects(item, "tool_calls", of))
    if item.get("function_call") is not None:
        call = mapping(item, "function_call", of)
        arguments = call_arguments(call, "arguments", "a function_call")
        parts.append(ToolCall(_legacy(call, "a function_call"), call["name"], arguments))
    if not parts and "content" in item:
        parts = [Text("")]  # a model that said nothing
    if not parts:
        raise InvalidMessage(f"{of} needs content or tool_calls, and has neither; leave it out if it says nothing")
    thought = [one for key in _THOUGHTS if isinstance(one := item.get(key), str)]
    return (*map(thoughts, thought[:1]), *parts)


def _legacy(item: Payload, of: str) -> str:
    """A call id for the deprecated function calls, which are answered by name."""
    return f"function-{identifier(item, 'name', of)}"


def _read_call(call: Payload) -> ToolCall:
    of = "a tool call"
    own_id, kind = call_id(call, "id", of), call.get("type")
    if kind == "custom":
        custom = mapping(call, "custom", of)
        return ToolCall(own_id, identifier(custom, "name", of), text(custom, "input", of), custom=True)
    if isinstance(kind, str) and kind != "function" and call.get("function") is None:  # a kind that no SDK knows yet
        own_fields = ("id", "type", "index")
        arguments = {key: value for key, value in call.items() if key not in own_fields and value is not None}
        return ToolCall(own_id, kind or NAMELESS, cost.compact(arguments))
    function = mapping(call, "function", of)
    return ToolCall(own_id, identifier(function, "name", of), call_arguments(function, "arguments", of))


def _parts(item: Payload, of: str) -> tuple[Shown, ...]:
    value = content(item, of)
    return (Text(value),) if isinstance(value, str) else tuple(_part(part, of) for part in value)


def _part(part: Payload, of: str) -> Shown:
    kind: str = part["type"]
    match kind:
        case "text" | "refusal":
            return Text(text(part, kind, f"a {kind} part of {of}"))
        case "image_url":
            image = part.get("image_url")
            if isinstance(image, str):
                return Image(image)
            image = mapping(part, "image_url", f"an image_url part of {of}")
            return Image(text(image, "url", f"an image_url part of {of}"), image.get("detail"))
        case "file":
            file = part.get("file")
            fields = cast("Payload", file) if isinstance(file, dict) else {}
            url, name = fields.get("file_data"), words_of(fields.get("filename"))
            return file_of(url, name) if isinstance(url, str) else OtherPart("file", name)
        case "input_audio":
            return sound(part)
        case _:
            return OtherPart(own(kind, of, CHAT), words_of(part))


def _spoken(exchange: Exchange, after: list[Payload]) -> list[Payload]:
    """What the speakers say; records that may not stand between calls and their results go into `after`."""
    spoken: list[Payload] = []
    joinable = False
    for message in exchange.speakers:
        if message.wire == CHAT:
            spoken.append(message.payload)
            joinable = False
            continue
        for says in in_order(said(message)):
            if record := record_of(says):
                (after if any(map(_calls, spoken)) else spoken).append({"role": "user", "content": record})
                joinable = False
            item = _item(says)
            if item is None:
                continue
            if joinable and item.get("content") is None:
                spoken[-1]["tool_calls"] += item["tool_calls"]
            else:
                spoken.append(item)
                joinable = "tool_calls" in item
    answered = exchange.results or exchange.missing
    return [part for item in spoken for part in _parted(item)] if answered else spoken


def _calls(item: Payload) -> list[str]:
    """The ids of the calls in an assistant's message."""
    legacy = item.get("function_call")
    made = [_legacy(legacy, "a function_call")] if legacy else []
    return [*made, *(call.get("id") or "" for call in item.get("tool_calls") or ())]


def _written(exchange: Exchange) -> list[Payload]:
    after: list[Payload] = []
    spoken = _spoken(exchange, after)
    maker = {call: at for at, item in enumerate(spoken) for call in _calls(item)}
    behind: list[list[Payload]] = [[] for _ in spoken]
    rest: list[Payload] = []
    for message in exchange.results:
        more: list[Payload | None] = []
        own = message.payload if message.wire == CHAT else None
        if own is not None and not _has_media(own):
            found = [(message.answers[0], own)]
        else:
            says = said(message)
            found = [(result.call_id, _result(result)) for result in says.results]
            more = [*map(_seen, says.results), _item(NeutralMessage(Role.USER, says.shown))]
        for call, item in found:
            if call in maker:
                behind[maker[call]].append(_answering(item, spoken[maker[call]]))
            else:
                rest.append(item)
        after += [item for item in more if item is not None]
    for call in exchange.missing:
        missing = {"role": "tool", "tool_call_id": call, "content": NO_RESULT}
        behind[maker[call]].append(_answering(missing, spoken[maker[call]]))
    answered = [item for speaker, results in zip(spoken, behind, strict=True) for item in (speaker, *results)]
    return [*answered, *rest, *after]


def _parted(item: Payload) -> list[Payload]:
    """The message, or where it makes more calls than the API takes in one, several."""
    calls: list[Payload] = item.get("tool_calls") or []
    parts = [calls[at : at + _MOST_CALLS] for at in range(0, len(calls), _MOST_CALLS)]
    if len(parts) < 2:
        return [item]
    more: list[Payload] = [{"role": "assistant", "content": None, "tool_calls": part} for part in parts[1:]]
    return [{**item, "tool_calls": parts[0]}, *more]


def _item(says: NeutralMessage) -> Payload | None:
    """A message from another format, without its tool results; None if this format can express nothing of it."""
    says = with_record(says)
    parts, calls = says.shown, [_call(call) for call in says.calls]
    if not parts and not calls:
        return None
    item: Payload = {
        "role": says.role.value,
        "content": _content(parts, media=says.role is Role.USER) if parts else None,
    }
    if says.name:
        item["name"] = says.name
    return {**item, "tool_calls": calls} if calls else item


def _has_media(item: Payload) -> bool:
    """Whether a result has what only a user's message can have."""
    parts = item.get("content")
    return isinstance(parts, list) and any(part["type"] != "text" for part in cast("list[Payload]", parts))


def _seen(result: ToolResult) -> Payload | None:
    """The pictures and files of a result, which only a user's message can have."""
    media = map(_medium, media_of(result.parts))
    shown = [part for part in media if part["type"] != "text"]
    return {"role": "user", "content": [_text("[a tool gave this, not the user]"), *shown]} if shown else None


def _content(parts: Sequence[Shown], *, media: bool) -> str | list[Payload]:
    written = [_medium(part) if media else _text(readable(part)) for part in parts]
    return written[0]["text"] if len(written) == 1 and "text" in written[0] else written


def _medium(part: Shown) -> Payload:
    match part:
        case Image():
            return _image(part)
        case File(url, name) | FileText(url=url, name=name) if url.startswith("data:"):
            return {"type": "file", "file": {"filename": name or "file", "file_data": url}}
        case OtherPart(sound={"data": str(), "format": str()}):
            return {"type": "input_audio", "input_audio": part.sound}
        case _:
            return _text(readable(part))


def _text(words: str) -> Payload:
    return {"type": "text", "text": words}


def _image(image: Image) -> Payload:
    detail = {} if image.detail is None else {"detail": image.detail}
    return {"type": "image_url", "image_url": {"url": image.url, **detail}}


def _call(call: ToolCall) -> Payload:
    if call.custom:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _result(result: ToolResult) -> Payload:
    parts = result.parts_with_error_mark
    return {
        "role": "tool",
        "tool_call_id": result.call_id,
        "content": _content(parts, media=False) if parts else "",
    }


def _answering(result: Payload, speaker: Payload) -> Payload:
    """The result of a call of this message, as a `function_call` has it if it is one."""
    legacy = speaker.get("function_call")
    if not legacy or result.get("tool_call_id") != _legacy(legacy, "a function_call"):
        return result
    return {"role": "function", "name": legacy["name"], "content": result["content"]}
