"""Reads the fields of an item with the expected types. An error names the item, the field and the value."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, cast

from hitherto.core.log.message import (
    ANTHROPIC,
    CHAT,
    DEPTH,
    LONGEST_CALL_ID,
    RESPONSES,
    Payload,
    containers,
    storable,
    to_json,
)
from hitherto.core.scope import LONGEST_NAME
from hitherto.errors import InvalidMessage
from hitherto.wire.cost import compact

WIDTH = 80
"""The most characters of a value that an error shows."""

_PLACEHOLDER = "__fake_id__"

_ONLY = {
    **dict.fromkeys(("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"), ANTHROPIC),
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), RESPONSES),
    **dict.fromkeys(("image_url", "file"), CHAT),
}
"""Types of parts that no other format has."""


def item_of(payload: object) -> tuple[str, Payload]:
    """A caller's item as the JSON text to store, and that text parsed.

    Raises InvalidMessage for anything but a JSON object: no mapping, a value that JSON cannot express, a key that is
    not text (JSON would change it), or nesting beyond DEPTH.
    """
    if not isinstance(payload, Mapping):
        hint = "its model_dump(exclude_none=True)" if hasattr(payload, "model_dump") else "user(…) or a dict"
        hint += ", several one by one: append(*messages)" if type(payload) in (list, tuple) else ""
        raise InvalidMessage(f"a message is a mapping and this is {_kind(payload)}; pass {hint}")
    payload = cast("Mapping[str, Any]", payload)
    for container, depth in containers(payload):
        if depth > DEPTH:
            raise InvalidMessage(f"the message is nested deeper than {DEPTH} levels; pass a part of it as JSON text")
        if isinstance(container, Mapping):
            for key in cast("Mapping[object, object]", container):
                if not isinstance(key, str):
                    raise InvalidMessage(f"the message has the key {shown(key)}, which is not text; JSON has no other")
    raw = to_json(dict(payload), what="the message")
    return raw, json.loads(raw)


def own_id(item: Mapping[str, Any], wire: str) -> Any:
    """The item's own id, whatever it is; None where it has none: what the OpenAI Agents SDK puts in its place is none,
    and a reference, or the result of a local shell, has that of another item."""
    kind = item.get("type", "message" if "role" in item else "item_reference")
    others = kind == "item_reference" or (kind == "local_shell_call_output" and item.get("call_id") is None)
    return None if item.get("id") == _PLACEHOLDER or (wire == RESPONSES and others) else item.get("id")


def text(item: Payload, key: str, of: str) -> str:
    """The required text at `key`; it may be empty. `of` names the item in the error."""
    value = item.get(key)
    if not isinstance(value, str):
        raise InvalidMessage(f"{of} needs {key} as text, and has {_found(item, key)}")
    return value


def identifier(item: Payload, key: str, of: str) -> str:
    """The required id or name at `key`: not empty, not too long, and with no characters that a store cannot keep."""
    value = item.get(key)
    if not isinstance(value, str) or not value:
        raise InvalidMessage(f"{of} needs {key} as a text that is not empty, and has {_found(item, key)}")
    most = LONGEST_NAME if key == "name" else LONGEST_CALL_ID
    if len(value) > most:
        raise InvalidMessage(f"{of} has {_found(item, key)} of {len(value):,} characters; at most {most:,} are kept")
    if storable(value) != value:
        raise InvalidMessage(f"{of} has {_found(item, key)} with NUL or a lone surrogate in it; give it a plain one")
    return value


def call_id(item: Payload, key: str, of: str) -> str:
    """The id of a call at `key`, "" where there is none: some servers send none."""
    return "" if item.get(key) in (None, "") else identifier(item, key, of)


def call_arguments(item: Payload, key: str, of: str) -> str:
    """A call's arguments at `key` as text. Some servers send an object where its text is due, or the other way around,
    and nothing for none."""
    value = item.get(key)
    return text(item, key, of) if isinstance(value, str) else compact({} if value is None else mapping(item, key, of))


def mapping(item: Payload, key: str, of: str) -> Payload:
    """The required object at `key`."""
    value = item.get(key)
    if not isinstance(value, dict):
        raise InvalidMessage(f"{of} needs {key} as an object, and has {_found(item, key)}")
    return cast("Payload", value)


def objects(item: Payload, key: str, of: str) -> list[Payload]:
    """The required list of objects at `key`; it may be empty."""
    value = item.get(key)
    if not isinstance(value, list):
        raise InvalidMessage(f"{of} needs {key} as a list, and has {_found(item, key)}")
    found = cast("list[Any]", value)
    for one in found:
        if not isinstance(one, dict):
            raise InvalidMessage(f"{of} has {shown(one)} in its {key}; each entry must be an object")
    return cast("list[Payload]", found)


def content(item: Payload, of: str, key: str = "content") -> str | list[Payload]:
    """The required content at `key`: a text, or a list, not empty, of parts with a type."""
    value = item.get(key)
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise InvalidMessage(f"{of} needs {key} as text or a list of parts, and has {_found(item, key)}")
    parts = objects(item, key, of)
    if not parts:
        raise InvalidMessage(f"{of} has an empty list as its {key}; give at least one part, or a text")
    for part in parts:
        text(part, "type", f"a part of {of}")
    return parts


def transcript(item: Payload) -> str:
    """The words of a model's spoken answer in chat completions; "" where they are not known."""
    audio = item.get("audio")
    words = cast("Payload", audio).get("transcript") if isinstance(audio, dict) else None
    return words if isinstance(words, str) and words.strip() else ""


def citations_of(value: object) -> str:
    """What a text cites, a line each: titles, addresses, files and quotes, not where they stand. "" where `value` is no
    list, but says whether to cite."""
    return words_of(cast("list[object]", value), numbers=False) if isinstance(value, list) else ""


def words_of(value: object, *, numbers: bool = True) -> str:
    """What there is to read in a JSON value: its texts and `numbers`, in their order, a line each, without keys,
    encoded data, and what only its API reads; and `[image]`, where it has pictures. An API's own objects have a type.
    In others, such as a tool gives, ids and the like are words too, and so are all `attributes`, with their names."""
    found: list[str] = []
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, str):
            found += [one] if one.strip() and not _is_data(one) else []
        elif isinstance(one, int | float) and not isinstance(one, bool):
            found += [json.dumps(one)] if numbers else []
        elif isinstance(one, Mapping):
            fields = [*cast("Mapping[str, object]", one).items()]
            found += ["[image]"] if ("type", "image") in fields else []
            unread = _TECHNICAL if "type" in one else _OF_FILE_SEARCH if "file_id" in one else _ALWAYS_TECHNICAL
            todo += [_with_names(key, inner, "type" in one) for key, inner in reversed(fields) if key not in unread]
        elif isinstance(one, list):
            todo += reversed(cast("list[object]", one))
    return "\n".join(dict.fromkeys(found))


def _with_names(key: str, value: object, typed: bool) -> object:
    """The value at `key`, with the names of what would say nothing without: truth values and attributes. Of what an
    API's own text cites, what `citations_of` says."""
    if typed and key in ("annotations", "citations"):
        return citations_of(value)
    if isinstance(value, bool) and not typed:
        return f"{key}: {json.dumps(value)}"
    if key != "attributes" or not isinstance(value, Mapping):
        return value
    fields = cast("Mapping[str, object]", value).items()
    return [f"{name}: {one if isinstance(one, str) else compact(one)}" for name, one in fields]


def _is_data(words: str) -> bool:
    """Whether a text is encoded: nobody writes a word of this length."""
    return _DATA_URL.match(words) is not None or (len(words) > _LONGEST_WORD and _DATA.fullmatch(words) is not None)


_LONGEST_WORD = 200
_DATA = re.compile(r"[A-Za-z0-9+/=_-]+")
_DATA_URL = re.compile(r"data:[^,\s]*,")

_ALWAYS_TECHNICAL = {
    *("type", "call_id", "tool_use_id", "file_id", "container_id", "approval_request_id", "vector_store_id"),
    *("caller", "cache_control", "prompt_cache_breakpoint", "logprobs", "media_type"),
    *("encrypted_content", "encrypted_index", "encrypted_stdout", "signature", "fingerprint"),
}
"""Fields whose texts nobody reads; of an API's own objects, and of what a file search found, these too:"""
_TECHNICAL = {*_ALWAYS_TECHNICAL, "id", "status", "role", "detail"}
_OF_FILE_SEARCH = {*_ALWAYS_TECHNICAL, "score"}


def text_in(url: str) -> str:
    """The text that a data: URL has in base64; "" where it has none, or one that is no UTF-8."""
    head, _, data = url.partition(",")
    if not head.startswith("data:text/") or not head.endswith(";base64"):
        return ""
    try:
        return base64.b64decode("".join(data.split()), validate=True).decode("utf-8-sig")
    except ValueError:
        return ""


def own(kind: str, of: str, wire: str) -> str:
    """`kind`, if parts of this type can occur in `wire`. Raises InvalidMessage for a type that only another format has:
    read as an unknown part, its call or its text would be lost."""
    owner = _ONLY.get(kind, wire)
    if owner != wire:
        raise InvalidMessage(f"{of} has a part of type {kind!r}, which only {owner} has; append it with wire={owner!r}")
    return kind


def shown(value: object) -> str:
    """`value` for an error message, in one short line."""
    seen = ascii(value)
    return seen if len(seen) <= WIDTH else f"{seen[:WIDTH]}..."


def _found(item: Payload, key: str) -> str:
    return f"{key}={shown(item[key])}" if key in item else "none"


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__
