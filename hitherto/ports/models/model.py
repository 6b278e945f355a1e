"""The port to a language model, with one method: `complete`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hitherto.core.prompt import Prompt

EXTRACTIVE = "extractive"
"""The name of the model that is code and no language model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A model's answer. `text` is the answer as text; where `Prompt.schema` was given and the endpoint has structured
    output, it is the JSON text. `tokens_in`, of which `tokens_cached` came from the provider's prompt cache, and
    `tokens_out` are the endpoint's own figures, if given. `asked` is whether a model was called at all: an answer that
    was computed locally is in no ledger."""

    text: str
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    asked: bool = True


class Model(Protocol):
    """A language model behind one method.

    `name` is what a digest records; "extractive" says that this is no language model. `input_limit` is the most tokens
    (o200k_base) of prompt it takes at once.

    `complete` answers the prompt. It asks the endpoint for structured output by `prompt.schema` where the endpoint has
    it, and goes on without where it has not. Raises ModelUnavailable when there is no answer in time or the endpoint is
    failing, ModelRateLimited at a rate limit (both with the endpoint's `retry_after`, if it gave one), ModelRejected
    when the endpoint refuses (the message says whether key, model name or request is at fault), InvalidModelAnswer when
    the answer is empty. Never raises anything else of its own. The error messages are logged and stored: they must not
    contain anything of the prompt, or of what the endpoint says about it. One call is one request: the caller decides
    about another try. Cancelling the task ends the call.

    `aclose` releases what it holds; calling it twice is allowed.
    """

    @property
    def name(self) -> str: ...
    @property
    def input_limit(self) -> int: ...
    async def complete(self, prompt: Prompt) -> Completion: ...
    async def aclose(self) -> None: ...
