"""The port to a model's own compaction: items in, fewer items and one opaque item out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hitherto.core.message import Payload

_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What a compaction left: the endpoint's own items, as JSON objects with nothing taken out, in their order.

    Exactly one of them is of the type `compaction`, with what only models of the same family understand in its
    `encrypted_content`; the others (the user's messages, with OpenAI) anyone can read. Nothing but that was looked
    at: read each with the codec of Responses before relying on it. `tokens_in` and `tokens_out` are the endpoint's own
    figures, if given.
    """

    items: tuple[Payload, ...]
    tokens_in: int | None = None
    tokens_out: int | None = None


class Compactor(Protocol):
    """A model that compacts a conversation in its own, opaque way.

    `name` is what a digest records, `family` whose opaque items these are: see `family_of`.

    `check` says at configuration time whether the endpoint can do it, without spending tokens. Raises InvalidSettings
    where it has no such call, ModelRefused for a wrong key or a model that it does not know, ModelUnreachable when
    there is no answer in time.

    `compact` takes items of OpenAI's Responses, in the order of the conversation, no tool result without its call;
    `instructions` are what the model is told beside them. It changes nothing at the endpoint. Raises ModelUnreachable
    when there is no answer in time, ModelRefused when the endpoint refuses (the message says whether key, model name
    or request is at fault), ModelAnswerUnusable for an answer without exactly one compaction item. Never raises
    anything else of its own, and never retries without end. Cancelling the task ends the call.

    `aclose` gives back what it holds; calling it twice is allowed.
    """

    @property
    def name(self) -> str: ...
    @property
    def family(self) -> str: ...
    async def check(self) -> None: ...
    async def compact(self, items: Sequence[Payload], *, instructions: str | None = None) -> Compacted: ...
    async def aclose(self) -> None: ...


def family_of(model: str) -> str:
    """The models that understand one another's opaque items: `model` without provider, fine-tuning and snapshot.

    "openai/gpt-5.2-2025-12-11" and "ft:gpt-5.2:acme:support:a1" are both "gpt-5.2". A size or variant is a family of
    its own ("gpt-5.2-mini"), and so is any name that is not made like OpenAI's.
    """
    name = model.strip()
    base = name.rsplit("/", 1)[-1]
    if base.startswith("ft:"):
        base = base.removeprefix("ft:").split(":", 1)[0]
    return _SNAPSHOT.sub("", base) or name
