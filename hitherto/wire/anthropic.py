"""The codec of Anthropic messages: user and assistant take turns, and tool results are in a user message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from typing import Any, cast

from hitherto.core.context.budget import TokenCounter
from hitherto.core.context.request import StablePart, StreamedAnswer
from hitherto.core.log.message import ANTHROPIC, Message, Payload, Role
from hitherto.errors import InvalidMessage
from hitherto.wire import breakpoints, cost
from hitherto.wire.answers import EMPTY, AnthropicStream, anthropic_answer
from hitherto.wire.base import BaseFormat
from hitherto.wire.exchange import Exchange, exchanges
from hitherto.wire.fields import (
    call_arguments,
    call_id,
    content,
    identifier,
    mapping,
    own,
    shown,
    text,
    text_in,
    words_of,
)
from hitherto.wire.neutral import (
    NO_RESULT,
    CompactionItem,
    File,
    FileText,
    Hosted,
    Image,
    NeutralMessage,
    OtherPart,
    Part,
    Reasoning,
    Shown,
    Text,
    ToolCall,
    ToolResult,
    converted,
    file_of,
    listed,
    ran,
    readable,
    reads,
    record_of,
    sources,
    thoughts,
    with_record,
)
from hitherto.wire.sendable import arguments_of, safe_id

NO_USER = "[no user message is shown before this]"
"""Opens a request whose first message would not be a user's."""

TOOL_USE = 530
"""What having tools costs beside their schemas: the most that any model is listed with (Anthropic, "Tool use",
tool use system prompt token counts: 530 for Claude 3 Opus; the Claude 4 models are listed with 346)."""

_MOST_BREAKPOINTS = 4
"""What the API takes in a request (Anthropic, "Prompt caching")."""

_BOOKKEEPING = {"fallback", "tool_addition", "tool_removal"}
"""Blocks that say nothing in a conversation."""

_HOSTED_CALLS = ("server_tool_use", "mcp_tool_use")

_MEDIA_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")


class AnthropicFormat(BaseFormat):
    """The codec of Anthropic messages. All its token counts are bounds, by the rule for chat: see `cost`."""

    name = ANTHROPIC
    system_apart = True

    def write(self, messages: Sequence[Message], *, unanswered: Sequence[str] = ()) -> list[Payload]:
        """This API wants all results of a message's calls in the user message right after it, first of its parts.

        A single Anthropic message with all results is written as it was. Several assistant messages with calls become
        one. System messages of the log keep their role, which `sendable` tells from what users type.
        """
        return [item for exchange in exchanges(messages, unanswered) for item in _written(exchange)]

    def is_user(self, item: Payload) -> bool:
        return item.get("role") == "user" and not any(block["type"] == "tool_result" for block in _blocks(item))

    def prefixed(self, item: Payload, text: str) -> Payload:
        own = item["content"]
        return {**item, "content": text + own if isinstance(own, str) else [_text(text), *own]}

    def opening(self, first: Payload | None, system: Sequence[str | Payload]) -> Payload | None:
        begins = first is None or self.is_user(first)
        return super().opening(first, system) if begins else {"role": "user", "content": NO_USER}

    def tools_tokens(self, tools: Sequence[Mapping[str, Any]], counter: TokenCounter) -> int:
        return TOOL_USE + cost.schemas(tools, counter) if tools else 0

    def answered(self, response: Mapping[str, Any]) -> list[Payload] | None:
        return anthropic_answer(response)

    def streamed(self) -> StreamedAnswer:
        return AnthropicStream()

    def takes_breakpoints(self, model: str | None) -> bool:
        return True

    def request(
        self,
        *,
        system: Sequence[str | Payload],
        items: Sequence[Payload],
        tools: Sequence[Mapping[str, Any]],
        stable: StablePart | None = None,
        cache_key: str = "",
    ) -> dict[str, Any]:
        """At most three breakpoints: the API takes four, and one more may be asked for in the call. The first, in the
        system text, is for the tools too, which come before it. Of the caller's own, the newest stay that the API
        takes: a caller who marks each newest message has marked all that are in the log."""
        items = _without_blank_end(items)
        texts = [one for one in system if isinstance(one, str)]
        instructions: str | list[Payload] = "\n\n".join(texts)
        messages = breakpoints.newest_breakpoints(items, [*map(dict, tools)], most=_MOST_BREAKPOINTS)
        if stable is not None and not breakpoints.has_breakpoints([*items, *tools]):
            instructions = breakpoints.anthropic_system(texts, stable.system) or instructions
            messages = breakpoints.with_breakpoints(items, stable.items, breakpoints.anthropic, is_user=self.is_user)
        begins = {"system": instructions} if system else {}
        return {**begins, "messages": messages, **({"tools": list(tools)} if tools else {})}


def _without_blank_end(items: Sequence[Payload]) -> Sequence[Payload]:
    """The API refuses words of the assistant at the end that end in white space."""
    last = items[-1] if items else {}
    if last.get("role") != "assistant" or not last["content"]:
        return items
    content = last["content"]
    if isinstance(content, str):
        ended: object = content.rstrip()
    else:
        *before, block = cast("list[Payload]", content)
        ended = [*before, {**block, "text": block["text"].rstrip()}] if block["type"] == "text" else content
    return items if ended == content else [*items[:-1], {**last, "content": ended}]


@reads(ANTHROPIC)
def _said(item: Payload) -> NeutralMessage:
    role = item.get("role")
    if role not in ("user", "assistant"):
        hint = "; give system texts as instructions" if role == "system" else ""
        raise InvalidMessage(f"an anthropic message has the role {shown(role)}; it must be user or assistant{hint}")
    of = f"an anthropic {role} message"
    if role == "assistant" and item.get("content") == []:
        return NeutralMessage(Role.ASSISTANT, (Text(""),))  # a model that said nothing
    value = content(item, of)
    if isinstance(value, str):
        parts: tuple[Part, ...] = (Text(value),)
    else:
        read = _from_user if role == "user" else partial(_from_model, names=_names(value))
        runs = [[*run] for _, run in groupby(value, key=lambda block: block["type"] == "text")]
        parts = tuple(part for run in runs for part in _cited([read(block, of) for block in run], run))
    name = item.get("name")
    return NeutralMessage(Role(role), parts, name if isinstance(name, str) else "")


def _cited(says: Sequence[Part], blocks: Sequence[Payload]) -> Sequence[Part]:
    """Texts that follow one another, or other blocks, with what they cite. An answer that cites comes as pieces of one
    text (Anthropic, "Citations")."""
    lists = [cast("list[object]", one) for block in blocks if isinstance(one := block.get("citations"), list)]
    found = sources([*chain(*lists)])
    if found is None:
        return says
    one_text = Text("".join(map(readable, says)))
    return [*([one_text] if blocks[0]["type"] == "text" else says), found]


def _from_user(block: Payload, of: str) -> Part:
    kind: str = block["type"]
    if kind == "tool_result":
        return _read_result(block, f"a {kind} block of {of}")
    if kind in ("tool_use", "thinking", "redacted_thinking"):
        raise InvalidMessage(f"{of} has a {kind} block; only an assistant's has those")
    return _shown(block, of)


def _from_model(block: Payload, of: str, names: Mapping[str, str]) -> Part:
    """`names` are those of the tools that ran at the provider, by the ids of their calls."""
    kind: str = block["type"]
    inside = f"a {kind} block of {of}"
    match kind:
        case "tool_use":
            name = identifier(block, "name", inside)
            return ToolCall(call_id(block, "id", inside), name, call_arguments(block, "input", inside))
        case "thinking":
            return thoughts(text(block, "thinking", inside))
        case "tool_result":
            raise InvalidMessage(f"{of} has a tool_result block; only a user's has those")
        case "compaction":
            summary = block.get("content")
            return CompactionItem(summary if isinstance(summary, str) else "")
        case "text" | "image" | "document":
            return _shown(block, of)
        case "redacted_thinking":
            return Reasoning("")
        case _:
            return _further(block, kind, of, names)


def _names(blocks: Sequence[Payload]) -> dict[str, str]:
    return {str(block.get("id")): _tool_of(block) for block in blocks if block["type"] in _HOSTED_CALLS}


def _tool_of(call: Payload) -> str:
    return ".".join(filter(None, map(words_of, (call.get("server_name"), call.get("name")))))


def _further(block: Payload, kind: str, of: str, names: Mapping[str, str]) -> Part:
    """What only this API has in an answer."""
    match kind:
        case _ if kind in _HOSTED_CALLS:
            return Hosted(_tool_of(block) or kind, cost.compact(block.get("input") or {}))
        case _ if kind.endswith("_tool_result"):
            name = names.get(str(block.get("tool_use_id"))) or kind.removesuffix("_tool_result")
            inner = block.get("content")
            failed = isinstance(inner, dict) and str(cast("Payload", inner).get("type")).endswith("_error")
            gave = {key: value for key, value in block.items() if key not in ("type", "is_error")}
            return ran(name, None, words_of(gave), failed=failed or block.get("is_error") is True)
        case "mcp_tool_listing":
            return listed(block.get("mcp_server_name"), block.get("tools"))
        case _ if kind in _BOOKKEEPING:
            return Reasoning(f"[{kind}]")
        case _:
            return OtherPart(own(kind, of, ANTHROPIC), words_of(block))


def _shown(block: Payload, of: str) -> Shown:
    kind: str = block["type"]
    match kind:
        case "text":
            return Text(text(block, "text", f"a text block of {of}"))
        case "image":
            return _read_image(block, f"an image block of {of}")
        case "document":
            return _document(block, mapping(block, "source", f"a document block of {of}"))
        case "search_result":
            return Text(words_of(block))
        case _:
            return OtherPart(own(kind, of, ANTHROPIC), words_of(block))


def _document(block: Payload, source: Payload) -> Shown:
    title = words_of([block.get("title"), block.get("context")])
    match source.get("type"):
        case "text" if isinstance(source.get("data"), str):
            return Text("\n".join(filter(None, (title, source["data"]))))
        case "content":
            return Text("\n".join(filter(None, (title, words_of(source.get("content"))))))
        case "base64" if isinstance(source.get("data"), str):
            return file_of(f"data:{source.get('media_type')};base64,{source['data']}", title)
        case "url" if isinstance(source.get("url"), str):
            return File(source["url"], title)
        case _:
            return OtherPart("document", title)


def _read_image(block: Payload, of: str) -> Shown:
    source = mapping(block, "source", of)
    match source.get("type"):
        case "base64":
            return Image(f"data:{text(source, 'media_type', of)};base64,{text(source, 'data', of)}")
        case "url":
            return Image(text(source, "url", of))
        case _:
            return OtherPart("image")


def _read_result(block: Payload, of: str) -> ToolResult:
    call = call_id(block, "tool_use_id", of)
    if block.get("content") in (None, []):
        parts: tuple[Shown, ...] = ()
    else:
        value = content(block, of)
        parts = (Text(value),) if isinstance(value, str) else tuple(_shown(inner, of) for inner in value)
    return ToolResult(call, parts, is_error=block.get("is_error") is True)


def _written(exchange: Exchange) -> list[Payload]:
    spoken: list[Payload] = []
    ids: dict[str, str] = {}
    after: list[Payload] = []
    first_calls: int | None = None
    for message in exchange.speakers:
        native = message.wire == ANTHROPIC
        says = None if native else converted(message)
        if says is not None and (record := record_of(says)):
            if first_calls is None:
                spoken.append({"role": "user", "content": record})
            else:
                after.append(_text(record))
        item = message.payload if says is None else _item(says)
        if item is None:
            continue
        ids |= {call: call if native else safe_id(call, ANTHROPIC) for call in message.calls}
        spoken.append(item)
        if message.calls and first_calls is not None:
            spoken[first_calls:] = [_joined(spoken[first_calls:])]
        elif message.calls:
            first_calls = len(spoken) - 1

    if not exchange.missing and [message.wire for message in exchange.results] == [ANTHROPIC]:
        return [*spoken, exchange.results[0].payload]
    results: list[Payload] = []
    for message in exchange.results:
        if message.wire == ANTHROPIC:
            for block in _blocks(message.payload):
                (results if block["type"] == "tool_result" else after).append(block)
        else:
            says = converted(message)
            results += (
                _result(result, ids.get(result.call_id) or safe_id(result.call_id, ANTHROPIC))
                for result in says.results
            )
            after += _filled(says.shown)
    results += ({"type": "tool_result", "tool_use_id": ids[call], "content": NO_RESULT} for call in exchange.missing)
    return [*spoken, {"role": "user", "content": [*results, *after]}] if results else spoken


def _blocks(item: Payload) -> list[Payload]:
    value = item["content"]
    return cast("list[Payload]", value) if isinstance(value, list) else [_text(value)]


def _joined(items: Sequence[Payload]) -> Payload:
    """Several messages of the same role as one; the API would join them in the same way."""
    return {**items[0], "content": [block for item in items for block in _blocks(item)]}


def _item(says: NeutralMessage) -> Payload | None:
    """A message from another format, without its tool results; None if this format can express nothing of it."""
    says = with_record(says)
    calls = [_call(call) for call in says.calls]
    if not says.shown and not calls:
        return None
    role = says.role.value
    blocks = _filled(says.shown)
    if len(blocks) == 1 and blocks[0]["type"] == "text" and not calls:
        return {"role": role, "content": blocks[0]["text"]}
    if role != "user" and not blocks and not calls:
        return None
    return {"role": role, "content": [*blocks, *calls] or EMPTY}


def _filled(parts: Sequence[Shown]) -> list[Payload]:
    """`parts` as blocks, without the texts of white space that this API refuses."""
    blocks = [_written_part(part) for part in parts]
    return [block for block in blocks if block["type"] != "text" or block["text"].strip()]


def _written_part(part: Shown) -> Payload:
    match part:
        case Image():
            return _image(part)
        case File():
            return _file(part)
        case FileText():
            source = {"type": "text", "media_type": "text/plain", "data": text_in(part.url)}
            return {"type": "document", "source": source, **_titled(part)}
        case _:
            return _text(readable(part))


def _file(file: File) -> Payload:
    """A PDF, or the address of one; the API takes no other file."""
    if file.url.startswith("http"):
        return {"type": "document", "source": {"type": "url", "url": file.url}, **_titled(file)}
    head, _, data = file.url.partition(",")
    if head.startswith("data:application/pdf") and head.endswith(";base64"):
        return {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": data},
            **_titled(file),
        }
    return _text(readable(file))


def _titled(file: File | FileText) -> Payload:
    return {"title": file.name} if file.name else {}


def _text(words: str) -> Payload:
    return {"type": "text", "text": words}


def _image(image: Image) -> Payload:
    if image.url.startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    head, _, data = image.url.removeprefix("data:").partition(",")
    media_type, *options = head.split(";")
    if media_type in _MEDIA_TYPES and "base64" in options:
        return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}
    return _text("[image]")


def _call(call: ToolCall) -> Payload:
    given = {"input": call.arguments} if call.custom else arguments_of(call.arguments)
    return {"type": "tool_use", "id": safe_id(call.id, ANTHROPIC), "name": call.name, "input": given}


def _result(result: ToolResult, call_id: str) -> Payload:
    item: Payload = {"type": "tool_result", "tool_use_id": call_id}
    match result.parts:
        case (Text(words),):
            item["content"] = words
        case parts if blocks := _filled(parts):
            item["content"] = blocks
        case _:
            pass
    return {**item, "is_error": True} if result.is_error else item
