"""The codec of OpenAI responses: a flat list of typed items, with calls, results and reasoning as separate items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from hitherto.core.context.budget import TokenCounter
from hitherto.core.context.request import StablePart, StreamedAnswer
from hitherto.core.log.message import RESPONSES, Message, Payload, Role
from hitherto.errors import InvalidMessage
from hitherto.wire import breakpoints, cost
from hitherto.wire.answers import ResponsesStream, responses_answer
from hitherto.wire.base import BaseFormat
from hitherto.wire.exchange import Exchange, exchanges
from hitherto.wire.fields import call_arguments, call_id, content, identifier, objects, own, shown, text, words_of
from hitherto.wire.neutral import (
    NO_RESULT,
    NO_SCREENSHOT,
    CompactionItem,
    File,
    FileText,
    Hosted,
    Image,
    NeutralMessage,
    OtherPart,
    Reasoning,
    Shown,
    Text,
    ToolCall,
    ToolResult,
    converted,
    file_of,
    in_order,
    listed,
    ran,
    readable,
    reads,
    record_of,
    sound,
    sources,
    thoughts,
)
from hitherto.wire.redaction import is_unknown_result

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM}

_BOOKKEEPING = {
    "additional_tools": Role.SYSTEM,
    "configuration_update": Role.SYSTEM,
    "compaction_trigger": Role.SYSTEM,
    "item_reference": Role.ASSISTANT,
}
"""Items that say nothing in a conversation."""

_HOSTED = {"program", "tool_search_output", "mcp_approval_request"}
"""Items of tools that the API runs itself, of which it may leave out the id, and whose type does not end in `_call`."""

_PARTS = {"text", "input_text", "output_text", "input_image", "input_file", "input_audio", "refusal", "summary_text"}
"""Types that only parts of a message have."""

_TEXTS = ("text", "input_text", "output_text")
_OF_TEXTS = {"type", "text", "annotations", "logprobs"}
"""Types of texts in a result, and what one has that is nothing but a text."""

_GIVEN = ("output", "outputs", "results", "result", "error", "tools")
"""What a tool gave, in items of tools that the API runs itself."""

_OWN_FIELDS = {"type", "id", "call_id", "status", "name", "server_label", *_GIVEN}


class ResponsesFormat(BaseFormat):
    """The codec of OpenAI responses. All its token counts are bounds, by the rule for chat: see `cost`."""

    name = RESPONSES

    def write(self, messages: Sequence[Message], *, unanswered: Sequence[str] = ()) -> list[Payload]:
        """Reasoning and calls in their order, then the results: as this API returns and wants them."""
        return [item for exchange in exchanges(messages, unanswered) for item in _written(exchange)]

    def is_user(self, item: Payload) -> bool:
        return item.get("role") == "user" and item.get("type") in (None, "message")

    def prefixed(self, item: Payload, text: str) -> Payload:
        own = item["content"]
        front: Payload = {"type": "input_text", "text": text}
        return {**item, "content": text + own if isinstance(own, str) else [front, *own]}

    def tokens(self, item: Payload, counter: TokenCounter) -> int:
        if item.get("type") in (None, "message"):
            return cost.message_tokens(item, counter, free=("type", "id", "status"))
        if item.get("type") == "image_generation_call" and isinstance(item.get("result"), str):
            return cost.PER_ITEM + cost.structured({**item, "result": None}, counter) + counter.image_tokens
        return cost.PER_ITEM + cost.content(item, counter)

    def answered(self, response: Mapping[str, Any]) -> list[Payload] | None:
        return responses_answer(response)

    def streamed(self) -> StreamedAnswer:
        return ResponsesStream()

    def request(
        self,
        *,
        system: Sequence[str | Payload],
        items: Sequence[Payload],
        tools: Sequence[Mapping[str, Any]],
        stable: StablePart | None = None,
        cache_key: str = "",
    ) -> dict[str, Any]:
        """The instructions cannot carry a breakpoint: those behind items are for them too."""
        texts = [one for one in system if isinstance(one, str)]
        instructions = {"instructions": "\n\n".join(texts)} if texts else {}
        begins = [one for one in system if not isinstance(one, str)]
        items = [*begins, *items]
        told: Payload = {}
        if stable is not None and not breakpoints.has_breakpoints([*items, *tools]):
            end = len(begins) + stable.items if stable.items else 0
            items = breakpoints.with_breakpoints(items, end, breakpoints.responses, is_user=self.is_user)
            told = {"prompt_cache_key": cache_key}
        return {**instructions, "input": list(items), **({"tools": list(tools)} if tools else {}), **told}


@reads(RESPONSES)
def _said(item: Payload) -> NeutralMessage:
    kind = item.get("type")
    if kind is None and isinstance(item.get("id"), str) and not item.keys() & {"role", "content"}:
        kind = "item_reference"  # besides a message, only this item may leave out its type
    of = f"a responses {kind} item"
    match kind:
        case None | "message":
            return _message(item)
        case "function_call" | "custom_tool_call":
            custom = kind == "custom_tool_call"
            written = text(item, "input", of) if custom else call_arguments(item, "arguments", of)
            call = ToolCall(call_id(item, "call_id", of), identifier(item, "name", of), written, custom)
            return NeutralMessage(Role.ASSISTANT, (call,))
        case "function_call_output" | "custom_tool_call_output":
            return _answer(item, of)
        case "reasoning":
            inner = objects(item, "content", of) if item.get("content") is not None else []
            said = [*objects(item, "summary", of), *inner]
            return NeutralMessage(Role.ASSISTANT, (thoughts("\n".join(text(one, "text", of) for one in said)),))
        case "compaction":
            text(item, "encrypted_content", of)
            return NeutralMessage(Role.ASSISTANT, (CompactionItem(""),))
        case str():
            return _tool(item, kind, of)
        case _:
            raise InvalidMessage(f"a responses item has the type {shown(kind)}; it must be a text")


def _message(item: Payload) -> NeutralMessage:
    name = item.get("role")
    role = _ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        known = ", ".join(_ROLES)
        raise InvalidMessage(f"a responses message has the role {shown(name)}; it must be one of {known}")
    of = f"a responses {name} message"
    if role is Role.ASSISTANT and item.get("content") == []:
        return NeutralMessage(role, (Text(""),))  # a model that was stopped before its first word
    speaker = item.get("name")
    return NeutralMessage(role, _parts(content(item, of), of), speaker if isinstance(speaker, str) else "")


def _answer(item: Payload, of: str) -> NeutralMessage:
    """A tool's result. One that names its tool instead of a call answers no call: it is the tool's own message."""
    parts = _parts(content(item, of, "output"), of)
    if item["type"] == "function_call_output" and item.get("call_id") is None and item.get("name") is not None:
        return NeutralMessage(Role.TOOL, parts)
    return NeutralMessage(Role.TOOL, (ToolResult(call_id(item, "call_id", of), parts),))


def _tool(item: Payload, kind: str, of: str) -> NeutralMessage:
    """A call or result of the API's other tools, which are known by the end of their type and by `call_id`."""
    if kind == "mcp_approval_response":
        verdict = "approves" if item.get("approve") is True else "denies"
        decided = readable(OtherPart(f"{verdict} the call", words_of(item.get("reason"))))
        return NeutralMessage(Role.USER, (Hosted("", None, decided),))
    if kind == "mcp_list_tools":
        tools = listed(item.get("server_label"), item.get("tools"), item.get("error"))
        return NeutralMessage(Role.ASSISTANT, (tools,))
    if kind in _BOOKKEEPING:
        return NeutralMessage(_BOOKKEEPING[kind], (Reasoning(f"[{kind}]"),))
    # This one result names its call by `id`, though the call itself has a `call_id`.
    key = "id" if kind == "local_shell_call_output" and item.get("call_id") is None else "call_id"
    by_provider = item.get(key) is None
    if kind.endswith("_call_output") or kind == "program_output" or (kind == "tool_search_output" and not by_provider):
        failed = item.get("status") == "failed"
        return NeutralMessage(Role.TOOL, (ToolResult(identifier(item, key, of), _output(item, of), is_error=failed),))
    if not by_provider and (kind.endswith("_call") or kind == "program"):
        given = _without_own(item)
        name = given.pop("name") if isinstance(given.get("name"), str) else ""
        name = name or kind.removesuffix("_call")
        call = ToolCall(identifier(item, "call_id", of), name, cost.compact(given))
        return NeutralMessage(Role.ASSISTANT, (call,))
    named = kind.endswith("_call") or kind in _HOSTED or isinstance(item.get("id"), str)
    if "role" in item or kind in _PARTS or not named:
        raise InvalidMessage(
            f"a responses item has the unknown type {shown(kind)} and no id that the API gave it; known are message, "
            "reasoning, compaction, function_call, function_call_output, and other tools' *_call and *_call_output"
        )
    return NeutralMessage(Role.ASSISTANT, (_hosted(item, own(kind, of, RESPONSES)),))


def _hosted(item: Payload, kind: str) -> Hosted:
    """An item of a tool that the API ran itself, whether it is known or not."""
    name = ".".join(filter(None, map(words_of, (item.get("server_label"), item.get("name")))))
    given = {key: item[key] for key in _GIVEN if key in item}
    if isinstance(action := item.get("action"), dict):
        found = cast("Payload", action)
        given["sources"] = found.get("sources")
        item = {**item, "action": {key: value for key, value in found.items() if key != "sources"}}
    if kind == "image_generation_call" and given.get("result"):
        given["result"] = {"type": "image"}
    asked = {key: value for key, value in item.items() if key not in _OWN_FIELDS and value not in (None, "", [], {})}
    arguments = asked["arguments"] if isinstance(asked.get("arguments"), str) else cost.compact(asked)
    called = None if kind == "tool_search_output" else arguments
    failed = bool(given.get("error")) or item.get("status") == "failed"
    verb = "asks to call" if kind == "mcp_approval_request" else "calls"
    return ran(name or kind.removesuffix("_call"), called, words_of(given), failed=failed, verb=verb)


def _without_own(item: Payload) -> Payload:
    """What a call, or a result, of another tool has besides the fields that each of them has."""
    return {key: item[key] for key in item if key not in ("type", "id", "call_id", "status")}


def _output(item: Payload, of: str) -> tuple[Shown, ...]:
    """The output of another tool: a text, a screenshot, or the outputs of shell commands; of a kind that is not known,
    all it has."""
    key = next((key for key in ("output", "result") if item.get(key) is not None), "")
    rest = _without_own({**item, key: None}) if is_unknown_result(item["type"]) else {}
    parts: list[Payload] = []
    values = _without_parts([item.get(key), {name: one for name, one in rest.items() if one is not None}], parts)
    texts = [one if isinstance(one, str) else cost.compact(one) for one in values if one not in (None, {})]
    return (*map(Text, texts), *_parts(parts, of))


def _without_parts(value: Any, parts: list[Payload]) -> Any:
    """A JSON value without the texts, pictures, files and sounds of this API, which go into `parts`."""
    if isinstance(value, list):
        return [_without_parts(one, parts) for one in cast("list[Any]", value) if not _are_parts(one, parts)]
    if isinstance(value, dict):
        fields = cast("Payload", value).items()
        return {name: _without_parts(one, parts) for name, one in fields if not _are_parts(one, parts)}
    return value


def _are_parts(value: Any, parts: list[Payload]) -> bool:
    """Whether it is a part or a list of parts; they go into `parts`."""
    listed = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not listed or not all(map(_is_part, listed)):
        return False
    parts += listed
    return True


def _is_part(value: Any) -> bool:
    part = cast("Payload", value) if isinstance(value, dict) else {}
    is_text = part.get("type") in _TEXTS and isinstance(part.get("text"), str) and part.keys() <= _OF_TEXTS
    return is_text or part.get("type") in cost.MEDIA


def _parts(value: str | list[Payload], of: str) -> tuple[Shown, ...]:
    if isinstance(value, str):
        return (Text(value),)
    return tuple(
        one for part in value for one in (_part(part, of), sources(part.get("annotations"))) if one is not None
    )


def _part(part: Payload, of: str) -> Shown:
    kind: str = part["type"]
    match kind:
        case "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text":
            return Text(text(part, "text", f"a {kind} part of {of}"))
        case "refusal":
            return Text(text(part, "refusal", f"a refusal part of {of}"))
        case "input_image" | "computer_screenshot":
            url = part.get("image_url")
            return Image(url, part.get("detail")) if isinstance(url, str) else OtherPart("image")
        case "input_file":
            url, name = part.get("file_data") or part.get("file_url"), words_of(part.get("filename"))
            return file_of(url, name) if isinstance(url, str) else OtherPart("file", name)
        case "input_audio":
            return sound(part)
        case _:
            return OtherPart(own(kind, of, RESPONSES), words_of(part))


def _written(exchange: Exchange) -> list[Payload]:
    items: list[Payload] = []
    after: list[Payload] = []
    types: dict[str, str] = {}
    for message in exchange.speakers:
        if message.wire == RESPONSES:
            items.append(message.payload)
            types |= dict.fromkeys(message.calls, str(message.payload.get("type")))
            continue
        for says in in_order(converted(message)):
            record = record_of(says)
            (after if types else items).extend([{"role": "user", "content": record}] if record else ())
            items += (written := _items(says))
            types |= {item["call_id"]: item["type"] for item in written if "call_id" in item}
    for message in exchange.results:
        if message.wire == RESPONSES and not _of_function(item := message.payload, types):
            items.append(item)
            continue
        says = converted(message)
        items += (_result(result, types.get(result.call_id, "function_call")) for result in says.results)
        after += _items(NeutralMessage(Role.USER, says.shown))
    return [*items, *(_placeholder(call, types[call]) for call in exchange.missing), *after]


def _of_function(item: Payload, types: Mapping[str, str]) -> bool:
    """Whether it is another kind's result for a call that redaction has made a function's."""
    call, kind = item.get("call_id"), str(item.get("type"))
    return types.get(str(call)) == "function_call" and kind.endswith("_call_output") and kind != "function_call_output"


def _items(says: NeutralMessage) -> list[Payload]:
    """A message from another format, without its tool results: the message, then its calls.

    What an assistant says becomes one text, because parts would need ids that only the API assigns.
    """
    content = (
        "\n".join(filter(None, map(readable, says.shown))) if says.role is Role.ASSISTANT else _content(says.shown)
    )
    messages: list[Payload] = [{"role": says.role.value, "content": content}] if says.shown else []
    return [*messages, *map(_call, says.calls)]


def _content(parts: Sequence[Shown]) -> str | list[Payload]:
    written = [_written_part(part) for part in parts]
    return written[0]["text"] if len(written) == 1 and "text" in written[0] else written


def _written_part(part: Shown) -> Payload:
    match part:
        case Image():
            return _image(part)
        case File(url, name) if url.startswith("http"):
            return {"type": "input_file", "file_url": url}
        case File(url, name) | FileText(url=url, name=name):
            return {"type": "input_file", "filename": name or "file", "file_data": url}
        case _:
            return {"type": "input_text", "text": readable(part)}


def _image(image: Image) -> Payload:
    return {"type": "input_image", "image_url": image.url, "detail": image.detail or "auto"}


def _call(call: ToolCall) -> Payload:
    if call.custom:
        return {"type": "custom_tool_call", "call_id": call.id, "name": call.name, "input": call.arguments}
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}


def _result(result: ToolResult, call_type: str) -> Payload:
    """The result of a call of this type; of the API's own tools in the shape that each has."""
    parts = result.parts_with_error_mark
    words = "\n".join(readable(part) for part in parts if not isinstance(part, Image))
    answer: Payload = {"call_id": result.call_id, "output": words}
    match call_type:
        case "computer_call":
            seen = next((part.url for part in parts if isinstance(part, Image)), NO_SCREENSHOT)
            answer["output"] = {"type": "computer_screenshot", "image_url": seen}
        case "shell_call":
            outcome = {"type": "exit", "exit_code": int(result.is_error)}
            answer["output"] = [{"stdout": words, "stderr": "", "outcome": outcome}]
        case "local_shell_call":
            answer = {"id": result.call_id, "output": words}
        case "apply_patch_call":
            answer["status"] = "failed" if result.is_error else "completed"
        case "program":
            status = "incomplete" if result.is_error else "completed"
            answer = {"id": result.call_id, "call_id": result.call_id, "result": words, "status": status}
        case "tool_search_call":
            return {"type": "tool_search_output", "call_id": result.call_id, "execution": "client", "tools": []}
        case "function_call" | "custom_tool_call":
            answer["output"] = _content(parts) if parts else ""
        case _:
            pass
    return {"type": f"{call_type}_output", **answer}


def _placeholder(call: str, call_type: str) -> Payload:
    match call_type:
        case "shell_call":
            output = [{"stdout": "", "stderr": NO_RESULT, "outcome": {"type": "timeout"}}]
            return {"type": "shell_call_output", "call_id": call, "output": output}
        case "apply_patch_call":
            return {"type": "apply_patch_call_output", "call_id": call, "output": NO_RESULT, "status": "failed"}
        case "program":
            return {**_result(ToolResult(call, (Text(NO_RESULT),)), call_type), "status": "incomplete"}
        case _:
            return _result(ToolResult(call, (Text(NO_RESULT),)), call_type)
