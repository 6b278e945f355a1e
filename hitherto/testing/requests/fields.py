"""What fields of several APIs have in common: ids, names, arguments, sealed blobs, sizes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, cast

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Wire
from hitherto.core.model_family import family_of

Path = tuple[str | int, ...]
"""Where something is in a request: the keys and indexes that lead there."""

Found = Iterator[tuple[Path, str]]
"""Places, and what is wrong with each."""

_MB: Final = 1024 * 1024

_LARGEST: Final[Mapping[Wire, int]] = {CHAT: 512 * _MB, RESPONSES: 512 * _MB, ANTHROPIC: 32 * _MB}
"""The most bytes of a request. Source: OpenAI's guide "Images and vision"; Anthropic's page "Errors"."""

_LONGEST_TEXT: Final = 10_485_760
"""The most characters of a text to OpenAI. Source: its error "string too long. Expected a string with maximum length
10485760". Files and pictures in the request have bounds of their own."""

MOST_IMAGES: Final = 1_500
"""The most pictures in a request to OpenAI. Source: its guide "Images and vision"."""

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Seals:
    """Which model is asked, and which one sealed what is opaque."""

    model: str | None
    sealed: Mapping[str, str]

    def check(self, blob: object, path: Path) -> Found:
        """Reasoning that a model sealed is of use to its own family alone. Holds for Responses ("The encrypted content
        … could not be verified") and Anthropic ("Invalid `signature` in `thinking` block"). Of the latter, the API
        itself drops blocks of another Claude, and clouds and gateways refuse them."""
        if self.model is None or not isinstance(blob, str) or blob not in self.sealed:
            return
        sealer = self.sealed[blob]
        if family_of(sealer) != family_of(self.model):
            yield path, f"was sealed by {sealer}, and {self.model} cannot open it"


def objects(value: object, path: Path) -> list[tuple[Path, Mapping[str, Any]]]:
    """The objects in a list, each with its place."""
    if not isinstance(value, list | tuple):
        return []
    listed = enumerate(cast("Iterable[object]", value))
    return [((*path, place), cast("Mapping[str, Any]", one)) for place, one in listed if isinstance(one, Mapping)]


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def check_name(value: object, path: Path, *, longest: int | None = None) -> Found:
    """An id or a name: not empty, not too long, of letters, digits, "_" and "-". What is no text, its shape tells."""
    yield from check_length(value, path, longest=longest)
    if isinstance(value, str) and value and not _NAME.fullmatch(value):
        yield path, f"is {shown(value)}; only letters, digits, _ and - are accepted"


def check_length(value: object, path: Path, *, longest: int | None) -> Found:
    """A text that is neither empty nor too long."""
    if value == "":
        yield path, "is empty"
    elif isinstance(value, str) and longest is not None and len(value) > longest:
        yield path, f"has {len(value)} characters; at most {longest} are accepted"


def check_arguments(value: object, path: Path) -> Found:
    """A call's arguments in chat completions and Responses. OpenAI takes any text; vLLM, llama.cpp and templates that
    print a mapping read it as a JSON object, and refuse all later requests if it is none ("Expecting ',' delimiter").
    An empty text is read as no arguments."""
    if not isinstance(value, str) or not value:
        return
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        yield path, "is not JSON; servers that read arguments refuse it"
        return
    if not isinstance(parsed, dict):
        yield path, f"is {shown(value)}; servers that read arguments want a JSON object"


def check_strings(request: Mapping[str, Any], wire: Wire) -> Found:
    """What holds for every value: the SDKs send JSON in UTF-8, and there is a bound to a text and to all together."""
    size = 0
    stack: list[tuple[Path, object]] = [((), request)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, Mapping):
            stack += [((*path, str(key)), one) for key, one in cast("Mapping[object, object]", value).items()]
        elif isinstance(value, list | tuple):
            stack += [((*path, place), one) for place, one in enumerate(cast("Iterable[object]", value))]
        elif isinstance(value, str):
            try:
                size += len(value) if value.isascii() else len(value.encode())
            except UnicodeEncodeError:
                yield path, "has half of a character (a lone surrogate), which JSON in UTF-8 cannot say"
            if wire != ANTHROPIC and len(value) > _LONGEST_TEXT and not value.startswith("data:"):
                yield path, f"has {len(value)} characters; at most {_LONGEST_TEXT} are accepted"
        elif isinstance(value, float) and not isfinite(value):
            yield path, f"is {value}, which JSON cannot say"
    if size > _LARGEST[wire]:
        yield (), f"has {size} bytes of text and pictures; at most {_LARGEST[wire]} are accepted"


def check_cache_key(request: Mapping[str, Any]) -> Found:
    """Of OpenAI's: "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64"."""
    yield from check_length(request.get("prompt_cache_key"), ("prompt_cache_key",), longest=64)


def check_count(images: int, path: Path, *, most: int) -> Found:
    """How many pictures a request has."""
    if images > most:
        yield path, f"has {images} pictures; at most {most} are accepted"


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
