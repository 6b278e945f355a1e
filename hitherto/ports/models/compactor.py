"""The port to a model's own compaction: items in, fewer items and one opaque item out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hitherto.core.log.message import Payload
from hitherto.core.model_family import family_of

__all__ = ["CompactionResult", "Compactor", "family_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """The result of a compaction: the endpoint's own items, as JSON objects with nothing taken out, in their order.

    Exactly one of them is of the type `compaction`; only models of the same family understand its `encrypted_content`.
    Anyone can read the others (with OpenAI, the user's messages). Nothing else was checked: read each with the codec of
    Responses before relying on it. `tokens_in`, of which `tokens_cached` came from the provider's prompt cache, and
    `tokens_out` are the endpoint's own figures, if given. `asked` is as in `Completion`.
    """

    items: tuple[Payload, ...]
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    asked: bool = True


class Compactor(Protocol):
    """A model that compacts a conversation in its own, opaque way.

    `name` is what a digest records, `family` is the family of models that understand its opaque items: see `family_of`.

    `check` tests at configuration time whether the endpoint can compact, without spending tokens. Raises
    InvalidSettings where it has no such call, ModelRejected for a wrong key or a model that it does not know,
    ModelUnavailable when there is no answer in time.

    `compact` takes items of OpenAI's Responses, in the order of the conversation, no tool result without its call;
    `instructions` go to the model beside them. It changes nothing at the endpoint. Raises what `Model.complete` raises,
    InvalidModelAnswer for an answer without exactly one compaction item. One call is one request. Cancelling the task
    ends the call.

    `aclose` releases what it holds; calling it twice is allowed.
    """

    @property
    def name(self) -> str: ...
    @property
    def family(self) -> str: ...
    async def check(self) -> None: ...
    async def compact(self, items: Sequence[Payload], *, instructions: str | None = None) -> CompactionResult: ...
    async def aclose(self) -> None: ...
