"""Pictures and files in a request: APIs refuse more of them than so many, and requests of more than so many bytes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from hitherto.core.context.budget import cut
from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Message, Payload, to_json
from hitherto.wire.neutral import NO_SCREENSHOT
from hitherto.wire.redaction import is_unknown_result

_MB: Final = 1024 * 1024

_MOST: Final = {CHAT: 1_500, RESPONSES: 1_500, ANTHROPIC: 100}
"""Pictures in a request. Sources: OpenAI, "Images and vision"; Anthropic, "Vision", for models whose window has 200,000
tokens: those with more take 600."""

_LARGEST: Final = {CHAT: 500 * _MB, RESPONSES: 500 * _MB, ANTHROPIC: 31 * _MB}
"""Bytes of a request, less some for what is no message. Sources: the same of OpenAI's, 512 MB; Anthropic, "Errors",
32 MB."""

_STEPS: Final = 4
"""Pictures give way by a quarter of the bound at once, so that most requests begin as those before."""

_PICTURES: Final = {"image_url", "input_image", "image", "computer_screenshot"}
_FILES: Final = {"file", "input_file", "document", "input_audio"}
_MARK: Final = re.compile('"(?:image|input_|computer_screenshot"|file"|document")')
"""What the JSON of a message with one of these has."""


def within_limits(messages: Sequence[Message], wire: str) -> dict[int, Message]:
    """The places of the messages that must give up pictures or files so that a request with all fits the API, each with
    what is sent in its place: a word in brackets for each, the oldest first. `messages` ascend."""
    having = [at for at, one in enumerate(messages) if _MARK.search(one.raw)]
    if not having:
        return {}
    parts = {at: list(_parts(messages[at].payload)) for at in having}
    # So many of the oldest go, and so many bytes.
    count = cut(sum(map(len, parts.values())), _MOST[wire], _MOST[wire] // _STEPS)
    size = cut(sum(len(one.raw) for one in messages), _LARGEST[wire], _LARGEST[wire] // _STEPS)
    found: dict[int, Message] = {}
    for at, mine in parts.items():
        gone = 0
        while gone < len(mine) and (count > 0 or size > 0):
            count -= 1
            size -= len(to_json(mine[gone], what="a part")) if size > 0 else 0
            gone += 1
        if gone:
            found[at] = _without(messages[at], gone)
    return found


def attachments(message: Message) -> list[dict[str, Any]]:
    """The pictures and files of a message, in order, each as its API has it."""
    return list(_parts(message.payload)) if _MARK.search(message.raw) else []


def _without(message: Message, count: int) -> Message:
    """The message without its first pictures and files, which are so many."""
    payload = message.payload
    text = "input_text" if message.wire == RESPONSES else "text"
    for part, _ in zip(_parts(payload), range(count), strict=False):
        kind = part["type"]
        name = "image" if kind in _PICTURES else "file"
        part.clear()
        if kind == "computer_screenshot":  # which has no room for a text
            part.update(type=kind, image_url=NO_SCREENSHOT)
        else:
            part.update(type=text, text=f"[{name} left out]")
    return dataclasses.replace(message, raw=to_json(payload, what="the message"))


def _parts(payload: Payload) -> Iterator[dict[str, Any]]:
    """The pictures and files of an item, in order."""
    unknown = is_unknown_result(str(payload.get("type")))
    todo: list[object] = [payload] if unknown else [payload.get("content"), payload.get("output")]
    while todo:
        one = todo.pop(0)
        if isinstance(one, list):
            todo = [*cast("list[object]", one), *todo]
        elif isinstance(one, dict):
            part = cast("dict[str, Any]", one)
            kind = part.get("type")
            if isinstance(kind, str) and kind in _PICTURES | _FILES:
                yield part
            else:
                todo = [*(part.values() if unknown else [part.get("content")]), *todo]
