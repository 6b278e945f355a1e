"""A wrapper around a model that counts the tokens of prompts and answers."""

from __future__ import annotations

from hitherto.core.context.budget import TokenCounter
from hitherto.core.log.message import CHAT
from hitherto.core.prompt import Prompt
from hitherto.ports.models.model import Completion, Model
from hitherto.wire import codec
from hitherto.wire.cost import compact

_CHAT = codec(CHAT)


class Counting(Model):
    """Passes everything on to `model`, and counts the tokens of prompts (the schema of the answer included) and of
    answers: those that `counter` counts, whatever the model itself reports. A call that fails is not counted."""

    def __init__(self, model: Model, counter: TokenCounter) -> None:
        self._model, self._counter = model, counter
        self.calls = 0
        self.tokens_in = 0
        self.tokens_out = 0

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def input_limit(self) -> int:
        return self._model.input_limit

    async def complete(self, prompt: Prompt) -> Completion:
        answer = await self._model.complete(prompt)
        items = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        self.calls += 1
        self.tokens_in += _CHAT.framing + sum(_CHAT.tokens(item, self._counter) for item in items)
        self.tokens_in += self._counter.count(compact(dict(prompt.schema))) if prompt.schema else 0
        self.tokens_out += self._counter.count(answer.text)
        return answer

    async def aclose(self) -> None:
        await self._model.aclose()
