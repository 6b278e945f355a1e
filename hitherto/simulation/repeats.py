"""How much of each request repeats the one before: what a provider's prompt cache can serve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any, cast

from hitherto.core.context.budget import TokenCounter
from hitherto.core.context.request import WireFormat
from hitherto.core.log.message import Payload
from hitherto.wire.breakpoints import has_breakpoints, without_breakpoints

_Piece = tuple[str, Any]
"""A part of a request, after its kind: "tools", "system" or "item"."""


class Repeats:
    """Compares the requests of one conversation, each with the one before.

    A request counts in the order in which the provider reads it: tools, instructions, items. A part is compared
    when it is met and counted once, so the time is linear in what is sent. Cache breakpoints make no difference.
    """

    def __init__(self, codec: WireFormat, counter: TokenCounter) -> None:
        self._codec, self._counter = codec, counter
        self._last: list[tuple[_Piece, int]] = []
        self._marked: list[bool] = []

    def of(self, request: Mapping[str, Any]) -> int:
        """How many of the request's first tokens repeat the request before; 0 for the first.

        Whole parts that are equal count with all their tokens. Of the first part that differs, the common beginning of
        the text counts, if nothing but the text differs.
        """
        given = list(_pieces(request))
        pieces = [piece for piece, _ in given]
        same = 0
        while same < min(len(pieces), len(self._last)) and pieces[same] == self._last[same][0]:
            same += 1
        shared = sum(cost for _, cost in self._last[:same])
        if same < min(len(pieces), len(self._last)):
            shared += self._partly(self._last[same], pieces[same])
        self._last[same:] = [(piece, self._cost(piece)) for piece in pieces[same:]]
        self._marked = [marked for _, marked in given]
        return shared

    @property
    def breakpoints(self) -> tuple[int, ...]:
        """Behind how many tokens each the last request has its cache breakpoints: at the ends of its parts."""
        ends = accumulate(cost for _, cost in self._last)
        return tuple(end for end, marked in zip(ends, self._marked, strict=True) if marked)

    @property
    def end(self) -> int:
        """How many tokens the last request has."""
        return sum(cost for _, cost in self._last)

    def _cost(self, piece: _Piece) -> int:
        kind, value = piece
        match kind:
            case "tools":
                return self._codec.tools_tokens(value, self._counter)
            case "system":
                return self._codec.system_tokens(value, self._counter)
            case _:
                return self._codec.tokens(value, self._counter)

    def _partly(self, last: tuple[_Piece, int], piece: _Piece) -> int:
        """The tokens of the two parts' common beginning; 0 when more than their text differs."""
        (last_kind, before), cost = last
        kind, now = piece
        if kind != last_kind:
            return 0
        if kind == "system":
            return min(cost, self._cost((kind, _common(before, now))))
        if kind != "item" or not _alike(before, now):
            return 0
        begin = {**now, "content": _common(before["content"], now["content"])}
        return min(cost, self._cost((kind, begin)))


def _alike(one: Payload, other: Payload) -> bool:
    """Whether nothing but the text of the two items differs."""
    texts = isinstance(one.get("content"), str) and isinstance(other.get("content"), str)
    return texts and {**one, "content": ""} == {**other, "content": ""}


def _common(one: str, other: str) -> str:
    return one[: common_start(one, other)]


def common_start(one: str, other: str) -> int:
    """How many characters the two texts have in common from their start."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _pieces(request: Mapping[str, Any]) -> Iterator[tuple[_Piece, bool]]:
    """The parts, each with whether it has a cache breakpoint."""
    if request.get("tools"):
        yield ("tools", request["tools"]), has_breakpoints(request["tools"])
    for name in ("instructions", "system"):
        if isinstance(request.get(name), str):
            yield ("system", request[name]), False
        for block in cast("list[Payload]", request[name] if isinstance(request.get(name), list) else []):
            yield ("system", block["text"]), has_breakpoints([block])
    for item in cast("list[Payload]", request["messages"] if "messages" in request else request["input"]):
        yield ("item", without_breakpoints(item)), has_breakpoints([item])
