"""What items cost in tokens, before they are sent.

For a chat message of plain text this is OpenAI's own formula, so it is exact where the counter is (source:
OpenAI Cookbook, "How to count tokens with tiktoken", part 6: 3 tokens a message, the tokens of role, content and
name, 1 more for a name, and 3 for the start of the reply). How the APIs put anything structured before a model is
not published. There the figure is an upper bound: the item's JSON, whose keys, quotes and ids cost more than what
stands for them. An image costs what the counter charges for one, never the length of its base64 text; files and sound
by pages and seconds, which are read from their bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast

from hitherto.core.context.budget import TokenCounter
from hitherto.core.log.message import Payload, containers

PER_ITEM = 3
PER_NAME = 1
REPLY = 3
PER_TOOL = 10
TOOLS = 12
PER_CHOICE = 3
"""The most that the Cookbook's figures (same page, part 7) charge for a function, for having any, and for a value
of an enum, beside the words in it: small schemas would otherwise cost more than their JSON."""

PAGE: Final = 3_000
"""The most tokens of text in a page of a PDF, whose picture is charged too (source: Anthropic, "PDF support":
1,500 to 3,000 a page, and the page as a picture. OpenAI, "File inputs", shows both too and gives no figure)."""

SECOND: Final = 32
"""Tokens of a second of sound: the most that a provider states (sources: Gemini, "Audio understanding", 32; OpenAI,
"Managing costs" of the Realtime API, 10 of the user's and 20 of the assistant's)."""

_MOST_PAGES: Final = 600
"""What Anthropic takes in a request ("PDF support"); OpenAI takes fewer. A file that claims more is refused there."""

_PAGE_BYTES: Final = 10_000
"""Bytes for which a page is charged where none can be counted: an encrypted PDF, or a file of another format. Of office
files, the bytes of their texts before they were packed."""

_LOWEST_RATE: Final = 750
"""Bytes of a second of sound in a format whose header is not read: 6 kbit/s, the lowest rate of Opus."""

_HIGHEST_RATE: Final = 6_144_000
"""Bytes of a second of WAV: eight channels of 32 bits at 192 kHz. A header that claims more is not believed."""

_UNPACKED: Final = 16_000_000
_STREAMS: Final = 2_000
"""How many of a PDF's object streams are read at most, and how many bytes of them."""

_ENTRY: Final = re.compile(rb"PK\x01\x02.{16}(.{4})(.{4})(.{2}).{16}", re.DOTALL)
"""An entry in the directory of a zip archive, up to its name: how long it is packed and unpacked, and how long the
name is."""

_IS_TEXT: Final = re.compile(rb"(?!.*(?:styles|theme|settings|slide(?:Layout|Master)s))[^/].*\.(?:x?html?|xml|txt|csv)")
"""Names of the parts of office files and books whose texts a model may be shown."""

_LONGEST_NAME: Final = 255
_MOST_ENTRIES: Final = 10_000

_MOST_PACKED: Final = 1_032
"""So many times smaller can zip make a text. A part that claims more is not believed."""

_IS_PAGE: Final = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_STREAM: Final = re.compile(rb"stream\r?\n")
_COUNT: Final = re.compile(rb"/Count\s+(\d{1,9})\b")

MEDIA: Final = ("input_image", "computer_screenshot", "input_file", "input_audio")
"""Types of the pictures, files and sounds of Responses, which are that wherever they stand in an item."""

_DATA: Final = {"data", "file_data"}

_NOTHING: tuple[object, ...] = (None, "", [], {})
_FREE = frozenset({"type", "text", "logprobs", "cache_control", "prompt_cache_breakpoint"})


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def structured(value: object, counter: TokenCounter) -> int:
    """A bound for any JSON value: its compact text."""
    return counter.count(compact(value))


def message_tokens(item: Payload, counter: TokenCounter, free: Collection[str] = ()) -> int:
    """The cost of an item with a role and content. `free` are fields that no model is shown."""
    total = PER_ITEM
    for key, value in item.items():
        if key == "content":
            total += counter.count(value) if isinstance(value, str) else content(value, counter)
        elif key in ("role", "name") and isinstance(value, str):
            total += counter.count(value) + (PER_NAME if key == "name" else 0)
        elif key == "audio" and isinstance(value, dict):
            sound = cast("Payload", value)
            words = sound.get("transcript")  # as `sendable` sends it
            if isinstance(words, str) and words.strip():
                total += counter.count(words)
            else:
                total += structured({key: _without_data(sound)}, counter) + (_sound(sound) if "data" in sound else 0)
        elif value not in _NOTHING and key not in free:
            total += structured({key: value}, counter)
    return total


def content(value: object, counter: TokenCounter) -> int:
    """The cost of an item's content or a tool's result: a text, a list of parts, or one part."""
    if isinstance(value, str):
        return counter.count(value)
    if isinstance(value, list):
        return sum(content(part, counter) for part in cast("list[object]", value))
    if isinstance(value, dict):
        return _part(cast("Payload", value), counter)
    return 0 if value is None else structured(value, counter)


def _part(part: Payload, counter: TokenCounter) -> int:
    kind, words = part.get("type"), part.get("text")
    if kind in ("image_url", "input_image", "computer_screenshot") or (kind == "image" and part.keys() & _PICTURE):
        return _image(part, counter)
    if kind in ("text", "input_text", "output_text") and isinstance(words, str):
        rest = {key: value for key, value in part.items() if key not in _FREE and value not in _NOTHING}
        return counter.count(words) + (structured(rest, counter) if rest else 0)
    if kind == "input_audio":
        return structured(_without_data(part), counter) + _sound(part.get("input_audio"))
    if kind in ("file", "input_file", "document") and "content" not in _source(part):
        return structured(_without_data(part), counter) + _file(part, counter)
    inner = [key for key, one in part.items() if isinstance(one, list | dict) and (key in _INNER or _has_media(one))]
    bare = structured({**part, **dict.fromkeys(inner)} if inner else part, counter)
    return bare + sum([content(part[key], counter) for key in inner])


def _has_media(value: Any) -> bool:
    """Whether there are pictures, files or sounds of Responses in it."""
    return any(isinstance(one, Mapping) and cast("Payload", one).get("type") in MEDIA for one, _ in containers(value))


_PICTURE = {"source", "url"}
_INNER = ("content", "output", "outputs", "source")
"""Where parts stand within a part."""


def _source(part: Payload) -> Payload:
    source = part.get("source")
    return cast("Payload", source) if isinstance(source, dict) else {}


def _image(part: Payload, counter: TokenCounter) -> int:
    inner = part.get("image_url", part.get("source"))
    nested = cast("Payload", inner) if isinstance(inner, dict) else {}
    low = "low" in (part.get("detail"), nested.get("detail"))
    rest = {**_beside_picture(nested), **_beside_picture(part)}
    words = structured(rest, counter) if rest else 0
    return words + (counter.low_image_tokens if low else counter.image_tokens)


def _beside_picture(part: Payload) -> Payload:
    return {
        key: value
        for key, value in part.items()
        if key not in _OF_PICTURES and value not in _NOTHING and (key, value) not in _DETAILS
    }


_OF_PICTURES = frozenset({"type", "image_url", "source", "url", "data", "media_type", "file_id"}) | _FREE - {"text"}
_DETAILS = [("detail", word) for word in ("auto", "low", "high", "original")]


def _file(part: Payload, counter: TokenCounter) -> int:
    """What the file in `part` costs, besides the part's other fields: its text, if it is a text; else its pages. One
    page where only an id or an address is sent."""
    inner = part.get("file", part.get("source", part))
    source = cast("Payload", inner) if isinstance(inner, dict) else part
    data = source.get("file_data", source.get("data"))
    if not isinstance(data, str):
        return PAGE + counter.image_tokens
    if source.get("type") == "text":
        return counter.count(data)
    head, comma, body = data.partition(",") if data.startswith("data:") else ("", "", data)
    media = str(source.get("media_type") or head.removeprefix("data:").partition(";")[0])
    content = _decoded(body if comma or not head else "")
    if media.startswith("text/") or media == "application/json":
        return counter.count(content.decode(errors="replace"))
    return _pages(content) * (PAGE + counter.image_tokens)


def _sound(sound: object) -> int:
    """What the sound in a part or an answer costs: `data` is its base64."""
    data = cast("Payload", sound).get("data") if isinstance(sound, dict) else None
    return SECOND * -(-_milliseconds(_decoded(data)) // 1_000) if isinstance(data, str) else SECOND


def _without_data(part: Payload) -> Payload:
    """The part without what `_file` or `_sound` counts."""
    return {key: _bare(value) for key, value in part.items() if key not in _DATA}


def _bare(value: Any) -> Any:
    return _without_data(cast("Payload", value)) if isinstance(value, dict) else value


def _decoded(data: str) -> bytes:
    """The bytes of base64; of what is none, as many as it would have."""
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return bytes(len(data) * 3 // 4)


def _pages(content: bytes) -> int:
    """The pages of a PDF as its page tree counts them, or so many page objects; else by its size."""
    found = 0
    for text in (content, *_unpacked(content)) if b"%PDF" in content[:1_024] else ():
        counts = [int(one) for one in _COUNT.findall(text)] if b"/Pages" in text else []
        found = max(found, len(_IS_PAGE.findall(text)), *counts, 0)
    return min(found or -(-_size(content) // _PAGE_BYTES) or 1, _MOST_PAGES)


def _size(content: bytes) -> int:
    """The size of a file; of an office file, which is a zip archive, with its texts unpacked. Of one with more entries
    than are read, the most that it can be."""
    size = len(content)
    entries = _ENTRY.finditer(content) if content.startswith(b"PK\x03\x04") else iter(())
    for entry in islice(entries, _MOST_ENTRIES):
        packed, unpacked, name = (int.from_bytes(field, "little") for field in entry.groups())
        if _IS_TEXT.fullmatch(content, entry.end(), entry.end() + min(name, _LONGEST_NAME)):
            packed = min(packed, len(content))
            size += max(0, min(unpacked, packed * _MOST_PACKED) - packed)
    return size if next(entries, None) is None else len(content) * _MOST_PACKED


def _unpacked(content: bytes) -> Iterator[bytes]:
    """The object streams of a PDF, in which newer ones keep their pages."""
    room, at, whole = _UNPACKED, 0, memoryview(content)
    for _ in range(_STREAMS):
        at = content.find(b"/ObjStm", at) + 1
        begins = _STREAM.search(content, at, at + 400) if at else None
        if room <= 0 or not at:
            return
        if begins is not None:
            try:
                text = zlib.decompressobj().decompress(whole[begins.end() :], room)
            except zlib.error:
                continue
            room -= len(text)
            yield text


def _milliseconds(content: bytes) -> int:
    rate = _LOWEST_RATE
    if content[:4] == b"RIFF" and content[8:12] == b"WAVE" and (at := content.find(b"fmt ", 12, 4_096)) >= 0:
        claimed = struct.unpack_from("<I", content, at + 16)[0] if len(content) >= at + 20 else 0
        rate = claimed if _LOWEST_RATE <= claimed <= _HIGHEST_RATE else rate
    return len(content) * 1_000 // rate


def system_text(text: str, counter: TokenCounter) -> int:
    """The cost of a system text sent as a separate message. If several are sent as one, the sum is an upper bound: the
    blank line between two costs less than the frame of a message."""
    return PER_ITEM + counter.count("system") + counter.count(text)


def schemas(tools: Sequence[Mapping[str, Any]], counter: TokenCounter) -> int:
    """A bound for the JSON of tool schemas. Without the model's tokenizer, its chat template is not known either, and
    some print them indented."""
    found = list(tools)
    return counter.count(compact(found) if counter.exact else json.dumps(found, indent=4, ensure_ascii=False))


def openai_tools(tools: Sequence[Mapping[str, Any]], counter: TokenCounter) -> int:
    """A bound for tool schemas: their JSON, and the most that OpenAI's published figures add to it."""
    if not tools:
        return 0
    choices = sum(_choices(container) for container, _ in containers(list(tools)))
    return schemas(tools, counter) + TOOLS + PER_TOOL * len(tools) + PER_CHOICE * choices


def _choices(container: object) -> int:
    values = cast("Payload", container).get("enum") if isinstance(container, dict) else None
    return len(cast("list[object]", values)) if isinstance(values, list) else 0
