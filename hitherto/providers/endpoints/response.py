"""The SDKs' HTTP clients, and what an endpoint answers: a bounded body, and its JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from ssl import SSLContext
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

C = TypeVar("C", bound="AsyncClient")

LONGEST = 10_000_000
"""Bytes of a decompressed body. The longest useful answers are compactions, of some hundred thousand bytes."""

_LONGEST_ERROR = 64 * 1024
"""Bytes that are read of an error's body: the reason is at its beginning."""

_PACKED = ("content-encoding", "content-length", "transfer-encoding")


def client_of(kind: type[C]) -> C:
    """A client of this class, which follows no redirects. All of them share what they trust."""
    (library,) = {one.__module__.split(".")[0] for one in kind.__mro__ if one.__name__ == "AsyncClient"}
    return kind(follow_redirects=False, verify=_certificates(library))


@cache
def _certificates(library: str) -> SSLContext:
    """What an HTTP library trusts. To read it takes 30 ms, in which nothing else goes on."""
    return import_module(library).create_ssl_context()


class TooLong(Exception):
    """A body has more than `LONGEST` bytes."""


def _left(headers: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The headers that hold for the body as it was read. JSON is UTF-8: another charset would be no text's at all
    (zlib_codec), or a mistake."""
    for name, value in headers:
        if name.lower() not in _PACKED:
            yield name, value.split(";")[0] if name.lower() == "content-type" else value


async def bounded(response: Response) -> Response:
    """A streamed `response` with its body read and its connection released.

    The SDKs themselves read any body to its end, however long, and that of an error even when they stream. Raises
    TooLong if the body of a success is longer than `LONGEST`; the body of an error is cut.
    """
    body = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if response.is_success and len(body) > LONGEST:
                raise TooLong
            if not response.is_success and len(body) > _LONGEST_ERROR:
                break
    finally:
        await response.aclose()
    return type(response)(
        response.status_code,
        headers=[*_left(response.headers.multi_items())],
        content=bytes(body),
        request=response.request,
    )


def parsed(body: str) -> object:
    """A body as JSON; None for anything else."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def is_json(text: str) -> bool:
    """Whether `text` is complete JSON. Line breaks in strings are allowed, as some servers' grammars allow them."""
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def at(value: object, *path: str | int) -> object:
    """The value at `path` in parsed JSON; None if there is no such place."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = cast(dict[str, object], value).get(step)
        elif isinstance(value, list) and isinstance(step, int):
            listed = cast(list[object], value)
            value = listed[step] if step < len(listed) else None
        else:
            return None
    return value


def tokens(value: object) -> int | None:
    """`value` if it can be a count of tokens, else None."""
    return value if type(value) is int and 0 <= value < 2**53 else None
