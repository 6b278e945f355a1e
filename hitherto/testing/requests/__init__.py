"""A strict reader of requests, for tests: every reason for which the API would refuse one.

It is written from the types of the APIs' SDKs, their documents and their errors, and knows nothing of how Hitherto
writes a request. Servers that speak the same formats differ in what they let pass; the strictest known one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Wire
from hitherto.errors import InvalidInput
from hitherto.testing.requests import anthropic, chat, responses
from hitherto.testing.requests.fields import Path, Seals, check_strings
from hitherto.testing.requests.shapes import check_shape

__all__ = ["refusals"]

_NOBODY: Final[Mapping[str, str]] = MappingProxyType({})


def refusals(
    request: Mapping[str, Any],
    *,
    wire: Wire,
    model: str | None = None,
    sealed: Mapping[str, str] = _NOBODY,
    alternate: bool = False,
) -> list[str]:
    """Why the API would refuse `request`: a sentence for each reason, in the order of their places, such as
    "messages[3].tool_calls[0].id has 46 characters; at most 40 are accepted". Empty if it would take it.

    `request` is the body as an SDK would send it, such as `context.request`; what the caller adds, `model` and
    `max_tokens`, may be missing. Without `model`, that of the request counts; without either, what depends on the
    model is not checked, and of pictures the smaller bound counts. `sealed` says which model sealed an
    `encrypted_content`, a `signature` or the `data` of a `redacted_thinking`, where the request cannot: each is
    refused by a model of another family. `alternate` adds what the chat templates of Mistral, Gemma and Llama demand:
    user and assistant in turns, after at most one system message. It holds for chat completions, which their servers
    speak.

    It judges what one request shows. Not checked: whether pictures can be read, whether ids of files and stored
    responses exist, how many tokens there are, and whether a signature is true.

    Raises InvalidInput for a wire format that is not known, and for Anthropic's if its SDK is not installed.
    """
    name = model or request.get("model")
    seals = Seals(name if isinstance(name, str) else None, sealed)
    # Whether it streams makes another type of the same fields, and is nothing to refuse.
    body = {key: value for key, value in request.items() if key != "stream"}
    found = [*check_shape(body, _params(wire)), *check_strings(body, wire)]
    match wire:
        case "openai.chat":
            found += chat.check(request, alternate=alternate)
        case "openai.responses":
            found += responses.check(request, seals)
        case "anthropic":
            found += anthropic.check(request, seals)
    return list(dict.fromkeys(f"{_place(path)} {reason}" for path, reason in sorted(found, key=_order)))


def _params(wire: Wire) -> type[Any]:
    """The SDK's type of a request."""
    match wire:
        case "openai.chat":
            from openai.types.chat.completion_create_params import CompletionCreateParamsBase

            return CompletionCreateParamsBase
        case "openai.responses":
            from openai.types.responses.response_create_params import ResponseCreateParamsBase

            return ResponseCreateParamsBase
        case "anthropic":
            try:
                from anthropic.types.message_create_params import MessageCreateParamsBase
            except ModuleNotFoundError as error:
                raise InvalidInput(
                    f"a request in the format {wire!r} is read with Anthropic's SDK, which is not installed; "
                    "install it with: pip install 'hitherto[anthropic]'"
                ) from error
            return MessageCreateParamsBase
    raise InvalidInput(f"the wire format is {wire!r}; it must be one of {', '.join((CHAT, RESPONSES, ANTHROPIC))}")


def _place(path: Path) -> str:
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return steps.removeprefix(".") or "the request"


def _order(one: tuple[Path, str]) -> list[tuple[int, str]]:
    return [(step, "") if isinstance(step, int) else (-1, step) for step in one[0]]
