"""What is sent of a message: APIs refuse some of what they sent themselves, and what servers and callers made up.

The log keeps each item as it came. Here it is mended, for every format, where a request is made of it. An item that
needs no mending stays the same object. The bounds are those of OpenAI and Anthropic; other servers take more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from math import isfinite
from typing import Any, Final, TypeVar, cast

from hitherto.core.log.message import ANTHROPIC, CHAT, DEPTH, RESPONSES, Payload, too_deep
from hitherto.wire.answers import EMPTY
from hitherto.wire.cost import compact
from hitherto.wire.fields import call_arguments, transcript
from hitherto.wire.neutral import readable, sound
from hitherto.wire.sealed import kind_of, leading_on

Used = dict[tuple[str, str], int]
"""The ids in a request so far, of calls ("call") and of Responses' items ("item"), and how often each was given."""

_LONGEST_ID: Final = {CHAT: 40, RESPONSES: 64}
"""Characters of a call's id, by the errors of OpenAI ("string too long"). Anthropic has no bound."""

_NO_ID: Final = "call_without_id"
"""The id that is sent for a call without one."""

_NAMELESS: Final = ("call", "")

_LONGEST_TOOL: Final = {CHAT: 64, RESPONSES: 128, ANTHROPIC: 200}
_LONGEST_SPEAKER: Final = 64
_LONGEST_ITEM_ID: Final = 64

_BEGINS: Final = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "web_search_call": "ws",
}
"""How the ids of Responses' items begin."""

_FUNCTIONS: Final = {"function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output"}
"""Responses' items about calls of functions and custom tools."""

_WITHOUT_NULLS: Final = {"message", "reasoning", *_FUNCTIONS}
"""Responses' items of which no field must be there as null, but for `call_id`."""

_PLAIN: Final = {"role", "content"}
_CHAT_RESULT: Final = {"role", "tool_call_id", "content"}
_RESPONSES_RESULT: Final = {"type", "call_id", "output"}

_TEXTS: Final = {"text", "input_text", "output_text"}
_SHOWN: Final = {"text", "image", "document"}
"""Blocks of Anthropic's in which somebody says something."""

_SYSTEM_TAG: Final = "system-message"
"""Between two of these stands a system message of the log in items for Anthropic."""

_SAID: Final = ("text", "content", "title", "context", "source", "data")
_ENCODED: Final = ("image", "base64")
_TAG: Final = re.compile(r"<(?=\s*/?\s*system[\s_-]?message\b)", re.IGNORECASE)

Json = TypeVar("Json")

_Rename = Callable[[str], str]


def sendable(items: Sequence[Payload], wire: str, *, halves: bool, framework: bool) -> list[Payload]:
    """The items of whole groups as the API takes them: ids, names and arguments in its form, no empty texts, no fields
    that it only sends, with `halves` no halves of characters. A message of the assistant that says nothing is left out,
    and so are thoughts that lead to nothing. With `framework` the items of Responses keep their own ids and fields: the
    OpenAI Agents SDK compares them with what it has, and takes out what the API refuses."""
    mend = _responses_shape if framework and wire == RESPONSES else _MEND[wire]
    found: list[Payload] = []
    for given in items:
        item = encodable(given) if halves else given
        if is_plain_message(item, wire) or _is_plain_result(item):
            found.append(item)
        elif (mended := mend(item)) is not None:
            found.append(item if mended == item else mended)
    return leading_on(found, wire)


def distinct(items: list[Payload], used: Used, wire: str, *, framework: bool) -> list[Payload]:
    """The same items with ids that are not in `used`, which gets those of these items: some models use the ids of calls
    again in later turns, and APIs want each once in a request. A second `call_0` becomes `call_0_2`, in its result too.
    A call without an id gets one. A second item of Responses gets a number too, or if it is reasoning, which the API
    knows by its id, none. The same list, where nothing changes."""
    given = [one for item in items if not _is_plain(item) for one in _given(item, wire, framework=framework)]
    if not given:
        return items
    if _NAMELESS not in given and used.keys().isdisjoint(given) and len({*given}) == len(given):
        used.update(dict.fromkeys(given, 1))
        return items
    now: dict[str, str] = {}

    def call(name: str) -> str:
        now[name] = _unused("call", name or _NO_ID, _LONGEST_ID.get(wire), used)
        return now[name]

    def named(item: Payload) -> Payload:
        own = item.get("id")
        if ("item", own) not in _given(item, wire, framework=framework):
            return item
        if ("item", own) in used and kind_of(item) == "reasoning":
            return {key: value for key, value in item.items() if key != "id"}
        return {**item, "id": _unused("item", cast("str", own), _LONGEST_ITEM_ID, used)}

    return [_with_calls(named(item), wire, call, lambda name: now.get(name, name)) for item in items]


def _is_plain(item: Payload) -> bool:
    """Whether it is a role and a text: most are."""
    return item.keys() == _PLAIN and isinstance(item["content"], str)


def is_plain_message(item: Payload, wire: str) -> bool:
    """Whether it is a role and a text, in which nothing is to be mended."""
    content = item.get("content")
    if item.keys() != _PLAIN or not isinstance(content, str) or not content or content.isspace():
        return False
    return item["role"] != "tool" and (wire != ANTHROPIC or (item["role"] != "system" and not _TAG.search(content)))


def _is_plain_result(item: Payload) -> bool:
    """Whether it is a text for a call with a short id, as OpenAI's formats have it."""
    keys = item.keys()
    if keys == _CHAT_RESULT:
        return isinstance(item["content"], str) and 0 < len(item["tool_call_id"] or "") <= _LONGEST_ID[CHAT]
    given = keys == _RESPONSES_RESULT and isinstance(item["output"], str)
    return given and 0 < len(item["call_id"] or "") <= _LONGEST_ID[CHAT]


def _unused(kind: str, name: str, most: int | None, used: Used) -> str:
    """The name, or where it is used, with the next number, in at most so many characters; and it is used from now."""
    new = name
    while (kind, new) in used:
        used[kind, name] += 1
        end = f"_{used[kind, name]}"
        new = f"{name if most is None else name[: most - len(end)]}{end}"
    used[kind, new] = 1
    return new


def safe_id(call: str, wire: str) -> str:
    """A call's id as the API takes it: always the same for an id, and another for another. Anthropic allows few
    characters; others become `_hex_`."""
    call = call or _NO_ID
    if wire == ANTHROPIC:
        return re.sub("[^a-zA-Z0-9_-]", lambda found: f"_{ord(found[0]):x}_", call)
    most = _LONGEST_ID[wire]
    return call if len(call) <= most else f"{call[: most - 9]}_{sha256(call.encode()).hexdigest()[:8]}"


def arguments_of(written: str) -> Payload:
    """A call's arguments as an object; a text that is no JSON object goes under the key `arguments`."""
    found = _object(written) if written.strip() else {}
    return {"arguments": written} if found is None else found


def _object(written: str) -> Payload | None:
    """The JSON object that a text is; None if it is none."""
    try:
        value: object = _STRICT.decode(written)
    except (ValueError, RecursionError):
        return None
    deep = written.count("{") + written.count("[") > DEPTH and too_deep(value)
    return cast("Payload", value) if isinstance(value, dict) and not deep else None


def _finite(number: str) -> float:
    """Raises ValueError for what JSON cannot say: infinity, or no number at all."""
    if not isfinite(value := float(number)):
        raise ValueError(number)
    return value


_STRICT: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def _json_object(written: str) -> str:
    """Servers that read a call's arguments want the text of a JSON object. OpenAI takes any text."""
    return written if _object(written) is not None else compact(arguments_of(written))


def encodable(value: Json) -> Json:
    """The JSON value with U+FFFD for each half of a character, which the SDKs cannot send; the same object if it has
    none."""
    text = compact(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(re.sub("[\ud800-\udfff]", "\ufffd", text))
    return value


def _tool(name: str, wire: str) -> str:
    return re.sub("[^a-zA-Z0-9_-]", "_", name)[: _LONGEST_TOOL[wire]]


def _given(item: Payload, wire: str, *, framework: bool) -> list[tuple[str, str]]:
    """The ids that an item gives to its calls and to itself."""
    match wire:
        case "openai.chat":
            return [("call", one.get("id") or "") for one in item.get("tool_calls") or ()]
        case "anthropic":
            content = item["content"]
            blocks = cast("list[Payload]", content) if isinstance(content, list) else ()
            return [("call", block.get("id") or "") for block in blocks if block["type"] == "tool_use"]
        case _:
            kind = kind_of(item)
            call = None if kind.endswith("_output") else _call_id(item)
            named = (
                not framework
                and _call_key(item) != "id"
                and kind != "item_reference"
                and isinstance(item.get("id"), str)
            )
            return [*([] if call is None else [("call", call)]), *([("item", item["id"])] if named else ())]


def _call_key(item: Payload) -> str:
    """The field of Responses' items that names a call: one kind of result has it elsewhere."""
    return "id" if item.get("type") == "local_shell_call_output" and item.get("call_id") is None else "call_id"


def _call_id(item: Payload) -> str | None:
    """The id of the call that an item of Responses makes or answers, "" where it has none; None if it is about no
    call."""
    own, kind = item.get(_call_key(item)), kind_of(item)
    tools_own = kind == "function_call_output" and item.get("name") is not None
    return own if isinstance(own, str) else "" if kind in _FUNCTIONS and not tools_own else None


def _with_calls(item: Payload, wire: str, call: _Rename, answered: _Rename) -> Payload:
    """The item with other ids of the calls that it makes, and of those that it answers."""
    match wire:
        case "openai.chat" if item.get("tool_calls"):
            return {**item, "tool_calls": [{**one, "id": call(one.get("id") or "")} for one in item["tool_calls"]]}
        case "openai.chat" if item.get("role") == "tool":
            return {**item, "tool_call_id": answered(item.get("tool_call_id") or "")}
        case "anthropic" if isinstance(item["content"], list):
            blocks = cast("list[Payload]", item["content"])
            return {**item, "content": [_with_call(one, call, answered) for one in blocks]}
        case "openai.responses" if (own := _call_id(item)) is not None:
            rename = answered if kind_of(item).endswith("_output") else call
            return {**item, _call_key(item): rename(own)}
        case _:
            return item


def _with_call(block: Payload, call: _Rename, answered: _Rename) -> Payload:
    match block["type"]:
        case "tool_use":
            return {**block, "id": call(block.get("id") or "")}
        case "tool_result":
            return {**block, "tool_use_id": answered(block.get("tool_use_id") or "")}
        case _:
            return block


def _chat(item: Payload) -> Payload | None:
    found = {key: value for key, value in item.items() if key != "id"}
    if isinstance(content := found.get("content"), list):
        parts = _without_empty(cast("list[Payload]", content), str)
        found["content"] = parts or ("" if found.get("role") != "assistant" else None)
        if found.get("role") == "function":
            found["content"] = "\n".join(str(part.get("text", "")) for part in parts)
    if isinstance(name := found.get("name"), str):
        own = _tool(name, CHAT) if found.get("role") == "function" else re.sub(r"[\s<|\\/>]", "_", name)
        found["name"] = own[:_LONGEST_SPEAKER]
    if found.get("name") in ("", None):
        found.pop("name", None)
    if found.get("role") == "tool":
        found["tool_call_id"] = safe_id(found.get("tool_call_id") or "", CHAT)
    return _chat_answer(found) if found.get("role") == "assistant" else found


def _chat_answer(item: Payload) -> Payload | None:
    item.pop("parsed", None)
    item.pop("annotations", None)
    for key in ("refusal", "audio", "function_call", "tool_calls"):
        if not item.get(key):
            item.pop(key, None)
    if spoken := transcript(item):  # the API refuses the id of a sound that expired, or that another model made
        del item["audio"]
        own: Any = item.get("content")
        before = [{"type": "text", "text": own}] if own and isinstance(own, str) else own
        item["content"] = [*before, {"type": "text", "text": spoken}] if before else spoken
    elif isinstance(audio := item.get("audio"), dict):
        item["audio"] = {"id": cast("Payload", audio).get("id")}
    if "tool_calls" in item:
        item["tool_calls"] = [_chat_call(call) for call in item["tool_calls"]]
    if "function_call" in item:
        item["function_call"] = _function(item["function_call"])
    said = item.get("content") or item.keys() & {"refusal", "audio", "function_call", "tool_calls"}
    return item if said else None


def _chat_call(call: Payload) -> Payload:
    found: Payload = {"type": "function", **call, "id": safe_id(call.get("id") or "", CHAT)}
    found.pop("index", None)  # of a stream
    if found["type"] == "custom":
        found["custom"] = {**found["custom"], "name": _tool(found["custom"]["name"], CHAT)}
    elif found.get("function") is not None:
        found["function"] = _function(found["function"])
    else:
        found.pop("function", None)  # SDKs' objects have it, without a value
    return found


def _function(call: Payload) -> Payload:
    found = {
        **call,
        "name": _tool(call["name"], CHAT),
        "arguments": _json_object(call_arguments(call, "arguments", "a call")),
    }
    found.pop("parsed_arguments", None)
    return found


def _responses(item: Payload) -> Payload | None:
    kind = kind_of(item)
    found = {key: value for key, value in item.items() if key not in ("provider_data", "parsed_arguments")}
    if kind in _WITHOUT_NULLS:
        found = {key: value for key, value in found.items() if value is not None or key == "call_id"}
    if kind == "reasoning":
        found.pop("status", None)
    elif kind == "message" and item.get("role") == "assistant" and isinstance(parts := item["content"], list):
        found["content"] = [_without_nulls(part) for part in cast("list[Payload]", parts)]
    if kind == "message":
        found = with_name_in_words(found, "input_text")
    for key in ("content", "output"):
        if isinstance(parts := found.get(key), list):
            found[key] = [_without_sound(part) for part in cast("list[Payload]", parts)]
    if isinstance(own := found.get("id"), str) and kind != "item_reference" and _call_key(item) != "id":
        begins = _BEGINS.get(kind, "")
        safe = re.sub("[^a-zA-Z0-9_-]", "_", own if own.startswith(begins) else f"{begins}_{own}")[:_LONGEST_ITEM_ID]
        found["id"] = safe
        if kind == "reasoning" and safe != own:
            del found["id"]
    return _responses_shape(found)


def with_name_in_words(item: Payload, text_type: str) -> Payload:
    """The message with its speaker's name in front of its words, for an API that has no field for it; `text_type` is
    that of its text parts."""
    found, name, content = _without(item, "name"), item.get("name"), item.get("content")
    if not isinstance(name, str) or not name.strip() or not content:
        return found
    name = " ".join(name.split())
    if isinstance(content, str):
        return {**found, "content": f"{name}: {content}"}
    parts = list(cast("list[Payload]", content))
    at = next((at for at, part in enumerate(parts) if part.get("type") in _TEXTS), None)
    if at is None:
        return {**found, "content": [{"type": text_type, "text": f"{name}:"}, *parts]}
    parts[at] = {**parts[at], "text": f"{name}: {parts[at].get('text', '')}"}
    return {**found, "content": parts}


def _without_sound(part: Payload) -> Payload:
    """The API takes no sound. The OpenAI Agents SDK does, for other APIs."""
    return {"type": "input_text", "text": readable(sound(part))} if part.get("type") == "input_audio" else part


def _responses_shape(item: Payload) -> Payload | None:
    """What is mended for a framework too."""
    kind = kind_of(item)
    found: Payload = dict(item)
    if (call := _call_id(found)) is not None:
        # The result of a local shell has the call's id for its own, of which the API takes fewer characters.
        found[_call_key(found)] = safe_id(
            safe_id(call, ANTHROPIC) if kind.startswith("local_shell") else call, RESPONSES
        )
    match kind:
        case "function_call" | "custom_tool_call":
            found["name"] = _tool(item["name"], RESPONSES)
            if kind == "function_call":
                found["arguments"] = _json_object(call_arguments(item, "arguments", "a call"))
        case "message":
            return _responses_message(found)
        case _:
            pass
    return found


def _responses_message(item: Payload) -> Payload | None:
    answer = item.get("role") == "assistant"
    if isinstance(content := item["content"], list):
        parts = _without_empty(cast("list[Payload]", content), str)
        item["content"] = [_responses_part(part, answer=answer) for part in parts] or ""
    return None if answer and not item["content"] else item


def _responses_part(part: Payload, *, answer: bool) -> Payload:
    if part["type"] in _TEXTS:
        return {**part, "type": "output_text" if answer else "input_text"}
    return part


def _without_nulls(part: Payload) -> Payload:
    return {key: value for key, value in part.items() if value is not None and key != "parsed"}


def _anthropic(item: Payload) -> Payload | None:
    if isinstance(item["content"], str) or any(one["type"] in _SHOWN for one in cast("list[Payload]", item["content"])):
        item = with_name_in_words(item, "text")
    found = {key: item[key] for key in ("role", "content")}
    if found["role"] == "system":
        return _in_tags(found["content"])
    if found["role"] == "user":
        found["content"] = _without_tags(found["content"])
    content = found["content"]
    if isinstance(content, str):
        filled = bool(content.strip())
    else:
        blocks = [_block(one) for one in _without_empty(cast("list[Payload]", content), str.strip) if _accepted(one)]
        blocks.sort(key=lambda one: item["role"] == "user" and one["type"] != "tool_result")
        found["content"] = blocks
        filled = bool(blocks)
    if filled:
        return found
    return None if item["role"] == "assistant" else {**found, "content": EMPTY}


def _in_tags(content: str | list[Payload]) -> Payload:
    """A system message as a user's: not all models take one among the others."""
    safe = _without_tags(content)
    first, last = f"<{_SYSTEM_TAG}>", f"</{_SYSTEM_TAG}>"
    if isinstance(safe, str):
        return {"role": "user", "content": f"{first}\n{safe}\n{last}"}
    return {"role": "user", "content": [{"type": "text", "text": first}, *safe, {"type": "text", "text": last}]}


def _without_tags(content: Any) -> Any:
    """The same with a backslash in what would pass for the tags of a system message, in results of tools and documents
    too."""
    if isinstance(content, str):
        return _TAG.sub(r"<\\", content)
    if isinstance(content, list):
        return [_without_tags(one) for one in cast("list[Any]", content)]
    if isinstance(content, dict) and (block := cast("Payload", content)).get("type") not in _ENCODED:
        return {key: _without_tags(one) if key in _SAID else one for key, one in block.items()}
    return cast("object", content)


def _accepted(block: Payload) -> bool:
    """Other servers think without signing it, and Anthropic takes no thoughts that are not signed."""
    return block["type"] != "thinking" or bool(block.get("signature"))


def _block(block: Payload) -> Payload:
    found = dict(block)
    match block["type"]:
        case "text":
            found.pop("parsed_output", None)
            if isinstance(cited := block.get("citations"), list):
                whole = [cast("Payload", one) for one in cast("list[object]", cited) if isinstance(one, dict)]
                found["citations"] = [_without(one, "file_id") for one in whole]
        case "tool_use":
            found |= {"id": safe_id(block.get("id") or "", ANTHROPIC), "name": _tool(block["name"], ANTHROPIC)}
            if not isinstance(block.get("input"), dict):
                found["input"] = arguments_of(call_arguments(block, "input", "a call"))
        case "tool_result":
            found["tool_use_id"] = safe_id(block.get("tool_use_id") or "", ANTHROPIC)
            if isinstance(content := block.get("content"), list):
                found["content"] = _without_empty(cast("list[Payload]", content), str.strip)
            if not found.get("content") and block.get("is_error"):
                found["content"] = "[error]"
            elif found.get("content") == []:
                del found["content"]
        case _:
            pass
    return found


def _without(item: Payload, field: str) -> Payload:
    return {key: value for key, value in item.items() if key != field}


def _without_empty(parts: list[Payload], words: Callable[[str], str]) -> list[Payload]:
    return [one for one in parts if one.get("type") not in _TEXTS or words(str(one.get("text", "")))]


_MEND: Final[dict[str, Callable[[Payload], Payload | None]]] = {
    CHAT: _chat,
    RESPONSES: _responses,
    ANTHROPIC: _anthropic,
}
