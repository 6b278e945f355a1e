"""Bodies of requests: read whole, within their size and with patience, and checked before they are read as JSON."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from hitherto.errors import InvalidInput, TimedOut, TooLarge, UnsupportedMediaType

MOST_VALUES = 50_000
"""The most signs that separate values in a JSON body: what a verb does with each of them holds up others."""

DEEPEST = 100
"""How deep lists and objects may be nested in one another in a JSON body."""

_PATIENCE = 60.0
"""Seconds for which the next part of a body is waited for."""

_PIECE = 16_384
"""Bytes of a body that are looked at before others go on."""

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_SIGNS = (b",", b":", b"[", b"{")


class ClientLeft(Exception):
    """The client has gone, or reads nothing any more."""


class ReceivedParts:
    """What comes of a request, and whether that was all."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.ended = False

    async def __call__(self) -> Message:
        try:
            async with asyncio.timeout(None if self.ended else _PATIENCE):
                message = await self._receive()
        except TimeoutError:
            raise TimedOut(f"nothing has come of the request's body for {_PATIENCE:g} seconds") from None
        self.ended = not message.get("more_body", False)
        return message


def check_type(headers: Headers, needed: str) -> None:
    """Raises UnsupportedMediaType. A web page cannot send these types to another site without being asked first."""
    given = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if given != needed:
        raise UnsupportedMediaType(f"send the body as what it is: Content-Type: {needed}")


class _Values:
    """Counts the signs that separate the values of JSON, as it comes, and how deep they are nested; what is in texts
    does not count."""

    def __init__(self) -> None:
        self._in_text, self._rest, self._open = False, b"", b""
        self.found = 0
        self.too_deep = False

    def read(self, part: bytes) -> None:
        part = self._rest + part
        self._rest = part[-1:] if (len(part) - len(part.rstrip(b"\\"))) % 2 else b""  # it belongs to the next sign
        texts = part.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(texts[self._in_text :: 2])
        self._in_text ^= len(texts) % 2 == 0
        self.found += sum(outside.count(sign) for sign in _SIGNS)
        brackets = self._open + outside.translate(None, _NO_BRACKETS)
        for _ in range(DEEPEST):
            brackets, before = brackets.replace(b"[]", b"").replace(b"{}", b""), len(brackets)
            if len(brackets) == before:
                break
        self._open = brackets
        self.too_deep |= len(brackets) > DEEPEST


async def whole_body(receive: Receive, headers: Headers, size: int) -> bytes:
    """The whole body. Raises TooLarge, InvalidInput for what is no length, ClientLeft."""
    announced = headers.get("Content-Length")
    if announced is not None and not announced.isdecimal():
        raise InvalidInput("the header Content-Length is not a number")
    parts, length, values = list[bytes](), int(announced or 0), _Values()
    total = 0
    while length <= size:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        part: bytes = message.get("body", b"")
        parts.append(part)
        total += len(part)
        length = max(length, total)
        if length > size:
            break
        for start in range(0, len(part), _PIECE):
            if start:
                await asyncio.sleep(0)
            values.read(part[start : start + _PIECE])
            if values.found > MOST_VALUES:
                raise TooLarge(f"the body has more than {MOST_VALUES} values; send it in parts")
            if values.too_deep:
                raise TooLarge(f"the body is nested more than {DEEPEST} deep, or its brackets do not match")
        if not message.get("more_body", False):
            return b"".join(parts)
    raise TooLarge(f"the body is larger than {size} bytes, which is what the key allows; send it in parts")


def replayed(body: bytes, receive: Receive) -> Receive:
    """What gives the body once, and then what comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
