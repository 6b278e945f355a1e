"""A request as a page shows it: its parts, what of them repeats the request before, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from hitherto.core.context.manifest import Manifest
from hitherto.core.context.request import WireFormat
from hitherto.core.log.message import Payload
from hitherto.core.plain_text import without_data
from hitherto.core.price import Price
from hitherto.simulation.figures import Repeats, common_start, parts_of
from hitherto.tokens import counter_for

_CONTENT = ("content", "output")


@dataclass(frozen=True)
class RequestPart:
    """A part of a request: where it stands in it, whose it is, its text, of which the first `repeated` characters are
    as they were in the request before; `whole`: all of the part is. `breakpoint`: a cache breakpoint stands in it."""

    place: str
    role: str
    text: str
    repeated: int
    whole: bool
    breakpoint: bool


@dataclass(frozen=True)
class Repeated:
    """How many of a request's first tokens repeat the request before, and what the request costs in dollars with none
    of them from the provider's cache, and with those that it has. None where no price is known."""

    tokens: int
    cost: float | None
    cached_tokens: int | None
    cached_cost: float | None


def parts(request: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[RequestPart]:
    """The parts of a request, in the order in which a provider reads them."""
    earlier = [] if before is None else [piece for piece, _ in parts_of(before)]
    found, same = list[RequestPart](), True
    for at, ((piece, marked), place) in enumerate(zip(parts_of(request), _places(request), strict=True)):
        role, text = _role_and_text(piece)
        last = earlier[at] if same and at < len(earlier) else None
        same = last == piece
        repeated = len(text) if same else 0
        if last is not None and not same and last[0] == piece[0] and (was := _role_and_text(last))[0] == role:
            repeated = common_start(was[1], text)
        found.append(RequestPart(place, role, text, repeated, same, marked))
    return found


def repeated(
    manifest: Manifest,
    request: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    codec: WireFormat,
    price: Price | None,
) -> Repeated:
    """What of a request repeats the one before, and its price."""
    counted = Repeats(codec, counter_for(manifest.request.model or manifest.encoding))
    if before is not None:
        counted.of(before)
    breakpoints, end = counted.breakpoints, counted.end
    tokens = counted.of(request)
    if price is None:
        return Repeated(tokens, None, None, None)
    cached = price.cached(tokens, breakpoints=breakpoints, end=end) if before is not None else 0
    now = counted.breakpoints
    return Repeated(
        tokens,
        price.prompt(manifest.total, 0, breakpoints=now),
        cached,
        price.prompt(manifest.total, cached, breakpoints=now),
    )


def _places(request: Mapping[str, Any]) -> Iterator[str]:
    """Where the parts stand that `parts_of` gives."""
    if request.get("tools"):
        yield "tools"
    for name in ("instructions", "system"):
        if isinstance(request.get(name), str):
            yield name
        for at in range(len(cast("list[object]", request[name])) if isinstance(request.get(name), list) else 0):
            yield f"{name}[{at}]"
    name = "messages" if "messages" in request else "input"
    for at in range(len(request[name])):
        yield f"{name}[{at}]"


def _role_and_text(piece: tuple[str, Any]) -> tuple[str, str]:
    kind, value = piece
    if kind == "tools":
        return "", json.dumps(value, ensure_ascii=False)
    if kind == "system":
        return "", value
    item = cast("Payload", value)
    rest = {key: one for key, one in item.items() if key not in (*_CONTENT, "role") and one is not None}
    shown = [_text(item[key]) for key in _CONTENT if item.get(key) is not None]
    shown += [_text(rest)] if rest.keys() - {"type"} else []
    return str(item.get("role", item.get("type", ""))), "\n".join(shown)


def _text(value: object) -> str:
    return value if isinstance(value, str) else without_data(json.dumps(value, ensure_ascii=False, indent=1))
