"""A response read to its end, or to the bound beyond which nobody sends a digest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # whichever of the two the SDK brings: httpx or httpx2
    from httpx2 import Response

LONGEST = 10_000_000
"""Bytes of a body, unpacked. The longest answers are compactions, of some hundred thousand."""

_LONGEST_ERROR = 64 * 1024
"""Bytes that are read of a failure's body: its reason stands in the first of them."""

_PACKED = ("content-encoding", "content-length", "transfer-encoding")


class TooLong(Exception):
    """A body has more than `LONGEST` bytes."""


async def bounded(response: Response) -> Response:
    """A streamed `response` with its whole body, and its connection given back.

    The SDKs read any body to its end, however long, that of a failure even where they are asked to stream. Raises
    TooLong for the body of a success; that of a failure is cut.
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
        headers=[(name, value) for name, value in response.headers.multi_items() if name.lower() not in _PACKED],
        content=bytes(body),
        request=response.request,
    )
